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
//   - the root listens on every channel of the deployment except direct ones;
//   - the root may send on the direct channel of every member that has one.
//
// They are added with the root. Later, the change that adds a member or a channel also
// adds its edges. Nothing else adds such an edge; in particular, a merge does not. When
// another root is assigned they are removed; the creature's own edges stay.

// The address and the description of a report channel.
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

// DirectOf returns, from the address of a direct channel, the member it leads
// to and the parent it was made for. Both are empty for other channels.
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

// On reports whether the edge exists.
func (k EdgeKey) On(s *topology.State) bool {
	return s.EdgeOrder(k.Creature, k.Channel, k.Direction) != 0
}

// rooting holds a draft's changes to roots.
type rooting struct {
	roots   map[string]journal.CreatureID // assigned by the draft, by deployment
	reports map[string]journal.ChannelID  // created by the draft, by deployment
	given   map[EdgeKey]bool              // edges added because of a root
	own     map[journal.CreatureID]OwnEdges
	// creatures and channels hold the ones that join a deployment.
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

// RootOf returns the root of a deployment, or "".
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

// RootIn returns the root of a deployment if it is in that graph, or "".
func (d *Draft) RootIn(deployment string, g journal.GraphID) journal.CreatureID {
	if id := d.RootOf(deployment); id != "" && d.topo.GraphOf(id) == g {
		return id
	}
	return ""
}

// reportOf returns the report channel of a deployment, or "".
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

// DeploymentOf returns the deployment that a creature belongs to.
func (d *Draft) DeploymentOf(id journal.CreatureID) string {
	if deployment, ok := d.rooting.creatures[id]; ok {
		return deployment
	}
	m, _ := d.Member(id)
	return m.Deployment
}

// DeploymentOfChannel returns the deployment that a channel belongs to.
func (d *Draft) DeploymentOfChannel(id journal.ChannelID) string {
	if deployment, ok := d.rooting.channels[id]; ok {
		return deployment
	}
	ch, _ := d.Channel(id)
	return ch.Deployment
}

// directOf is [DirectOf] for a channel given by id, which may be unknown.
func (d *Draft) directOf(id journal.ChannelID) (member, parent journal.CreatureID) {
	ch, _ := d.Channel(id)
	return DirectOf(ch.Address)
}

// DeploymentFor returns the deployment of a creature added from outside: that
// of its parent, or of a channel that it is wired to, or of the creature that
// becomes its parent in the graph that it joins. A creature with its own
// address belongs to none: only recipes assign addresses.
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
