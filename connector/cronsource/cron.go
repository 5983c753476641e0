// Package cronsource is the source of the kind cron: it sends a message at the times of a
// schedule. The offset of a message is its scheduled time, so each tick is taken once, even
// after a kill, and when a clock is set back.
package cronsource

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/connector"
	"github.com/seed47132306/terrarium/internal/plainly"
)

// Kind is the kind cron.
type Kind struct{}

// Name implements [connector.Kind].
func (Kind) Name() string { return "cron" }

// Direction implements [connector.Kind].
func (Kind) Direction() connector.Direction { return connector.Source }

// MaxMissed bounds how many missed ticks are sent: older ones are left out and reported.
const MaxMissed = 1000

// Settings implements [connector.Kind].
func (Kind) Settings() []capability.Setting {
	return []capability.Setting{
		{Name: "schedule", Type: capability.Text, Required: true, Doc: "minute, hour, day of month, month and day of week, such as `\"*/15 8-17 * * MON-FRI\"`; if there are six fields, the first is for seconds. Or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`"},
		{Name: "time_zone", Type: capability.Text, Default: `"UTC"`, Doc: "the time zone of the schedule, such as `\"Europe/Berlin\"`, from the database of the machine; `\"Local\"` is that of the process. If a time does not exist on a day because of summer time, it has no tick; if it exists twice, it has two"},
		{Name: "missed", Type: capability.Text, Choices: []string{"last", "all", "none"}, Default: `"last"`, Doc: fmt.Sprintf("which missed ticks are sent: those that were due while nothing ran, while the machine was suspended, or while an earlier tick was being sent. `all` sends at most the last %d", MaxMissed)},
		{Name: "payload", Type: capability.Text, Without: "an object with the scheduled time", Doc: "the payload of each message"},
	}
}

type settings struct {
	Schedule string  `json:"schedule"`
	TimeZone string  `json:"time_zone"`
	Missed   string  `json:"missed"`
	Payload  *string `json:"payload"`
}

// Seconds are optional. Intervals such as @every 5m are not supported, because they
// depend on the time of the start.
var parser = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// Open implements [connector.Kind].
func (Kind) Open(data json.RawMessage) (connector.Connector, error) {
	s := settings{TimeZone: "UTC", Missed: "last"}
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, plainly.JSON(nil, err)
	}
	zone, err := time.LoadLocation(s.TimeZone)
	if err != nil || s.TimeZone == "" {
		return nil, &abi.Error{
			Code: abi.InvalidArgument, Message: fmt.Sprintf("there is no time zone %q", s.TimeZone),
			Remedy: "use a name such as Europe/Berlin or UTC; on a machine without a database of time zones, install the package tzdata",
		}
	}
	schedule, err := parse(s.Schedule)
	if err != nil {
		return nil, &abi.Error{
			Code: abi.InvalidArgument, Message: fmt.Sprintf("the schedule %q is not valid: %v", s.Schedule, err),
			Remedy: `write minute, hour, day of month, month and day of week, such as "*/15 * * * *"`,
		}
	}
	times := &calendar{schedule, zone}
	if _, found := times.after(time.Date(2000, 1, 1, 0, 0, 0, 0, zone)); !found {
		return nil, &abi.Error{Code: abi.InvalidArgument, Message: fmt.Sprintf("the schedule %q never has a tick", s.Schedule), Remedy: "use a day that the month has"}
	}
	return &source{settings: s, times: times}, nil
}

func parse(text string) (schedule *cron.SpecSchedule, err error) {
	defer func() {
		if p := recover(); p != nil { // the library has had bugs that panic
			err = fmt.Errorf("it cannot be read: %v", p)
		}
	}()
	switch {
	case strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ="):
		return nil, fmt.Errorf("the time zone belongs in the attribute time_zone")
	case strings.HasPrefix(text, "@every"):
		return nil, fmt.Errorf("an interval depends on the time of the start; write it as */N")
	}
	parsed, err := parser.Parse(text)
	if err != nil {
		return nil, fault(text, err)
	}
	schedule, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("it has no times of the calendar")
	}
	return schedule, nil
}

// parts are the fields of an expression, in order, with their values.
var parts = []string{
	"second, from 0 to 59", "minute, from 0 to 59", "hour, from 0 to 23", "day of the month, from 1 to 31", "month, from 1 to 12 or JAN to DEC", "day of the week, from 0 to 6 or SUN to SAT",
}

// fault describes the mistake in an expression that the parser refuses with an error.
func fault(text string, err error) error {
	fields := strings.Fields(text)
	switch {
	case strings.HasPrefix(text, "@"):
		return fmt.Errorf("%s is not a known interval; use @hourly, @daily, @weekly, @monthly or @yearly", text)
	case len(fields) != 5 && len(fields) != 6:
		return fmt.Errorf("it consists of %d fields; write five, for minute, hour, day of the month, month and day of the week, or six, with the second first", len(fields))
	}
	for k, field := range fields {
		alone := slices.Repeat([]string{"*"}, len(fields))
		alone[k] = field
		if _, wrong := parser.Parse(strings.Join(alone, " ")); wrong != nil {
			return fmt.Errorf("the field %q cannot be the %s", field, parts[k+len(parts)-len(fields)])
		}
	}
	return err
}

type source struct {
	settings
	times *calendar

	begun time.Time // when it was first run; Run is called by one goroutine at a time
	kept  time.Time // up to when the session has the ticks; the same
}

func (s *source) Reaches() string { return fmt.Sprintf("ticks at %s, %s", s.Schedule, s.TimeZone) }

func (s *source) Endless() bool { return true }

// Timed implements [connector.Timed].
func (s *source) Timed() {}

