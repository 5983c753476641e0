package draft

import (
	"cmp"
	"context"
	"slices"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Do stages an operation together with its consequences for roots. It asks the
// policies concerned before, and about a split afterwards. On an error nothing
// is staged.
func (d *Draft) Do(ctx context.Context, op topology.Op) (*topology.Delta, error) {
	if err := mayStart(d, op); err != nil {
		return nil, err
	}
	op, err := d.judgeOp(ctx, op)
	if err != nil {
		return nil, err
	}
	mark := len(d.undos)
	report, directs := d.reportThatGoes(op), d.DirectsOf(op)
	if _, err := d.stage(op); err != nil {
		return nil, err
	}
	at := len(d.deltas) - 1
	more := d.consequences(op, &d.deltas[at])
	if report != "" && d.topo.ChannelGraph(report) != "" {
		more = append(more, topology.RemoveChannel{ID: report})
	}
	more = append(more, d.Unheard(directs)...)
	for _, op := range more {
		if err := d.also(at, op); err != nil {
			d.takeBack(mark, at)
			return nil, err
		}
	}
	if err := d.judgeSplit(ctx, op, &d.deltas[at]); err != nil {
		d.takeBack(mark, at)
		return nil, err
	}
	return &d.deltas[at], nil
}

// mayStart refuses to start a single creature of a recipe that has stopped: the creature
// would not run.
func mayStart(d *Draft, op topology.Op) error {
	s, ok := op.(topology.SetStopped)
	if !ok || s.Stopped || d.Applying != nil || d.Unjudged {
		return nil
	}
	_, stop := d.live.State(s.ID)
	if stop == nil {
		return nil
	}
	return errtext.RecipeStopped(cmp.Or(d.judging.call, "start_creature"), string(s.ID), d.nameOf(s.ID), stop.Deployment, stop.Condition, stop.Reason)
}

// reportThatGoes returns the report channel that is removed together with a
// root.
func (d *Draft) reportThatGoes(op topology.Op) journal.ChannelID {
	remove, ok := op.(topology.RemoveCreature)
	if !ok || !d.topo.IsRoot(remove.ID) {
		return ""
	}
	deployment := d.DeploymentOf(remove.ID)
	if d.RootOf(deployment) != remove.ID {
		return ""
	}
	return d.reportOf(deployment)
}

// DirectsOf lists the direct channels of the creatures that operations remove.
func (d *Draft) DirectsOf(ops ...topology.Op) []journal.ChannelID {
	var out []journal.ChannelID
	for _, op := range d.withWorkers(ops) {
		remove, ok := op.(topology.RemoveCreature)
		if !ok {
			continue
		}
		for _, id := range append([]journal.CreatureID{remove.ID}, remove.With...) {
			c, _ := d.topo.Creature(id)
			for _, e := range c.Edges {
				if member, _ := d.directOf(e.Channel); e.Direction == journal.Listen && member == id {
					out = append(out, e.Channel)
				}
			}
		}
	}
	return out
}

// Unheard returns operations that remove those channels that no longer have a
// listener, such as the direct channels of removed creatures. A parent that listens to the
// answers on a direct channel does not count.
func (d *Draft) Unheard(channels []journal.ChannelID) []topology.Op {
	var ops []topology.Op
	for _, id := range channels {
		ch, ok := d.topo.Channel(id)
		_, parent := d.directOf(id)
		if ok && !slices.ContainsFunc(ch.Edges, func(e topology.Edge) bool { return e.Direction == journal.Listen && e.Creature != parent }) {
			ops = append(ops, topology.RemoveChannel{ID: id})
		}
	}
	return ops
}

// consequences returns the operations that follow from a staged one.
func (d *Draft) consequences(op topology.Op, delta *topology.Delta) []topology.Op {
	switch op := op.(type) {
	case topology.AddCreature:
		return d.newMember(op.ID, delta.Channel)
	case topology.AddChannel:
		return d.newChannel(op.ID)
	case topology.Connect:
		from := d.DeploymentOf(op.From)
		if _, known := d.Channel(delta.Channel); known || from == "" || from != d.DeploymentOf(op.To) {
			return nil
		}
		d.AddChannel(Channel{ID: delta.Channel, Deployment: from})
		return d.newChannel(delta.Channel)
	case topology.SetEdge:
		if key := (EdgeKey{op.Creature, op.Channel, op.Direction}); op.On && d.IsGiven(key) {
			d.setOwn(key, true) // it exists because of the root, and is now its own too
		}
	}
	return nil
}

// newMember connects a new creature and the root of its deployment with each
// other.
func (d *Draft) newMember(id journal.CreatureID, direct journal.ChannelID) []topology.Op {
	deployment := d.DeploymentOf(id)
	if direct != "" {
		parent := d.creatures[id].Spec.Parent
		if !(EdgeKey{parent, direct, journal.Send}).On(d.topo) {
			parent = "" // the parent is elsewhere, and another creature sends
		}
		d.AddChannel(Channel{ID: direct, Deployment: deployment, Address: directAddress(id, parent)})
	}
	root := d.RootIn(deployment, d.topo.GraphOf(id))
	if root == "" || root == id {
		return nil
	}
	ops := d.mayReport(nil, id)
	if direct != "" {
		ops = d.Give(ops, EdgeKey{root, direct, journal.Send})
		d.rooting.given[EdgeKey{root, direct, journal.Send}] = true // even if the root has it because there is no parent
	}
	return ops
}

// newChannel makes the root of its deployment listen on a new channel.
func (d *Draft) newChannel(id journal.ChannelID) []topology.Op {
	root := d.RootIn(d.DeploymentOfChannel(id), d.topo.ChannelGraph(id))
	if root == "" {
		return nil
	}
	return d.Give(nil, EdgeKey{root, id, journal.Listen})
}

// mayReport adds the operation that lets a member report to its root.
func (d *Draft) mayReport(ops []topology.Op, member journal.CreatureID) []topology.Op {
	report := d.reportOf(d.DeploymentOf(member))
	key := EdgeKey{member, report, journal.Send}
	if report == "" || key.On(d.topo) || d.topo.ChannelGraph(report) != d.topo.GraphOf(member) {
		return ops
	}
	return append(ops, topology.SetEdge{Creature: member, Channel: report, Direction: journal.Send, On: true, Alias: deploy.ReportChannel})
}

// Give adds the operation that gives a root an edge because it is the root,
// unless the edge exists.
func (d *Draft) Give(ops []topology.Op, key EdgeKey) []topology.Op {
	if key.On(d.topo) {
		return ops
	}
	d.rooting.given[key] = true
	return append(ops, topology.SetEdge{Creature: key.Creature, Channel: key.Channel, Direction: key.Direction, On: true})
}

// also stages one more operation, and adds its effect to an earlier delta.
func (d *Draft) also(at int, op topology.Op) error {
	delta, err := d.stage(op)
	if err != nil {
		return err
	}
	d.fold(&d.deltas[at], delta)
	d.deltas = d.deltas[:at+1]
	return nil
}

// takeBack undoes the last operations. at is the index of the first one's
// delta.
func (d *Draft) takeBack(mark, at int) {
	for _, undo := range slices.Backward(d.undos[mark:]) {
		undo()
	}
	d.undos, d.deltas = d.undos[:mark], d.deltas[:at]
}

// fold combines two consecutive deltas into one.
func (d *Draft) fold(delta, next *topology.Delta) {
	for _, g := range next.OldGraphs {
		if !slices.Contains(delta.OldGraphs, g) && !slices.Contains(delta.NewGraphs, g) {
			delta.OldGraphs = append(delta.OldGraphs, g)
		}
	}
	var graphs []journal.GraphID
	for _, g := range delta.NewGraphs {
		if !slices.Contains(next.OldGraphs, g) {
			graphs = append(graphs, g)
		}
	}
	delta.NewGraphs = append(slices.Clone(next.NewGraphs), graphs...)
	delta.Kind = max(delta.Kind, next.Kind)
	delta.Renamed, delta.Unified = append(delta.Renamed, next.Renamed...), append(delta.Unified, next.Unified...)
	delta.Changes = append(delta.Changes, next.Changes...)
	if len(next.Affected) > 0 {
		delta.Affected = d.oldestFirst(append(delta.Affected, next.Affected...))
	}
}

// oldestFirst sorts existing creatures by age, oldest first, without
// duplicates.
func (d *Draft) oldestFirst(ids []journal.CreatureID) []journal.CreatureID {
	born := make(map[journal.CreatureID]uint64, len(ids))
	for _, id := range ids {
		if c, ok := d.topo.Creature(id); ok {
			born[id] = c.Born
		}
	}
	ids = slices.DeleteFunc(ids, func(id journal.CreatureID) bool { return born[id] == 0 })
	slices.SortFunc(ids, func(a, b journal.CreatureID) int { return cmp.Compare(born[a], born[b]) })
	return slices.Compact(ids)
}
