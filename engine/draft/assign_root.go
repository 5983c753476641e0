package draft

import (
	"context"
	"errors"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// AssignRoot makes a creature the root of its deployment, and privileged. It
// returns the channels that the root now listens on, the report channel first.
// If the creature belongs to no deployment, it and all others of its graph
// without a deployment form a new one.
func (d *Draft) AssignRoot(ctx context.Context, id journal.CreatureID) ([]journal.ChannelID, *topology.Delta, error) {
	mark, at, before := len(d.undos), len(d.deltas), d.rooting
	d.rooting = before.clone()
	a := assignment{Draft: d, id: id, at: at}
	err := a.run()
	if err == nil {
		err = d.judgeSplit(ctx, topology.SetRoot{ID: id, Root: true}, &d.deltas[at])
	}
	if err != nil {
		d.takeBack(mark, at)
		d.rooting = before
		return nil, nil, err
	}
	return a.listens, &d.deltas[at], nil
}

// assignment is one root being assigned.
type assignment struct {
	*Draft
	id, former journal.CreatureID
	deployment string
	graph      topology.Graph
	at         int                 // the index of its delta
	listens    []journal.ChannelID // channels that the root now listens on
}

func (a *assignment) run() error {
	c, ok := a.topo.Creature(a.id)
	if !ok {
		return &abi.Error{
			Code: abi.NotFound, Op: "assign_root", Message: "there is no creature " + string(a.id),
			Remedy: "status lists the creatures", IDs: map[string]string{"creature": string(a.id)},
		}
	}
	a.graph, _ = a.topo.Graph(c.Graph)
	a.findDeployment()
	a.former = a.RootOf(a.deployment)
	goes := a.whatGoes()
	if a.former != a.id {
		a.rooting.own[a.id] = a.ownNow(a.id)
	}
	if _, err := a.stage(topology.SetRoot{ID: a.id, Root: true}); err != nil {
		return err
	}
	a.rooting.roots[a.deployment] = a.id
	ops := []topology.Op{topology.SetPrivileged{ID: a.id, Privileged: true}}
	ops = append(ops, a.report()...)
	if err := a.all(ops); err != nil { // from here on the report channel exists
		return err
	}
	a.rooting.reports[a.deployment] = a.listens[0]
	// The new root is connected before the old one is disconnected, so that
	// the graph does not split in between.
	if err := a.all(append(a.edges(), goes...)); err != nil {
		return aliasTaken(err)
	}
	return nil
}

// aliasTaken replaces the remedy of the error for a member that already sends
// under the alias report_to_root: that alias is fixed for reports.
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
		if err := a.also(a.at, op); err != nil {
			return err
		}
	}
	return nil
}

// looseRoot starts the name of a deployment that no recipe made: the rest is
// the id of its first root.
const looseRoot = "root:"

// Undeclared reports whether a deployment was not made by a recipe.
func Undeclared(deployment string) bool {
	return deployment == "" || strings.HasPrefix(deployment, looseRoot)
}

// findDeployment finds the deployment, or makes one from the creatures and
// channels without one.
func (a *assignment) findDeployment() {
	if a.deployment = a.DeploymentOf(a.id); a.deployment != "" {
		return
	}
	a.deployment = looseRoot + string(a.id)
	for _, id := range a.graph.Creatures {
		if a.DeploymentOf(id) == "" {
			a.rooting.creatures[id] = a.deployment
		}
	}
	for _, id := range a.graph.Channels {
		if a.DeploymentOfChannel(id) == "" {
			a.rooting.channels[id] = a.deployment
			if _, known := a.Channel(id); !known {
				a.AddChannel(Channel{ID: id})
			}
		}
	}
}

// whatGoes returns the operations that end a creature's role as root and
// remove a report channel in another graph.
func (a *assignment) whatGoes() []topology.Op {
	var ops []topology.Op
	if a.former != "" && a.former != a.id {
		ops = a.whatFormerLoses()
	}
	if report := a.reportOf(a.deployment); report != "" && a.topo.ChannelGraph(report) != a.graph.ID {
		ops = append(ops, topology.RemoveChannel{ID: report})
	}
	return ops
}

func (a *assignment) whatFormerLoses() []topology.Op {
	c, _ := a.topo.Creature(a.former)
	ops := []topology.Op{topology.SetRoot{ID: a.former}}
	for _, e := range c.Edges {
		if a.IsGiven(EdgeKey{a.former, e.Channel, e.Direction}) {
			ops = append(ops, topology.SetEdge{Creature: a.former, Channel: e.Channel, Direction: e.Direction})
		}
	}
	a.rooting.own[a.former] = nil
	return ops
}

// report finds the report channel, or makes one.
func (a *assignment) report() []topology.Op {
	if id := a.reportOf(a.deployment); id != "" && a.topo.ChannelGraph(id) == a.graph.ID {
		a.listens = append(a.listens, id)
		return nil
	}
	id := a.IDs.NewChannel()
	a.AddChannel(Channel{ID: id, Label: deploy.ReportChannel, Description: ReportDescription, Deployment: a.deployment, Address: ReportAddress})
	a.listens = append(a.listens, id)
	// Another deployment of the graph may have a channel of that name.
	return []topology.Op{topology.AddChannel{ID: id, With: a.id, Name: deploy.ReportChannel, Numbered: true, Report: true}}
}

// edges returns the operations that connect the members and the root.
func (a *assignment) edges() []topology.Op {
	ops := a.Give(nil, EdgeKey{a.id, a.listens[0], journal.Listen})
	for _, id := range a.graph.Creatures {
		if id != a.id && a.DeploymentOf(id) == a.deployment {
			ops = a.mayReport(ops, id)
		}
	}
	for _, id := range a.graph.Channels {
		if a.DeploymentOfChannel(id) != a.deployment || id == a.listens[0] {
			continue
		}
		key := EdgeKey{a.id, id, journal.Listen}
		if member, _ := a.directOf(id); member != "" {
			if key.Direction = journal.Send; member != a.id && a.topo.GraphOf(member) == a.graph.ID {
				ops = a.Give(ops, key)
			}
			continue
		}
		ops = a.Give(ops, key)
		if !a.rooting.own[a.id][OwnEdge{id, journal.Listen}] {
			a.listens = append(a.listens, id)
		}
	}
	return append(ops, a.noReportToItself()...)
}

// noReportToItself removes the edge on which the root reported as a member.
func (a *assignment) noReportToItself() []topology.Op {
	report := a.listens[0]
	if alias, on := EdgeAlias(a.topo, EdgeKey{a.id, report, journal.Send}); !on || alias != deploy.ReportChannel {
		return nil
	}
	return []topology.Op{topology.SetEdge{Creature: a.id, Channel: report, Direction: journal.Send}}
}

// EdgeAlias returns the alias of an edge, if it exists.
func EdgeAlias(s *topology.State, key EdgeKey) (string, bool) {
	info, _ := s.Creature(key.Creature)
	for _, e := range info.Edges {
		if e.Channel == key.Channel && e.Direction == key.Direction {
			return e.Alias, true
		}
	}
	return "", false
}
