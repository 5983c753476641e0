package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
)

// wireEdits is what a change does to output wires. The topology knows nothing
// of them, so there is nothing to take back if the change fails.
type wireEdits struct {
	// lists are the wires, as the change leaves them, of the creatures whose
	// wires it touches.
	lists map[journal.CreatureID][]journal.OutputWire
	notes []wireNote
}

// wireNote is what there is to be logged and written of a wire: that it was
// added or removed or, without a kind, that it has another place.
type wireNote struct {
	kind   journal.EventKind
	wire   journal.OutputWire
	reason string
	logged *journal.Event // as a cut has logged it; nil if it has not
}

// Why output wires are removed.
const (
	wireUnwired  = "unwired"          // somebody asked for it
	wireRecipe   = "recipe"           // the recipe, applied again, does not have it
	wireSplit    = "split"            // its ends came into different graphs
	wireOrphaned = "creature_removed" // its source went
)

// wiresOf are the wires of a creature as the change has them.
func (x *change) wiresOf(cr *creature) []journal.OutputWire {
	if list, ok := x.wires.lists[cr.id]; ok {
		return list
	}
	return cr.wires
}

func (x *change) setWires(cr *creature, list []journal.OutputWire) {
	if x.wires.lists == nil {
		x.wires.lists = map[journal.CreatureID][]journal.OutputWire{}
	}
	x.wires.lists[cr.id] = list
}

// findWire finds a wire that exists or comes with the change.
func (x *change) findWire(id journal.WireID) (*creature, journal.OutputWire, bool) {
	sources := []*creature{}
	if cr := x.e.wires[id]; cr != nil {
		sources = append(sources, cr)
	}
	for from := range x.wires.lists {
		if cr := x.creature(from); cr != nil {
			sources = append(sources, cr)
		}
	}
	for _, cr := range sources {
		if i := wireWithID(x.wiresOf(cr), id); i >= 0 && x.e.topo.GraphOf(cr.id) != "" {
			return cr, x.wiresOf(cr)[i], true
		}
	}
	return nil, journal.OutputWire{}, false
}

// addWire adds a wire between creatures of the topology as the change has it.
func (x *change) addWire(w journal.OutputWire) (journal.OutputWire, error) {
	if err := x.mayWire(&w); err != nil {
		return journal.OutputWire{}, err
	}
	if err := x.judgeWire(&w, true); err != nil {
		return journal.OutputWire{}, err
	}
	cr := x.creature(w.From)
	list := x.wiresOf(cr)
	if err := roomForWire(list, &w); err != nil {
		return journal.OutputWire{}, err
	}
	w.ID, w.Order = x.newWireID(), 1
	if n := len(list); n > 0 {
		w.Order = list[n-1].Order + 1
	}
	x.setWires(cr, append(slices.Clip(list), w))
	x.wires.notes = append(x.wires.notes, wireNote{kind: journal.EventWireAdded, wire: w})
	return w, nil
}

// newWireID is the id of a wire that the change adds.
func (x *change) newWireID() journal.WireID {
	if x.derived != nil {
		return journal.WireID(x.derived.id("w"))
	}
	return x.e.ids.newWire()
}

// mayWire checks a wire by itself, and its ends.
func (x *change) mayWire(w *journal.OutputWire) error {
	topo := x.e.topo
	home := topo.GraphOf(w.From)
	if home == "" {
		return wireEnd(errtext.Gone("creature", string(w.From)))
	}
	if err := checkWire(w); err != nil {
		return err
	}
	if w.To == journal.ToRoot {
		if from, _ := topo.Creature(w.From); from.Root && !w.AllowSelf {
			return errtext.Invalid("wire", "the wire leads from the root "+from.Name+" to the root, which is itself", "set allow_self if that is meant")
		}
	} else if graph := topo.GraphOf(w.To); graph == "" {
		return wireEnd(errtext.Gone("creature", string(w.To)))
	} else if graph != home {
		return &abi.Error{
			Code: abi.NotConnected, Op: "wire", Message: "an output wire joins no graphs, and " + string(w.From) + " and " + string(w.To) + " are in two",
			Remedy: "connect them first", IDs: map[string]string{"from": string(w.From), "to": string(w.To)},
		}
	}
	if w.When == "" || x.predicate(x.creature(w.From), w.When) != nil {
		return nil
	}
	return x.noPredicate(x.creature(w.From), w.When)
}

func wireEnd(err *abi.Error) error {
	err.Op = "wire"
	return err
}

// roomForWire refuses a wire beside the others of its source.
func roomForWire(list []journal.OutputWire, w *journal.OutputWire) error {
	if len(list) >= journal.MaxWires {
		return &abi.Error{
			Code: abi.LimitExceeded, Op: "wire", Message: fmt.Sprintf("%s has %d output wires; the limit wires is %d", w.From, len(list), journal.MaxWires),
			Remedy: "remove one, or send on a channel, which any number of creatures can hear", IDs: map[string]string{"creature": string(w.From)},
		}
	}
	for _, other := range list {
		what, remedy := "such a wire", "use that one, or remove it first: a name alone makes no other wire"
		if w.Name != "" && other.Name == w.Name {
			what, remedy = "a wire named "+w.Name, "remove that one first, or use another name"
		} else if !w.SameAs(other) {
			continue
		}
		return &abi.Error{
			Code: abi.AlreadyExists, Op: "wire", Message: string(w.From) + " has " + what + " already",
			Remedy: remedy, IDs: map[string]string{"wire": string(other.ID)},
		}
	}
	return nil
}

// removeWire removes a wire.
func (x *change) removeWire(id journal.WireID) (journal.OutputWire, error) {
	cr, w, ok := x.findWire(id)
	if !ok {
		return journal.OutputWire{}, noWire(string(id))
	}
	if err := x.judgeWire(&w, false); err != nil {
		return journal.OutputWire{}, err
	}
	x.takeWire(cr, w, wireUnwired)
	return w, nil
}

