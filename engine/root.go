package engine

import (
	"strings"

	"github.com/seed47132306/terrarium/abi"
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

// rootRef is what a target is called that is the root of the own deployment.
const rootRef = "root"

func directAddress(member, parent journal.CreatureID) string {
	if parent == "" {
		return journal.DirectPrefix + string(member)
	}
	return journal.DirectPrefix + string(member) + "." + string(parent)
}

// directOf returns whose direct channel a channel is, and for which parent it was
// made; nobody's if it is none.
func (ch *channel) directOf() (member, parent journal.CreatureID) {
	ids, ok := strings.CutPrefix(ch.address, journal.DirectPrefix)
	if !ok {
		return "", ""
	}
	m, p, _ := strings.Cut(ids, ".")
	return journal.CreatureID(m), journal.CreatureID(p)
}

// edgeKey names an edge.
type edgeKey struct {
	creature  journal.CreatureID
	channel   journal.ChannelID
	direction journal.Direction
}

func (k edgeKey) on(s *topology.State) bool {
	return s.EdgeOrder(k.creature, k.channel, k.direction) != 0
}

// rooting is what a change does about roots.
type rooting struct {
	roots   map[string]journal.CreatureID // by deployment, that the change assigns
	reports map[string]journal.ChannelID  // by deployment, that it makes
	given   map[edgeKey]bool              // edges that it turns on because of a root
	own     map[journal.CreatureID]ownEdges
	// creatures and channels are those that come into a deployment.
	creatures map[journal.CreatureID]string
	channels  map[journal.ChannelID]string
}

func newRooting() rooting {
	return rooting{
		roots: map[string]journal.CreatureID{}, reports: map[string]journal.ChannelID{}, given: map[edgeKey]bool{},
		own: map[journal.CreatureID]ownEdges{}, creatures: map[journal.CreatureID]string{}, channels: map[journal.ChannelID]string{},
	}
}

// noteRoot keeps the index of roots. The caller holds the mutation lock.
func (e *Engine) noteRoot(cr *creature) {
	switch d := cr.deployment; {
	case d == "":
	case cr.root && !cr.removed:
		e.roots[d] = cr.id
	case e.roots[d] == cr.id:
		delete(e.roots, d)
	}
}

// noteReport keeps the index of report channels. The caller holds the mutation lock.
func (e *Engine) noteReport(ch *channel, gone bool) {
	switch d := ch.deployment; {
	case !ch.report || d == "":
	case !gone:
		e.reports[d] = ch.id
	case e.reports[d] == ch.id:
		delete(e.reports, d)
	}
}

// rootOf is the root of a deployment as the change has it, or "".
func (x *change) rootOf(deployment string) journal.CreatureID {
	id, assigned := x.rooting.roots[deployment]
	if !assigned {
		id = x.e.roots[deployment]
	}
	if deployment == "" || !x.e.topo.IsRoot(id) {
		return ""
	}
	return id
}

// rootIn is the root of a deployment if it is in that graph.
func (x *change) rootIn(deployment string, g journal.GraphID) journal.CreatureID {
	if id := x.rootOf(deployment); id != "" && x.e.topo.GraphOf(id) == g {
		return id
	}
	return ""
}

// reportOf is the report channel of a deployment as the change has it, or "".
func (x *change) reportOf(deployment string) journal.ChannelID {
	id, made := x.rooting.reports[deployment]
	if !made {
		id = x.e.reports[deployment]
	}
	if deployment == "" || x.e.topo.ChannelGraph(id) == "" {
		return ""
	}
	return id
}

func (x *change) creature(id journal.CreatureID) *creature {
	if c := x.e.creatures[id]; c != nil {
		return c
	}
	return x.creatures[id]
}

// deploymentOf is the deployment that a creature belongs to as the change has it.
func (x *change) deploymentOf(id journal.CreatureID) string {
	if d, ok := x.rooting.creatures[id]; ok {
		return d
	}
	if c := x.creature(id); c != nil {
		return c.deployment
	}
	return ""
}

// deploymentOfChannel is the same of a channel.
func (x *change) deploymentOfChannel(id journal.ChannelID) string {
	if d, ok := x.rooting.channels[id]; ok {
		return d
	}
	if ch := x.channel(id); ch != nil {
		return ch.deployment
	}
	return ""
}

// directOf is directOf of a channel of which nothing may be known but its id.
func (x *change) directOf(id journal.ChannelID) (member, parent journal.CreatureID) {
	if ch := x.channel(id); ch != nil {
		return ch.directOf()
	}
	return "", ""
}

// deploymentFor says where a creature belongs that is added from outside: to the
// deployment of its parent, or of a channel that it is wired to, or of whoever is
// its parent in the graph that it joins. One with an address of its own belongs to
// none: addresses are for a recipe to give out.
func (x *change) deploymentFor(c *creature, op *topology.AddCreature) string {
	switch {
	case c.spec.Address != "":
		return ""
	case op.Parent != "":
		return x.deploymentOf(op.Parent)
	}
	for _, w := range op.Edges {
		if d := x.deploymentOfChannel(w.Channel); d != "" {
			return d
		}
	}
	if op.Join == "" {
		return ""
	}
	return x.deploymentOf(x.e.topo.Elder(op.Join))
}

// ownRoot is the root of the caller's deployment, which a target may be called.
func (s *staging) ownRoot() (topology.Creature, error) {
	if id := s.x.rootIn(s.caller.deployment, s.home()); id != "" {
		c, _ := s.topo().Creature(id)
		return c, nil
	}
	return topology.Creature{}, &abi.Error{
		Code: abi.NotFound, Op: "tool", Message: "the deployment of the creature has no root in this graph",
		Remedy: "name a member of the graph, or have the owner assign a root", IDs: map[string]string{"creature": string(s.caller.id)},
	}
}
