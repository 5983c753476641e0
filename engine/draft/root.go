package draft

import (
	"maps"
	"strings"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// A deployment may have a root. It brings edges, within the root's graph:
//
//   - every other member may send on the deployment's report channel;
//   - the root listens on every channel of the deployment, but for direct ones;
//   - the root may send on the direct channel of every member that has one.
//
// They come with the root, and later with each member and channel, in the change
// that adds it. Nothing else brings one, least of all a merge. When another root is
// assigned they go, and what the creature was wired to otherwise (its own edges)
// remains.

// The address and the description of the channel on which members report to a root.
const (
	ReportAddress     = "channel." + deploy.ReportChannel
	ReportDescription = "reports to the root"
)

func directAddress(member, parent journal.CreatureID) string {
	if parent == "" {
		return journal.DirectPrefix + string(member)
	}
	return journal.DirectPrefix + string(member) + "." + string(parent)
}

// DirectOf says, from the address of a channel, whose direct channel it is and for
// which parent it was made; both are empty if it is none.
func DirectOf(address string) (member, parent journal.CreatureID) {
	ids, ok := strings.CutPrefix(address, journal.DirectPrefix)
	if !ok {
		return "", ""
	}
	m, p, _ := strings.Cut(ids, ".")
	return journal.CreatureID(m), journal.CreatureID(p)
}

// EdgeKey names an edge.
type EdgeKey struct {
	Creature  journal.CreatureID
	Channel   journal.ChannelID
	Direction journal.Direction
}

// On reports whether there is such an edge.
func (k EdgeKey) On(s *topology.State) bool {
	return s.EdgeOrder(k.Creature, k.Channel, k.Direction) != 0
}

// rooting is what a draft does about roots.
type rooting struct {
	roots   map[string]journal.CreatureID // by deployment, that the draft assigns
	reports map[string]journal.ChannelID  // by deployment, that it makes
	given   map[EdgeKey]bool              // edges that it turns on because of a root
	own     map[journal.CreatureID]OwnEdges
	// creatures and channels are those that come into a deployment.
	creatures map[journal.CreatureID]string
	channels  map[journal.ChannelID]string
}

func newRooting() rooting {
	return rooting{
		roots: map[string]journal.CreatureID{}, reports: map[string]journal.ChannelID{}, given: map[EdgeKey]bool{},
		own: map[journal.CreatureID]OwnEdges{}, creatures: map[journal.CreatureID]string{}, channels: map[journal.ChannelID]string{},
	}
}

func (r *rooting) clone() rooting {
	return rooting{
		maps.Clone(r.roots), maps.Clone(r.reports), maps.Clone(r.given),
		maps.Clone(r.own), maps.Clone(r.creatures), maps.Clone(r.channels),
	}
}

// RootOf is the root of a deployment, or empty.
func (d *Draft) RootOf(deployment string) journal.CreatureID {
	id, assigned := d.rooting.roots[deployment]
	if !assigned {
		id = d.base.Root(deployment)
	}
	if deployment == "" || !d.topo.IsRoot(id) {
		return ""
	}
	return id
}

// RootIn is the root of a deployment if it is in that graph.
func (d *Draft) RootIn(deployment string, g journal.GraphID) journal.CreatureID {
	if id := d.RootOf(deployment); id != "" && d.topo.GraphOf(id) == g {
		return id
	}
	return ""
}

// reportOf is the report channel of a deployment, or empty.
func (d *Draft) reportOf(deployment string) journal.ChannelID {
	id, made := d.rooting.reports[deployment]
	if !made {
		id = d.base.Report(deployment)
	}
	if deployment == "" || d.topo.ChannelGraph(id) == "" {
		return ""
	}
	return id
}

// DeploymentOf is the deployment that a creature belongs to.
func (d *Draft) DeploymentOf(id journal.CreatureID) string {
	if deployment, ok := d.rooting.creatures[id]; ok {
		return deployment
	}
	m, _ := d.Member(id)
	return m.Deployment
}

// DeploymentOfChannel is the same of a channel.
func (d *Draft) DeploymentOfChannel(id journal.ChannelID) string {
	if deployment, ok := d.rooting.channels[id]; ok {
		return deployment
	}
	ch, _ := d.Channel(id)
	return ch.Deployment
}

// directOf is [DirectOf] of a channel of which nothing may be known but its id.
func (d *Draft) directOf(id journal.ChannelID) (member, parent journal.CreatureID) {
	ch, _ := d.Channel(id)
	return DirectOf(ch.Address)
}

// DeploymentFor says where a creature belongs that is added from outside: to the
// deployment of its parent, or of a channel that it is wired to, or of the
// creature that becomes its parent in the graph that it joins. One with an address of
// its own belongs to none: addresses are for a recipe to give out.
func (d *Draft) DeploymentFor(address string, op *topology.AddCreature) string {
	switch {
	case address != "":
		return ""
	case op.Parent != "":
		return d.DeploymentOf(op.Parent)
	}
	for _, w := range op.Edges {
		if deployment := d.DeploymentOfChannel(w.Channel); deployment != "" {
			return deployment
		}
	}
	if op.Join == "" {
		return ""
	}
	return d.DeploymentOf(d.topo.Elder(op.Join))
}
