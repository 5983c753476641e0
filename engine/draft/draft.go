// Package draft holds changes of the topology before they take effect.
//
// A [Draft] changes the topology of a [Base], which nothing else may change
// meanwhile. Each step (an operation, an output wire, a root) is checked,
// judged by the policies concerned, and applied to the topology, so that the
// next step sees it. [Draft.Undo] undoes everything without a trace. The
// package does not know what a step means for graphs, stores and instances:
// [Draft.Seal] returns the change as data, for the engine to apply.
package draft

import (
	"slices"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/sorted"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Base is the state before a draft, and the right to change it: the holder of
// a Base is the only writer until the draft is undone or applied.
type Base interface {
	// Topology returns the topology that the draft changes.
	Topology() *topology.State
	// Member returns false for a creature that does not exist.
	Member(journal.CreatureID) (Member, bool)
	// Children returns the creatures with that parent, in any order.
	Children(parent journal.CreatureID) []Member
	// Channel returns false for a channel that does not exist.
	Channel(journal.ChannelID) (Channel, bool)
	// WireSource returns the source of an output wire, or "" if there is no
	// such wire.
	WireSource(journal.WireID) journal.CreatureID
	// Deployment returns nil for a deployment that is not applied.
	Deployment(name string) *deploy.Deployment
	// Deployments iterates over all applied deployments, in any order.
	Deployments(yield func(*deploy.Deployment) bool)
	// Root and Report return the root and the report channel of a deployment,
	// or "".
	Root(deployment string) journal.CreatureID
	Report(deployment string) journal.ChannelID
	// Species returns nil for a species that may not be spawned.
	Species(Kind) *deploy.SpeciesSpec
	// Alive counts the living creatures spawned from a species.
	Alive(Kind) int
}

// Live is what a draft needs from running graphs. Its methods enter the
// critical sections of graphs, so the caller must be in none.
type Live interface {
	// Now returns the time, in nanoseconds since 1970.
	Now() int64
	// View returns a graph's view for policies, without the drafted changes;
	// nil for a graph that does not exist yet.
	View(journal.GraphID) *deploy.GraphView
	// Home returns a creature's graph, without the drafted changes, or "".
	Home(journal.CreatureID) journal.GraphID
	// State returns running, stopped, paused or quarantined, or "" for a creature in
	// no graph. If the creature's recipe has stopped in its graph, it also returns why.
	State(journal.CreatureID) (journal.CreatureState, *journal.RecipeStop)
	// Memory returns the memory of the policies of home.
	Memory(Home) Memory
	// Heard receives the verdicts of policies.
	Heard(*deploy.Words)
}

// Memory holds the memories of the policies of a graph, by deployment.
type Memory interface {
	Of(deployment string) deploy.PolicyMemory
}

// Home says where something belongs: to a graph or, if the graph does not
// exist yet, to the future graph of a creature.
type Home struct {
	Graph    journal.GraphID
	Creature journal.CreatureID
}

// IDs returns unused ids.
type IDs interface {
	topology.IDs
	NewCreature() journal.CreatureID
	NewWire() journal.WireID
}

// Member is a draft's data about a creature that the topology does not have.
type Member struct {
	ID         journal.CreatureID
	Spec       *deploy.CreatureSpec // its specification; not modified
	Deployment string
	Parent     journal.CreatureID
	Own        OwnEdges             // of a root
	Wires      []journal.OutputWire // in ascending order; not modified
}

// Channel is a draft's data about a channel that the topology does not have.
type Channel struct {
	ID          journal.ChannelID
	Label       string // the declared name
	Description string
	Deployment  string
	Address     string
}

// Options configures a draft.
type Options struct {
	// IDs provides the ids of added creatures, channels and wires.
	IDs IDs
	// Caller is the creature in whose name the steps are taken; empty for the
	// operator.
	Caller deploy.Party
	// Now is the time passed to policies; zero means the time of the clock.
	Now int64
	// Applying is the deployment that the draft applies. Its steps are not
	// judged one by one; see [Draft.JudgePlan].
	Applying *deploy.Deployment
	// Answer answers a question that a policy asks about an event: with nil if the event is
	// approved, else with a denial. If it is nil, a policy that asks denies.
	Answer func(*deploy.PolicyEvent, deploy.Ask) *deploy.Verdict
	// Unjudged bypasses the policies: a restored session was judged before.
	Unjudged bool
}

// Draft is a change of the topology that has not taken effect yet. Only the
// goroutine that holds its [Base] may use it.
type Draft struct {
	Options
	base Base
	live Live
	topo *topology.State

	deltas []topology.Delta
	undos  []func()
	// creatures and channels hold the ones that the draft adds.
	creatures map[journal.CreatureID]Member
	channels  map[journal.ChannelID]Channel
	// started lists the creatures to start, quarantined ones included, and stopped
	// those to stop, with those that seem to be stopped already.
	started, stopped []journal.CreatureID
	wires            WireEdits
	rooting          rooting
	judging          judging
}

// New begins a draft.
func New(base Base, live Live, o Options) *Draft {
	return &Draft{
		Options: o, base: base, live: live, topo: base.Topology(),
		creatures: map[journal.CreatureID]Member{}, channels: map[journal.ChannelID]Channel{}, rooting: newRooting(),
	}
}

// Topology returns the topology with the drafted changes. It must be changed
// only through the draft.
func (d *Draft) Topology() *topology.State { return d.topo }

// Add registers a creature before the operation that adds it.
func (d *Draft) Add(m Member) { d.creatures[m.ID] = m }

// AddChannel registers a channel before the operation that adds it.
func (d *Draft) AddChannel(ch Channel) { d.channels[ch.ID] = ch }

// Member returns a creature that exists or is added.
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

// Channel returns a channel that exists or is added.
func (d *Draft) Channel(id journal.ChannelID) (Channel, bool) {
	if ch, ok := d.base.Channel(id); ok {
		return ch, true
	}
	ch, ok := d.channels[id]
	return ch, ok
}

// AddedChannels returns the channels registered with AddChannel, sorted by id.
func (d *Draft) AddedChannels() []journal.ChannelID { return sorted.Keys(d.channels) }

// stage applies one operation to the topology.
func (d *Draft) stage(op topology.Op) (*topology.Delta, error) {
	if err := d.Stage(op); err != nil {
		return nil, err
	}
	return &d.deltas[len(d.deltas)-1], nil
}

// Stage applies operations to the topology, all or none, without their
// consequences for roots and without asking policies: see [Draft.Do].
func (d *Draft) Stage(ops ...topology.Op) error {
	deltas, undo, err := d.topo.Try(d.IDs, d.withWorkers(ops)...)
	if err != nil {
		return err
	}
	d.deltas = append(d.deltas, deltas...)
	d.undos = append(d.undos, undo)
	for _, op := range ops {
		switch s, ok := op.(topology.SetStopped); {
		case ok && s.Stopped:
			d.stopped = append(d.stopped, s.ID)
		case ok:
			d.started = append(d.started, s.ID)
		}
	}
	return nil
}

// Start starts a creature that is not stopped in the topology: one in
// quarantine.
func (d *Draft) Start(id journal.CreatureID) { d.started = append(d.started, id) }

// OnUndo registers a function to call when the draft is undone.
func (d *Draft) OnUndo(undo func()) { d.undos = append(d.undos, undo) }

// Undo undoes all steps.
func (d *Draft) Undo() {
	for _, undo := range slices.Backward(d.undos) {
		undo()
	}
	d.undos, d.deltas = nil, nil
}

// Parted reports whether two creatures are in different graphs. A creature in
// no graph is not parted from any.
func (d *Draft) Parted(a, b journal.CreatureID) bool {
	one, other := d.topo.GraphOf(a), d.topo.GraphOf(b)
	return one != "" && other != "" && one != other
}

// DeploymentsIn returns the deployments that have members in a graph.
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

// Change is a draft as data, ready to be applied.
type Change struct {
	Deltas []topology.Delta
	// Creatures and Channels hold the ones registered with the draft; some may
	// have been removed again.
	Creatures map[journal.CreatureID]Member
	Channels  map[journal.ChannelID]Channel
	// Started lists the creatures to start, quarantined ones included.
	Started []journal.CreatureID
	// Stopped lists the creatures to stop, including those that seem to be stopped
	// because they have no module.
	Stopped []journal.CreatureID
	Wires   *WireEdits
	// Own holds the own edges of roots for which they change.
	Own map[journal.CreatureID]OwnEdges
	// Joined and JoinedChannels hold the creatures and channels that join a
	// deployment.
	Joined         map[journal.CreatureID]string
	JoinedChannels map[journal.ChannelID]string
	// Words holds the verdicts of policies on the change.
	Words []HomedWord
}

// Seal ends the draft and returns it for application. The draft can still be
// undone.
func (d *Draft) Seal() *Change {
	for i := range d.deltas {
		for _, c := range d.deltas[i].Changes {
			d.noteOwn(c)
		}
	}
	return &Change{
		Deltas: d.deltas, Creatures: d.creatures, Channels: d.channels, Started: d.started, Stopped: d.stopped, Wires: &d.wires,
		Own: d.rooting.own, Joined: d.rooting.creatures, JoinedChannels: d.rooting.channels, Words: d.judging.words,
	}
}
