package reconcile_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/reconcile"
	"github.com/seed47132306/terrarium/engine/topology"
)

// world is the existing state, in memory: creatures and channels that neither
// run nor are stored.
type world struct {
	t           *testing.T
	topo        *topology.State
	members     map[journal.CreatureID]draft.Member
	channels    map[journal.ChannelID]draft.Channel
	deployments map[string]*deploy.Deployment
	unclaimed   map[journal.CreatureID]bool
	pending     map[journal.CreatureID]uint64
	unread      map[journal.ChannelID]uint64
	ids         int
	wireNotes   []draft.WireNote // of the last applied draft
}

func newWorld(t *testing.T) *world {
	return &world{
		t: t, topo: topology.New(),
		members: map[journal.CreatureID]draft.Member{}, channels: map[journal.ChannelID]draft.Channel{}, deployments: map[string]*deploy.Deployment{},
		unclaimed: map[journal.CreatureID]bool{}, pending: map[journal.CreatureID]uint64{}, unread: map[journal.ChannelID]uint64{},
	}
}

func (w *world) next(kind string) string {
	w.ids++
	return fmt.Sprintf("%s%03d", kind, w.ids)
}

func (w *world) NewGraph() journal.GraphID       { return journal.GraphID(w.next("g")) }
func (w *world) NewChannel() journal.ChannelID   { return journal.ChannelID(w.next("h")) }
func (w *world) NewCreature() journal.CreatureID { return journal.CreatureID(w.next("c")) }
func (w *world) NewWire() journal.WireID         { return journal.WireID(w.next("w")) }

func (w *world) Topology() *topology.State { return w.topo }

func (w *world) Member(id journal.CreatureID) (draft.Member, bool) {
	m, ok := w.members[id]
	return m, ok
}

func (w *world) Members(yield func(draft.Member) bool) { maps.Values(w.members)(yield) }

func (w *world) Children(parent journal.CreatureID) (out []draft.Member) {
	for _, m := range w.members {
		if m.Parent == parent {
			out = append(out, m)
		}
	}
	return out
}

func (w *world) Channel(id journal.ChannelID) (draft.Channel, bool) {
	ch, ok := w.channels[id]
	return ch, ok
}

func (w *world) Channels(yield func(draft.Channel) bool) { maps.Values(w.channels)(yield) }

func (w *world) Unclaimed(id journal.CreatureID) bool { return w.unclaimed[id] }

func (w *world) WireSource(id journal.WireID) journal.CreatureID {
	for from, m := range w.members {
		if draft.WireWithID(m.Wires, id) >= 0 {
			return from
		}
	}
	return ""
}

func (w *world) Deployment(name string) *deploy.Deployment { return w.deployments[name] }

func (w *world) Deployments(yield func(*deploy.Deployment) bool) { maps.Values(w.deployments)(yield) }

func (w *world) Root(deployment string) journal.CreatureID {
	for id, m := range w.members {
		if m.Deployment == deployment && w.topo.IsRoot(id) {
			return id
		}
	}
	return ""
}

func (w *world) Report(deployment string) journal.ChannelID {
	for id, ch := range w.channels {
		if ch.Deployment == deployment && ch.Address == draft.ReportAddress {
			return id
		}
	}
	return ""
}

func (w *world) Species(draft.Kind) *deploy.SpeciesSpec { return nil }
func (w *world) Alive(draft.Kind) int                   { return 0 }

func (w *world) Now() int64                                 { return 1 }
func (w *world) View(journal.GraphID) *deploy.GraphView     { return nil }
func (w *world) Home(id journal.CreatureID) journal.GraphID { return w.topo.GraphOf(id) }
func (w *world) Memory(draft.Home) draft.Memory             { return nothing{} }
func (w *world) Heard(*deploy.Words)                        {}

func (w *world) State(journal.CreatureID) (s journal.CreatureState, stop *journal.RecipeStop) {
	return s, nil
}

type nothing struct{}

func (nothing) Of(string) deploy.PolicyMemory { return nil }

// runtime is a world during a draft.
type runtime struct {
	*world
	d *draft.Draft
}

