package draft

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/sorted"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// judgeOp asks the policies about an operation before it is staged. It returns
// the operation with the policies' decisions about colliding names.
func (d *Draft) judgeOp(ctx context.Context, op topology.Op) (topology.Op, error) {
	if d.Applying != nil || d.Unjudged {
		return op, nil
	}
	d.judgeStep(ctx, op)
	op = d.judgeMerge(ctx, op)
	return op, d.objected(ctx)
}

// judgeStep asks the policies about the direct effect of the operation.
func (d *Draft) judgeStep(ctx context.Context, op topology.Op) {
	switch op := op.(type) {
	case topology.AddCreature:
		d.judgeSpawn(ctx, op)
	case topology.RemoveCreature:
		d.judgeRemove(ctx, op)
	case topology.Connect:
		d.judgeEdge(ctx, op, journal.JudgeConnect, op.From, op.To, op.Channel, op.Name)
	case topology.Disconnect:
		d.judgeEdge(ctx, op, journal.JudgeDisconnect, op.From, op.To, op.Channel, "")
	case topology.SetEdge:
		kind := journal.JudgeDisconnect
		if op.On {
			kind = journal.JudgeConnect
		}
		from, to := op.Creature, journal.CreatureID("")
		if op.Direction == journal.Listen {
			from, to = "", op.Creature
		}
		d.judgeEdge(ctx, op, kind, from, to, op.Channel, "")
	case topology.RemoveChannel:
		d.judgeEdge(ctx, op, journal.JudgeDisconnect, "", "", op.ID, "")
	}
}

func (d *Draft) judgeSpawn(ctx context.Context, op topology.AddCreature) {
	m, added := d.creatures[op.ID]
	if !added || !d.judged(journal.JudgeSpawn) {
		return
	}
	ev := deploy.PolicyEvent{
		Kind: journal.JudgeSpawn, Call: "add_creature", Graph: op.Join, Module: m.Spec.Module, Creature: d.party(op.ID),
		Parent: d.partyIf(op.Parent), Spawned: &deploy.Spawned{Spec: m.Spec},
	}
	ev.Creature.Name = op.Name
	if k, ok := KindOf(m.Deployment, m.Spec); ok {
		ev.Alive = d.Alive(k)
	}
	for _, w := range op.Edges {
		name := d.policyChannel(w.Channel).Name
		ev.Spawned.Edges = append(ev.Spawned.Edges, fmt.Sprintf("%s %s as %s", w.Direction, name, w.Alias))
		if w.Direction == journal.Listen {
			ev.Listen = append(ev.Listen, name)
		} else {
			ev.Send = append(ev.Send, name)
		}
		if ev.Graph == "" {
			ev.Graph = d.topo.ChannelGraph(w.Channel)
		}
	}
	d.judge(ctx, ev, op.ID, m.Deployment, d.Caller.Deployment)
}

// partyIf returns the party of a creature that may not exist.
func (d *Draft) partyIf(id journal.CreatureID) deploy.Party {
	if id == "" {
		return deploy.Party{}
	}
	return d.party(id)
}

func (d *Draft) judgeRemove(ctx context.Context, op topology.RemoveCreature) {
	if _, exists := d.Member(op.ID); !exists || !d.judged(journal.JudgeRemove) {
		return
	}
	ev := deploy.PolicyEvent{Kind: journal.JudgeRemove, Call: "remove_creature", Graph: d.topo.GraphOf(op.ID), Creature: d.party(op.ID)}
	for _, id := range append(slices.Clone(op.With), d.WorkersOf(op.ID)...) {
		ev.Workers = append(ev.Workers, d.nameOf(id))
	}
	d.judge(ctx, ev, op.ID, d.DeploymentOf(op.ID), d.Caller.Deployment)
}

