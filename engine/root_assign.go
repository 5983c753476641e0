package engine

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Rooted is what assigning a root did.
type Rooted struct {
	// Channels are those that the root listens on because it is the root, the
	// report channel first.
	Channels []journal.ChannelID
	Delta    journal.Delta
}

// AssignRoot makes a creature the root of its deployment, and privileged. Within its
// graph the members may send on the report channel, which is made if there is none,
// and the root gets its edges; also those that it lacks, if it is the root already.
// Whoever was the root before is it no more: what it had because of that goes, which
// may split its graph, and its privilege stays. A report channel in another graph
// goes with it.
//
// If the creature belongs to no deployment, then it and all others of its graph that
// belong to none become one.
func (e *Engine) AssignRoot(ctx context.Context, id journal.CreatureID) (Rooted, error) {
	var out Rooted
	err := e.Batch(ctx, func(b *Batch) (err error) {
		out, err = b.AssignRoot(id)
		return err
	})
	return out, err
}

// AssignRoot is [Engine.AssignRoot] as a step of a batch.
func (b *Batch) AssignRoot(id journal.CreatureID) (Rooted, error) {
	x := b.x
	mark, at, before := len(x.undos), len(x.deltas), x.rooting
	x.rooting = before.clone()
	a := assignment{x: x, id: id, at: at}
	err := a.run()
	if err == nil {
		err = x.judgeSplit(topology.SetRoot{ID: id, Root: true}, &x.deltas[at])
	}
	if err != nil {
		x.takeBack(mark, at)
		x.rooting = before
		return Rooted{}, err
	}
	return Rooted{a.channels, journal.NewDelta(&x.deltas[at])}, nil
}

func (r *rooting) clone() rooting {
	return rooting{
		maps.Clone(r.roots), maps.Clone(r.reports), maps.Clone(r.given),
		maps.Clone(r.own), maps.Clone(r.creatures), maps.Clone(r.channels),
	}
}

// assignment is one root being assigned.
type assignment struct {
	x          *change
	id, former journal.CreatureID
	deployment string
	graph      topology.Graph
	at         int                 // the delta that tells it
	channels   []journal.ChannelID // that the root listens on because of it
}

func (a *assignment) run() error {
	x, topo := a.x, a.x.e.topo
	c, ok := topo.Creature(a.id)
	if !ok {
		return &abi.Error{
			Code: abi.NotFound, Op: "assign_root", Message: "there is no creature " + string(a.id),
			Remedy: "status lists who is there", IDs: map[string]string{"creature": string(a.id)},
		}
	}
	a.graph, _ = topo.Graph(c.Graph)
	a.settleDeployment()
	a.former = x.rootOf(a.deployment)
	goes := a.whatGoes()
	if a.former != a.id {
		x.rooting.own[a.id] = x.ownNow(a.id)
	}
	if _, err := x.stage(topology.SetRoot{ID: a.id, Root: true}); err != nil {
		return err
	}
	x.rooting.roots[a.deployment] = a.id
	ops := []topology.Op{topology.SetPrivileged{ID: a.id, Privileged: true}}
	ops = append(ops, a.report()...)
	if err := a.all(ops); err != nil { // from here on there is a report channel
		return err
	}
	a.x.rooting.reports[a.deployment] = a.channels[0]
	// The new root comes in before the old one goes out: nothing falls apart in
	// between.
	if err := a.all(append(a.edges(), goes...)); err != nil {
		return aliasTaken(err)
	}
	return nil
}

// aliasTaken gives the error of a member that sends under the alias report_to_root
// already a remedy that can be followed: the alias of a report cannot be chosen.
func aliasTaken(err error) error {
	var taken *abi.Error
	if !errors.As(err, &taken) || taken.Code != abi.AlreadyExists || taken.IDs["creature"] == "" {
		return err
	}
	out := *taken
	out.Op = "assign_root"
	out.Remedy = "disconnect " + taken.IDs["creature"] + " from " + taken.IDs["channel"] + ", connect it again under another alias, and assign the root then"
	return &out
}

func (a *assignment) all(ops []topology.Op) error {
	for _, op := range ops {
		if err := a.x.also(a.at, op); err != nil {
			return err
		}
	}
	return nil
}