func (r runtime) Create(spec *deploy.CreatureSpec, id journal.CreatureID) {
	r.d.Add(draft.Member{ID: id, Spec: spec, Deployment: r.d.Applying.Name})
}

func (r runtime) Update(_ context.Context, spec *deploy.CreatureSpec, id journal.CreatureID) bool {
	m := r.members[id]
	before := m.Spec
	m.Spec = spec
	r.members[id] = m
	return before.Module != spec.Module
}

func (r runtime) Pending(id journal.CreatureID) uint64 { return r.pending[id] }

func (r runtime) Unread(id journal.ChannelID, _ map[journal.CreatureID]bool) uint64 {
	return r.unread[id]
}

// apply applies a deployment that decides alone.
func (w *world) apply(d *deploy.Deployment) reconcile.Result {
	w.t.Helper()
	return w.applyWith(d, reconcile.Options{})
}

// update applies a deployment over the last applied one, which is nil at
// first; changes made since stay.
func (w *world) update(d, last *deploy.Deployment) reconcile.Result {
	w.t.Helper()
	return w.applyWith(d, reconcile.Options{Drift: reconcile.DriftFrom(last)})
}

func (w *world) applyWith(d *deploy.Deployment, o reconcile.Options) reconcile.Result {
	w.t.Helper()
	out, err := w.try(d, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) try(d *deploy.Deployment, o reconcile.Options) (reconcile.Result, error) {
	x := draft.New(w, w, draft.Options{IDs: w, Applying: d})
	r := reconcile.New(x, w, runtime{w, x}, o)
	ctx := w.t.Context()
	err := r.Compare(ctx)
	if err == nil {
		err = r.Judge(ctx)
	}
	if err == nil {
		err = r.Stage(ctx)
	}
	if err != nil {
		x.Undo()
		return r.Result, err
	}
	w.carryOut(x)
	for id, spec := range r.Redeclared {
		ch := w.channels[id]
		ch.Description, ch.Address, ch.Label = spec.Description, spec.Address, spec.Name
		w.channels[id] = ch
	}
	w.deployments[d.Name] = d
	return r.Result, nil
}

// do applies a change at run time.
func (w *world) do(ops ...topology.Op) {
	w.t.Helper()
	x := draft.New(w, w, draft.Options{IDs: w})
	for _, op := range ops {
		if _, err := x.Do(w.t.Context(), op); err != nil {
			w.t.Fatal(err)
		}
	}
	w.carryOut(x)
}

// spawn adds a creature that no recipe has, in the graph of its parent.
func (w *world) spawn(name string, parent journal.CreatureID) journal.CreatureID {
	w.t.Helper()
	id, x := w.NewCreature(), draft.New(w, w, draft.Options{IDs: w})
	x.Add(draft.Member{ID: id, Spec: &deploy.CreatureSpec{Name: name, Parent: parent}, Deployment: w.members[parent].Deployment, Parent: parent})
	if _, err := x.Do(w.t.Context(), topology.AddCreature{ID: id, Name: name, Parent: parent, Join: w.topo.GraphOf(parent)}); err != nil {
		w.t.Fatal(err)
	}
	w.carryOut(x)
	return id
}

// make adds a channel that no recipe has, with a listener.
func (w *world) make(name, deployment string, listener journal.CreatureID) journal.ChannelID {
	w.t.Helper()
	id, x := w.NewChannel(), draft.New(w, w, draft.Options{IDs: w})
	x.AddChannel(draft.Channel{ID: id, Label: name, Deployment: deployment})
	for _, op := range []topology.Op{topology.AddChannel{ID: id, With: listener, Name: name}, listens(listener, id)} {
		if _, err := x.Do(w.t.Context(), op); err != nil {
			w.t.Fatal(err)
		}
	}
	w.carryOut(x)
	return id
}

// wire adds an output wire.
func (w *world) wire(o journal.OutputWire) journal.OutputWire {
	w.t.Helper()
	x := draft.New(w, w, draft.Options{IDs: w})
	o, err := x.AddWire(w.t.Context(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.carryOut(x)
	return o
}

// assign makes a creature the root.
func (w *world) assign(id journal.CreatureID) {
	w.t.Helper()
	x := draft.New(w, w, draft.Options{IDs: w})
	if _, _, err := x.AssignRoot(w.t.Context(), id); err != nil {
		w.t.Fatal(err)
	}
	w.carryOut(x)
}

// carryOut applies a draft.
func (w *world) carryOut(x *draft.Draft) {
	x.PartWires(map[journal.CreatureID]bool{})
	c := x.Seal()
	maps.Copy(w.members, c.Creatures)
	maps.Copy(w.channels, c.Channels)
	for id, m := range w.members {
		if own, ok := c.Own[id]; ok {
			m.Own = own
		}
		if list, ok := c.Wires.Lists[id]; ok {
			m.Wires = list
		}
		w.members[id] = m
	}
	maps.DeleteFunc(w.members, func(id journal.CreatureID, _ draft.Member) bool { return w.topo.GraphOf(id) == "" })
	maps.DeleteFunc(w.channels, func(id journal.ChannelID, _ draft.Channel) bool { return w.topo.ChannelGraph(id) == "" })
	w.wireNotes = c.Wires.Notes
}

// picture returns the state, with a line for each creature, channel, edge and
// wire, by name.
func (w *world) picture() []string {
	var out []string
	name := func(id journal.CreatureID) string {
		c, _ := w.topo.Creature(id)
		return cmp.Or(c.Name, string(id))
	}
	for _, id := range w.topo.Creatures() {
		c, _ := w.topo.Creature(id)
		line := c.Name
		for _, flag := range []struct {
			on   bool
			name string
		}{{c.Root, " root"}, {c.Privileged, " privileged"}, {c.Stopped, " stopped"}} {
			if flag.on {
				line += flag.name
			}
		}
		out = append(out, line)
		for _, e := range c.Edges {
			ch, _ := w.topo.Channel(e.Channel)
			line := fmt.Sprintf("%s %ss %s", c.Name, e.Direction, ch.Name)
			if e.Alias != "" && e.Alias != ch.Name {
				line += " as " + e.Alias
			}
			out = append(out, line)
		}
		for _, o := range w.members[id].Wires {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s wires %s %s", c.Name, name(o.To), o.Name)))
		}
	}
	for id := range w.channels {
		ch, _ := w.topo.Channel(id)
		out = append(out, "#"+ch.Name)
	}
	slices.Sort(out)
	return out
}

// changes returns the lines that a picture has lost and gained.
func changes(before, after []string) []string {
	var out []string
	for _, line := range before {
		if !slices.Contains(after, line) {
			out = append(out, "- "+line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			out = append(out, "+ "+line)
		}
	}
	return out
}

func edge(c journal.CreatureID, ch journal.ChannelID, d journal.Direction, on bool) topology.SetEdge {
	return topology.SetEdge{Creature: c, Channel: ch, Direction: d, On: on}
}

func listens(c journal.CreatureID, ch journal.ChannelID) topology.SetEdge {
	return edge(c, ch, journal.Listen, true)
}

func sends(c journal.CreatureID, ch journal.ChannelID) topology.SetEdge {
	return edge(c, ch, journal.Send, true)
}

// crew is a deployment: the lead sends tasks to the hand, which sends notes
// back.
func crew(edits ...func(*deploy.Deployment)) *deploy.Deployment {
	d := &deploy.Deployment{
		Name:     "crew",
		Channels: []deploy.ChannelSpec{channelSpec("tasks"), channelSpec("notes")},
		Creatures: []deploy.CreatureSpec{
			{Address: "creature.lead", Name: "lead", Listen: on("notes"), Send: on("tasks")},
			{Address: "creature.hand", Name: "hand", Listen: on("tasks"), Send: on("notes")},
		},
	}
	for _, edit := range edits {
		edit(d)
	}
	return d
}

func channelSpec(name string) deploy.ChannelSpec {
	return deploy.ChannelSpec{Address: "channel." + name, Name: name}
}

// on are channels, each with an alias behind an equals sign if it has one.
func on(channels ...string) (out []deploy.WireSpec) {
	for _, ch := range channels {
		name, alias, _ := strings.Cut(ch, "=")
		out = append(out, deploy.WireSpec{Channel: "channel." + name, Alias: alias})
	}
	return out
}
