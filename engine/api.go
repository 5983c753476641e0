package engine

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Delta tells callers what an operation did to the graphs.
type Delta struct {
	Kind      string       `json:"kind"`              // none, merge or split
	OldGraphs []GraphID    `json:"old_graphs"`        // the graphs concerned, before
	NewGraphs []GraphID    `json:"new_graphs"`        // and after
	Affected  []CreatureID `json:"affected"`          // creatures whose graph id changed
	Renamed   []Renamed    `json:"renamed"`           // by a merge of graphs that both used a name
	Unified   []Unified    `json:"unified,omitempty"` // channels that on_collision unify made one
}

// Unified is a channel that a merge made part of another of the same name.
type Unified struct {
	Survivor ChannelID `json:"survivor"`
	Absorbed ChannelID `json:"absorbed"`
}

// Renamed is a creature or channel that a merge gave another name.
type Renamed struct {
	Creature CreatureID `json:"creature,omitempty"`
	Channel  ChannelID  `json:"channel,omitempty"`
	Old      string     `json:"old"`
	New      string     `json:"new"`
}

// NewDelta is the callers' form of a topology's delta.
func NewDelta(d *topology.Delta) Delta {
	out := Delta{
		Kind: d.Kind.String(), OldGraphs: orEmpty(d.OldGraphs), NewGraphs: orEmpty(d.NewGraphs),
		Affected: orEmpty(d.Affected), Renamed: []Renamed{},
	}
	for _, r := range d.Renamed {
		out.Renamed = append(out.Renamed, Renamed(r))
	}
	for _, u := range d.Unified {
		out.Unified = append(out.Unified, Unified(u))
	}
	return out
}

// orEmpty makes lists that are never null in JSON.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Outcome is what one operation of the topology did.
type Outcome struct {
	Delta    Delta
	Channel  ChannelID   // that was connected or added
	Channels []ChannelID // that were taken apart, then those made instead
}