// looseRoot begins the name of a deployment that no recipe has made: the rest is the
// id of its first root.
const looseRoot = "root:"

// undeclared reports whether no recipe has made a deployment.
func undeclared(deployment string) bool {
	return deployment == "" || strings.HasPrefix(deployment, looseRoot)
}

// settleDeployment finds the deployment, or makes one of what belongs to none.
func (a *assignment) settleDeployment() {
	x := a.x
	if a.deployment = x.deploymentOf(a.id); a.deployment != "" {
		return
	}
	a.deployment = looseRoot + string(a.id)
	for _, id := range a.graph.Creatures {
		if x.deploymentOf(id) == "" {
			x.rooting.creatures[id] = a.deployment
		}
	}
	for _, id := range a.graph.Channels {
		if x.deploymentOfChannel(id) == "" {
			x.rooting.channels[id] = a.deployment
			if x.channel(id) == nil {
				x.channels[id] = &channel{id: id}
			}
		}
	}
}

// whatGoes are the operations by which a creature is no root any more, and a report
// channel in another graph is gone.
func (a *assignment) whatGoes() []topology.Op {
	x, topo := a.x, a.x.e.topo
	var ops []topology.Op
	if a.former != "" && a.former != a.id {
		ops = a.whatFormerLoses()
	}
	if report := x.reportOf(a.deployment); report != "" && topo.ChannelGraph(report) != a.graph.ID {
		ops = append(ops, topology.RemoveChannel{ID: report})
	}
	return ops
}

func (a *assignment) whatFormerLoses() []topology.Op {
	x := a.x
	c, _ := x.e.topo.Creature(a.former)
	ops := []topology.Op{topology.SetRoot{ID: a.former}}
	for _, e := range c.Edges {
		if x.isGiven(edgeKey{a.former, e.Channel, e.Direction}) {
			ops = append(ops, topology.SetEdge{Creature: a.former, Channel: e.Channel, Direction: e.Direction})
		}
	}
	x.rooting.own[a.former] = nil
	return ops
}

// report finds the report channel, or makes one.
func (a *assignment) report() []topology.Op {
	x, topo := a.x, a.x.e.topo
	if id := x.reportOf(a.deployment); id != "" && topo.ChannelGraph(id) == a.graph.ID {
		a.channels = append(a.channels, id)
		return nil
	}
	ch := &channel{
		id: x.ids().NewChannel(), label: deploy.ReportChannel, description: reportDescription,
		deployment: a.deployment, address: reportAddress,
	}
	x.channels[ch.id] = ch
	a.channels = append(a.channels, ch.id)
	// Another deployment of the graph may have one.
	return []topology.Op{topology.AddChannel{ID: ch.id, With: a.id, Name: deploy.ReportChannel, Numbered: true, Report: true}}
}

// edges are the operations by which the members and the root get their edges.
func (a *assignment) edges() []topology.Op {
	x := a.x
	ops := x.give(nil, edgeKey{a.id, a.channels[0], journal.Listen})
	for _, id := range a.graph.Creatures {
		if id != a.id && x.deploymentOf(id) == a.deployment {
			ops = x.mayReport(ops, id)
		}
	}
	for _, id := range a.graph.Channels {
		if x.deploymentOfChannel(id) != a.deployment || id == a.channels[0] {
			continue
		}
		key := edgeKey{a.id, id, journal.Listen}
		if member, _ := x.directOf(id); member != "" {
			if key.direction = journal.Send; member != a.id && x.e.topo.GraphOf(member) == a.graph.ID {
				ops = x.give(ops, key)
			}
			continue
		}
		ops = x.give(ops, key)
		if !x.rooting.own[a.id][ownEdge{id, journal.Listen}] {
			a.channels = append(a.channels, id)
		}
	}
	return append(ops, a.noReportToItself()...)
}

// noReportToItself takes away what the root had as a member.
func (a *assignment) noReportToItself() []topology.Op {
	report := a.channels[0]
	if alias, on := edgeAlias(a.x.e.topo, a.id, report, journal.Send); !on || alias != deploy.ReportChannel {
		return nil
	}
	return []topology.Op{topology.SetEdge{Creature: a.id, Channel: report, Direction: journal.Send}}
}
