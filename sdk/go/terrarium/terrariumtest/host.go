package terrariumtest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/sdk/go/terrarium"
)

// The limits of the contract that the Fake has, in bytes.
const (
	maxMessage = 1 << 20
	maxValue   = 1 << 20
	maxKey     = 512
)

// host is the creature's view of the Fake. It is a separate type so that its
// methods are not listed among those for tests.
type host struct{ f *Fake }

var _ terrarium.Host = host{}

func (h host) fail(code terrarium.Code, text string) int32 {
	h.f.sources[terrarium.SourceError] = []byte(text)
	return -int32(code)
}

// lookup stores a value as the result and returns its length.
func (h host) lookup(value, p []byte) int32 {
	h.f.sources[terrarium.SourceResult] = value
	copy(p, value)
	return int32(len(value))
}

// effect stages an effect unless the call may only read.
func (h host) effect(stage func(*effects)) int32 {
	if h.f.readOnly {
		return h.fail(terrarium.Denied, "effects are only collected while a delivery is handled")
	}
	stage(&h.f.staged)
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
	if i := slices.Index(h.f.handles, alias); i >= 0 {
		return int32(i)
	}
	h.f.handles = append(h.f.handles, alias)
	return int32(len(h.f.handles) - 1)
}

func (h host) Send(channel int32, payload, headers []byte) int32 {
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
	if n := len(payload) + len(headers); n > maxMessage {
		return h.fail(terrarium.TooLarge, fmt.Sprintf("the message has %d bytes; the limit message is %d", n, maxMessage))
	}
	status := h.effect(func(e *effects) {
		for _, alias := range to {
			e.sent = append(e.sent, Sent{Channel: alias, Payload: string(payload), Headers: string(headers)})
		}
	})
	if status < 0 {
		return status
	}
	return int32(len(to))
}

func (h host) SendTo(to string, payload []byte) int32 {
	return h.effect(func(e *effects) { e.sent = append(e.sent, Sent{To: to, Payload: string(payload)}) })
}

func (h host) Output(payload []byte) int32 {
	return h.effect(func(e *effects) { e.outputs = append(e.outputs, string(payload)) })
}

func (h host) StateGet(key string, p []byte) int32 {
	v, ok := h.f.staged.state[key]
	if !ok {
		return h.fail(terrarium.NotFound, fmt.Sprintf("the state has no key %q", key))
	}
	return h.lookup([]byte(v), p)
}

func (h host) StateSet(key string, value []byte) int32 {
	if key == "" || strings.Contains(key, "\x00") || strings.ToValidUTF8(key, "") != key {
		return h.fail(terrarium.InvalidArgument, "a key is UTF-8 without NUL and not empty")
	}
	if len(key) > maxKey || len(value) > maxValue {
		return h.fail(terrarium.TooLarge, fmt.Sprintf("key and value of %q have %d and %d bytes; the limits are %d and %d", key, len(key), len(value), maxKey, maxValue))
	}
	return h.effect(func(e *effects) { e.state[key] = string(value) })
}

func (h host) StateDelete(key string) int32 {
	_, existed := h.f.staged.state[key]
	status := h.effect(func(e *effects) { delete(e.state, key) })
	if status == 0 && existed {
		return 1
	}
	return status
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
	if status := h.effect(func(*effects) {}); status < 0 {
		return status
	}
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
	h.f.Logs = append(h.f.Logs, names[level]+" "+text)
	return 0
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
	if deadlineMS < 0 {
		return h.fail(terrarium.InvalidArgument, "the deadline is negative")
	}
	return h.effect(func(e *effects) {
		e.requests = append(e.requests, Request{To: to, Payload: string(payload), DeadlineMS: deadlineMS, Tag: tag})
	})
}

func (h host) Reply(payload []byte) int32 {
	if status := h.effect(func(*effects) {}); status < 0 {
		return status
	}
	if !h.f.asked {
		return h.fail(terrarium.Denied, "the delivery is not a request")
	}
	if h.f.staged.reply != nil {
		return h.fail(terrarium.AlreadyExists, "the request has a reply already")
	}
	reply := string(payload)
	h.f.staged.reply = &reply
	return 0
}

func (h host) TimerSet(name string, delayMS, periodMS int64, payload []byte) int32 {
	if delayMS < 0 || periodMS < 0 {
		return h.fail(terrarium.InvalidArgument, "a time is negative")
	}
	return h.effect(func(e *effects) {
		e.timers[name] = Timer{Due: h.f.Time + delayMS*int64(time.Millisecond), PeriodMS: periodMS, Payload: string(payload)}
	})
}

func (h host) TimerCancel(name string) int32 {
	_, was := h.f.staged.timers[name]
	status := h.effect(func(e *effects) { delete(e.timers, name) })
	if status == 0 && was {
		return 1
	}
	return status
}

func (h host) HTTP(_, _ []byte, _ int64) int32 { return h.absent() }
