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
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/sdk/go/terrarium"
)

// A Sent is a message sent by a successful turn.
type Sent struct {
	Channel string // the send alias; "" for a direct message, a reply or output
	To      string // the creature of a direct message
	Payload string
	Headers string // as in the contract
}

// A Request is a request that a successful turn has made.
type Request struct {
	To, Payload string
	DeadlineMS  int64
	Tag         int64
}

// A Timer is a timer that is set.
type Timer struct {
	Due      int64 // in nanoseconds since 1970
	PeriodMS int64 // 0: once
	Payload  string
}

// A Fake is the environment of one creature. Tests set and read its fields
// between deliveries. Only one goroutine may use it. It has group tools if
// Tools is set; HTTP returns unsupported. The default limits of the contract
// apply to all that a turn collects.
type Fake struct {
	Creature terrarium.Creature
	Config   map[string]any
	Channels []string // the send aliases that are bound
	// Creatures are those that the creature can reach directly; nil means any.
	Creatures []string
	State     map[string]string // as successful turns left it
	Sent      []Sent            // by successful turns, in order
	Outputs   []string          // of successful turns, one for each that has any
	Logs      []string          // of all turns, as "level text"
	Name      string            // of the creature
	Time      int64             // of the next delivery, in nanoseconds since 1970
	Requests  []Request         // by successful turns, in order
	Timers    map[string]Timer  // that are set, by name
	// Awareness is the document as JSON. Its member revision is the revision.
	Awareness string
	// Tools handles calls of group tools; nil means that the host has none.
	// The creature gets the code of the error, or unavailable if the error has
	// no code.
	Tools func(name string, args []byte) (result []byte, err error)

	sources  map[terrarium.Source][]byte
	handles  []string
	staged   effects
	readOnly bool
	asked    bool // the delivery is a request
	waiting  int  // requests without a result
}

// effects holds what a turn has collected.
type effects struct {
	state    map[string]string
	timers   map[string]Timer
	sent     []Sent
	requests []Request
	reply    *string

	output    []byte
	hasOutput bool
	stateSize int
	writes    map[string]bool // the keys that were written or deleted
	sends     int
	sendBytes int
	logLines  int
	logBytes  int
	tools     int
}

// New returns a Fake for c without configuration, channels or state.
func New(c terrarium.Creature) *Fake { return &Fake{Creature: c, Name: "self"} }

// Init runs the creature's Init, which may only read.
func (f *Fake) Init() error {
	f.begin(nil)
	f.readOnly = true
	return status(f.Creature.RunInit(host{f}))
}

// Start makes the delivery that is made once in a creature's life.
func (f *Fake) Start() error { return f.Deliver(terrarium.KindStart, nil) }

// Message delivers a message on a listen alias.
func (f *Fake) Message(alias, payload string, headers ...terrarium.Header) error {
	return f.Deliver(terrarium.KindMessage, map[terrarium.Source]string{
		terrarium.SourceChannel: alias,
		terrarium.SourcePayload: payload,
		terrarium.SourceHeaders: encode(headers),
		terrarium.SourceDetail:  `{"kind":"message","attempt":1,"direct":false}`,
	})
}

func encode(headers []terrarium.Header) string {
	var b strings.Builder
	for _, h := range headers {
		b.WriteString(h.Name + "\x00" + h.Value + "\x00")
	}
	return b.String()
}

// Request delivers a request and returns the reply; replied is false if the creature
// did not reply.
func (f *Fake) Request(payload string) (reply string, replied bool, err error) {
	f.asked = true
	defer func() { f.asked = false }()
	if err := f.Deliver(terrarium.KindRequest, map[terrarium.Source]string{
		terrarium.SourcePayload: payload,
		terrarium.SourceDetail:  `{"kind":"request","attempt":1,"deadline_ms":1000}`,
	}); err != nil || f.staged.reply == nil {
		return "", false, err
	}
	return *f.staged.reply, true, nil
}

// Answer delivers the reply to a request of the creature.
func (f *Fake) Answer(tag int64, payload string) error { return f.result(tag, "ok", payload) }

// Fail delivers the failure of a request of the creature.
func (f *Fake) Fail(tag int64, code terrarium.Code, text string) error {
	return f.result(tag, code.Error(), text)
}

