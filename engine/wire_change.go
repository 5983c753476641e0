package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/journal"
)

// partWires removes the wires whose ends are now in different graphs. It must be called
// before the environments follow.
func (x *change) partWires(plan *storePlan) {
	sources, parting := map[journal.CreatureID]bool{}, map[journal.GraphID]bool{}
	for _, group := range plan.groups {
		for _, id := range group.Before {
			parting[id] = len(group.After) > 1
		}
	}
	for _, cr := range x.e.wires {
		if parting[cr.home.load().id] {
			sources[cr.id] = true
		}
	}
	x.PartWires(sources)
}

// followWires gives creatures the wires that the change leaves them.
func (x *change) followWires() {
	for id, list := range x.sealed.Wires.Lists {
		if cr := x.e.creatures[id]; cr != nil {
			x.e.setWires(x.home(cr), cr, list)
			x.dirty[cr] = true
		}
	}
}

// setWires changes the wires of a creature.
func (e locked) setWires(_ section, cr *creature, list []journal.OutputWire) {
	for _, w := range cr.wires {
		delete(e.wires, w.ID)
	}
	cr.wires = list
	for _, w := range list {
		e.wires[w.ID] = cr
	}
}

// noteWires logs and writes the change's effects on the wires of creatures that still
// exist; those of other creatures are removed with them.
func (x *change) noteWires() {
	for _, n := range x.sealed.Wires.Notes {
		cr := x.e.creatures[n.Wire.From]
		if cr == nil {
			continue
		}
		g := x.home(cr)
		rec := x.record(g)
		if n.Logged != nil {
			continue // the first record has the rows
		}
		if n.Kind != 0 {
			x.log(g, rec, n.Event())
		}
		switch {
		case rec == nil:
		case n.Kind == journal.EventWireRemoved:
			rec.Drop.Wires = append(rec.Drop.Wires, n.Wire.ID)
		default:
			rec.Wires = append(rec.Wires, n.Wire)
		}
	}
}

// firstWireNotes logs the change's effects on the wires of a new store's members in the
// first record of that store. The record has the rows as the change leaves them, and a
// crash after it must not lose the reason.
func (x *change) firstWireNotes(rec *journal.Record, id journal.GraphID, origin journal.Origin) {
	for i := range x.sealed.Wires.Notes {
		n := &x.sealed.Wires.Notes[i]
		if n.Kind == 0 || x.e.topo.GraphOf(n.Wire.From) != id {
			continue
		}
		ev := n.Event()
		ev.ID, ev.Time, ev.Graph, ev.Cause = journal.EventID{Origin: origin, Seq: uint64(len(rec.Events) + 1)}, x.tick(), id, x.turn.cause(x)
		ev.Attribute(x.attribution)
		rec.Events = append(rec.Events, ev)
		n.Logged = &ev
	}
}

// showWireNotes shows observers what is in first records, before anything that is logged
// after them.
func (x *change) showWireNotes(plan *storePlan) {
	for _, n := range x.sealed.Wires.Notes {
		if n.Logged != nil {
			x.show(plan, n.Logged)
		}
	}
}

// orphanWires logs that the wires of a creature are removed with it. Their rows are
// removed with the creature's.
func (x *change) orphanWires(g, log section, rec *journal.Record, cr *creature) {
	for _, w := range cr.wires {
		n := draft.WireNote{Kind: journal.EventWireRemoved, Wire: w, Reason: journal.UnwireRemoved}
		x.log(log, rec, n.Event())
	}
	x.e.setWires(g, cr, nil)
}

// restoreWires brings back the wires of a saved graph.
func (x *change) restoreWires() {
	rows := slices.SortedFunc(slices.Values(x.saved.Wires), func(a, b journal.OutputWire) int {
		return cmp.Or(strings.Compare(string(a.From), string(b.From)), cmp.Compare(a.Order, b.Order))
	})
	for _, w := range rows {
		if cr := x.creatures[w.From]; cr != nil {
			x.SetWires(w.From, append(x.WiresOf(w.From), w))
		}
	}
}
