package terrariumtest

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/sdk/go/terrarium"
)

// host is the creature's view of the Fake. It is a separate type so that its
// methods are not listed among those for tests.
type host struct{ f *Fake }

var _ terrarium.Host = host{}

func (h host) fail(code terrarium.Code, text string) int32 {
	h.f.sources[terrarium.SourceError] = []byte(text)
	return -int32(code)
}

// over refuses what exceeds a limit of the turn or the creature.
func (h host) over(limit string, most int) int32 {
	return h.fail(terrarium.Limit, fmt.Sprintf("the limit %s (%d) is reached", limit, most))
}

// name checks a key of the state or the name of a timer.
func (h host) name(what, name string) int32 {
	switch {
	case len(name) > maxStateKey:
		return h.fail(terrarium.TooLarge, fmt.Sprintf("%s has %d bytes; the limit state_key is %d", what, len(name), maxStateKey))
	case name == "" || strings.Contains(name, "\x00") || !utf8.ValidString(name):
		return h.fail(terrarium.InvalidArgument, what+" is UTF-8 without NUL and not empty")
	}
	return 0
}

// lookup stores a value as the result and returns its length.
func (h host) lookup(value, p []byte) int32 {
	h.f.sources[terrarium.SourceResult] = value
	copy(p, value)
	return int32(len(value))
}

// effect checks what all calls with an effect have in common.
func (h host) effect() int32 {
	if h.f.readOnly {
		return h.fail(terrarium.Denied, "effects are only collected while a delivery is handled")
	}
	return 0
}

func (h host) absent() int32 {
	return h.fail(terrarium.Unsupported, "the fake host does not have this feature")
}

func (h host) Read(s terrarium.Source, offset int32, p []byte) int32 {
	content := h.f.sources[s]
	return int32(copy(p, content[min(int(offset), len(content)):]))
}

func (h host) Size(s terrarium.Source) int32 { return int32(len(h.f.sources[s])) }

func (h host) Feature(f terrarium.Feature) int32 {
	switch f {
	case terrarium.FeatureTimers, terrarium.FeatureRequests:
		return 1
	case terrarium.FeatureAwareness:
		if h.f.Awareness != "" {
			return 1
		}
	case terrarium.FeatureTools:
		if h.f.Tools != nil {
			return 1
		}
	}
	return 0
}

func (h host) Config(key string, p []byte) int32 {
	v, ok := h.f.Config[key]
	if !ok {
		return h.fail(terrarium.NotFound, fmt.Sprintf("the configuration has no attribute %q", key))
	}
	if s, ok := v.(string); ok {
		return h.lookup([]byte(s), p)
	}
	return h.lookup(asJSON(v), p)
}

func (h host) Channel(alias string) int32 {
	if alias == "" {
		return h.fail(terrarium.InvalidArgument, "an alias is not empty")
	}
	if i := slices.Index(h.f.handles, alias); i >= 0 {
		return int32(i)
	}
	h.f.handles = append(h.f.handles, alias)
	return int32(len(h.f.handles) - 1)
}

func (h host) Send(channel int32, payload, headers []byte) int32 {
	if status := h.effect(); status < 0 {
		return status
	}
	to := h.f.Channels
	if channel >= 0 {
		if int(channel) >= len(h.f.handles) {
			return h.fail(terrarium.InvalidArgument, "there is no such handle")
		}
		to = []string{h.f.handles[channel]}
		if !slices.Contains(h.f.Channels, to[0]) {
			return h.fail(terrarium.NotConnected, fmt.Sprintf("the creature has no send alias %q", to[0]))
		}
	}
	if status := h.small(len(payload) + len(headers)); status < 0 {
		return status
	}
	headers, status := h.headers(headers)
	if status < 0 {
		return status
	}
	if status := h.room(len(to), len(payload)+len(headers)); status < 0 {
		return status
	}
	for _, alias := range to {
		h.f.staged.sent = append(h.f.staged.sent, Sent{Channel: alias, Payload: string(payload), Headers: string(headers)})
	}
	return int32(len(to))
}

// headers checks the headers of a message. It leaves out those of the host that the
// creature passes on.
func (h host) headers(all []byte) (own []byte, status int32) {
	const reserved = "terrarium-"
	delivered := string(h.f.sources[terrarium.SourceHeaders])
	for rest := string(all); rest != ""; {
		name, after, ok := strings.Cut(rest, "\x00")
		value, next, closed := strings.Cut(after, "\x00")
		if !ok || !closed || name == "" {
			return nil, h.fail(terrarium.InvalidArgument, "the headers are malformed")
		}
		rest = next
		header := name + "\x00" + value + "\x00"
		if len(name) < len(reserved) || !strings.EqualFold(name[:len(reserved)], reserved) {
			own = append(own, header...)
		} else if !strings.Contains("\x00"+delivered, "\x00"+header) {
			return nil, h.fail(terrarium.InvalidArgument, "names of headers that begin with terrarium- are reserved for the host")
		}
	}
	return own, 0
}