func (f *Fake) result(tag int64, code, payload string) error {
	f.waiting = max(f.waiting-1, 0)
	return f.Deliver(terrarium.KindResult, map[terrarium.Source]string{
		terrarium.SourcePayload: payload,
		terrarium.SourceDetail:  fmt.Sprintf(`{"kind":"result","attempt":1,"tag":"%d","code":%q}`, tag, code),
	})
}

// Changed sets the awareness document and delivers that it has changed.
func (f *Fake) Changed(awareness string) error {
	f.Awareness = awareness
	return f.Deliver(terrarium.KindGraphChanged, map[terrarium.Source]string{
		terrarium.SourceDetail: `{"kind":"graph_changed","attempt":1,"revision":` + f.revision() + `}`,
	})
}

func (f *Fake) revision() string {
	if revision := terrarium.JSON(f.Awareness).Get("revision"); revision != nil {
		return string(revision)
	}
	if f.Awareness == "" {
		return "" // the host has no document
	}
	return "1"
}

// Advance moves the time forward and delivers every timer that comes due, each at its
// time. It stops at the first error.
func (f *Fake) Advance(d time.Duration) error {
	end := f.Time + int64(d)
	if d > 0 && end < f.Time {
		end = math.MaxInt64
	}
	for {
		name, timer, ok := f.next(end)
		if !ok {
			f.Time = end
			return nil
		}
		f.Time = timer.Due
		if timer.PeriodMS == 0 {
			delete(f.Timers, name)
		} else {
			timer.Due = after(timer.Due, timer.PeriodMS)
			f.Timers[name] = timer
		}
		if err := f.Deliver(terrarium.KindTimer, map[terrarium.Source]string{
			terrarium.SourcePayload: timer.Payload,
			terrarium.SourceDetail:  `{"kind":"timer","attempt":1,"name":` + string(terrarium.AppendJSON(nil, name)) + `}`,
		}); err != nil {
			return err
		}
	}
}

// next returns the timer that comes due first, until end; of several the first by name.
func (f *Fake) next(end int64) (name string, timer Timer, ok bool) {
	for _, n := range slices.Sorted(maps.Keys(f.Timers)) {
		if t := f.Timers[n]; t.Due <= end && (!ok || t.Due < timer.Due) {
			name, timer, ok = n, t, true
		}
	}
	return name, timer, ok
}

// Deliver makes a delivery of any kind. If the creature fails, Deliver returns
// its error and none of the turn's effects applies.
func (f *Fake) Deliver(kind terrarium.Kind, sources map[terrarium.Source]string) error {
	f.begin(sources)
	payload := sources[terrarium.SourcePayload]
	if err := status(f.Creature.RunHandle(host{f}, kind, int32(len(payload)))); err != nil {
		f.staged.reply = nil
		return err
	}
	f.State, f.Timers = f.staged.state, f.staged.timers
	f.Sent = append(f.Sent, f.staged.sent...)
	if f.staged.hasOutput {
		f.Outputs = append(f.Outputs, string(f.staged.output))
	}
	f.waiting += len(f.staged.requests)
	f.Requests = append(f.Requests, f.staged.requests...)
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
	f.staged = effects{state: copied(f.State), timers: copied(f.Timers), writes: map[string]bool{}}
	for key, value := range f.State {
		f.staged.stateSize += cost(key, value)
	}
	config := []byte("{}")
	if f.Config != nil {
		config = asJSON(f.Config)
	}
	f.sources = map[terrarium.Source][]byte{
		terrarium.SourceSelf: []byte(f.Name), terrarium.SourceConfig: config,
		terrarium.SourceAwarenessJSON: []byte(f.Awareness), terrarium.SourceAwarenessRevision: []byte(f.revision()),
		terrarium.SourceDetail: []byte("{}"),
	}
	for s, content := range sources {
		f.sources[s] = []byte(content)
	}
}

// copied returns a copy of m that can be written to.
func copied[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return maps.Clone(m)
}

// asJSON encodes configuration. A value that cannot be encoded is a mistake in
// the test and becomes null.
func asJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return []byte("null")
	}
	return bytes.TrimSpace(b.Bytes())
}
