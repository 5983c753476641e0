package engine

import (
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// drift is what has become different while a deployment ran: the difference
// between what was asked for when it was applied last and what there is. It is
// carried over to what is asked for now, as a merge of two edited copies does
// it: what only running has changed stays, and what the recipe has changed is
// as the recipe says. Of a nil drift nothing stays.
type drift struct {
	last      *deploy.Deployment
	creatures map[string]*deploy.CreatureSpec // of last, by address
	channels  map[string]bool                 // of last, by address
	edges     map[addressedEdge]string        // of last: aliases
	// sure says that what is not there was removed, and stays so. If a store could
	// not be read, it may be in that one.
	sure bool
	// heals has the recipe make again what it declares and is not there.
	heals bool
}

// addressedEdge names an edge by addresses.
type addressedEdge struct {
	creature, channel string
	direction         journal.Direction
}

func (w wantedEdge) key() addressedEdge { return addressedEdge{w.creature, w.channel, w.direction} }

func driftFrom(last *deploy.Deployment) *drift {
	if last == nil {
		return nil
	}
	f := &drift{last: last, creatures: map[string]*deploy.CreatureSpec{}, channels: map[string]bool{}, edges: map[addressedEdge]string{}}
	for i := range last.Creatures {
		f.creatures[last.Creatures[i].Address] = &last.Creatures[i]
	}
	for _, ch := range channelSpecsOf(last) {
		f.channels[ch.Address] = true
	}
	for _, w := range edgesOf(last) {
		f.edges[w.key()] = w.alias
	}
	return f
}

// since compares with what there is, now that it has been brought back.
func (f *drift) since(a *application) {
	if f != nil {
		f.sure = !f.heals && len(a.live) > 0 && len(a.e.problems) == 0
	}
}

// removed reports whether a creature of the recipe was removed while it ran.
func (f *drift) removed(a *application, address string) bool {
	return f != nil && f.sure && f.creatures[address] != nil && a.live[address] == nil
}

// declared reports whether the recipe decides about an address that it does not
// have any more.
func (f *drift) declared(address string) bool { return f == nil || f.creatures[address] != nil }

// declaredChannel is declared for a channel.
func (f *drift) declaredChannel(address string) bool { return f == nil || f.channels[address] }

// wanted leaves out the edges that were taken away while the recipe ran.
func (f *drift) wanted(a *application, all []wantedEdge, existing map[string]*channel) []wantedEdge {
	if f == nil {
		return all
	}
	var out []wantedEdge
	for _, w := range all {
		if a.creatures[w.creature] == "" {
			continue
		}
		if w.given && w.creature == a.d.Root && f.leavesRoot(a.d) && a.e.roots[a.d.Name] != a.creatures[a.d.Root] {
			continue // somebody else is the root; see acquaint
		}
		alias, before := f.edges[w.key()]
		if before && a.live[w.creature] != nil {
			ch := existing[w.channel]
			on := ch != nil && edgeKey{a.creatures[w.creature], ch.id, w.direction}.on(a.e.topo)
			if !on && f.sure {
				continue
			}
			if on && alias == w.alias {
				w.alias = "" // whatever it is called now
			}
		}
		out = append(out, w)
	}
	return out
}

// takes reports whether an edge that the recipe does not ask for goes.
func (f *drift) takes(a *application, address string, edge topology.Edge) bool {
	if f == nil {
		return true
	}
	ch := a.e.channels[edge.Channel]
	if ch == nil || ch.deployment != a.d.Name {
		return false
	}
	_, before := f.edges[addressedEdge{address, ch.address, edge.Direction}]
	return before
}

// leavesStopped reports whether a creature stays stopped, or started, as it is.
func (f *drift) leavesStopped(spec *deploy.CreatureSpec) bool {
	return f != nil && f.creatures[spec.Address] != nil && f.creatures[spec.Address].Stopped == spec.Stopped
}

// leavesPrivilege reports whether a creature stays privileged, or not, as it is.
func (f *drift) leavesPrivilege(address string, privileged bool) bool {
	if f == nil || f.creatures[address] == nil {
		return false
	}
	return privileged == (f.creatures[address].Privileged || address == f.last.Root)
}

// leavesName reports whether a creature stays called what it is.
func (f *drift) leavesName(spec *deploy.CreatureSpec) bool {
	return f != nil && f.creatures[spec.Address] != nil && f.creatures[spec.Address].Name == spec.Name
}

// leavesRoot reports whether whoever is the root stays it.
func (f *drift) leavesRoot(d *deploy.Deployment) bool {
	return f != nil && f.sure && f.last.Root == d.Root
}

// acquaint has a root that was assigned while the recipe ran listen on the
// channels that are new in it.
func (f *drift) acquaint(a *application, x *change) {
	root := a.e.roots[a.d.Name]
	if root == "" || root == a.creatures[a.d.Root] {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(x.channels)) {
		x.ops = x.give(x.ops, edgeKey{root, id, journal.Listen})
	}
}

// own is what a root has by itself: also what it got while the recipe ran.
func (f *drift) own(a *application, own ownEdges) ownEdges {
	if c := a.live[a.d.Root]; f != nil && c != nil {
		maps.Copy(own, c.own)
	}
	return own
}

// demote takes from a root that was assigned while the recipe ran what it has
// because of that.
func (f *drift) demote(a *application, x *change, wanted []wantedEdge) {
	former := a.e.roots[a.d.Name]
	if f == nil || former == "" || former == a.creatures[a.d.Root] {
		return
	}
	x.ops = append(x.ops, topology.SetRoot{ID: former})
	keeps := map[edgeKey]bool{}
	for _, w := range wanted {
		keeps[edgeKey{a.creatures[w.creature], a.channels[w.channel], w.direction}] = true
	}
	c, _ := a.e.topo.Creature(former)
	for _, e := range c.Edges {
		if key := (edgeKey{former, e.Channel, e.Direction}); x.isGiven(key) && !keeps[key] && !a.gone(e.Channel) {
			x.ops = append(x.ops, topology.SetEdge{Creature: former, Channel: e.Channel, Direction: e.Direction})
		}
	}
}

// outputs are the output wires of the recipe without those that were removed or
// changed while it ran.
func (f *drift) outputs(a *application, spec *deploy.CreatureSpec, cr *creature, had []journal.OutputWire) []deploy.OutputSpec {
	if f == nil {
		return spec.Outputs
	}
	var out []deploy.OutputSpec
	for _, s := range spec.Outputs {
		to := journal.CreatureID(s.To)
		if to != journal.ToRoot {
			to = a.creatures[s.To]
		}
		if to == "" && f.removed(a, s.To) {
			continue
		}
		same := func(o deploy.OutputSpec) bool { return o.SameAs(s) }
		before := f.creatures[spec.Address]
		if before != nil && slices.ContainsFunc(before.Outputs, same) && f.sure && !s.IsAmong(had, cr.id, to) {
			continue
		}
		out = append(out, s)
	}
	return out
}

// wires are those that a creature got while the recipe ran.
func (f *drift) wires(a *application, spec *deploy.CreatureSpec, had []journal.OutputWire) []journal.OutputWire {
	if f == nil {
		return nil
	}
	declared := slices.Clone(spec.Outputs)
	if before := f.creatures[spec.Address]; before != nil {
		declared = append(declared, before.Outputs...)
	}
	var out []journal.OutputWire
	for _, w := range had {
		ours := slices.ContainsFunc(declared, func(s deploy.OutputSpec) bool {
			to := journal.CreatureID(s.To)
			if c := a.live[s.To]; to != journal.ToRoot && c != nil {
				to = c.id
			}
			return s.IsAmong([]journal.OutputWire{w}, w.From, to)
		})
		if !ours {
			out = append(out, w)
		}
	}
	return out
}
