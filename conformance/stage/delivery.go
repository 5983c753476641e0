package stage

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
)

// KindName is the name of a kind of delivery. It is stable.
type KindName string

// The kinds of deliveries.
const (
	Message      KindName = "message"
	Start        KindName = "start"
	Output       KindName = "output"
	TimerFired   KindName = "timer"
	Result       KindName = "result"
	GraphChanged KindName = "graph_changed"
	Request      KindName = "request"
)

// Delivery is a delivery in a file of deliveries, or a step of the clock.
type Delivery struct {
	Kind     KindName           `json:"kind,omitempty"`  // message by default
	Alias    string             `json:"alias,omitempty"` // of the channel; none: directly
	Payload  operations.Payload `json:"payload,omitempty"`
	Headers  map[string]string  `json:"headers,omitempty"`
	Sender   string             `json:"sender,omitempty"`   // name of the creature that sent it
	Name     string             `json:"name,omitempty"`     // of a timer
	Tag      int64              `json:"tag,omitempty"`      // of the request that a result answers
	Code     string             `json:"code,omitempty"`     // of a result: ok by default
	Deadline string             `json:"deadline,omitempty"` // of a request: 1m by default
	Wire     string             `json:"wire,omitempty"`     // id of the wire of an output
	Advance  string             `json:"advance,omitempty"`  // moves the clock instead
	// Peers and Listen replace those of the creature from this delivery on; nil: they stay.
	Peers  []string `json:"peers,omitempty"`
	Listen []string `json:"listen,omitempty"`

	// What only suites set.
	Tools   []string `json:"-"` // replace those of the creature, as Peers do
	Number  abi.Kind `json:"-"` // of a kind that Kind does not name
	Attempt int      `json:"-"` // 1 by default
	Message uint64   `json:"-"` // number of the message; by default each gets a new one
}

// MaxAdvance is the longest step of the clock.
const MaxAdvance = 10 * 365 * 24 * time.Hour

// KindNumber returns the number of the kind, or 0 if there is no such kind.
func (d *Delivery) KindNumber() abi.Kind {
	if d.Number != 0 {
		return d.Number
	}
	at := slices.IndexFunc(abi.Kinds, func(k abi.KindInfo) bool { return k.Name == string(d.Kind) })
	if at < 0 {
		return 0
	}
	return abi.Kinds[at].Kind
}

func (d *Delivery) deadline() time.Duration { return durationOr(d.Deadline, time.Minute) }

// Step returns how far the delivery moves the clock.
func (d *Delivery) Step() time.Duration { return durationOr(d.Advance, 0) }

// durationOr returns a duration that was checked when it was read.
func durationOr(text string, other time.Duration) time.Duration {
	if v, err := time.ParseDuration(text); err == nil {
		return v
	}
	return other
}

// Check completes a delivery, and returns what is wrong with it.
func (d *Delivery) Check() error {
	if d.Advance != "" {
		v, err := time.ParseDuration(d.Advance)
		if err != nil || v <= 0 || v > MaxAdvance {
			return fmt.Errorf("advance %q: use a duration above 0, such as 5s or 24h, and of at most ten years", d.Advance)
		}
		if d.Kind != "" || d.Alias != "" || d.Payload != nil || d.Peers != nil || d.Listen != nil {
			return errors.New("a step with advance delivers nothing else: make two steps of it")
		}
		return nil
	}
	if d.Kind == "" {
		d.Kind = Message
	}
	kind := d.KindNumber()
	if kind == 0 {
		return fmt.Errorf("kind %q: use %s", d.Kind, KindNames())
	}
	for _, only := range []struct {
		field string
		set   bool
		kind  abi.Kind
	}{
		{"alias", d.Alias != "", abi.KindMessage}, {"name", d.Name != "", abi.KindTimer}, {"tag", d.Tag != 0, abi.KindResult},
		{"code", d.Code != "", abi.KindResult}, {"deadline", d.Deadline != "", abi.KindRequest}, {"wire", d.Wire != "", abi.KindOutput},
	} {
		if only.set && kind != only.kind {
			return fmt.Errorf("%s is only for deliveries of the kind %s; this one is of the kind %s", only.field, only.kind, d.Kind)
		}
	}
	if kind == abi.KindTimer && d.Name == "" {
		return errors.New("a timer needs its name")
	}
	if v, err := time.ParseDuration(d.Deadline); d.Deadline != "" && (err != nil || v <= 0) {
		return fmt.Errorf("deadline %q: use a duration above 0, such as 10s", d.Deadline)
	}
	headers, ok := journal.EncodeHeaders(d.Headers)
	if !ok {
		return errors.New("a header needs a name, and has no NUL in its name or value")
	}
	if journal.HasReservedHeader(headers) {
		return fmt.Errorf("headers whose names begin with %s belong to the host: use another name", journal.ReservedPrefix)
	}
	return nil
}

// KindNames lists the names of the kinds, for messages.
func KindNames() string {
	var names []string
	for _, k := range abi.Kinds {
		names = append(names, k.Name)
	}
	return strings.Join(names, ", ")
}
