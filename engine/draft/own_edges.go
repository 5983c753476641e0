package draft

import (
	"cmp"
	"maps"

	"github.com/seed47132306/terrarium/engine/internal/sorted"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// OwnEdges is the set of a root's own edges: edges that being the root would
// also give it, but that it keeps when it stops being the root. The set is
// never modified. A root has few own edges, so these are stored, and not the edges that
// it has only as the root.
type OwnEdges map[OwnEdge]bool

// OwnEdge is an element of OwnEdges, also in JSON.
type OwnEdge struct {
	Channel   journal.ChannelID `json:"channel"`
	Direction journal.Direction `json:"direction"`
}

// List returns the set in a fixed order.
func (o OwnEdges) List() []OwnEdge {
	return sorted.KeysFunc(o, func(a, b OwnEdge) int {
		return cmp.Or(cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Direction, b.Direction))
	})
}

// comesWithRoot reports whether a creature has, or would have, an edge because
// it is the root of its deployment. A parent's right to send on its child's
// direct channel does not depend on roots.
func (d *Draft) comesWithRoot(key EdgeKey) bool {
	deployment := d.DeploymentOf(key.Creature)
	if deployment == "" || d.DeploymentOfChannel(key.Channel) != deployment {
		return false
	}
	member, parent := d.directOf(key.Channel)
	if key.Direction == journal.Listen {
		return member == ""
	}
	return member != "" && parent != key.Creature
}

// own returns the own edges of a root.
func (d *Draft) own(id journal.CreatureID) OwnEdges {
	if own, ok := d.rooting.own[id]; ok {
		return own
	}
	m, _ := d.Member(id)
	return m.Own
}

// IsGiven reports whether a root has an edge only because it is the root.
func (d *Draft) IsGiven(key EdgeKey) bool {
	return d.topo.IsRoot(key.Creature) && key.On(d.topo) && d.comesWithRoot(key) &&
		!d.own(key.Creature)[OwnEdge{key.Channel, key.Direction}]
}

// SetOwn sets the own edges of a root.
func (d *Draft) SetOwn(id journal.CreatureID, own OwnEdges) { d.rooting.own[id] = own }

// NoteGiven records that an edge exists because of the root.
func (d *Draft) NoteGiven(key EdgeKey) { d.rooting.given[key] = true }

// setOwn records whether an edge is a root's own.
func (d *Draft) setOwn(key EdgeKey, own bool) {
	before, edge := d.own(key.Creature), OwnEdge{key.Channel, key.Direction}
	if before[edge] == own {
		return
	}
	after := OwnEdges{}
	maps.Copy(after, before)
	if own {
		after[edge] = true
	} else {
		delete(after, edge)
	}
	d.rooting.own[key.Creature] = after
}

// ownNow returns the edges that stay a creature's own when it becomes the
// root.
func (d *Draft) ownNow(id journal.CreatureID) OwnEdges {
	own := OwnEdges{}
	c, _ := d.topo.Creature(id)
	for _, e := range c.Edges {
		if d.comesWithRoot(EdgeKey{id, e.Channel, e.Direction}) {
			own[OwnEdge{e.Channel, e.Direction}] = true
		}
	}
	return own
}

// noteOwn records that a root's own edge is added or removed.
func (d *Draft) noteOwn(c topology.Change) {
	if d.Unjudged || !d.topo.IsRoot(c.Creature) {
		return
	}
	key := EdgeKey{c.Creature, c.Channel, c.Direction}
	switch c.Kind {
	case topology.EdgeAdded:
		if !d.rooting.given[key] && d.comesWithRoot(key) {
			d.setOwn(key, true)
		}
	case topology.EdgeRemoved:
		d.setOwn(key, false)
	}
}
