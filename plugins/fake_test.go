package plugins_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/abi"
)

// A world is the environment of one creature in these tests: its
// configuration, its channels and its state, which only successful turns
// change.
type world struct {
	config   map[string]any
	channels []string // send aliases that are bound
	state    map[string]string
	handles  []string
	features bool
	cancels  bool // the end of a timer is an effect too
	// tool handles calls of group tools; nil means that there are none.
	tool func(t *turn, name, args string) (string, abi.Code)
	// random fills memory in place of zeros.
	random func(p []byte)
	// gone reports whether the creature of that name is missing; nil means
	// that every creature exists.
	gone func(name string) bool
}

// A delivery is the input of one turn. The kind defaults to message, the
// channel to "in".
type delivery struct {
	kind    abi.Kind
	channel string
	direct  bool
	sender  string
	payload string
	headers string
	detail  string // JSON; by default that of a message
}

// An effect is one effect of a turn, as text that can be compared.
type effect = string

// turn implements abi.Turn for one call.
type turn struct {
	w        *world
	d        delivery
	readOnly bool
	effects  []effect
	logs     []string
	state    map[string]string
	fault    string
	calls    int
}

func (w *world) turn(d delivery, readOnly bool) *turn {
	return &turn{w: w, d: d, readOnly: readOnly, state: maps.Clone(w.state)}
}

func (t *turn) fail(code abi.Code, format string, args ...any) abi.Code {
	t.fault = fmt.Sprintf(format, args...)
	return code
}

func (t *turn) effect() abi.Code {
	if t.readOnly {
		return t.fail(abi.Denied, "read-only")
	}
	return abi.OK
}

func (t *turn) Source(s abi.Source) ([]byte, abi.Code) {
	switch s {
	case abi.SourcePayload:
		return []byte(t.d.payload), abi.OK
	case abi.SourceChannel:
		if t.d.direct {
			return []byte("self"), abi.OK
		}
		return []byte(t.d.channel), abi.OK
	case abi.SourceSender:
		return []byte(t.d.sender), abi.OK
	case abi.SourceHeaders:
		return []byte(t.d.headers), abi.OK
	case abi.SourceError:
		return []byte(t.fault), abi.OK
	case abi.SourceDetail:
		if t.d.detail != "" {
			return []byte(t.d.detail), abi.OK
		}
		return fmt.Appendf(nil, `{"kind":%q,"direct":%v,"seq":1,"attempt":1}`, t.d.kind, t.d.direct), abi.OK
	case abi.SourceConfig:
		if t.w.config == nil {
			return []byte("{}"), abi.OK
		}
		b, err := json.Marshal(t.w.config)
		if err != nil {
			return nil, t.fail(abi.Internal, "%v", err)
		}
		return b, abi.OK
	case abi.SourceSelf:
		return []byte("self"), abi.OK
	}
	return nil, abi.OK
}

func (t *turn) HasFeature(abi.Feature) bool { return t.w.features }
func (t *turn) LastError() string           { return t.fault }

func (t *turn) Config(key []byte) ([]byte, abi.Code) {
	v, ok := t.w.config[string(key)]
	if !ok {
		return nil, t.fail(abi.NotFound, "no attribute %q", key)
	}
	if s, ok := v.(string); ok {
		return []byte(s), abi.OK
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, t.fail(abi.Internal, "%v", err)
	}
	return b, abi.OK
}

func (t *turn) Channel(alias []byte) int32 {
	if i := slices.Index(t.w.handles, string(alias)); i >= 0 {
		return int32(i)
	}
	t.w.handles = append(t.w.handles, string(alias))
	return int32(len(t.w.handles) - 1)
}