// small refuses a message that is too large.
func (h host) small(size int) int32 {
	if size > maxMessage {
		return h.fail(terrarium.TooLarge, fmt.Sprintf("the message has %d bytes; the limit message is %d", size, maxMessage))
	}
	return 0
}

// room counts messages of one size.
func (h host) room(messages, size int) int32 {
	e := &h.f.staged
	switch {
	case size > maxMessage:
		return h.small(size)
	case e.sends+messages > maxSends:
		return h.over("sends", maxSends)
	case e.sendBytes+messages*size > maxSendBytes:
		return h.over("send_bytes", maxSendBytes)
	}
	e.sends += messages
	e.sendBytes += messages * size
	return 0
}

// reachable refuses a creature that the graph does not have.
func (h host) reachable(to string) int32 {
	if h.f.Creatures != nil && !slices.Contains(h.f.Creatures, to) {
		return h.fail(terrarium.NotFound, fmt.Sprintf("there is no creature %q in this graph", to))
	}
	return 0
}

func (h host) SendTo(to string, payload []byte) int32 {
	if status := h.effect(); status < 0 {
		return status
	}
	if status := h.reachable(to); status < 0 {
		return status
	}
	if status := h.room(1, len(payload)); status < 0 {
		return status
	}
	h.f.staged.sent = append(h.f.staged.sent, Sent{To: to, Payload: string(payload)})
	return 0
}

func (h host) Output(payload []byte) int32 {
	if status := h.effect(); status < 0 {
		return status
	}
	e := &h.f.staged
	if len(e.output)+len(payload) > maxOutput {
		return h.over("output", maxOutput)
	}
	e.output, e.hasOutput = append(e.output, payload...), true
	return 0
}

func (h host) StateGet(key string, p []byte) int32 {
	if len(key) <= maxStateKey { // the state has no longer ones
		if status := h.name("a key", key); status < 0 {
			return status
		}
	}
	v, ok := h.f.staged.state[key]
	if !ok {
		return h.fail(terrarium.NotFound, fmt.Sprintf("the state has no key %q", key))
	}
	return h.lookup([]byte(v), p)
}

// mayWrite checks a key before it is written or deleted.
func (h host) mayWrite(key string) int32 {
	if status := h.effect(); status < 0 {
		return status
	}
	return h.name("a key", key)
}

// written counts the keys that the turn has written.
func (h host) written(key string) int32 {
	e := &h.f.staged
	if !e.writes[key] && len(e.writes) >= maxStateWrites {
		return h.over("state_writes", maxStateWrites)
	}
	e.writes[key] = true
	return 0
}

// cost is what a key counts against the limit of the state.
func cost(key, value string) int { return len(key) + len(value) + 32 }

func (h host) StateSet(key string, value []byte) int32 {
	if status := h.mayWrite(key); status < 0 {
		return status
	}
	if len(value) > maxStateValue {
		return h.fail(terrarium.TooLarge, fmt.Sprintf("the value of %q has %d bytes; the limit state_value is %d", key, len(value), maxStateValue))
	}
	e := &h.f.staged
	size := e.stateSize + cost(key, string(value))
	if old, ok := e.state[key]; ok {
		size -= cost(key, old)
	}
	if size > maxState {
		return h.over("state", maxState)
	}
	if status := h.written(key); status < 0 {
		return status
	}
	e.state[key], e.stateSize = string(value), size
	return 0
}

func (h host) StateDelete(key string) int32 {
	if status := h.mayWrite(key); status < 0 {
		return status
	}
	e := &h.f.staged
	old, existed := e.state[key]
	if !existed {
		return 0
	}
	if status := h.written(key); status < 0 {
		return status
	}
	delete(e.state, key)
	e.stateSize -= cost(key, old)
	return 1
}

func (h host) StateList(prefix string, p []byte) int32 {
	var list strings.Builder
	for _, key := range slices.Sorted(maps.Keys(h.f.staged.state)) {
		if strings.HasPrefix(key, prefix) {
			list.WriteString(key + "\x00")
		}
	}
	return h.lookup([]byte(list.String()), p)
}