// JudgeReplace asks the policies whether a creature's module may be replaced. ev
// has the modules.
func (d *Draft) JudgeReplace(ctx context.Context, id journal.CreatureID, ev deploy.PolicyEvent) error {
	if !d.judged(journal.JudgeReplace) {
		return nil
	}
	ev.Kind, ev.Call, ev.Graph, ev.Creature = journal.JudgeReplace, "replace_module", d.topo.GraphOf(id), d.party(id)
	d.judge(ctx, ev, "", d.DeploymentOf(id))
	return d.objected(ctx)
}

// judgeEdge asks the policies about edges between from, to and a channel; some
// of these may be empty.
func (d *Draft) judgeEdge(ctx context.Context, op topology.Op, kind journal.PolicyKind, from, to journal.CreatureID, channel journal.ChannelID, name string) {
	if !d.judged(kind) {
		return
	}
	ev := deploy.PolicyEvent{Kind: kind, Call: callOf(op), From: d.partyIf(from), To: d.partyIf(to), Channel: deploy.PolicyChannel{Name: name}}
	if channel != "" {
		ev.Channel = d.policyChannel(channel)
	}
	if graphs := joins(d.topo, op); len(graphs) > 0 {
		ev.Graph = graphs[0] // the surviving one, if there are several
	} else {
		ev.Graph = cmp.Or(d.topo.GraphOf(from), d.topo.GraphOf(to), d.topo.ChannelGraph(channel))
	}
	d.judge(ctx, ev, "", d.DeploymentOf(from), d.DeploymentOf(to), d.DeploymentOfChannel(channel), d.Caller.Deployment)
}

// judgeWire asks the policies about an output wire that is added or removed.
func (d *Draft) judgeWire(ctx context.Context, w *journal.OutputWire, added bool) error {
	if !d.judged(journal.JudgeWire) {
		return nil
	}
	ev := deploy.PolicyEvent{
		Kind: journal.JudgeWire, Call: "unwire", Graph: d.topo.GraphOf(w.From), From: d.party(w.From), Wire: w, Added: added,
	}
	if added {
		ev.Call = "wire"
	}
	target := w.To
	if target == journal.ToRoot {
		target = d.RootOf(d.DeploymentOf(w.From))
	}
	ev.To = d.partyIf(target)
	d.judge(ctx, ev, "", d.DeploymentOf(w.From), d.DeploymentOf(target), d.Caller.Deployment)
	return d.objected(ctx)
}

// judgeMerge asks the policies about the graphs that an operation would merge,
// and puts their decisions about names into the operation.
func (d *Draft) judgeMerge(ctx context.Context, op topology.Op) topology.Op {
	if !d.judged(journal.JudgeMerge) {
		return op
	}
	graphs := joins(d.topo, op)
	if len(graphs) < 2 {
		return op
	}
	ev := deploy.PolicyEvent{Kind: journal.JudgeMerge, Call: callOf(op), Graph: graphs[0]}
	var deployments []string
	for _, id := range graphs {
		ev.Graphs = append(ev.Graphs, d.view(id))
		deployments = append(deployments, d.namesIn(id)...)
	}
	ev.Collisions = collisionsOf(ev.Graphs)
	switch op := op.(type) {
	case topology.Connect:
		ev.From, ev.To = d.party(op.From), d.party(op.To)
	case topology.SetEdge:
		ev.Creature, ev.Channel = d.party(op.Creature), d.policyChannel(op.Channel)
	case topology.AddCreature:
		ev.Creature = d.party(op.ID)
	}
	decision := d.judge(ctx, ev, "", deployments...)
	return settled(op, decision.Settle)
}

// settled returns the operation with the decisions about names.
func settled(op topology.Op, names map[string]deploy.Collision) topology.Op {
	if len(names) == 0 {
		return op
	}
	switch op := op.(type) {
	case topology.Connect:
		op.Settle = names
		return op
	case topology.SetEdge:
		op.Settle = names
		return op
	}
	return op // when a creature is added, two colliding channels are always renamed
}