// takeWire takes a wire away. One that came with the change leaves no trace.
func (x *change) takeWire(cr *creature, w journal.OutputWire, reason string) {
	list := slices.Clone(x.wiresOf(cr))
	x.setWires(cr, slices.DeleteFunc(list, func(o journal.OutputWire) bool { return o.ID == w.ID }))
	before := len(x.wires.notes)
	x.wires.notes = slices.DeleteFunc(x.wires.notes, func(n wireNote) bool { return n.kind == journal.EventWireAdded && n.wire.ID == w.ID })
	if len(x.wires.notes) == before {
		x.wires.notes = append(x.wires.notes, wireNote{kind: journal.EventWireRemoved, wire: w, reason: reason})
	}
}

// partWires removes the wires whose ends come into different graphs. Those to
// creatures that go stay: what they lead becomes dead letters, until somebody
// removes them. It has to be called before the environments follow.
func (x *change) partWires(plan *storePlan) {
	sources := map[journal.CreatureID]*creature{}
	for id := range x.wires.lists {
		sources[id] = x.creature(id)
	}
	for _, group := range plan.groups {
		if len(group.after) < 2 {
			continue
		}
		for _, g := range group.before {
			for id, cr := range g.creatures {
				if len(cr.wires) > 0 {
					sources[id] = cr
				}
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(sources)) {
		for _, w := range x.wiresOf(sources[id]) {
			if x.parted(id, w.To) {
				x.takeWire(sources[id], w, wireSplit)
			}
		}
	}
}

// wiresLeft are the wires of a creature as the change leaves them, if nothing more is
// staged: partWires takes away those that join two graphs.
func (x *change) wiresLeft(cr *creature) []journal.OutputWire {
	list := slices.Clone(x.wiresOf(cr))
	return slices.DeleteFunc(list, func(w journal.OutputWire) bool { return x.parted(cr.id, w.To) })
}

// followWires gives creatures the wires that the change leaves them.
func (x *change) followWires() {
	for id, list := range x.wires.lists {
		if cr := x.e.creatures[id]; cr != nil {
			x.e.setWires(cr, list)
			x.dirty[cr] = true
		}
	}
}

// setWires changes the wires of a creature. The caller holds the mutation lock,
// and mu if the creature is in a graph.
func (e *Engine) setWires(cr *creature, list []journal.OutputWire) {
	for _, w := range cr.wires {
		delete(e.wires, w.ID)
	}
	cr.wires = list
	for _, w := range list {
		e.wires[w.ID] = cr
	}
}

// noteWires logs and writes what the change did to the wires of creatures that
// are still there; those of others have gone with them.
func (x *change) noteWires() {
	for _, n := range x.wires.notes {
		cr := x.e.creatures[n.wire.From]
		if cr == nil {
			continue
		}
		g := cr.home.load()
		rec := x.record(g)
		if n.logged != nil {
			continue // and the first record has the rows
		}
		if n.kind != 0 {
			x.log(g, rec, n.event())
		}
		switch {
		case rec == nil:
		case n.kind == journal.EventWireRemoved:
			rec.Drop.Wires = append(rec.Drop.Wires, n.wire.ID)
		default:
			rec.Wires = append(rec.Wires, n.wire)
		}
	}
}

// firstWireNotes logs in the first record of a graph's new store what the change
// does to the wires of its members: the rows are in there as the change leaves
// them, and a crash behind it must not take the reason away.
func (x *change) firstWireNotes(rec *journal.Record, id journal.GraphID, origin journal.Origin) {
	for i := range x.wires.notes {
		n := &x.wires.notes[i]
		if n.kind == 0 || x.e.topo.GraphOf(n.wire.From) != id {
			continue
		}
		ev := n.event()
		ev.ID, ev.Time, ev.Graph, ev.Cause = journal.EventID{Origin: origin, Seq: uint64(len(rec.Events) + 1)}, x.tick(), id, x.turn.cause(x)
		rec.Events = append(rec.Events, ev)
		n.logged = &ev
	}
}

// showWireNotes shows observers what is in first records, before anything that is
// logged behind them.
func (x *change) showWireNotes(plan *storePlan) {
	for _, n := range x.wires.notes {
		if n.logged != nil {
			x.show(plan, n.logged)
		}
	}
}

// orphanWires logs that the wires of a creature go with it. Their rows go with
// the creature's.
func (x *change) orphanWires(log *graph, rec *journal.Record, cr *creature) {
	for _, w := range cr.wires {
		n := wireNote{kind: journal.EventWireRemoved, wire: w, reason: wireOrphaned}
		x.log(log, rec, n.event())
	}
	x.e.setWires(cr, nil)
}

// event is what the log says of the change of a wire.
func (n *wireNote) event() journal.Event {
	ev := journal.Event{Kind: n.kind, Creature: n.wire.From, Payload: journal.JSON(n.wire)}
	if n.kind == journal.EventWireRemoved {
		ev.Payload = journal.JSON(journal.WireRemovedPayload{OutputWire: n.wire, Reason: n.reason})
	}
	return ev
}

// restoreWires brings back the wires of a saved graph.
func (x *change) restoreWires() {
	rows := slices.SortedFunc(slices.Values(x.saved.Wires), func(a, b journal.OutputWire) int {
		return cmp.Or(strings.Compare(string(a.From), string(b.From)), cmp.Compare(a.Order, b.Order))
	})
	for _, w := range rows {
		if cr := x.creatures[w.From]; cr != nil {
			x.setWires(cr, append(x.wiresOf(cr), w))
		}
	}
}
