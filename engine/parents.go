package engine

// findUnlinked lists the creatures whose parent was in their graph and is going
// to be in another: parent links do not connect, and none crosses a split. It
// has to be called before the environments follow.
func (x *change) findUnlinked(plan *storePlan) {
	for _, group := range plan.groups {
		if len(group.after) < 2 {
			continue
		}
		for _, g := range group.before {
			for _, cr := range g.sortedCreatures() {
				if g.creatures[cr.parent] == nil {
					continue
				}
				own, parents := x.e.topo.GraphOf(cr.id), x.e.topo.GraphOf(cr.parent)
				if own != "" && parents != "" && own != parents {
					x.unlinked = append(x.unlinked, cr)
				}
			}
		}
	}
}

// noteUnlinked removes the links that findUnlinked has found.
func (x *change) noteUnlinked() {
	for _, cr := range x.unlinked {
		g := cr.home.load()
		rec := x.record(g)
		detail := struct {
			Old    CreatureID `json:"old"`
			New    CreatureID `json:"new"`
			Reason string     `json:"reason"`
		}{Old: cr.parent, Reason: "split"}
		cr.parent = ""
		rec.putCreature(cr)
		g.log(rec, Event{Kind: EventParentLinkChanged, Creature: cr.id, Payload: mustJSON(detail)})
	}
}
