package engine

import (
	"context"
	"fmt"
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

// outlets are the wires of a creature for its wiring.
func (x *change) outlets(cr *creature) []outlet {
	if len(cr.wires) == 0 {
		return nil
	}
	out := make([]outlet, len(cr.wires))
	for i, w := range cr.wires {
		out[i] = outlet{OutputWire: w, predicate: x.Predicate(cr.deployment, w.When)}
		if w.Prompt != "" {
			out[i].prompt, _ = deploy.ParsePrompt(w.Prompt, w.WithContent) // checked when the wire was added
		}
	}
	return out
}

// leadOut makes the deliveries of the turn's output over the creature's wires. Like
// policies, predicates run outside of critical sections.
func (w *turnWorker) leadOut(ctx context.Context) {
	t := &w.turn
	hops := t.hops() + 1
	var judged map[string]bool // by predicate
	for i := range t.wiring.outlets {
		o := &t.wiring.outlets[i]
		if o.When != "" {
			holds, known := judged[o.When]
			if !known {
				holds = t.holds(ctx, o)
				if judged == nil {
					judged = map[string]bool{}
				}
				judged[o.When] = holds
			}
			if !holds {
				continue
			}
		}
		t.wired = append(t.wired, t.wrap(o, hops))
	}
	w.work += sendWork * int64(len(t.wired))
}

// hops is the number of consecutive wires that led to the turn's delivery. Only the
// engine makes deliveries of the kind output, so the number can be trusted.
func (t *turn) hops() int {
	if t.d.msg.Kind != abi.KindOutput {
		return 0
	}
	n, _ := strconv.Atoi(journal.DecodeHeaders(t.d.msg.Headers)[message.HeaderHops]) // written by the engine
	return n
}

// holds evaluates a wire's predicate on the turn's output. If the predicate cannot be
// evaluated, the result is false.
func (t *turn) holds(ctx context.Context, o *outlet) bool {
	err := error(&abi.Error{Code: abi.NotFound, Message: "it is not known, because its recipe has not been applied"})
	if o.predicate != nil {
		var holds bool
		holds, err = o.predicate.Holds(ctx, &deploy.OutputEvent{
			Time: t.d.msg.Time, Seed: t.policySeed(3 << 32), Output: t.Put, Source: t.wiring.name, Channel: t.channel(),
		})
		if err == nil {
			return holds
		}
	}
	t.Logs = append(t.Logs, effects.Line{Level: abi.LevelWarn, Engine: true, Text: fmt.Sprintf("the predicate %s of the wire %s cannot judge the output, which is not delivered: %s", o.When, o.Label(), errtext.Clip(err.Error()))})
	return false
}

// wrap makes the delivery for one wire.
func (t *turn) wrap(o *outlet, hops int) wiredOutput {
	headers, _ := journal.EncodeHeaders(map[string]string{message.HeaderWire: string(o.ID), message.HeaderHops: strconv.Itoa(hops)})
	out := wiredOutput{outlet: o, headers: headers, hops: hops}
	values := [4][]byte{deploy.PromptOutput: t.Put, deploy.PromptSource: []byte(t.wiring.name), deploy.PromptChannel: []byte(t.channel())}
	size := int64(len(t.Put))
	if o.prompt != nil {
		size = o.prompt.Size(values) // may contain the output repeatedly
	}
	size += int64(len(headers))
	switch limit := t.c.limits.Message; {
	case (o.prompt != nil || o.WithContent) && size > limit:
		out.fault = fmt.Sprintf("what the wire %s delivers has %d bytes; the limit message is %d", o.Label(), size, limit)
		out.payload = t.outputDetail()
	case o.prompt != nil:
		out.payload = o.prompt.Fill(values)
	case o.WithContent:
		out.payload = t.Put
	default:
		out.payload = t.outputDetail()
	}
	return out
}

// outputDetail is what a wire without content and prompt delivers.
func (t *turn) outputDetail() []byte {
	return journal.JSON(struct {
		Source  string          `json:"source"`
		Channel string          `json:"channel"`
		Message journal.EventID `json:"message,omitzero"` // handled by the turn
		Size    int             `json:"size"`
	}{t.wiring.name, t.channel(), t.d.msg.ID, len(t.Put)})
}

// hasOutlet reports whether a wire still exists.
func (w *wiring) hasOutlet(id journal.WireID) bool {
	return slices.ContainsFunc(w.outlets, func(o outlet) bool { return o.ID == id })
}

// letter is the dead letter of a delivery that a wire of c could not make.
func (o *wiredOutput) letter(c, to *creature, reason abi.Code, text string) journal.DeadLetterRow {
	row := journal.DeadLetterRow{
		Reason: journal.DeadReason(reason.String()), Error: text, Creature: o.outlet.To, Sender: c.id, Kind: journal.EventWiredOutput,
		Payload: slices.Clone(o.payload), Headers: o.headers,
	}
	if to != nil {
		row.Creature = to.id
	} else if o.outlet.To == journal.ToRoot {
		row.Creature, row.Alias = c.id, string(journal.ToRoot)
	}
	return row
}

// undeliverable says why a wire's delivery becomes a dead letter, if it does.
func (g section) undeliverable(c, to *creature, o *wiredOutput) (abi.Code, string) {
	wire := &o.outlet.OutputWire
	switch {
	case to == nil && wire.To == journal.ToRoot:
		return abi.NotConnected, "the wire " + wire.Label() + " leads to the root, but there is none"
	case to == nil:
		return abi.NotConnected, "the wire " + wire.Label() + " leads to " + string(wire.To) + ", which no longer exists"
	case to == c && !wire.AllowSelf:
		return abi.Denied, "the wire " + wire.Label() + " leads back to its source, which it does not allow"
	case o.hops > journal.MaxHops:
		return abi.LimitExceeded, fmt.Sprintf("the limit hops (%d) is reached: %s", journal.MaxHops, g.loopText(c, to))
	case o.fault != "":
		return abi.TooLarge, o.fault
	}
	return 0, ""
}

// loopText names the loop that a wire closes.
func (g section) loopText(from, to *creature) string {
	if loop := g.loop(from, to); loop != nil {
		return "the output circulates over the wires " + strings.Join(loop, " → ")
	}
	return "the chain of wires that leads from " + from.name + " to " + to.name + " is too long"
}

// loop finds the shortest way along wires from a creature over its neighbour back to
// itself, by names; nil if there is none.
func (g section) loop(from, next *creature) []string {
	before := map[*creature]*creature{next: from}
	for queue := []*creature{next}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at == from {
			return way(before, from)
		}
		for i := range at.wires {
			to := g.target(at, &at.wires[i])
			if to != nil && before[to] == nil {
				before[to] = at
				queue = append(queue, to)
			}
		}
	}
	return nil
}

// way returns the way back to the beginning.
func way(before map[*creature]*creature, from *creature) []string {
	names := []string{from.name}
	for at := before[from]; at != from; at = before[at] {
		names = append(names, at.name)
	}
	names = append(names, from.name)
	slices.Reverse(names)
	return names
}