func (t *turn) Send(channel int32, payload, headers []byte) int32 {
	if code := t.effect(); code != abi.OK {
		return code.Status()
	}
	if int64(len(payload)+len(headers)) > abi.DefaultLimits.Message {
		return t.fail(abi.TooLarge, "the message is too large").Status()
	}
	to := t.w.channels
	if channel != abi.AllChannels {
		if channel < 0 || int(channel) >= len(t.w.handles) {
			return t.fail(abi.InvalidArgument, "no handle %d", channel).Status()
		}
		to = []string{t.w.handles[channel]}
		if !slices.Contains(t.w.channels, to[0]) {
			return t.fail(abi.NotConnected, "no alias %q", to[0]).Status()
		}
	}
	for _, alias := range to {
		t.effects = append(t.effects, fmt.Sprintf("send %s %q %q", alias, payload, headers))
	}
	return int32(len(to))
}

func (t *turn) SendTo(to, payload []byte) abi.Code {
	t.effects = append(t.effects, fmt.Sprintf("send_to %q %q", to, payload))
	return t.effect()
}

func (t *turn) Request(to, payload []byte, _ time.Duration, tag int64) abi.Code {
	if t.w.gone != nil && t.w.gone(string(to)) {
		return t.fail(abi.NotFound, "no creature %s", to)
	}
	t.effects = append(t.effects, fmt.Sprintf("request %q %q %d", to, payload, tag))
	return t.effect()
}

func (t *turn) Reply(payload []byte) abi.Code {
	t.effects = append(t.effects, fmt.Sprintf("reply %q", payload))
	return t.effect()
}

func (t *turn) Output(payload []byte) abi.Code {
	t.effects = append(t.effects, fmt.Sprintf("output %q", payload))
	return t.effect()
}

func (t *turn) StateGet(key []byte) ([]byte, abi.Code) {
	v, ok := t.state[string(key)]
	if !ok {
		return nil, t.fail(abi.NotFound, "no key %q", key)
	}
	return []byte(v), abi.OK
}

func (t *turn) StateSet(key, value []byte) abi.Code {
	if code := t.effect(); code != abi.OK {
		return code
	}
	if len(key) == 0 || int64(len(key)) > abi.DefaultLimits.StateKey || bytes.IndexByte(key, 0) >= 0 || !bytes.Equal(key, bytes.ToValidUTF8(key, nil)) {
		return t.fail(abi.InvalidArgument, "the key %q", key)
	}
	if t.state == nil {
		t.state = map[string]string{}
	}
	t.state[string(key)] = string(value)
	return abi.OK
}

func (t *turn) StateDelete(key []byte) (bool, abi.Code) {
	_, ok := t.state[string(key)]
	delete(t.state, string(key))
	return ok, t.effect()
}

func (t *turn) StateList(prefix []byte, page func([]byte)) abi.Code {
	for _, key := range slices.Sorted(maps.Keys(t.state)) {
		if strings.HasPrefix(key, string(prefix)) {
			page(append([]byte(key), 0))
		}
	}
	return abi.OK
}

func (t *turn) TimerSet(name []byte, delay, _ time.Duration, payload []byte) abi.Code {
	t.effects = append(t.effects, fmt.Sprintf("timer %s %v %q", name, delay, payload))
	return t.effect()
}
func (t *turn) TimerCancel(name []byte) (bool, abi.Code) {
	if t.w.cancels {
		t.effects = append(t.effects, fmt.Sprintf("cancel %s", name))
	}
	return false, t.effect()
}
func (t *turn) HTTP(_, _ []byte, _ int64) abi.Code { return abi.Unsupported }

func (t *turn) Tool(name, args []byte) ([]byte, abi.Code) {
	if t.w.tool == nil {
		return nil, t.fail(abi.Unsupported, "no tools")
	}
	result, code := t.w.tool(t, string(name), string(args))
	return []byte(result), code
}

func (t *turn) Log(level abi.Level, text []byte) abi.Code {
	t.logs = append(t.logs, fmt.Sprintf("%v: %s", level, text))
	return abi.OK
}

func (t *turn) Now() int64 { return 1 }

func (t *turn) Random(p []byte) {
	clear(p)
	if t.w.random != nil {
		t.w.random(p)
	}
}
