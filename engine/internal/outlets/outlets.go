// Package outlets makes the deliveries of an output over output wires, and says why one
// cannot be made. It depends neither on graphs nor on turns.
package outlets

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/effects"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Outlet is an output wire as a turn uses it.
type Outlet struct {
	journal.OutputWire
	prompt    deploy.Prompt
	predicate deploy.Predicate // nil: there is none, or it is not known
}

// Of prepares wires. predicate returns the predicate of a name, or nil.
func Of(wires []journal.OutputWire, predicate func(name string) deploy.Predicate) []Outlet {
	if len(wires) == 0 {
		return nil
	}
	out := make([]Outlet, len(wires))
	for i, w := range wires {
		out[i] = Outlet{OutputWire: w, predicate: predicate(w.When)}
		if w.Prompt != "" {
			out[i].prompt, _ = deploy.ParsePrompt(w.Prompt, w.WithContent) // checked when the wire was added
		}
	}
	return out
}

// Output is the output of a turn.
type Output struct {
	Payload []byte
	Source  string          // name of the creature
	Channel string          // the creature's name for the channel of the delivery
	Message journal.EventID // handled by the turn
	Hops    int             // consecutive wires up to those that the output leaves over
	Limit   int64           // of a delivery, in bytes
	Time    int64           // for predicates, as Seed
	Seed    uint64
}

// Delivery is one delivery of an output.
type Delivery struct {
	Outlet           *Outlet
	Payload, Headers []byte
	hops             int
	fault            string // why it is too large, if it is
}

// Hops returns how many consecutive wires lead to the output of a turn that handles the
// message. Only the engine makes deliveries of the kind output, so the number in the
// headers can be trusted.
func Hops(m *message.Message) int {
	if m.Kind != abi.KindOutput {
		return 1
	}
	n, _ := strconv.Atoi(journal.DecodeHeaders(m.Headers)[message.HeaderHops]) // written by the engine
	return n + 1
}

// Deliveries makes the deliveries over those wires whose predicates hold. The log lines
// say which predicates cannot be evaluated. Predicates are called, so the caller must be
// in no critical section.
func (o *Output) Deliveries(ctx context.Context, list []Outlet) (out []Delivery, logs []effects.Line) {
	judged := map[string]bool{} // by predicate
	for i := range list {
		outlet := &list[i]
		if outlet.When != "" {
			holds, known := judged[outlet.When]
			if !known {
				var err error
				if holds, err = o.holds(ctx, outlet.predicate); err != nil {
					logs = append(logs, effects.Line{Level: abi.LevelWarn, Engine: true, Text: fmt.Sprintf("the predicate %s of the wire %s cannot judge the output, which is not delivered: %s", outlet.When, outlet.Label(), errtext.Clip(err.Error()))})
				}
				judged[outlet.When] = holds
			}
			if !holds {
				continue
			}
		}
		out = append(out, o.over(outlet))
	}
	return out, logs
}

// holds evaluates a predicate on the output. If it cannot be evaluated, the result is
// false.
func (o *Output) holds(ctx context.Context, p deploy.Predicate) (bool, error) {
	if p == nil {
		return false, &abi.Error{Code: abi.NotFound, Message: "it is not known, because its recipe has not been applied"}
	}
	holds, err := p.Holds(ctx, &deploy.OutputEvent{Time: o.Time, Seed: o.Seed, Output: o.Payload, Source: o.Source, Channel: o.Channel})
	return holds && err == nil, err
}

// over makes the delivery over one wire.
func (o *Output) over(w *Outlet) Delivery {
	headers, _ := journal.EncodeHeaders(map[string]string{message.HeaderWire: string(w.ID), message.HeaderHops: strconv.Itoa(o.Hops)})
	out := Delivery{Outlet: w, Headers: headers, hops: o.Hops}
	values := [4][]byte{deploy.PromptOutput: o.Payload, deploy.PromptSource: []byte(o.Source), deploy.PromptChannel: []byte(o.Channel)}
	size := int64(len(o.Payload))
	if w.prompt != nil {
		size = w.prompt.Size(values) // may contain the output repeatedly
	}
	size += int64(len(headers))
	switch {
	case (w.prompt != nil || w.WithContent) && size > o.Limit:
		out.fault = fmt.Sprintf("what the wire %s delivers has %d bytes; the limit message is %d", w.Label(), size, o.Limit)
		out.Payload = o.detail()
	case w.prompt != nil:
		out.Payload = w.prompt.Fill(values)
	case w.WithContent:
		out.Payload = o.Payload
	default:
		out.Payload = o.detail()
	}
	return out
}

// detail is what a wire without content and prompt delivers.
func (o *Output) detail() []byte {
	return journal.JSON(struct {
		Source  string          `json:"source"`
		Channel string          `json:"channel"`
		Message journal.EventID `json:"message,omitzero"`
		Size    int             `json:"size"`
	}{o.Source, o.Channel, o.Message, len(o.Payload)})
}

// Party is an end of a wire; it is none if its id is empty.
type Party struct {
	ID   journal.CreatureID
	Name string
}

// Undeliverable says why a delivery becomes a dead letter, or nothing. loop returns the
// names along the shortest loop of wires through both ends, or none.
func (d *Delivery) Undeliverable(from, to Party, loop func() []string) (abi.Code, string) {
	wire := &d.Outlet.OutputWire
	switch {
	case to.ID == "" && wire.To == journal.ToRoot:
		return abi.NotConnected, "the wire " + wire.Label() + " leads to the root, but there is none"
	case to.ID == "":
		return abi.NotConnected, "the wire " + wire.Label() + " leads to " + string(wire.To) + ", which no longer exists"
	case to.ID == from.ID && !wire.AllowSelf:
		return abi.Denied, "the wire " + wire.Label() + " leads back to its source, which it does not allow"
	case d.hops > journal.MaxHops:
		why := "the chain of wires that leads from " + from.Name + " to " + to.Name + " is too long"
		if names := loop(); names != nil {
			why = "the output circulates over the wires " + strings.Join(names, " → ")
		}
		return abi.LimitExceeded, fmt.Sprintf("the limit hops (%d) is reached: %s", journal.MaxHops, why)
	case d.fault != "":
		return abi.TooLarge, d.fault
	}
	return 0, ""
}

// Letter is the dead letter of a delivery that could not be made.
func (d *Delivery) Letter(from, to journal.CreatureID, reason abi.Code, text string) journal.DeadLetterRow {
	row := journal.DeadLetterRow{
		Reason: journal.DeadReason(reason.String()), Error: text, Creature: d.Outlet.To, Sender: from, Kind: journal.EventWiredOutput,
		Payload: slices.Clone(d.Payload), Headers: d.Headers,
	}
	if to != "" {
		row.Creature = to
	} else if d.Outlet.To == journal.ToRoot {
		row.Creature, row.Alias = from, string(journal.ToRoot)
	}
	return row
}

// Loop finds the shortest way from a node over the next one back to itself, both ends
// included; nil if there is none.
func Loop[N comparable](from, next N, targets func(N) iter.Seq[N]) []N {
	before := map[N]N{next: from}
	for queue := []N{next}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at == from {
			return wayBack(before, from)
		}
		for to := range targets(at) {
			if _, seen := before[to]; !seen {
				before[to] = at
				queue = append(queue, to)
			}
		}
	}
	return nil
}

func wayBack[N comparable](before map[N]N, from N) []N {
	way := []N{from}
	for at := before[from]; at != from; at = before[at] {
		way = append(way, at)
	}
	way = append(way, from)
	slices.Reverse(way)
	return way
}
