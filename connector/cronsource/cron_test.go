package cronsource_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/connector"
	"github.com/seed47132306/terrarium/connector/connectortest"
	"github.com/seed47132306/terrarium/connector/cronsource"
)

// bench runs a cron source on a clock that the test moves.
type bench struct {
	t     *testing.T
	now   atomic.Int64
	clock *connector.Manual
	port  *connectortest.Port
}

func newBench(t *testing.T, start string) *bench {
	b := &bench{t: t, port: connectortest.NewPort()}
	b.set(start)
	b.clock = connector.NewManual(func() time.Time { return time.Unix(b.now.Load(), 0) })
	b.port.Clock = b.clock
	return b
}

func (b *bench) set(at string) {
	b.t.Helper()
	parsed, err := time.Parse(time.RFC3339, at)
	if err != nil {
		b.t.Fatal(err)
	}
	b.now.Store(parsed.Unix())
}

// start starts a source, and returns when the source waits for a tick.
func (b *bench) start(settings string) (stop func()) {
	b.t.Helper()
	c, err := cronsource.Kind{}.Open(json.RawMessage(settings))
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan error, 1)
	b.clock.Begin()
	go func() {
		defer b.clock.End()
		ended <- c.Run(ctx, b.port)
	}()
	b.clock.Next(time.Minute)
	return func() {
		cancel()
		if err := <-ended; err != nil {
			b.t.Error(err)
		}
	}
}

// advance moves the clock from tick to tick.
func (b *bench) advance(to string) {
	b.t.Helper()
	end, err := time.Parse(time.RFC3339, to)
	if err != nil {
		b.t.Fatal(err)
	}
	for {
		at, ok := b.clock.Next(time.Minute)
		if !ok || at.After(end) {
			b.now.Store(end.Unix())
			return
		}
		b.now.Store(at.Unix())
		b.clock.Fire(time.Minute)
	}
}

func (b *bench) ticks() []string {
	v := b.port.Seen()
	var out []string
	for _, m := range v.Sent {
		out = append(out, m.Headers["scheduled"])
	}
	return out
}

