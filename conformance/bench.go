package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
	"github.com/seed47132306/terrarium/operations"
)

// bench is a creature on the test bench.
type bench struct {
	t        *terrarium.Terrarium
	c        *Case
	clock    *clock
	sub      *engine.Subscription
	subject  journal.CreatureID
	channels map[string]journal.ChannelID // by direction and alias
	peers    map[journal.CreatureID]string
	lines    []string
}

// limits end a turn that never returns by its fuel, on a slow machine too.
var limits = abi.Limits{Fuel: 500_000_000, Deadline: time.Minute}

// startError says why the creature of a case was not started.
type startError struct{ error }

func (e *startError) Unwrap() error { return e.error }

func (b *bench) setUp(ctx context.Context) error {
	if len(b.c.Species) > 0 {
		return b.apply(ctx)
	}
	return b.t.Batch(ctx, func(batch *engine.Batch) error {
		added, _, err := batch.AddCreature(ctx, deploy.CreatureSpec{
			Name: "subject", Module: b.c.Module, Config: b.c.Config,
			Restart: deploy.RestartPolicy{Mode: deploy.RestartNever}, Privileged: b.c.Privileged,
			Limits: limits,
		})
		if err != nil {
			return &startError{err}
		}
		b.subject = added.Creature
		for _, p := range b.c.Peers {
			peer, _, err := batch.AddCreature(ctx, deploy.CreatureSpec{
				Name: p.Name, Module: cmp.Or(p.Module, b.c.Module), Config: p.Config,
				Restart: deploy.RestartPolicy{Mode: deploy.RestartNever}, Join: batch.GraphOf(b.subject),
			})
			if err != nil {
				return err
			}
			b.peers[peer.Creature] = p.Name
		}
		// A channel that is made later would be a change of the creature's surroundings.
		mark, err := batch.AddChannel(ctx, batch.GraphOf(b.subject), markName, "")
		if err != nil {
			return err
		}
		b.channels[markName] = mark.Channel
		if err := b.wire(ctx, batch, journal.Listen, b.c.Listen); err != nil {
			return err
		}
		return b.wire(ctx, batch, journal.Send, b.c.Send)
	})
}

