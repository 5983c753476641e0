package engine

import (
	"slices"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// do stages an operation together with what roots get and lose by it, as one.
func (x *change) do(op topology.Op) (*topology.Delta, error) {
	op, err := x.judgeOp(op)
	if err != nil {
		return nil, err
	}
	mark := len(x.undos)
	report, directs := x.reportThatGoes(op), x.directsOf(op)
	if _, err := x.stage(op); err != nil {
		return nil, err
	}
	at := len(x.deltas) - 1
	more := x.consequences(op, &x.deltas[at])
	if report != "" && x.e.topo.ChannelGraph(report) != "" {
		more = append(more, topology.RemoveChannel{ID: report})
	}
	more = append(more, x.unheard(directs)...)
	for _, op := range more {
		if err := x.also(at, op); err != nil {
			x.takeBack(mark, at)
			return nil, err
		}
	}
	if err := x.judgeSplit(op, &x.deltas[at]); err != nil {
		x.takeBack(mark, at)
		return nil, err
	}
	return &x.deltas[at], nil
}

// reportThatGoes is the report channel that goes with a root.
func (x *change) reportThatGoes(op topology.Op) journal.ChannelID {
	remove, ok := op.(topology.RemoveCreature)
	if !ok || !x.e.topo.IsRoot(remove.ID) {
		return ""
	}
	d := x.deploymentOf(remove.ID)
	if x.rootOf(d) != remove.ID {
		return ""
	}
	return x.reportOf(d)
}

// directsOf lists the direct channels of the creatures that operations remove.
func (x *change) directsOf(ops ...topology.Op) []journal.ChannelID {
	var out []journal.ChannelID
	for _, op := range x.withWorkers(ops) {
		remove, ok := op.(topology.RemoveCreature)
		if !ok {
			continue
		}
		for _, id := range append([]journal.CreatureID{remove.ID}, remove.With...) {
			c, _ := x.e.topo.Creature(id)
			for _, e := range c.Edges {
				if member, _ := x.directOf(e.Channel); e.Direction == journal.Listen && member == id {
					out = append(out, e.Channel)
				}
			}
		}
	}
	return out
}

// unheard are the operations that take channels away to which nobody listens any
// more, such as the direct channels of creatures that have been removed.
func (x *change) unheard(channels []journal.ChannelID) []topology.Op {
	var ops []topology.Op
	for _, id := range channels {
		ch, ok := x.e.topo.Channel(id)
		if ok && !slices.ContainsFunc(ch.Edges, func(e topology.Edge) bool { return e.Direction == journal.Listen }) {
			ops = append(ops, topology.RemoveChannel{ID: id})
		}
	}
	return ops
}

// consequences are the operations that follow from one that has been staged.
func (x *change) consequences(op topology.Op, d *topology.Delta) []topology.Op {
	switch op := op.(type) {
	case topology.AddCreature:
		return x.newMember(op.ID, d.Channel)
	case topology.AddChannel:
		return x.newChannel(op.ID)
	case topology.Connect:
		from := x.deploymentOf(op.From)
		if x.channel(d.Channel) != nil || from == "" || from != x.deploymentOf(op.To) {
			return nil
		}
		x.channels[d.Channel] = &channel{id: d.Channel, deployment: from}
		return x.newChannel(d.Channel)
	case topology.SetEdge:
		if key := (edgeKey{op.Creature, op.Channel, op.Direction}); op.On && x.isGiven(key) {
			x.setOwn(key, true) // it is there because of the root, and now by itself
		}
	}
	return nil
}

// newMember gives a new creature and the root of its deployment their edges to each
// other.
func (x *change) newMember(id journal.CreatureID, direct journal.ChannelID) []topology.Op {
	d := x.deploymentOf(id)
	if direct != "" {
		parent := x.creatures[id].spec.Parent
		if !(edgeKey{parent, direct, journal.Send}).on(x.e.topo) {
			parent = "" // it is elsewhere: somebody else sends
		}
		x.channels[direct] = &channel{id: direct, deployment: d, address: directAddress(id, parent)}
	}
	root := x.rootIn(d, x.e.topo.GraphOf(id))
	if root == "" || root == id {
		return nil
	}
	ops := x.mayReport(nil, id)
	if direct != "" {
		ops = x.give(ops, edgeKey{root, direct, journal.Send})
		x.rooting.given[edgeKey{root, direct, journal.Send}] = true // even if it has it for want of a parent
	}
	return ops
}

// newChannel has the root of its deployment listen on a new channel.
func (x *change) newChannel(id journal.ChannelID) []topology.Op {
	root := x.rootIn(x.deploymentOfChannel(id), x.e.topo.ChannelGraph(id))
	if root == "" {
		return nil
	}
	return x.give(nil, edgeKey{root, id, journal.Listen})
}

// mayReport adds the operation by which a member may report to its root.
func (x *change) mayReport(ops []topology.Op, member journal.CreatureID) []topology.Op {
	report := x.reportOf(x.deploymentOf(member))
	key := edgeKey{member, report, journal.Send}
	if report == "" || key.on(x.e.topo) || x.e.topo.ChannelGraph(report) != x.e.topo.GraphOf(member) {
		return ops
	}
	return append(ops, topology.SetEdge{Creature: member, Channel: report, Direction: journal.Send, On: true, Alias: deploy.ReportChannel})
}

// give adds the operation by which a root gets an edge, unless it is there.
func (x *change) give(ops []topology.Op, key edgeKey) []topology.Op {
	if key.on(x.e.topo) {
		return ops
	}
	x.rooting.given[key] = true
	return append(ops, topology.SetEdge{Creature: key.creature, Channel: key.channel, Direction: key.direction, On: true})
}

// also stages one more operation, and makes what it does part of an earlier delta.
func (x *change) also(at int, op topology.Op) error {
	d, err := x.stage(op)
	if err != nil {
		return err
	}
	x.fold(&x.deltas[at], d)
	x.deltas = x.deltas[:at+1]
	return nil
}

// takeBack undoes the last operations. The first of them has the delta at.
func (x *change) takeBack(mark, at int) {
	for _, undo := range slices.Backward(x.undos[mark:]) {
		undo()
	}
	x.undos, x.deltas = x.undos[:mark], x.deltas[:at]
}

// fold makes one delta of two that follow each other.
func (x *change) fold(d, next *topology.Delta) {
	for _, g := range next.OldGraphs {
		if !slices.Contains(d.OldGraphs, g) && !slices.Contains(d.NewGraphs, g) {
			d.OldGraphs = append(d.OldGraphs, g)
		}
	}
	var graphs []journal.GraphID
	for _, g := range d.NewGraphs {
		if !slices.Contains(next.OldGraphs, g) {
			graphs = append(graphs, g)
		}
	}
	d.NewGraphs = append(slices.Clone(next.NewGraphs), graphs...)
	d.Kind = max(d.Kind, next.Kind)
	d.Renamed, d.Unified = append(d.Renamed, next.Renamed...), append(d.Unified, next.Unified...)
	d.Changes = append(d.Changes, next.Changes...)
	if len(next.Affected) > 0 {
		d.Affected = x.eldestFirst(append(d.Affected, next.Affected...))
	}
}

// eldestFirst puts creatures that exist in order, each once.
func (x *change) eldestFirst(ids []journal.CreatureID) []journal.CreatureID {
	born := map[journal.CreatureID]uint64{}
	for _, id := range ids {
		if c, ok := x.e.topo.Creature(id); ok {
			born[id] = c.Born
		}
	}
	ids = slices.DeleteFunc(ids, func(id journal.CreatureID) bool { return born[id] == 0 })
	slices.SortFunc(ids, func(a, b journal.CreatureID) int { return compare(born[a], born[b]) })
	return slices.Compact(ids)
}