// Change carries out operations of the topology in order, all or nothing, and
// returns one outcome for each. Operations that add creatures are not among
// them: see [Engine.AddCreature] and [Engine.Batch].
func (e *Engine) Change(ctx context.Context, ops ...topology.Op) ([]Outcome, error) {
	var out []Outcome
	err := e.Batch(ctx, func(b *Batch) error {
		for _, op := range ops {
			o, err := b.Do(op)
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

// Batch is a change of several steps that is carried out as a whole. Each step
// sees what the steps before it did to the topology; nothing runs, and nobody
// else sees anything, until the function that was given the batch returns.
type Batch struct {
	x        *change
	prepared []*creature
}

// Batch carries out the steps that f takes, all or nothing: if f answers an
// error, nothing has changed. f must not call methods of the engine; it blocks
// all other changes while it runs.
func (e *Engine) Batch(ctx context.Context, f func(b *Batch) error) error {
	return e.batch(ctx, f)
}

// batch is Batch with creatures that were prepared for it.
func (e *Engine) batch(ctx context.Context, f func(b *Batch) error, prepared ...*creature) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	b := &Batch{x: e.newChange("change"), prepared: prepared}
	var err error
	if e.closed || e.isClosing() {
		err = errClosed
	} else if err = f(b); err != nil {
		b.x.undo()
		b.x.logRefusals()
	} else {
		err = b.x.carryOut(ctx)
	}
	if err != nil {
		for _, c := range b.prepared {
			e.discardPrepared(ctx, c)
		}
	}
	return err
}

// Do takes one step. Operations that add creatures or channels are refused:
// they have methods of their own.
func (b *Batch) Do(op topology.Op) (Outcome, error) {
	switch op := op.(type) {
	case topology.Connect:
		if op.Channel == "" && op.Name != "" {
			if err := checkName("connect", "channel", op.Name); err != nil {
				return Outcome{}, err
			}
		}
	case topology.SetRoot:
		return Outcome{}, invalid("change", "roots are assigned by AssignRoot", "call that")
	case topology.AddCreature, topology.AddChannel:
		return Outcome{}, invalid("change", "creatures and channels are added by AddCreature and AddChannel", "call those")
	}
	return b.stage(op)
}

func (b *Batch) stage(op topology.Op) (Outcome, error) {
	d, err := b.x.do(op)
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Delta: NewDelta(d), Channel: d.Channel, Channels: d.Channels}, nil
}

// AddChannel declares a channel in a graph. It belongs to the deployment of the
// graph's root, or of its eldest privileged member, or of its eldest.
func (b *Batch) AddChannel(g GraphID, name, description string) (Outcome, error) {
	if err := checkName("add_channel", "channel", name); err != nil {
		return Outcome{}, err
	}
	deployment := b.x.deploymentOf(b.x.e.topo.Elder(g))
	ch := &channel{id: b.x.e.ids.NewChannel(), label: name, description: description, deployment: deployment}
	b.x.channels[ch.id] = ch
	return b.stage(topology.AddChannel{ID: ch.id, Graph: g, Name: name})
}

// AddCreature adds a creature, as [Engine.AddCreature]. It compiles and starts the
// guest while nothing else can change; [Engine.Prepare] does that beforehand.
func (b *Batch) AddCreature(ctx context.Context, spec CreatureSpec) (Added, Outcome, error) {
	c, err := b.x.e.prepareNew(ctx, spec, noLocker{})
	if err != nil {
		return Added{}, Outcome{}, err
	}
	b.prepared = append(b.prepared, c)
	return b.add(c)
}

// Prepared is a creature that is ready to be added: its module is compiled, and a
// first instance has started.
type Prepared struct {
	e *Engine
	c *creature // nil once it was added or discarded
}

// Prepare makes a creature ready to be added by [Batch.AddPrepared]. It takes as
// long as its guest takes to be compiled and to start, and holds up nobody. What
// is not added has to be discarded.
func (e *Engine) Prepare(ctx context.Context, spec CreatureSpec) (*Prepared, error) {
	c, err := e.prepareNew(ctx, spec, e.mu.RLocker())
	if err != nil {
		return nil, err
	}
	return &Prepared{e: e, c: c}, nil
}

// Discard gives up a creature that was not added. Otherwise it does nothing.
func (p *Prepared) Discard(ctx context.Context) {
	if p.c != nil {
		p.e.discardPrepared(ctx, p.c)
		p.c = nil
	}
}

// AddPrepared adds a creature that was prepared, to a graph and below a parent if
// they are given; they take the place of those in its specification.
func (b *Batch) AddPrepared(p *Prepared, join GraphID, parent CreatureID) (Added, Outcome, error) {
	c := p.c
	if c == nil {
		return Added{}, Outcome{}, invalid("add_creature", "the creature was added or discarded before", "prepare another")
	}
	p.c = nil
	b.prepared = append(b.prepared, c)
	c.spec.Join, c.spec.Parent, c.parent = join, parent, parent
	return b.add(c)
}

func (b *Batch) add(c *creature) (Added, Outcome, error) {
	c.id = b.x.e.ids.newCreature()
	if err := b.x.maySpawn(c); err != nil {
		return Added{}, Outcome{}, err
	}
	op, err := b.x.addCreatureOp(c)
	if err != nil {
		return Added{}, Outcome{}, err
	}
	if c.deployment == "" { // a species says which it belongs to
		c.deployment = b.x.deploymentFor(c, &op)
	}
	b.x.creatures[c.id] = c
	out, err := b.stage(op)
	if err != nil {
		return Added{}, Outcome{}, err
	}
	added := Added{Creature: c.id, Name: op.Name, Graph: b.x.e.topo.GraphOf(c.id)}
	return added, out, b.wireOutputs(added, c.spec.Outputs)
}

// FindCreature is [Engine.FindCreature] on the topology as the batch has it.
func (b *Batch) FindCreature(g GraphID, name string) (CreatureID, error) {
	return b.x.e.findCreature(g, name)
}

// FindChannel is [Engine.FindChannel] on the topology as the batch has it.
func (b *Batch) FindChannel(g GraphID, name string) (ChannelID, error) {
	return b.x.e.findChannel(g, name)
}

// FindGraph is [Engine.FindGraph] on the topology as the batch has it.
func (b *Batch) FindGraph(name string) (GraphID, error) { return b.x.e.findGraph(name) }

// GraphOf returns the graph that a creature is in.
func (b *Batch) GraphOf(c CreatureID) GraphID { return b.x.e.topo.GraphOf(c) }

func (e *Engine) isClosing() bool {
	select {
	case <-e.closing:
		return true
	default:
		return false
	}
}

// change1 carries out one operation.
func (e *Engine) change1(ctx context.Context, op topology.Op) (Outcome, error) {
	out, err := e.Change(ctx, op)
	if err != nil {
		return Outcome{}, err
	}
	return out[0], nil
}

// Added describes a creature that was added.
type Added struct {
	Creature CreatureID
	Name     string
	Graph    GraphID
}

// AddCreature adds a creature and starts it, unless its specification says
// otherwise. It belongs to the deployment of its parent, else of a channel that it
// is wired to, else, if it joins a graph, as a channel of that would; with an
// address it belongs to none. The module is loaded and an instance started before anything
// changes, so a creature that cannot start is an error here.
func (e *Engine) AddCreature(ctx context.Context, spec CreatureSpec) (Added, error) {
	c, err := e.prepareNew(ctx, spec, e.mu.RLocker())
	if err != nil {
		return Added{}, err
	}
	var added Added
	err = e.batch(ctx, func(b *Batch) (err error) {
		added, _, err = b.add(c)
		return err
	}, c)
	if err != nil {
		return Added{}, err
	}
	return added, nil
}

// addCreatureOp is the operation that adds a prepared creature by itself.
func (x *change) addCreatureOp(c *creature) (topology.AddCreature, error) {
	op := topology.AddCreature{
		ID: c.id, Name: c.spec.Name, Parent: c.spec.Parent, Privileged: c.spec.Privileged,
		Stopped: c.spec.Stopped, Join: c.spec.Join,
	}
	for _, dir := range []Direction{Listen, Send} {
		wires := c.spec.Listen
		if dir == Send {
			wires = c.spec.Send
		}
		for _, w := range wires {
			id, err := x.e.findChannel(c.spec.Join, w.Channel)
			if err != nil {
				return op, err
			}
			op.Edges = append(op.Edges, topology.Wire{Channel: id, Direction: dir, Alias: w.Alias})
		}
	}
	return op, nil
}

// findChannel is FindChannel under the mutation lock.
func (e *Engine) findChannel(g GraphID, name string) (ChannelID, error) {
	if _, ok := e.topo.Channel(ChannelID(name)); ok {
		return ChannelID(name), nil
	}
	return findByName(e, "channel", g, name, e.topo.FindChannel)
}

// findByName finds something by a name that is unique, in a graph if one is
// given, else in all of them.
func findByName[T ~string](e *Engine, what string, g GraphID, name string, find func(GraphID, string) (T, bool)) (T, error) {
	graphs := e.topo.Graphs()
	if g != "" {
		now, _ := e.topo.Current(g)
		graphs = []GraphID{now}
	}
	var found []T
	for _, id := range graphs {
		if x, ok := find(id, name); ok {
			found = append(found, x)
		}
	}
	return one(what, name, found)
}

// one returns the only one of the ids that a name stands for.
func one[T ~string](what, name string, found []T) (T, error) {
	switch len(found) {
	case 0:
		return "", gone(what, name)
	case 1:
		return found[0], nil
	}
	return "", &abi.Error{
		Code: abi.Ambiguous, Message: fmt.Sprintf("%d %ss are named %s", len(found), what, name),
		Remedy: "name it by its id", IDs: map[string]string{what: name},
	}
}

// FindCreature finds a creature by id, or by a name that is unique in the
// engine, or in a graph if one is given.
func (e *Engine) FindCreature(g GraphID, name string) (CreatureID, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.findCreature(g, name)
}

func (e *Engine) findCreature(g GraphID, name string) (CreatureID, error) {
	if _, ok := e.topo.Creature(CreatureID(name)); ok {
		return CreatureID(name), nil
	}
	return findByName(e, "creature", g, name, e.topo.FindCreature)
}

// FindChannel finds a channel by id, or by a name that is unique in the
// engine, or in a graph if one is given.
func (e *Engine) FindChannel(g GraphID, name string) (ChannelID, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.findChannel(g, name)
}

// FindGraph finds a graph by its id, by an id that it had before a merge, or
// by the name of a creature in it.
func (e *Engine) FindGraph(name string) (GraphID, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.findGraph(name)
}

func (e *Engine) findGraph(name string) (GraphID, error) {
	if now, ok := e.topo.Current(GraphID(name)); ok {
		return now, nil
	}
	c, err := e.findCreature("", name)
	if abi.CodeOf(err) == abi.NotFound {
		return "", gone("graph", name)
	}
	return e.topo.GraphOf(c), err
}

// prepare loads a creature's module and starts its first instance.
func (e *Engine) prepare(ctx context.Context, spec CreatureSpec) (*creature, error) {
	if err := checkSpec(&spec); err != nil {
		return nil, err
	}
	m, err := e.compile(ctx, &spec)
	if err != nil {
		return nil, err
	}
	return e.startFirst(ctx, spec, m)
}

// prepareNew is prepare for a specification that may name a species instead of a
// module. lock guards the look at the species.
func (e *Engine) prepareNew(ctx context.Context, spec CreatureSpec, lock sync.Locker) (*creature, error) {
	if spec.Species == "" || spec.Module != "" || spec.Wasm != nil {
		return e.prepare(ctx, spec)
	}
	if err := checkSpec(&spec); err != nil {
		return nil, err
	}
	lock.Lock()
	spec, m, err := e.ofSpecies(spec)
	lock.Unlock()
	if err != nil {
		return nil, err
	}
	c, err := e.startFirst(ctx, spec, m)
	if err != nil {
		return nil, err
	}
	c.deployment = spec.Deployment
	return c, nil
}

// noLocker stands for a lock that the caller holds already.
type noLocker struct{}

func (noLocker) Lock()   {}
func (noLocker) Unlock() {}

func checkSpec(spec *CreatureSpec) error {
	if err := checkName("add_creature", "creature", spec.Name); err != nil {
		return err
	}
	return checkLimits(&spec.Limits)
}

// compile loads and compiles the module of a specification.
func (e *Engine) compile(ctx context.Context, spec *CreatureSpec) (abi.Module, error) {
	who := cmp.Or(spec.Name, spec.Module)
	wasm := spec.Wasm
	if wasm == nil {
		if e.load == nil {
			return nil, invalid("add_creature", "the module of "+who+" has no bytes, and the engine has no loader", "set CreatureSpec.Wasm or Options.Load")
		}
		var err error
		if wasm, err = e.load(ctx, spec.Module); err != nil {
			return nil, fmt.Errorf("add_creature: the module of %s: %w", who, err)
		}
	}
	m, err := e.host.Compile(ctx, wasm)
	if err != nil {
		return nil, fmt.Errorf("add_creature: the module of %s: %w", who, err)
	}
	return m, nil
}

// startFirst makes a creature and starts its first instance. The module is the
// creature's from here on.
func (e *Engine) startFirst(ctx context.Context, spec CreatureSpec, m abi.Module) (*creature, error) {
	c, err := newCreature("", spec, m)
	if err == nil && !spec.Stopped {
		c.wiring.Store(&wiring{name: spec.Name})
		t := &turn{e: e}
		if err = c.start(ctx, t); err != nil {
			err = fmt.Errorf("add_creature: starting %s: %w", spec.Name, withLogs(err, t.logs))
		}
	}
	if err != nil {
		if cerr := m.Close(ctx); cerr != nil {
			e.log.Debug("closing a module", "error", cerr)
		}
		return nil, err
	}
	return c, nil
}

// withLogs adds the guest's last words to an error.
func withLogs(err error, logs []logLine) error {
	if len(logs) == 0 {
		return err
	}
	return fmt.Errorf("%w (it logged: %s)", err, clip(logs[len(logs)-1].text))
}

// discardPrepared undoes prepare.
func (e *Engine) discardPrepared(ctx context.Context, c *creature) {
	if c.instance != nil {
		if err := c.instance.Close(ctx); err != nil {
			e.log.Debug("closing an instance", "error", err)
		}
		c.instance = nil
	}
	if err := c.module.Close(ctx); err != nil {
		e.log.Debug("closing a module", "error", err)
	}
}

// RemoveCreature removes a creature, and its workers if they go with it (see
// [Workers]); its graph may split. Deliveries that wait for it become dead
// letters.
func (e *Engine) RemoveCreature(ctx context.Context, id CreatureID) (Outcome, error) {
	return e.change1(ctx, topology.RemoveCreature{ID: id})
}

// AddChannel declares a channel in a graph.
func (e *Engine) AddChannel(ctx context.Context, g GraphID, name, description string) (Outcome, error) {
	var out Outcome
	err := e.Batch(ctx, func(b *Batch) (err error) {
		out, err = b.AddChannel(g, name, description)
		return err
	})
	return out, err
}

// RemoveChannel drops a channel with its edges; its graph may split. What its
// listeners have not read becomes dead letters.
func (e *Engine) RemoveChannel(ctx context.Context, id ChannelID) (Outcome, error) {
	return e.change1(ctx, topology.RemoveChannel{ID: id})
}

// noteSuccessor remembers for filters where a graph has gone.
func (e *Engine) noteSuccessor(old, into GraphID) {
	if into == "" {
		return
	}
	e.successors.Store(old, into)
}
