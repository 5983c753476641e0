package engine

import (
	"cmp"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// judgeOp asks about an operation before it is staged. What policies decide about
// colliding names is in the operation that it returns.
func (x *change) judgeOp(op topology.Op) (topology.Op, error) {
	if x.applying != nil || x.hold || len(x.e.deployments) == 0 {
		return op, nil
	}
	x.judgeStep(op)
	op = x.judgeMerge(op)
	return op, x.objected()
}

// judgeStep asks about what the operation does by itself.
func (x *change) judgeStep(op topology.Op) {
	switch op := op.(type) {
	case topology.AddCreature:
		x.judgeSpawn(op)
	case topology.RemoveCreature:
		x.judgeRemove(op)
	case topology.Connect:
		x.judgeEdge(op, journal.JudgeConnect, op.From, op.To, op.Channel, op.Name)
	case topology.Disconnect:
		x.judgeEdge(op, journal.JudgeDisconnect, op.From, op.To, op.Channel, "")
	case topology.SetEdge:
		kind := journal.JudgeDisconnect
		if op.On {
			kind = journal.JudgeConnect
		}
		from, to := op.Creature, journal.CreatureID("")
		if op.Direction == journal.Listen {
			from, to = "", op.Creature
		}
		x.judgeEdge(op, kind, from, to, op.Channel, "")
	case topology.RemoveChannel:
		x.judgeEdge(op, journal.JudgeDisconnect, "", "", op.ID, "")
	}
}

func (x *change) judgeSpawn(op topology.AddCreature) {
	c := x.creatures[op.ID]
	if c == nil || !x.judged(journal.JudgeSpawn) {
		return
	}
	ev := deploy.PolicyEvent{
		Kind: journal.JudgeSpawn, Call: "add_creature", Graph: op.Join, Module: c.spec.Module, Creature: x.party(op.ID),
		Parent: x.partyIf(op.Parent),
	}
	ev.Creature.Name = op.Name
	if k, ok := c.spawnKind(); ok {
		ev.Alive = x.alive(k)
	}
	for _, w := range op.Edges {
		name := x.policyChannel(w.Channel).Name
		if w.Direction == journal.Listen {
			ev.Listen = append(ev.Listen, name)
		} else {
			ev.Send = append(ev.Send, name)
		}
		if ev.Graph == "" {
			ev.Graph = x.e.topo.ChannelGraph(w.Channel)
		}
	}
	x.judge(ev, op.ID, c.deployment, x.judging.caller.Deployment)
}

// partyIf is a creature that there may not be.
func (x *change) partyIf(id journal.CreatureID) deploy.Party {
	if id == "" {
		return deploy.Party{}
	}
	return x.party(id)
}

func (x *change) judgeRemove(op topology.RemoveCreature) {
	if !x.judged(journal.JudgeRemove) || x.creature(op.ID) == nil {
		return
	}
	ev := deploy.PolicyEvent{Kind: journal.JudgeRemove, Call: "remove_creature", Graph: x.e.topo.GraphOf(op.ID), Creature: x.party(op.ID)}
	for _, id := range append(slices.Clone(op.With), x.workersOf(op.ID)...) {
		ev.Workers = append(ev.Workers, x.nameOf(id))
	}
	x.judge(ev, op.ID, x.deploymentOf(op.ID), x.judging.caller.Deployment)
}

// judgeEdge asks about edges between from, to and a channel, of which some may
// be empty.
func (x *change) judgeEdge(op topology.Op, kind journal.PolicyKind, from, to journal.CreatureID, channel journal.ChannelID, name string) {
	if !x.judged(kind) {
		return
	}
	ev := deploy.PolicyEvent{Kind: kind, Call: callOf(op), From: x.partyIf(from), To: x.partyIf(to), Channel: deploy.PolicyChannel{Name: name}}
	if channel != "" {
		ev.Channel = x.policyChannel(channel)
	}
	if graphs := x.joins(op); len(graphs) > 0 {
		ev.Graph = graphs[0] // the one that goes on, if they are several
	} else {
		ev.Graph = cmp.Or(x.e.topo.GraphOf(from), x.e.topo.GraphOf(to), x.e.topo.ChannelGraph(channel))
	}
	x.judge(ev, "", x.deploymentOf(from), x.deploymentOf(to), x.deploymentOfChannel(channel), x.judging.caller.Deployment)
}

// judgeWire asks about an output wire that is added or removed.
func (x *change) judgeWire(w *journal.OutputWire, added bool) error {
	if !x.judged(journal.JudgeWire) {
		return nil
	}
	ev := deploy.PolicyEvent{
		Kind: journal.JudgeWire, Call: "unwire", Graph: x.e.topo.GraphOf(w.From), From: x.party(w.From), Wire: w, Added: added,
	}
	if added {
		ev.Call = "wire"
	}
	target := w.To
	if target == journal.ToRoot {
		target = x.rootOf(x.deploymentOf(w.From))
	}
	ev.To = x.partyIf(target)
	x.judge(ev, "", x.deploymentOf(w.From), x.deploymentOf(target), x.judging.caller.Deployment)
	return x.objected()
}

// judgeMerge asks about the graphs that an operation would make one, and puts
// what is decided about their names into the operation.
func (x *change) judgeMerge(op topology.Op) topology.Op {
	if !x.judged(journal.JudgeMerge) {
		return op
	}
	graphs := x.joins(op)
	if len(graphs) < 2 {
		return op
	}
	ev := deploy.PolicyEvent{Kind: journal.JudgeMerge, Call: callOf(op), Graph: graphs[0]}
	var deployments []string
	for _, id := range graphs {
		ev.Graphs = append(ev.Graphs, x.view(id))
		deployments = append(deployments, x.deploymentsIn(id)...)
	}
	ev.Collisions = collisionsOf(ev.Graphs)
	switch op := op.(type) {
	case topology.Connect:
		ev.From, ev.To = x.party(op.From), x.party(op.To)
	case topology.SetEdge:
		ev.Creature, ev.Channel = x.party(op.Creature), x.policyChannel(op.Channel)
	case topology.AddCreature:
		ev.Creature = x.party(op.ID)
	}
	d := x.judge(ev, "", deployments...)
	return settled(op, d.Settle)
}

// settled is the operation with what is decided about names.
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
	return op // a creature that is added has two channels renamed in any case
}

