package engine

import (
	"slices"

	"github.com/seed47132306/terrarium/engine/internal/sorted"
	"github.com/seed47132306/terrarium/engine/journal"
)

// findUnlinked lists the creatures whose parent is removed, or was in their graph and
// will be in another: parent links do not connect graphs, and none crosses a split. It
// must be called before the environments follow.
func (x *change) findUnlinked(plan *storePlan) {
	for _, id := range sorted.Keys(x.leaving) {
		for _, cr := range x.e.children(id) {
			x.unlink(cr, journal.UnlinkRemoved)
		}
	}
	for _, group := range plan.groups {
		if len(group.After) < 2 {
			continue
		}
		kin := map[*creature]bool{}
		for _, id := range group.moved {
			kin[x.e.creatures[id]] = true
			for _, child := range x.e.children(id) {
				kin[child] = true
			}
		}
		for _, cr := range sorted.KeysFunc(kin, olderCreature) {
			if parent := x.e.creatures[cr.parent]; parent != nil && parent.home.load() == cr.home.load() && x.Parted(cr.id, cr.parent) {
				x.unlink(cr, journal.UnlinkSplit)
			}
		}
	}
	x.unlinkSpawned()
}

// unlinkSpawned does the same for creatures that a turn has spawned beside itself and
// then split off.
func (x *change) unlinkSpawned() {
	if x.turn == nil {
		return
	}
	for _, id := range sorted.Keys(x.creatures) {
		if cr := x.creatures[id]; x.Parted(id, cr.parent) {
			x.unlink(cr, journal.UnlinkSplit)
		}
	}
}

func (x *change) unlink(cr *creature, reason journal.UnlinkReason) {
	if x.e.topo.GraphOf(cr.id) != "" {
		x.unlinked = append(x.unlinked, unlinked{cr, reason})
	}
}

// losesParent reports whether findUnlinked has listed a creature.
func (x *change) losesParent(cr *creature) bool {
	return slices.ContainsFunc(x.unlinked, func(u unlinked) bool { return u.creature == cr })
}

// noteUnlinked removes the links that findUnlinked has listed.
func (x *change) noteUnlinked() {
	for _, u := range x.unlinked {
		g := x.home(u.creature)
		rec := x.record(g)
		detail := journal.ParentLinkPayload{Child: u.id, Old: u.parent, Reason: u.reason}
		x.e.setParent(g, u.creature, "")
		putCreature(g, rec, u.creature)
		x.log(g, rec, journal.Event{Kind: journal.EventParentLinkChanged, Creature: u.id, Payload: journal.JSON(detail)})
	}
}

// setParent changes a creature's parent.
func (e locked) setParent(_ section, cr *creature, parent journal.CreatureID) {
	if family := e.families[cr.parent]; family != nil {
		if delete(family, cr.id); len(family) == 0 {
			delete(e.families, cr.parent)
		}
	}
	if cr.parent = parent; parent == "" {
		return
	}
	if e.families[parent] == nil {
		e.families[parent] = map[journal.CreatureID]bool{}
	}
	e.families[parent][cr.id] = true
}

// children lists the children of a creature, oldest first.
func (e locked) children(parent journal.CreatureID) []*creature {
	var out []*creature
	for id := range e.families[parent] {
		if cr := e.creatures[id]; cr != nil {
			out = append(out, cr)
		}
	}
	slices.SortFunc(out, olderCreature)
	return out
}