// wire gives the creature a separate channel for each alias.
func (b *bench) wire(ctx context.Context, batch *engine.Batch, dir journal.Direction, aliases []string) error {
	for _, alias := range aliases {
		name := dir.String() + " " + alias
		ch, err := batch.AddChannel(ctx, batch.GraphOf(b.subject), name, "")
		if err != nil {
			return err
		}
		b.channels[name] = ch.Channel
		edge := topology.SetEdge{Creature: b.subject, Channel: ch.Channel, Direction: dir, On: true, Alias: alias}
		if _, err := batch.Do(ctx, edge); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) deliver(ctx context.Context, d *Delivery) error {
	switch {
	case len(d.Join) > 0:
		if err := b.t.Batch(ctx, func(batch *engine.Batch) error { return b.wire(ctx, batch, journal.Listen, d.Join) }); err != nil {
			return err
		}
		return b.step(ctx, "join "+strings.Join(d.Join, ", "))
	case d.AdvanceMS != 0:
		return b.advance(ctx, d.AdvanceMS)
	case d.Request:
		return b.request(ctx, d)
	}
	out := engine.Outgoing{Payload: d.Payload, Headers: d.Headers}
	if d.Alias == "" {
		if _, err := b.t.SendTo(ctx, b.subject, out); err != nil {
			return err
		}
		return b.step(ctx, "direct "+show(d.Payload))
	}
	id, ok := b.channels[journal.Listen.String()+" "+d.Alias]
	if !ok {
		return &abi.Error{Code: abi.InvalidArgument, Message: "the case delivers on " + d.Alias + ", which is not among its listen aliases"}
	}
	if _, err := b.t.Send(ctx, id, out); err != nil {
		return err
	}
	return b.step(ctx, d.Alias+" "+show(d.Payload))
}

// maxAdvance bounds a step of the clock: it is taken in milliseconds, so that timers
// fire one after the other, each at its time.
const maxAdvance = 60_000

func (b *bench) advance(ctx context.Context, ms int64) error {
	if ms < 0 || ms > maxAdvance {
		return &abi.Error{Code: abi.InvalidArgument, Message: fmt.Sprintf("advance_ms is %d, and must be from 1 to %d", ms, maxAdvance)}
	}
	for range ms {
		b.clock.advance(time.Millisecond)
		if err := b.t.WaitIdle(ctx); err != nil {
			return err
		}
	}
	return b.step(ctx, fmt.Sprintf("advance %d ms", ms))
}

// request asks the creature, and records the reply after the effects.
func (b *bench) request(ctx context.Context, d *Delivery) error {
	reply, err := b.t.Request(ctx, b.subject, engine.Outgoing{Payload: d.Payload, Headers: d.Headers}, time.Hour)
	if err := b.step(ctx, "request "+show(d.Payload)); err != nil {
		return err
	}
	if err != nil {
		b.lines = append(b.lines, "refused "+abi.CodeOf(err).String())
		return nil
	}
	b.lines = append(b.lines, "reply "+show(reply))
	return nil
}

// step waits until the creature has finished and records its actions.
func (b *bench) step(ctx context.Context, title string) error {
	if err := b.t.WaitIdle(ctx); err != nil {
		return err
	}
	b.lines = append(b.lines, "> "+title)
	// The subscription has everything up to here; a message without a listener
	// marks the end.
	mark, err := b.mark(ctx)
	if err != nil {
		return err
	}
	for {
		ob, err := b.sub.Next(ctx)
		if err != nil {
			return err
		}
		if ob.Event.ID == mark {
			return nil
		}
		if line := b.line(&ob.Event); line != "" {
			b.lines = append(b.lines, line)
		}
	}
}

const markName = "mark"

// mark publishes a message on a channel without listeners.
func (b *bench) mark(ctx context.Context) (journal.EventID, error) {
	sent, err := b.t.Send(ctx, b.channels[markName], engine.Outgoing{})
	return sent.Message, err
}

// line returns the transcript line for an event, or "". Ids differ each time, so
// names replace them.
func (b *bench) line(ev *journal.Event) string {
	line := strings.ReplaceAll(b.lineOf(ev), string(b.subject), "subject")
	for id, name := range b.peers {
		line = strings.ReplaceAll(line, string(id), name)
	}
	for name, id := range b.channels {
		line = strings.ReplaceAll(line, string(id), name)
	}
	return line
}

func (b *bench) lineOf(ev *journal.Event) string {
	var detail struct{ Level, Text, Code string }
	switch ev.Kind {
	case journal.EventLog, journal.EventTurnFailed:
		if json.Unmarshal(ev.Payload, &detail) != nil {
			return ""
		}
	}
	if ev.Creature != b.subject {
		return ""
	}
	switch ev.Kind {
	case journal.EventChannelMessage:
		return "send " + b.alias(ev.Channel) + " " + show(ev.Payload) + showHeaders(ev.Headers)
	case journal.EventDirectMessage:
		return "tell " + b.name(journal.InboxOwner(ev.Channel)) + " " + show(ev.Payload) + showHeaders(ev.Headers)
	case journal.EventOutput:
		return "output " + show(ev.Payload)
	case journal.EventState:
		key, value, deleted := journal.DecodeStateEvent(ev.Payload)
		if deleted {
			return "delete " + key
		}
		return "state " + key + " " + show(value)
	case journal.EventLog:
		return "log " + detail.Level + " " + detail.Text
	case journal.EventTurnFailed:
		return "failed " + detail.Code
	}
	return ""
}

func (b *bench) name(id journal.CreatureID) string { return cmp.Or(b.peers[id], string(id)) }

func (b *bench) alias(id journal.ChannelID) string {
	for name, ch := range b.channels {
		if ch == id {
			return strings.TrimPrefix(name, journal.Send.String()+" ")
		}
	}
	return string(id)
}

// show writes bytes as JSON does.
func show(b []byte) string {
	text, err := json.Marshal(operations.Payload(b))
	if err != nil {
		return fmt.Sprintf("%q", b)
	}
	return string(text)
}

func showHeaders(b []byte) string {
	h := journal.DecodeHeaders(b)
	delete(h, journal.HeaderMessage) // it differs in every run
	if len(h) == 0 {
		return ""
	}
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name+"="+h[name])
	}
	slices.Sort(names)
	return " [" + strings.Join(names, ", ") + "]"
}
