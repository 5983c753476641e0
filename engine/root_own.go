package engine

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// ownEdges are edges that a root has by itself, among those that it would have
// because it is the root: those stay when it is the root no more. The set is never
// modified. A root has few of them; so these are kept, and not the others.
type ownEdges map[ownEdge]bool

// ownEdge is one of them, in JSON too.
type ownEdge struct {
	Channel   journal.ChannelID `json:"channel"`
	Direction journal.Direction `json:"direction"`
}

// list is the set as the creature's row keeps it.
func (o ownEdges) list() []ownEdge {
	return slices.SortedFunc(maps.Keys(o), func(a, b ownEdge) int {
		return cmp.Or(cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Direction, b.Direction))
	})
}

// ownOf reads the set from a creature's row.
func ownOf(row journal.CreatureRow) ownEdges {
	var s storedRow
	if json.Unmarshal(row.Spec, &s) != nil || len(s.Own) == 0 {
		return nil
	}
	own := ownEdges{}
	for _, edge := range s.Own {
		own[edge] = true
	}
	return own
}

// comesWithRoot reports whether an edge is one that its creature has, or would have,
// because it is the root of its deployment. That a parent may send on its child's
// direct channel has nothing to do with roots.
func (x *change) comesWithRoot(key edgeKey) bool {
	d := x.deploymentOf(key.creature)
	if d == "" || x.deploymentOfChannel(key.channel) != d {
		return false
	}
	member, parent := x.directOf(key.channel)
	if key.direction == journal.Listen {
		return member == ""
	}
	return member != "" && parent != key.creature
}

// own is what a root has by itself as the change has it.
func (x *change) own(id journal.CreatureID) ownEdges {
	if own, ok := x.rooting.own[id]; ok {
		return own
	}
	if c := x.creature(id); c != nil {
		return c.own
	}
	return nil
}

// isGiven reports whether a root has an edge only because it is the root.
func (x *change) isGiven(key edgeKey) bool {
	return x.e.topo.IsRoot(key.creature) && key.on(x.e.topo) && x.comesWithRoot(key) &&
		!x.own(key.creature)[ownEdge{key.channel, key.direction}]
}

// setOwn notes whether a root has an edge by itself.
func (x *change) setOwn(key edgeKey, own bool) {
	before, edge := x.own(key.creature), ownEdge{key.channel, key.direction}
	if before[edge] == own {
		return
	}
	after := ownEdges{}
	maps.Copy(after, before)
	if own {
		after[edge] = true
	} else {
		delete(after, edge)
	}
	x.rooting.own[key.creature] = after
}

// ownNow are the edges of a creature that remain its own when it becomes the root.
func (x *change) ownNow(id journal.CreatureID) ownEdges {
	own := ownEdges{}
	c, _ := x.e.topo.Creature(id)
	for _, e := range c.Edges {
		if x.comesWithRoot(edgeKey{id, e.Channel, e.Direction}) {
			own[ownEdge{e.Channel, e.Direction}] = true
		}
	}
	return own
}

// noteOwn notes an edge of a root that comes other than because of the root, or
// goes.
func (x *change) noteOwn(c topology.Change) {
	if x.saved != nil || !x.e.topo.IsRoot(c.Creature) {
		return
	}
	key := edgeKey{c.Creature, c.Channel, c.Direction}
	switch c.Kind {
	case topology.EdgeAdded:
		if !x.rooting.given[key] && x.comesWithRoot(key) {
			x.setOwn(key, true)
		}
	case topology.EdgeRemoved:
		x.setOwn(key, false)
	}
}

// settle has creatures and channels be what the change makes of them, before the
// stores are cut: their first records have it so. It returns what takes that back.
func (r *rooting) settle(x *change) (undo func()) {
	var undos []func()
	for id, deployment := range r.creatures {
		undos = append(undos, x.comeInto(x.creature(id), deployment))
	}
	for id, deployment := range r.channels {
		ch := x.channel(id)
		before := ch.deployment
		ch.deployment = deployment
		x.e.setPolicy(ch)
		undos = append(undos, func() { ch.deployment = before; x.e.setPolicy(ch) })
	}
	for id, own := range r.own {
		cr := x.creature(id)
		before := cr.own
		if cr.own = own; !x.e.topo.IsRoot(id) {
			cr.own = nil
		}
		undos = append(undos, func() { cr.own = before })
	}
	return func() {
		for _, undo := range undos {
			undo()
		}
	}
}

// comeInto changes which deployment a creature belongs to.
func (x *change) comeInto(cr *creature, deployment string) (undo func()) {
	before := cr.deployment
	change := func(to string) {
		lives := x.e.creatures[cr.id] == cr
		if lives {
			x.e.countSpawned(cr, -1)
		}
		if cr.deployment = to; lives {
			x.e.countSpawned(cr, 1)
		}
	}
	change(deployment)
	return func() { change(before) }
}

// log notes in the records what settle has changed.
func (r *rooting) log(x *change) {
	changed := map[journal.CreatureID]bool{}
	for id := range r.own {
		changed[id] = true
	}
	for id := range r.creatures {
		changed[id] = true
	}
	for _, id := range slices.Sorted(maps.Keys(changed)) {
		if cr := x.e.creatures[id]; cr != nil {
			x.e.noteRoot(cr)
			x.dirty[cr] = true // it tells policies its deployment
			putCreature(x.record(cr.home.load()), cr)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.channels)) {
		if ch := x.e.channels[id]; ch != nil {
			x.e.noteReport(ch, false)
			x.putChannel(ch)
		}
	}
}
