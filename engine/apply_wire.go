package engine

import (
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// wire turns on the edges that are wanted, and then off those that are not.
func (a *application) wire(x *change, wanted []wantedEdge) {
	r, own := &rewiring{a: a, wanted: map[edgeKey]bool{}, cut: map[edgeKey]bool{}}, ownEdges{}
	for _, w := range wanted {
		k := edgeKey{a.creatures[w.creature], a.channels[w.channel], w.direction}
		if root := w.creature == a.d.Root; root && w.given {
			x.rooting.given[k] = true
		} else if root && w.direction == journal.Listen {
			own[ownEdge{k.channel, journal.Listen}] = true
		}
		r.want(k, w.alias)
	}
	if id := a.creatures[a.d.Root]; id != "" {
		x.rooting.own[id] = a.drift.own(a, own)
	}
	r.makeRoom()
	for _, op := range append(r.off, r.on...) {
		x.ops = append(x.ops, op)
	}
	for _, address := range slices.Sorted(maps.Keys(a.creatures)) {
		c, _ := a.e.topo.Creature(a.creatures[address])
		for _, edge := range c.Edges {
			if !a.gone(edge.Channel) && !r.keeps(address, edge) {
				x.ops = append(x.ops, turned(edgeKeyOf(edge), false, ""))
			}
		}
	}
}

// rewiring collects what leads from the edges that there are to those that are
// wanted. What is turned off so that an alias is free comes before everything
// that is turned on.
type rewiring struct {
	a       *application
	wanted  map[edgeKey]bool
	cut     map[edgeKey]bool // turned off by off
	off, on []topology.SetEdge
}

// want asks for an edge; with an empty alias, for one that is called anything.
func (r *rewiring) want(k edgeKey, alias string) {
	r.wanted[k] = true
	current, on := edgeAlias(r.a.e.topo, k.creature, k.channel, k.direction)
	if on && (alias == "" || current == alias) {
		return
	}
	if on {
		r.turnOff(k)
	}
	r.on = append(r.on, turned(k, true, alias))
}

func (r *rewiring) turnOff(k edgeKey) {
	r.cut[k] = true
	r.off = append(r.off, turned(k, false, ""))
}

// makeRoom takes the send aliases that wanted edges get from those that have
// them. Of these, what stays gets another one.
func (r *rewiring) makeRoom() {
	for _, op := range slices.Clone(r.on) {
		if op.Direction != journal.Send || op.Alias == "" {
			continue
		}
		c, _ := r.a.e.topo.Creature(op.Creature)
		for _, edge := range c.Edges {
			k := edgeKeyOf(edge)
			has := edge.Direction == journal.Send && edge.Alias == op.Alias && edge.Channel != op.Channel
			if !has || r.cut[k] || r.a.gone(edge.Channel) { // what is gone goes before all this
				continue
			}
			r.turnOff(k)
			if r.keeps(r.a.e.creatures[op.Creature].spec.Address, edge) {
				r.on = append(r.on, turned(k, true, ""))
			}
		}
	}
}

// keeps reports whether an edge of the creature at an address stays.
func (r *rewiring) keeps(address string, edge topology.Edge) bool {
	return r.wanted[edgeKeyOf(edge)] || r.a.kept[edge.Channel] || !r.a.drift.takes(r.a, address, edge)
}

func edgeKeyOf(e topology.Edge) edgeKey { return edgeKey{e.Creature, e.Channel, e.Direction} }

func turned(k edgeKey, on bool, alias string) topology.SetEdge {
	return topology.SetEdge{Creature: k.creature, Channel: k.channel, Direction: k.direction, On: on, Alias: alias}
}

// edgeAlias returns the alias of an edge, if it exists.
func edgeAlias(s *topology.State, c journal.CreatureID, ch journal.ChannelID, dir journal.Direction) (string, bool) {
	info, _ := s.Creature(c)
	for _, e := range info.Edges {
		if e.Channel == ch && e.Direction == dir {
			return e.Alias, true
		}
	}
	return "", false
}