// Run implements [connector.Connector].
func (s *source) Run(ctx context.Context, p connector.Port) error {
	known, err := p.Producers()
	if err != nil {
		return err
	}
	started := p.Now()
	if s.begun.IsZero() { // the first attempt
		s.begun = started
	}
	s.kept = s.lastTick(p, known)
	if known[s.producer(p)] == 0 && s.begun.Unix() > 0 {
		// Ticks count as missed from here on, also in another process.
		if _, err := p.Send(ctx, connector.Message{Producer: s.producer(p), Offset: uint64(s.begun.Unix()), Mark: true}); err != nil {
			return unlessOver(ctx, err)
		}
	}
	p.Working()
	var reported time.Time
	for last := s.kept; ; {
		// The clock may have been set back, while the source waited or sent ticks.
		now := p.Now()
		last = latest(s.kept, earliest(last, now)) // a tick that was not sent may still come
		if ahead := s.kept.Sub(now); ahead > maxAhead && !s.kept.Equal(reported) {
			s.reportAhead(p)
			reported = s.kept
		}
		next, found := s.times.after(last)
		if err := p.Until(ctx, next); err != nil {
			return nil //nolint:nilerr // ctx has ended
		}
		switch now = p.Now(); {
		case now.Before(next): // Until has noticed a change
		case !found: // nor is one known
			last = next
		default:
			// More ticks than one are due after a pause, such as one of the machine.
			if last, err = s.due(ctx, p, next, now, started); err != nil {
				return unlessOver(ctx, err)
			}
		}
	}
}

// maxAhead is how far the last tick may be ahead of the clock without a report: the clock
// may have been set back a little.
const maxAhead = 5 * time.Minute

// reportAhead reports that no tick will come for long, because the clock was wrong or is.
func (s *source) reportAhead(p connector.Port) {
	p.Refused(&abi.Error{
		Code: abi.Conflict, Message: fmt.Sprintf("the last tick or the start of the schedule is at %s, in the future: no tick comes before it", s.scheduled(s.kept)),
		Remedy: "correct the clock; or give the source another name, so that it starts over",
	})
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func unlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// lastTick is the time after which ticks are due. A schedule that the session does not know yet
// begins with the first attempt. The producer has the schedule in its name, so that one that was
// changed sends no ticks from before the change.
func (s *source) lastTick(p connector.Port, known map[string]uint64) time.Time {
	if known[s.producer(p)] == 0 {
		return latest(s.begun, time.Unix(0, 0)) // offsets begin in 1970
	}
	var last uint64
	for name, offset := range known {
		if strings.HasPrefix(name, p.Name()+":") { // this schedule, and those before and after it
			last = max(last, offset)
		}
	}
	return time.Unix(int64(last), 0)
}

func (s *source) producer(p connector.Port) string {
	sum := sha256.Sum256([]byte(s.Schedule + "\x00" + s.TimeZone))
	return p.Name() + ":" + hex.EncodeToString(sum[:8])
}

// inTime is how late a running source may send a tick that does not count as missed.
const inTime = 10 * time.Second

// maxCounted bounds how many ticks that are left out are counted. A clock that starts in 1970 and
// is then set has left out a tick for each second of decades.
const maxCounted = 10_000

// due sends the ticks from first, which is due, until now. If there are several, all but
// the last were missed, and the setting says which of them are sent. It returns the last
// tick, sent or not.
func (s *source) due(ctx context.Context, p connector.Port, first, now, started time.Time) (last time.Time, err error) {
	list, left := s.ticks(first, now)
	last = list[len(list)-1]
	if s.Missed == "none" && (last.Before(started) || now.Sub(last) > inTime) {
		return last, nil
	}
	if left > 0 {
		number := fmt.Sprint(left)
		if left > maxCounted {
			number = fmt.Sprintf("more than %d", maxCounted)
		}
		p.Refused(&abi.Error{Code: abi.LimitExceeded, Message: number + " missed ticks are left out", Remedy: fmt.Sprintf("at most %d are sent; use a schedule with fewer ticks", MaxMissed)})
	}
	for _, at := range list {
		if err := s.tick(ctx, p, at); err != nil {
			return last, err
		}
	}
	return last, nil
}

// ticks are the last ticks from first, which is one, until now: as many as may be sent. left counts
// the others, as far as that is reported. The search goes back from now, because there may be any
// number of ticks before.
func (s *source) ticks(first, now time.Time) (list []time.Time, left int) {
	at, found := s.times.before(now, first)
	list = []time.Time{latest(first, at)}
	for s.Missed == "all" && found && left <= maxCounted {
		if at, found = s.times.before(at.Add(-time.Second), first); !found {
			break
		}
		if len(list) == MaxMissed {
			left++
			continue
		}
		list = append(list, at)
	}
	slices.Reverse(list)
	return list, left
}

// scheduled is a time as messages have it.
func (s *source) scheduled(at time.Time) string { return at.In(s.times.zone).Format(time.RFC3339) }

// tick sends the message of a tick.
func (s *source) tick(ctx context.Context, p connector.Port, at time.Time) error {
	scheduled := s.scheduled(at)
	m := connector.Message{Headers: map[string]string{"scheduled": scheduled}, Producer: s.producer(p), Offset: uint64(at.Unix())}
	if s.Payload != nil {
		m.Payload = []byte(*s.Payload)
	} else {
		m.Payload, _ = json.Marshal(map[string]string{"scheduled": scheduled}) // texts always can
	}
	_, err := p.Send(ctx, m)
	if err != nil && ctx.Err() == nil && connector.Final(err) {
		p.Refused(err)
		return nil
	}
	if err == nil {
		s.kept = at
	}
	return err
}
