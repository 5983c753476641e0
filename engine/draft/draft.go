// Package draft holds changes of the topology before they are real.
//
// A [Draft] changes what a [Base] gives access to, which nothing else may change
// meanwhile. Each step of it (an operation, an output wire, a root) is checked, judged
// by the policies concerned, and applied to the topology, so that the next step sees it; [Draft.Undo]
// takes everything back without a trace. What a step means for graphs, stores and
// instances is not known here: [Draft.Seal] hands out what there is to be carried out,
// as data.
package draft

import (
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Base is what there is before a draft, and the right to change it: to have one is to
// be the only writer until the draft is undone or carried out.
type Base interface {
	// Topology is the one that the draft changes.
	Topology() *topology.State
	// Member answers false for a creature that does not exist.
	Member(journal.CreatureID) (Member, bool)
	// Children are the creatures with that parent, in any order.
	Children(parent journal.CreatureID) []Member
	// Channel answers false for a channel that does not exist.
	Channel(journal.ChannelID) (Channel, bool)
	// WireSource is the creature that an output wire leads out of; empty: there is no
	// such wire.
	WireSource(journal.WireID) journal.CreatureID
	// Deployment is nil for one that is not applied.
	Deployment(name string) *deploy.Deployment
	// Deployments are all that are applied, in any order.
	Deployments(yield func(*deploy.Deployment) bool)
	// Root and Report are the root and the report channel of a deployment, or empty.
	Root(deployment string) journal.CreatureID
	Report(deployment string) journal.ChannelID
	// Species is nil for a species of which nothing may be spawned.
	Species(Kind) *deploy.SpeciesSpec
	// Alive counts the creatures that were spawned of a species.
	Alive(Kind) int
}

// Live is what a draft asks of graphs that run. Its methods enter their critical
// sections, so the caller must be in none.
type Live interface {
	// Now is the time, in nanoseconds since 1970.
	Now() int64
	// View shows policies a graph as it is, without what is drafted; nil for one that
	// does not exist yet.
	View(journal.GraphID) *deploy.GraphView
	// Home is the graph that a creature is in, without what is drafted; empty: none.
	Home(journal.CreatureID) journal.GraphID
	// State is running, stopped or quarantined; empty for a creature that is nowhere.
	State(journal.CreatureID) journal.CreatureState
	// Memory is what policies remember there.
	Memory(Home) Memory
	// Heard is told what policies have said.
	Heard(*deploy.Words)
}

// Memory is what the policies of a graph remember, by deployment.
type Memory interface {
	Of(deployment string) deploy.PolicyMemory
}

// Home says where something belongs: to a graph or, if that is yet to be made, to the
// one that a creature will be in.
type Home struct {
	Graph    journal.GraphID
	Creature journal.CreatureID
}

// IDs hands out ids that are not in use.
type IDs interface {
	topology.IDs
	NewCreature() journal.CreatureID
	NewWire() journal.WireID
}

// Member is what a draft knows of a creature that the topology does not.
type Member struct {
	ID         journal.CreatureID
	Spec       *deploy.CreatureSpec // what it was made from; not modified
	Deployment string
	Parent     journal.CreatureID
	Own        OwnEdges             // of a root
	Wires      []journal.OutputWire // by rising order; not modified
}

// Channel is what a draft knows of a channel that the topology does not.
type Channel struct {
	ID          journal.ChannelID
	Label       string // the name that it was declared with
	Description string
	Deployment  string
	Address     string
}

// Options say how a draft is made.
type Options struct {
	// IDs of what is added.
	IDs IDs
	// Caller is the creature in whose name the steps are taken; empty: the owner.
	Caller deploy.Party
	// Now is the time that policies are told; zero: what the clock says.
	Now int64
	// Applying is the deployment that the draft makes true. Its steps are not judged
	// one by one; see [Draft.JudgePlan].
	Applying *deploy.Deployment
	// Unjudged keeps policies out altogether: what is brought back was judged before.
	Unjudged bool
}

// Draft is a change of the topology that is not real yet. It belongs to the goroutine
// that has its [Base].
type Draft struct {
	Options
	base Base
	live Live
	topo *topology.State

	deltas []topology.Delta
	undos  []func()
	// creatures and channels are those that the draft adds.
	creatures map[journal.CreatureID]Member
	channels  map[journal.ChannelID]Channel
	// started are creatures that were told to start, quarantined ones included.
	started []journal.CreatureID
	wires   WireEdits
	rooting rooting
	judging judging
}

// New begins a draft.
func New(base Base, live Live, o Options) *Draft {
	return &Draft{
		Options: o, base: base, live: live, topo: base.Topology(),
		creatures: map[journal.CreatureID]Member{}, channels: map[journal.ChannelID]Channel{}, rooting: newRooting(),
	}
}

// Topology is the topology as the draft has it. It must not be changed but through
// the draft.
func (d *Draft) Topology() *topology.State { return d.topo }

// Add tells the draft of a creature before the operation that adds it.
func (d *Draft) Add(m Member) { d.creatures[m.ID] = m }

// AddChannel tells the draft of a channel before the operation that adds it.
func (d *Draft) AddChannel(ch Channel) { d.channels[ch.ID] = ch }

// Member is a creature that exists or is added.
func (d *Draft) Member(id journal.CreatureID) (Member, bool) {
	if m, ok := d.base.Member(id); ok {
		return m, true
	}
	m, ok := d.creatures[id]
	return m, ok
}

// Adds reports whether the draft adds a creature.
func (d *Draft) Adds(id journal.CreatureID) bool {
	_, added := d.creatures[id]
	return added
}

// Channel is a channel that exists or is added.
func (d *Draft) Channel(id journal.ChannelID) (Channel, bool) {
	if ch, ok := d.base.Channel(id); ok {
		return ch, true
	}
	ch, ok := d.channels[id]
	return ch, ok
}

// AddedChannels are those that the draft was told of, by id.
func (d *Draft) AddedChannels() []journal.ChannelID { return slices.Sorted(maps.Keys(d.channels)) }

// stage applies one operation to the topology.
func (d *Draft) stage(op topology.Op) (*topology.Delta, error) {
	if err := d.Stage(op); err != nil {
		return nil, err
	}
	return &d.deltas[len(d.deltas)-1], nil
}

// Stage applies operations to the topology, all or none, without what follows from
// them for roots and without asking policies: see [Draft.Do].
func (d *Draft) Stage(ops ...topology.Op) error {
	deltas, undo, err := d.topo.Try(d.IDs, d.withWorkers(ops)...)
	if err != nil {
		return err
	}
	d.deltas = append(d.deltas, deltas...)
	d.undos = append(d.undos, undo)
	for _, op := range ops {
		if s, ok := op.(topology.SetStopped); ok && !s.Stopped {
			d.started = append(d.started, s.ID)
		}
	}
	return nil
}

// Start has a creature started that the topology does not know to be stopped: one in
// quarantine. undo takes back what the caller has done for that.
func (d *Draft) Start(id journal.CreatureID) { d.started = append(d.started, id) }

// OnUndo has something taken back with the draft.
func (d *Draft) OnUndo(undo func()) { d.undos = append(d.undos, undo) }

// Undo takes back everything.
func (d *Draft) Undo() {
	for _, undo := range slices.Backward(d.undos) {
		undo()
	}
	d.undos, d.deltas = nil, nil
}

// Parted reports whether two creatures are in different graphs. One that is nowhere is
// parted from none.
func (d *Draft) Parted(a, b journal.CreatureID) bool {
	one, other := d.topo.GraphOf(a), d.topo.GraphOf(b)
	return one != "" && other != "" && one != other
}

// DeploymentsIn are the deployments that a graph has members of.
func (d *Draft) DeploymentsIn(info topology.Graph) map[string]bool {
	out := map[string]bool{}
	for _, id := range info.Creatures {
		m, _ := d.Member(id)
		out[m.Deployment] = true
	}
	for _, id := range info.Channels {
		if ch, ok := d.Channel(id); ok {
			out[ch.Deployment] = true
		}
	}
	return out
}

// Change is a draft as data, to be carried out.
type Change struct {
	Deltas []topology.Delta
	// Creatures and Channels are those that the draft was told of; one may have been
	// removed again.
	Creatures map[journal.CreatureID]Member
	Channels  map[journal.ChannelID]Channel
	// Started are creatures that were told to start, quarantined ones included.
	Started []journal.CreatureID
	Wires   *WireEdits
	// Own are the edges that roots have by themselves, where that changes.
	Own map[journal.CreatureID]OwnEdges
	// Joined and JoinedChannels come into a deployment.
	Joined         map[journal.CreatureID]string
	JoinedChannels map[journal.ChannelID]string
	// Words are what policies have said of what happens.
	Words []HomedWord
}

// Seal ends the draft: what it has is to be carried out. It can still be undone.
func (d *Draft) Seal() *Change {
	for i := range d.deltas {
		for _, c := range d.deltas[i].Changes {
			d.noteOwn(c)
		}
	}
	return &Change{
		Deltas: d.deltas, Creatures: d.creatures, Channels: d.channels, Started: d.started, Wires: &d.wires,
		Own: d.rooting.own, Joined: d.rooting.creatures, JoinedChannels: d.rooting.channels, Words: d.judging.words,
	}
}
