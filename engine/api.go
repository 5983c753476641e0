package engine

import (
	"context"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/lookup"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Outcome is the effect of one operation on the topology.
type Outcome struct {
	Delta    journal.Delta
	Channel  journal.ChannelID   // connected or added
	Channels []journal.ChannelID // disconnected, then their replacements
}

// Change applies operations on the topology in order, all or nothing, and returns one outcome for
// each. It refuses operations that add creatures: see [Engine.AddCreature] and [Engine.Batch].
func (e *Engine) Change(ctx context.Context, ops ...topology.Op) ([]Outcome, error) {
	var out []Outcome
	err := e.Batch(ctx, func(b *Batch) error {
		for _, op := range ops {
			o, err := b.Do(ctx, op)
			if err != nil {
				return err
			}
			out = append(out, o)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Batch is a change of several steps that is applied as a whole. Each step sees what
// the earlier steps did to the topology. Nothing runs, and no other caller sees
// anything, until the function that was given the batch returns.
type Batch struct {
	x        *change
	prepared []*creature
}

// Batch applies the steps that f takes, all or nothing: if f returns an error, nothing has
// changed. f must not call methods of the engine. All other changes are blocked while f runs.
func (e *Engine) Batch(ctx context.Context, f func(b *Batch) error) error {
	return e.batch(ctx, f)
}

// Wait waits until what the batch has changed is as durable as its graphs promise.
// Call it after [Engine.Batch] has returned without an error. Its only error has the
// code unknown_outcome: the changes are in effect and will be written once that is
// possible, but a crash before that would undo them.
func (b *Batch) Wait(ctx context.Context) error {
	return b.x.wait(ctx)
}

// wait waits until the change is durable; see [Batch.Wait].
func (x *change) wait(ctx context.Context) error {
	for _, l := range x.logged {
		if err := l.wait(ctx); err != nil {
			return errtext.UnknownOutcome(x.name, "the change is in effect, but a crash would undo it",
				"do not repeat it; if the process ends first, status shows after a restart whether the change was kept", err)
		}
	}
	return nil
}

// oneStep applies a batch of one step.
func oneStep[T any](ctx context.Context, e *Engine, step func(b *Batch) (T, error)) (out T, err error) {
	err = e.Batch(ctx, func(b *Batch) (err error) {
		out, err = step(b)
		return err
	})
	return out, err
}

// batch is Batch with creatures that were prepared for it.
func (e *Engine) batch(ctx context.Context, f func(b *Batch) error, prepared ...*creature) error {
	err := e.core.storage.Pace(ctx)
	l := e.core.lock()
	defer l.unlock()
	b := &Batch{x: newChange(l, "change", draft.Options{}), prepared: prepared}
	if err != nil {
		// nothing has been done
	} else if l.closed || e.core.isClosing() {
		err = errtext.Closed
	} else if err = f(b); err != nil {
		b.x.Undo()
		b.x.logRefusals()
	} else {
		err = b.x.carryOut(ctx)
	}
	if err != nil {
		for _, c := range b.prepared {
			e.core.discardPrepared(ctx, c)
		}
	}
	return err
}

// Do takes one step. It refuses operations that add creatures or channels, which have
// methods of their own.
func (b *Batch) Do(ctx context.Context, op topology.Op) (Outcome, error) {
	switch op.(type) {
	case topology.SetRoot:
		return Outcome{}, errtext.Invalid("change", "roots are assigned by AssignRoot", "call AssignRoot")
	case topology.AddCreature, topology.AddChannel:
		return Outcome{}, errtext.Invalid("change", "creatures and channels are added by AddCreature and AddChannel", "call AddCreature or AddChannel")
	}
	if err := deploy.CheckOp(op); err != nil {
		return Outcome{}, err
	}
	return b.stage(ctx, op)
}

func (b *Batch) stage(ctx context.Context, op topology.Op) (Outcome, error) {
	d, err := b.x.Do(ctx, op)
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Delta: journal.NewDelta(d), Channel: d.Channel, Channels: d.Channels}, nil
}

// AddChannel declares a channel in a graph. The channel belongs to the deployment of
// the graph's root; without a root, to that of its oldest privileged member; without
// one, to that of its oldest member.
func (b *Batch) AddChannel(ctx context.Context, g journal.GraphID, name, description string) (Outcome, error) {
	if err := deploy.CheckName("add_channel", "channel", name); err != nil {
		return Outcome{}, err
	}
	id := b.x.e.NewChannel()
	b.x.AddChannel(draft.Channel{ID: id, Label: name, Description: description, Deployment: b.x.DeploymentOf(b.x.e.topo.Elder(g))})
	return b.stage(ctx, topology.AddChannel{ID: id, Graph: g, Name: name})
}

// AddCreature adds a creature, like [Engine.AddCreature]. It compiles and starts the
// guest while nothing else can change; [Engine.Prepare] does that beforehand.
func (b *Batch) AddCreature(ctx context.Context, spec deploy.CreatureSpec) (Added, Outcome, error) {
	c, err := prepareIn(ctx, b.x.e, spec)
	if err != nil {
		return Added{}, Outcome{}, err
	}
	b.prepared = append(b.prepared, c)
	return b.add(ctx, c)
}

// Prepared is a creature that is ready to be added: its module is compiled, and a
// first instance has started.
type Prepared struct {
	e *core
	c *creature // nil once added or discarded
}

// Prepare makes a creature ready to be added by [Batch.AddPrepared]. It takes as long
// as its guest takes to compile and start, and blocks no other caller. A prepared
// creature that is not added must be discarded.
func (e *Engine) Prepare(ctx context.Context, spec deploy.CreatureSpec) (*Prepared, error) {
	c, err := e.prepareNew(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &Prepared{e: &e.core, c: c}, nil
}

// Discard discards a creature that was not added. Otherwise it does nothing.
func (p *Prepared) Discard(ctx context.Context) {
	if p.c != nil {
		p.e.discardPrepared(ctx, p.c)
		p.c = nil
	}
}

// AddPrepared adds a creature that was prepared. A graph and a parent, if given, take
// precedence over those in its specification.
func (b *Batch) AddPrepared(ctx context.Context, p *Prepared, join journal.GraphID, parent journal.CreatureID) (Added, Outcome, error) {
	c := p.c
	if c == nil {
		return Added{}, Outcome{}, errtext.Invalid("add_creature", "the creature was already added or discarded", "prepare another")
	}
	p.c = nil
	b.prepared = append(b.prepared, c)
	c.spec.Join, c.spec.Parent, c.parent = join, parent, parent
	return b.add(ctx, c)
}

func (b *Batch) add(ctx context.Context, c *creature) (Added, Outcome, error) {
	c.id = b.x.e.NewCreature()
	if err := b.x.MaySpawn(c.member()); err != nil {
		return Added{}, Outcome{}, err
	}
	op, err := b.x.addCreatureOp(c)
	if err != nil {
		return Added{}, Outcome{}, err
	}
	if c.deployment == "" { // a species names its deployment
		c.deployment = b.x.DeploymentFor(c.spec.Address, &op)
	}
	b.x.add(c)
	out, err := b.stage(ctx, op)
	if err != nil {
		return Added{}, Outcome{}, err
	}
	added := Added{Creature: c.id, Name: op.Name, Graph: b.x.e.topo.GraphOf(c.id)}
	return added, out, b.wireOutputs(ctx, added, c.spec.Outputs)
}

// wireOutputs adds the output wires of a creature that the batch has just added.
func (b *Batch) wireOutputs(ctx context.Context, added Added, specs []deploy.OutputSpec) error {
	for i := range specs {
		to := journal.ToRoot
		if s := &specs[i]; s.To != string(journal.ToRoot) {
			var err error
			if to, err = b.FindCreature(added.Graph, s.To); err != nil {
				return err
			}
		}
		if _, err := b.AddWire(ctx, specs[i].Wire(added.Creature, to)); err != nil {
			return err
		}
	}
	return nil
}

// FindCreature is [Engine.FindCreature] on the topology as the batch sees it.
func (b *Batch) FindCreature(g journal.GraphID, name string) (journal.CreatureID, error) {
	return lookup.Creature(b.x.e.topo, g, name)
}

// FindChannel is [Engine.FindChannel] on the topology as the batch sees it.
func (b *Batch) FindChannel(g journal.GraphID, name string) (journal.ChannelID, error) {
	return lookup.Channel(b.x.e.topo, g, name)
}

// FindGraph is [Engine.FindGraph] on the topology as the batch sees it.
func (b *Batch) FindGraph(name string) (journal.GraphID, error) {
	return lookup.Graph(b.x.e.topo, name)
}

// GraphOf returns the graph of a creature.
func (b *Batch) GraphOf(c journal.CreatureID) journal.GraphID { return b.x.e.topo.GraphOf(c) }

// GraphOfChannel returns the graph of a channel, or none if there is no such channel.
func (b *Batch) GraphOfChannel(id journal.ChannelID) journal.GraphID {
	c, _ := b.x.e.topo.Channel(id)
	return c.Graph
}

// change1 applies one operation.
func (e *Engine) change1(ctx context.Context, op topology.Op) (Outcome, error) {
	out, err := e.Change(ctx, op)
	if err != nil {
		return Outcome{}, err
	}
	return out[0], nil
}

// Added describes a creature that was added.
type Added struct {
	Creature journal.CreatureID
	Name     string
	Graph    journal.GraphID
}

// AddCreature adds a creature and starts it, unless its specification says otherwise. The creature
// belongs to the deployment of its parent; without a parent, to that of a channel that it is wired
// to; without such a channel, if it joins a graph, to the deployment to which a new channel there
// would belong. A creature with an address belongs to none. The module is loaded and an instance
// started before anything changes, so a creature that cannot start is an error here.
func (e *Engine) AddCreature(ctx context.Context, spec deploy.CreatureSpec) (Added, error) {
	c, err := e.prepareNew(ctx, spec)
	if err != nil {
		return Added{}, err
	}
	var added Added
	err = e.batch(ctx, func(b *Batch) (err error) {
		added, _, err = b.add(ctx, c)
		return err
	}, c)
	if err != nil {
		return Added{}, err
	}
	return added, nil
}

// add registers a creature that the next operations add.
func (x *change) add(c *creature) {
	x.creatures[c.id] = c
	x.Add(c.member())
}

// addCreatureOp returns the operation that adds a prepared creature on its own.
func (x *change) addCreatureOp(c *creature) (topology.AddCreature, error) {
	op := topology.AddCreature{
		ID: c.id, Name: c.spec.Name, Parent: c.spec.Parent, Privileged: c.spec.Privileged,
		Stopped: c.spec.Stopped, Join: c.spec.Join,
	}
	for _, dir := range []journal.Direction{journal.Listen, journal.Send} {
		wires := c.spec.Listen
		if dir == journal.Send {
			wires = c.spec.Send
		}
		for _, w := range wires {
			id, err := lookup.Channel(x.e.topo, c.spec.Join, w.Channel)
			if err != nil {
				return op, err
			}
			op.Edges = append(op.Edges, topology.Wire{Channel: id, Direction: dir, Alias: w.Alias})
		}
	}
	return op, nil
}

// RemoveCreature removes a creature, and its workers if they are removed with it (see
// [deploy.Workers]). Its graph may split. Deliveries that wait for the creature become
// dead letters.
func (e *Engine) RemoveCreature(ctx context.Context, id journal.CreatureID) (Outcome, error) {
	return e.change1(ctx, topology.RemoveCreature{ID: id})
}

// AddChannel declares a channel in a graph.
func (e *Engine) AddChannel(ctx context.Context, g journal.GraphID, name, description string) (Outcome, error) {
	return oneStep(ctx, e, func(b *Batch) (Outcome, error) { return b.AddChannel(ctx, g, name, description) })
}

// RemoveChannel removes a channel with its edges. Its graph may split. Messages that
// its listeners have not read become dead letters.
func (e *Engine) RemoveChannel(ctx context.Context, id journal.ChannelID) (Outcome, error) {
	return e.change1(ctx, topology.RemoveChannel{ID: id})
}