// joins lists the graphs that an operation is going to make one, the survivor
// first.
func (x *change) joins(op topology.Op) []journal.GraphID {
	topo := x.e.topo
	var ids []journal.GraphID
	switch op := op.(type) {
	case topology.Connect:
		ids = []journal.GraphID{topo.GraphOf(op.From), topo.GraphOf(op.To)}
	case topology.SetEdge:
		if op.On {
			ids = []journal.GraphID{topo.GraphOf(op.Creature), x.occupied(op.Channel)}
		}
	case topology.AddCreature:
		ids = []journal.GraphID{op.Join}
		for _, w := range op.Edges {
			ids = append(ids, x.occupied(w.Channel))
		}
	}
	slices.Sort(ids)
	ids = slices.DeleteFunc(slices.Compact(ids), func(id journal.GraphID) bool { return id == "" })
	if len(ids) > 1 {
		slices.SortStableFunc(ids, x.bySurvival)
	}
	return ids
}

// bySurvival puts that of two graphs first whose id a merge keeps.
func (x *change) bySurvival(a, b journal.GraphID) int {
	first, _ := x.e.topo.Graph(a)
	second, _ := x.e.topo.Graph(b)
	return cmp.Or(cmp.Compare(len(second.Creatures), len(first.Creatures)), cmp.Compare(first.Born, second.Born))
}

// occupied is the graph of a channel that somebody is on; nobody merges with one
// that leads nowhere.
func (x *change) occupied(id journal.ChannelID) journal.GraphID {
	ch, _ := x.e.topo.Channel(id)
	if len(ch.Edges) == 0 {
		return ""
	}
	return x.e.topo.ChannelGraph(id)
}

// deploymentsIn lists the deployments that a graph has members of, by name.
func (x *change) deploymentsIn(id journal.GraphID) []string {
	info, _ := x.e.topo.Graph(id)
	return slices.Sorted(maps.Keys(x.deploymentsOf(info)))
}

// collisionsOf lists the names that several graphs use, creatures first.
func collisionsOf(graphs []*deploy.GraphView) []deploy.NameCollision {
	seen, told := map[deploy.NameCollision]int{}, map[deploy.NameCollision]bool{}
	out := []deploy.NameCollision{}
	note := func(kind, name string, graph int) {
		k := deploy.NameCollision{Kind: kind, Name: name}
		if first, there := seen[k]; there && first != graph && !told[k] {
			told[k] = true
			out = append(out, k)
		} else if !there {
			seen[k] = graph
		}
	}
	for i, g := range graphs {
		for _, c := range g.Creatures {
			note("creature", c.Name, i)
		}
	}
	for i, g := range graphs {
		for _, ch := range g.Channels {
			note("channel", ch.Name, i)
		}
	}
	return out
}

// judgeSplit asks about what an operation that has been staged did to its graph.
func (x *change) judgeSplit(op topology.Op, d *topology.Delta) error {
	if d.Kind != topology.Split || !x.judged(journal.JudgeSplit) {
		return nil
	}
	ev := deploy.PolicyEvent{Kind: journal.JudgeSplit, Call: callOf(op), Graph: d.NewGraphs[0]}
	var deployments []string
	for _, id := range d.NewGraphs {
		part := []string{}
		info, _ := x.e.topo.Graph(id)
		for _, c := range info.Creatures {
			part = append(part, x.nameOf(c))
		}
		ev.Parts = append(ev.Parts, part)
		deployments = append(deployments, x.deploymentsIn(id)...)
	}
	x.judge(ev, "", deployments...)
	return x.objected()
}

// callOf is what an operation is called from outside.
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
