package reconcile

import (
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// wire adds the wanted edges and then removes the others.
func (r *Reconciliation) wire(wanted []wantedEdge) {
	w := &rewiring{Reconciliation: r, wanted: map[draft.EdgeKey]bool{}, cut: map[draft.EdgeKey]bool{}}
	own := draft.OwnEdges{}
	for _, edge := range wanted {
		k := r.keyOf(edge)
		if root := edge.creature == r.d.Root; root && edge.given {
			r.draft.NoteGiven(k)
		} else if root && edge.direction == journal.Listen {
			own[draft.OwnEdge{Channel: k.Channel, Direction: journal.Listen}] = true
		}
		w.want(k, edge.alias)
	}
	if id := r.Creatures[r.d.Root]; id != "" {
		r.draft.SetOwn(id, r.drift.own(r, own))
	}
	w.makeRoom()
	for _, op := range append(w.off, w.on...) {
		r.then(op)
	}
	for _, address := range slices.Sorted(maps.Keys(r.Creatures)) {
		c, _ := r.draft.Topology().Creature(r.Creatures[address])
		for _, edge := range c.Edges {
			if !r.gone(edge.Channel) && !w.keeps(address, edge) {
				r.then(turned(edgeKeyOf(edge), false, ""))
			}
		}
	}
}

// keyOf returns the ids of a wanted edge.
func (r *Reconciliation) keyOf(w wantedEdge) draft.EdgeKey {
	return draft.EdgeKey{Creature: r.Creatures[w.creature], Channel: r.Channels[w.channel], Direction: w.direction}
}

// rewiring collects the operations from the existing edges to the wanted ones.
// Removals that free an alias come before all additions.
type rewiring struct {
	*Reconciliation
	wanted  map[draft.EdgeKey]bool
	cut     map[draft.EdgeKey]bool // removed by off
	off, on []topology.SetEdge
}

// want requests an edge; with an empty alias, under any alias.
func (r *rewiring) want(k draft.EdgeKey, alias string) {
	r.wanted[k] = true
	current, on := draft.EdgeAlias(r.draft.Topology(), k)
	if on && (alias == "" || current == alias) {
		return
	}
	if on {
		r.turnOff(k)
	}
	r.on = append(r.on, turned(k, true, alias))
}

func (r *rewiring) turnOff(k draft.EdgeKey) {
	r.cut[k] = true
	r.off = append(r.off, turned(k, false, ""))
}

// makeRoom frees the send aliases of wanted edges. Other edges that have them
// and stay get a different alias.
func (r *rewiring) makeRoom() {
	for _, op := range slices.Clone(r.on) {
		if op.Direction != journal.Send || op.Alias == "" {
			continue
		}
		c, _ := r.draft.Topology().Creature(op.Creature)
		m, _ := r.base.Member(op.Creature)
		for _, edge := range c.Edges {
			k := edgeKeyOf(edge)
			has := edge.Direction == journal.Send && edge.Alias == op.Alias && edge.Channel != op.Channel
			if !has || r.cut[k] || r.gone(edge.Channel) { // removed channels are handled before
				continue
			}
			r.turnOff(k)
			if r.keeps(m.Spec.Address, edge) {
				r.on = append(r.on, turned(k, true, ""))
			}
		}
	}
}

// keeps reports whether an edge of the creature at an address stays.
func (r *rewiring) keeps(address string, edge topology.Edge) bool {
	return r.wanted[edgeKeyOf(edge)] || r.kept[edge.Channel] || !r.drift.takes(r.Reconciliation, address, edge)
}

func edgeKeyOf(e topology.Edge) draft.EdgeKey {
	return draft.EdgeKey{Creature: e.Creature, Channel: e.Channel, Direction: e.Direction}
}

func turned(k draft.EdgeKey, on bool, alias string) topology.SetEdge {
	return topology.SetEdge{Creature: k.Creature, Channel: k.Channel, Direction: k.Direction, On: on, Alias: alias}
}