func (h host) Tool(name string, args []byte) int32 {
	if h.f.Tools == nil {
		return h.absent()
	}
	if status := h.effect(); status < 0 {
		return status
	}
	if h.f.staged.tools >= maxTools {
		return h.over("tools", maxTools)
	}
	h.f.staged.tools++
	result, err := h.f.Tools(name, args)
	if err == nil {
		return h.lookup(result, nil)
	}
	code := terrarium.Unavailable
	errors.As(err, &code)
	return h.fail(code, err.Error())
}

func (h host) Log(level terrarium.Level, text string) int32 {
	names := [...]string{"debug", "info", "warn", "error"}
	if level < 0 || int(level) >= len(names) {
		return h.fail(terrarium.InvalidArgument, "there is no such level")
	}
	e := &h.f.staged
	room := maxLogBytes - e.logBytes
	switch {
	case e.logLines >= maxLogLines:
		return h.over("log_lines", maxLogLines)
	case len(text) > room && room < len(ellipsis):
		return h.over("log_bytes", maxLogBytes)
	}
	e.logLines++
	e.logBytes += min(len(text), room)
	line := strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > room {
		line = shortened(line, min(room, len(line)))
	}
	h.f.Logs = append(h.f.Logs, names[level]+" "+line)
	return 0
}

// ellipsis ends a log line that was cut.
const ellipsis = "…"

// shortened cuts a line to at most size bytes, with the ellipsis.
func shortened(line string, size int) string {
	end := size - len(ellipsis)
	for end > 0 && !utf8.RuneStart(line[end]) {
		end--
	}
	return line[:end] + ellipsis
}

func (h host) Now() int64 { return h.f.Time }

// Random fills p with bytes that are the same in every turn.
func (h host) Random(p []byte) int32 {
	for i := range p {
		p[i] = byte(i)
	}
	return 0
}

func (h host) FuelLeft() int64 { return -1 }

func (h host) Request(to string, payload []byte, deadlineMS, tag int64) int32 {
	if status := h.effect(); status < 0 {
		return status
	}
	e := &h.f.staged
	if deadlineMS <= 0 {
		return h.fail(terrarium.InvalidArgument, "a request needs a deadline")
	}
	if status := h.reachable(to); status < 0 {
		return status
	}
	if h.f.waiting+len(e.requests) >= maxRequests {
		return h.over("requests", maxRequests)
	}
	if status := h.room(1, len(payload)); status < 0 {
		return status
	}
	e.requests = append(e.requests, Request{To: to, Payload: string(payload), DeadlineMS: deadlineMS, Tag: tag})
	return 0
}

func (h host) Reply(payload []byte) int32 {
	if status := h.effect(); status < 0 {
		return status
	}
	switch {
	case !h.f.asked:
		return h.fail(terrarium.Denied, "the delivery is not a request")
	case h.f.staged.reply != nil:
		return h.fail(terrarium.AlreadyExists, "the request has a reply already")
	case len(payload) > maxMessage:
		return h.fail(terrarium.TooLarge, fmt.Sprintf("the reply has %d bytes; the limit message is %d", len(payload), maxMessage))
	}
	reply := string(payload)
	h.f.staged.reply = &reply
	return 0
}

func (h host) TimerSet(name string, delayMS, periodMS int64, payload []byte) int32 {
	if status := h.effect(); status < 0 {
		return status
	}
	if delayMS < 0 || periodMS < 0 {
		return h.fail(terrarium.InvalidArgument, "a time is negative")
	}
	if status := h.name("the name of a timer", name); status < 0 {
		return status
	}
	if len(payload) > maxMessage {
		return h.fail(terrarium.TooLarge, fmt.Sprintf("the payload has %d bytes; the limit message is %d", len(payload), maxMessage))
	}
	timers := h.f.staged.timers
	size, others := len(name)+len(payload), 0
	for other, t := range timers {
		if other != name {
			others++
			size += len(other) + len(t.Payload)
		}
	}
	switch {
	case others >= maxTimers:
		return h.over("timers", maxTimers)
	case size > maxTimerBytes:
		return h.over("timer_bytes", maxTimerBytes)
	}
	timers[name] = Timer{Due: after(h.f.Time, delayMS), PeriodMS: periodMS, Payload: string(payload)}
	return 0
}

// after returns a time some milliseconds after another, or the latest time there is.
func after(time, ms int64) int64 {
	if ms > (math.MaxInt64-max(time, 0))/1_000_000 {
		return math.MaxInt64
	}
	return time + ms*1_000_000
}

func (h host) TimerCancel(name string) int32 {
	if status := h.effect(); status < 0 {
		return status
	}
	if _, was := h.f.staged.timers[name]; !was {
		return 0
	}
	delete(h.f.staged.timers, name)
	return 1
}

func (h host) HTTP(_, _ []byte, _ int64) int32 { return h.absent() }
