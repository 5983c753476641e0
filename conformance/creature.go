package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
	"github.com/seed47132306/terrarium/operations"
)

// Case is a sequence of deliveries to a creature, with the expected actions.
type Case struct {
	// Module is a path, or builtin:NAME.
	Module string          `json:"module"`
	Config json.RawMessage `json:"config,omitempty"`
	// Listen and Send are the aliases of the creature. Each is bound to its
	// own channel.
	Listen     []string   `json:"listen"`
	Send       []string   `json:"send"`
	Deliveries []Delivery `json:"deliveries"`
	// Transcript lists the expected actions: for each delivery, beginning with
	// start, one line that names it and one for each effect.
	Transcript []string `json:"transcript"`
}

// Delivery is one message to the creature, on the channel of an alias or,
// without one, directly. Alternatively it is a change of the creature's
// surroundings, which the creature may receive as graph_changed.
type Delivery struct {
	// Join makes the creature listen on new channels under these aliases, in
	// one change.
	Join    []string           `json:"join,omitempty"`
	Alias   string             `json:"alias,omitempty"`
	Payload operations.Payload `json:"payload"`
	Headers map[string]string  `json:"headers,omitempty"`
}

// CheckCreature runs a case warm and with a fresh instance for every turn, and
// returns the problems: an empty list if the creature conforms.
func CheckCreature(ctx context.Context, c *Case) ([]string, error) {
	var problems []string
	for _, fresh := range []bool{false, true} {
		got, err := RunCreature(ctx, c, fresh)
		if err != nil {
			return nil, err
		}
		how := "warm"
		if fresh {
			how = "with a fresh instance for every turn"
		}
		if diff := firstDifference(c.Transcript, got); diff != "" {
			problems = append(problems, how+": "+diff)
		}
	}
	return problems, nil
}

func firstDifference(want, got []string) string {
	for i := range max(len(want), len(got)) {
		w, g := "nothing", "nothing"
		if i < len(want) {
			w = want[i]
		}
		if i < len(got) {
			g = got[i]
		}
		if w != g {
			return fmt.Sprintf("line %d of the transcript is\n\t%s\nbut must be\n\t%s", i+1, g, w)
		}
	}
	return ""
}

// RunCreature runs a case and returns the transcript. The error is about the
// case or the engine; mistakes of the creature show in the transcript.
func RunCreature(ctx context.Context, c *Case, fresh bool) (transcript []string, err error) {
	t, err := terrarium.New(ctx, terrarium.Options{FreshInstances: fresh, Workers: 1})
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := t.Close(ctx); err == nil {
			err = cerr
		}
	}()
	b := &bench{t: t, c: c, channels: map[string]journal.ChannelID{}}
	sub := t.Subscribe(engine.Filter{}, 1<<16)
	defer sub.Close()
	b.sub = sub
	if err := b.setUp(ctx); err != nil {
		return nil, err
	}
	if err := b.step(ctx, "start"); err != nil {
		return nil, err
	}
	for i := range c.Deliveries {
		if err := b.deliver(ctx, &c.Deliveries[i]); err != nil {
			return nil, err
		}
	}
	return b.lines, nil
}

// bench is a creature on the test bench.
type bench struct {
	t        *terrarium.Terrarium
	c        *Case
	sub      *engine.Subscription
	subject  journal.CreatureID
	channels map[string]journal.ChannelID // by direction and alias
	lines    []string
}

func (b *bench) setUp(ctx context.Context) error {
	return b.t.Batch(ctx, func(batch *engine.Batch) error {
		added, _, err := batch.AddCreature(ctx, deploy.CreatureSpec{
			Name: "subject", Module: b.c.Module, Config: b.c.Config,
			Restart: deploy.RestartPolicy{Mode: deploy.RestartNever},
		})
		if err != nil {
			return err
		}
		b.subject = added.Creature
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
	out := engine.Outgoing{Payload: d.Payload, Headers: d.Headers}
	name := "direct"
	var err error
	if len(d.Join) > 0 {
		if err := b.t.Batch(ctx, func(batch *engine.Batch) error { return b.wire(ctx, batch, journal.Listen, d.Join) }); err != nil {
			return err
		}
		return b.step(ctx, "join "+strings.Join(d.Join, ", "))
	}
	if d.Alias == "" {
		_, err = b.t.SendTo(ctx, b.subject, out)
	} else {
		name = d.Alias
		id, ok := b.channels[journal.Listen.String()+" "+d.Alias]
		if !ok {
			return &abi.Error{Code: abi.InvalidArgument, Message: "the case delivers on " + d.Alias + ", which is not among its listen aliases"}
		}
		_, err = b.t.Send(ctx, id, out)
	}
	if err != nil {
		return err
	}
	return b.step(ctx, name+" "+show(d.Payload))
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
	ch, ok := b.channels[markName]
	if !ok {
		g, err := b.t.FindGraph(ctx, "subject")
		if err != nil {
			return journal.EventID{}, err
		}
		out, err := b.t.AddChannel(ctx, g, markName, "")
		if err != nil {
			return journal.EventID{}, err
		}
		ch = out.Channel
		b.channels[markName] = ch
	}
	sent, err := b.t.Send(ctx, ch, engine.Outgoing{})
	return sent.Message, err
}

// line returns the transcript line for an event, or "". The creature's id
// differs each time, so its name replaces it.
func (b *bench) line(ev *journal.Event) string {
	return strings.ReplaceAll(b.lineOf(ev), string(b.subject), "subject")
}

func (b *bench) lineOf(ev *journal.Event) string {
	var detail struct{ Level, Text, Code string }
	switch ev.Kind {
	case journal.EventLog, journal.EventTurnFailed:
		if json.Unmarshal(ev.Payload, &detail) != nil {
			return ""
		}
	}
	switch ev.Kind {
	case journal.EventChannelMessage:
		if ev.Creature == b.subject {
			return "send " + b.alias(ev.Channel) + " " + show(ev.Payload) + showHeaders(ev.Headers)
		}
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