func (b *bench) check(want ...string) {
	b.t.Helper()
	if got := b.ticks(); !slices.Equal(got, want) {
		b.t.Errorf("the ticks are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTicks(t *testing.T) {
	b := newBench(t, "2026-03-02T10:00:00Z")
	stop := b.start(`{"schedule": "*/20 * * * *", "payload": "now"}`)
	b.advance("2026-03-02T11:00:00Z")
	stop()
	b.check("2026-03-02T10:20:00Z", "2026-03-02T10:40:00Z", "2026-03-02T11:00:00Z")
	v := b.port.Seen()
	if string(v.Sent[0].Payload) != "now" || v.Sent[0].Offset != 1772446800 {
		t.Errorf("the first message is %+v", v.Sent[0])
	}
}

// TestBeginningIsKept ends a source before its first tick, and starts it in another
// process after the time of that tick.
func TestBeginningIsKept(t *testing.T) {
	for missed, want := range map[string][]string{
		"last": {"2026-03-02T12:00:00Z"}, "all": {"2026-03-02T11:00:00Z", "2026-03-02T12:00:00Z"}, "none": nil,
	} {
		b := newBench(t, "2026-03-02T10:30:00Z")
		settings := `{"schedule": "0 * * * *", "missed": "` + missed + `"}`
		b.start(settings)()
		b.check()
		b.set("2026-03-02T12:10:00Z")
		stop := b.start(settings)
		b.advance("2026-03-02T12:50:00Z")
		stop()
		b.check(want...)
		// A schedule that has changed starts over.
		b.set("2026-03-02T13:50:00Z")
		stop = b.start(`{"schedule": "30 * * * *", "missed": "` + missed + `"}`)
		b.advance("2026-03-02T14:10:00Z")
		stop()
		b.check(want...)
	}
}

// TestSummerTime schedules a tick in the hour that a night in spring lacks: it is left
// out. A tick in the hour that a night in autumn has twice comes twice.
func TestSummerTime(t *testing.T) {
	b := newBench(t, "2026-03-28T12:00:00Z")
	stop := b.start(`{"schedule": "30 2 * * *", "time_zone": "Europe/Berlin"}`)
	b.advance("2026-03-30T12:00:00Z")
	stop()
	b.check("2026-03-30T02:30:00+02:00")
	b = newBench(t, "2026-10-24T12:00:00Z")
	stop = b.start(`{"schedule": "30 2 * * *", "time_zone": "Europe/Berlin"}`)
	b.advance("2026-10-25T12:00:00Z")
	stop()
	b.check("2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00")
}

// TestMissed starts a source again after a pause, with each setting.
func TestMissed(t *testing.T) {
	for missed, want := range map[string][]string{
		"none": {"2026-03-02T13:20:00Z"},
		"last": {"2026-03-02T13:00:00Z", "2026-03-02T13:20:00Z"},
		"all": {"2026-03-02T12:00:00Z", "2026-03-02T12:20:00Z", "2026-03-02T12:40:00Z", "2026-03-02T13:00:00Z",
			"2026-03-02T13:20:00Z"},
	} {
		t.Run(missed, func(t *testing.T) {
			b := newBench(t, "2026-03-02T11:30:00Z")
			settings := `{"schedule": "*/20 * * * *", "missed": "` + missed + `"}`
			stop := b.start(settings)
			b.advance("2026-03-02T11:40:00Z")
			stop()
			b.set("2026-03-02T11:50:00Z") // set back, or a restart right away, repeats nothing
			b.start(settings)()
			b.set("2026-03-02T13:10:00Z")
			stop = b.start(settings)
			b.advance("2026-03-02T13:20:00Z")
			stop()
			b.check(append([]string{"2026-03-02T11:40:00Z"}, want...)...)
		})
	}
}

func TestMissedAreBounded(t *testing.T) {
	b := newBench(t, "2026-03-02T00:00:00Z")
	stop := b.start(`{"schedule": "* * * * * *", "missed": "all"}`)
	b.advance("2026-03-02T00:00:01Z")
	stop()
	b.set("2026-03-02T01:00:00Z")
	b.start(`{"schedule": "* * * * * *", "missed": "all"}`)()
	v := b.port.Seen()
	if len(v.Sent) != 1+cronsource.MaxMissed || len(v.Refused) != 1 || !strings.Contains(v.Refused[0].Error(), "2599 missed ticks") {
		t.Errorf("%d messages, and left out: %v", len(v.Sent), v.Refused)
	}
}

func TestBadSettings(t *testing.T) {
	for settings, want := range map[string]string{
		`{"schedule": ""}`:                                 "not valid",
		`{"schedule": "* * *"}`:                            "it consists of 3 fields; write five, for minute, hour,",
		`{"schedule": "61 * * * *"}`:                       `the field "61" cannot be the minute, from 0 to 59`,
		`{"schedule": "0 0 0 1 13 *"}`:                     `the field "13" cannot be the month`,
		`{"schedule": "@often"}`:                           "use @hourly",
		`{"schedule": "@every 5m"}`:                        "interval",
		`{"schedule": "TZ=UTC * * * * *"}`:                 "time_zone",
		`{"schedule": "TZ="}`:                              "time_zone",
		`{"schedule": "0 0 31 2 *"}`:                       "never has a tick",
		`{"schedule": "@daily", "time_zone": "Mars/Base"}`: "no time zone",
		`{"schedule": "@daily", "time_zone": ""}`:          "no time zone",
		`{"schedule": "@daily", "time_zone": "../passwd"}`: "no time zone",
	} {
		_, err := cronsource.Kind{}.Open(json.RawMessage(settings))
		if abi.CodeOf(err) != abi.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", settings, err, want)
		}
	}
}

// TestChangedSchedule changes a schedule and back: neither sends ticks from before the change.
func TestChangedSchedule(t *testing.T) {
	b := newBench(t, "2026-03-02T10:00:30Z")
	const daily, hourly = `{"schedule": "30 10 * * *", "missed": "all"}`, `{"schedule": "@hourly", "missed": "all"}`
	stop := b.start(daily)
	b.advance("2026-03-02T10:30:00Z")
	stop()
	b.set("2026-03-02T15:10:00Z")
	stop = b.start(hourly)
	b.advance("2026-03-02T16:00:00Z")
	stop()
	b.set("2026-03-02T16:20:00Z")
	b.start(daily)()
	b.set("2026-03-02T17:20:00Z")
	b.start(hourly)()
	b.check("2026-03-02T10:30:00Z", "2026-03-02T16:00:00Z", "2026-03-02T17:00:00Z")
}

// TestSuspended makes the clock jump over ticks while a source waits.
func TestSuspended(t *testing.T) {
	for missed, want := range map[string][]string{
		"none": nil,
		"last": {"2026-03-02T11:20:00Z"},
		"all":  {"2026-03-02T10:20:00Z", "2026-03-02T10:40:00Z", "2026-03-02T11:00:00Z", "2026-03-02T11:20:00Z"},
	} {
		b := newBench(t, "2026-03-02T10:10:00Z")
		stop := b.start(`{"schedule": "*/20 * * * *", "missed": "` + missed + `"}`)
		b.set("2026-03-02T11:30:00Z")
		b.clock.Fire(time.Minute)
		stop()
		b.check(want...)
	}
}

// TestFutureTick uses a session whose last tick is in the future.
func TestFutureTick(t *testing.T) {
	b := newBench(t, "2030-03-02T10:10:00Z")
	stop := b.start(`{"schedule": "@hourly"}`)
	b.advance("2030-03-02T11:00:00Z")
	stop()
	b.set("2026-03-02T10:00:00Z")
	b.start(`{"schedule": "@hourly"}`)()
	v, err := b.port.Wait(t.Context(), func(v connectortest.View) bool { return len(v.Refused) > 0 })
	if err != nil || !strings.Contains(v.Refused[0].Error(), "in the future") {
		t.Errorf("%v, with %v", err, v.Refused)
	}
}
