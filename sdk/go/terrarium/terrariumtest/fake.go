// Package terrariumtest runs creatures written with package terrarium natively,
// in unit tests, without a Wasm host.
//
//	f := terrariumtest.New(creature)
//	f.Config = map[string]any{"prefix": "> "}
//	f.Channels = []string{"out"}
//	err := f.Message("in", "hello")
//	// f.Sent is now [{out "> hello"}]
package terrariumtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/sdk/go/terrarium"
)

// A Sent is a message sent by a successful turn.
type Sent struct {
	Channel string // the send alias; "" for a direct message, a reply or output
	To      string // the creature of a direct message
	Payload string
	Headers string // as in the contract
}

// A Fake is the environment of one creature. Tests set and read its fields
// between deliveries. Only one goroutine may use it. It has group tools if
// Tools is set; timers, requests and HTTP return unsupported.
type Fake struct {
	Creature terrarium.Creature
	Config   map[string]any
	Channels []string          // the send aliases that are bound
	State    map[string]string // as successful turns left it
	Sent     []Sent            // by successful turns, in order
	Outputs  []string          // of successful turns
	Logs     []string          // of all turns, as "level text"
	Name     string            // of the creature
	Time     int64             // of the next delivery, in nanoseconds since 1970
	// Tools handles calls of group tools; nil means that the host has none.
	// The creature gets the code of the error, or unavailable if the error has
	// no code.
	Tools func(name string, args []byte) (result []byte, err error)

	sources  map[terrarium.Source][]byte
	handles  []string
	staged   effects
	readOnly bool
}

// effects holds what a turn has collected.
type effects struct {
	state   map[string]string
	sent    []Sent
	outputs []string
}

// New returns a Fake for c without configuration, channels or state.
func New(c terrarium.Creature) *Fake { return &Fake{Creature: c, Name: "self"} }

// Init runs the creature's Init, which may only read.
func (f *Fake) Init() error {
	f.begin(nil)
	f.readOnly = true
	return status(f.Creature.RunInit(host{f}))
}

// Message delivers a message on a listen alias.
func (f *Fake) Message(alias, payload string) error {
	return f.Deliver(terrarium.KindMessage, map[terrarium.Source]string{
		terrarium.SourceChannel: alias,
		terrarium.SourcePayload: payload,
	})
}

// Deliver makes a delivery of any kind. If the creature fails, Deliver returns
// its error and none of the turn's effects applies.
func (f *Fake) Deliver(kind terrarium.Kind, sources map[terrarium.Source]string) error {
	f.begin(sources)
	payload := sources[terrarium.SourcePayload]
	if err := status(f.Creature.RunHandle(host{f}, kind, int32(len(payload)))); err != nil {
		return err
	}
	f.State = f.staged.state
	f.Sent = append(f.Sent, f.staged.sent...)
	f.Outputs = append(f.Outputs, f.staged.outputs...)
	return nil
}

func status(n int32) error {
	if n < 0 {
		return terrarium.Code(-n)
	}
	return nil
}

func (f *Fake) begin(sources map[terrarium.Source]string) {
	f.readOnly = false
	f.staged = effects{state: maps.Clone(f.State)}
	if f.staged.state == nil {
		f.staged.state = map[string]string{}
	}
	config := []byte("{}")
	if f.Config != nil {
		config = asJSON(f.Config)
	}
	f.sources = map[terrarium.Source][]byte{terrarium.SourceSelf: []byte(f.Name), terrarium.SourceConfig: config}
	for s, content := range sources {
		f.sources[s] = []byte(content)
	}
}

// asJSON encodes configuration. A value that cannot be encoded is a mistake in
// the test and becomes null.
func asJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return b
}

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
	return h.fail(terrarium.Unsupported, "the fake host has no optional features")
}

func (h host) Read(s terrarium.Source, offset int32, p []byte) int32 {
	content := h.f.sources[s]
	return int32(copy(p, content[min(int(offset), len(content)):]))
}

func (h host) Size(s terrarium.Source) int32 { return int32(len(h.f.sources[s])) }

func (h host) Feature(f terrarium.Feature) int32 {
	if f == terrarium.FeatureTools && h.f.Tools != nil {
		return 1
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

func (h host) FuelLeft() int64                             { return -1 }
func (h host) Request(string, []byte, int64, int64) int32  { return h.absent() }
func (h host) Reply([]byte) int32                          { return h.absent() }
func (h host) TimerSet(string, int64, int64, []byte) int32 { return h.absent() }
func (h host) TimerCancel(string) int32                    { return h.absent() }
func (h host) HTTP(_, _ []byte, _ int64) int32             { return h.absent() }