// joins lists the graphs that an operation will merge, the survivor first.
func joins(topo *topology.State, op topology.Op) []journal.GraphID {
	var ids []journal.GraphID
	switch op := op.(type) {
	case topology.Connect:
		ids = []journal.GraphID{topo.GraphOf(op.From), topo.GraphOf(op.To)}
	case topology.SetEdge:
		if op.On {
			ids = []journal.GraphID{topo.GraphOf(op.Creature), occupied(topo, op.Channel)}
		}
	case topology.AddCreature:
		ids = []journal.GraphID{op.Join}
		for _, w := range op.Edges {
			ids = append(ids, occupied(topo, w.Channel))
		}
	}
	slices.Sort(ids)
	ids = slices.DeleteFunc(slices.Compact(ids), func(id journal.GraphID) bool { return id == "" })
	if len(ids) > 1 {
		slices.SortStableFunc(ids, func(a, b journal.GraphID) int { return bySurvival(topo, a, b) })
	}
	return ids
}

// bySurvival orders two graphs: first the one whose id a merge keeps.
func bySurvival(topo *topology.State, a, b journal.GraphID) int {
	first, _ := topo.Size(a)
	second, _ := topo.Size(b)
	if first != second {
		return cmp.Compare(second, first)
	}
	bornA, _ := topo.Born(a)
	bornB, _ := topo.Born(b)
	return cmp.Compare(bornA, bornB)
}

// occupied returns the graph of a channel that has edges: merging with an
// unused channel is not a merge of graphs.
func occupied(topo *topology.State, id journal.ChannelID) journal.GraphID {
	ch, _ := topo.Channel(id)
	if len(ch.Edges) == 0 {
		return ""
	}
	return topo.ChannelGraph(id)
}

// namesIn lists the deployments that have members in a graph, by name.
func (d *Draft) namesIn(id journal.GraphID) []string {
	info, _ := d.topo.Graph(id)
	return sorted.Keys(d.DeploymentsIn(info))
}

// collisionsOf lists the names that several graphs use, creatures first.
func collisionsOf(graphs []*deploy.GraphView) []deploy.NameCollision {
	seen, listed := map[deploy.NameCollision]int{}, map[deploy.NameCollision]bool{}
	out := []deploy.NameCollision{}
	note := func(kind deploy.NameKind, name string, graph int) {
		k := deploy.NameCollision{Kind: kind, Name: name}
		if first, there := seen[k]; there && first != graph && !listed[k] {
			listed[k] = true
			out = append(out, k)
		} else if !there {
			seen[k] = graph
		}
	}
	for i, g := range graphs {
		for _, c := range g.Creatures {
			note(deploy.NameOfCreature, c.Name, i)
		}
	}
	for i, g := range graphs {
		for _, ch := range g.Channels {
			note(deploy.NameOfChannel, ch.Name, i)
		}
	}
	return out
}

// judgeSplit asks the policies about the split that a staged operation caused
// in its graph.
func (d *Draft) judgeSplit(ctx context.Context, op topology.Op, delta *topology.Delta) error {
	if delta.Kind != topology.Split || !d.judged(journal.JudgeSplit) {
		return nil
	}
	ev := deploy.PolicyEvent{Kind: journal.JudgeSplit, Call: callOf(op), Graph: delta.NewGraphs[0]}
	var deployments []string
	for _, id := range delta.NewGraphs {
		part := []string{}
		info, _ := d.topo.Graph(id)
		for _, c := range info.Creatures {
			part = append(part, d.nameOf(c))
		}
		ev.Parts = append(ev.Parts, part)
		deployments = append(deployments, d.namesIn(id)...)
	}
	d.judge(ctx, ev, "", deployments...)
	return d.objected(ctx)
}

// callOf returns the public name of an operation.
func callOf(op topology.Op) string {
	switch op := op.(type) {
	case topology.AddCreature:
		return "add_creature"
	case topology.RemoveCreature:
		return "remove_creature"
	case topology.RemoveChannel:
		return "remove_channel"
	case topology.Connect:
		return "connect"
	case topology.Disconnect:
		return "disconnect"
	case topology.SetEdge:
		return "set_" + op.Direction.String()
	case topology.SetRoot:
		return "assign_root"
	}
	return "change"
}
