package draft

import (
	"cmp"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// view returns the view of a graph for policies.
func (d *Draft) view(id journal.GraphID) *deploy.GraphView {
	if len(d.deltas) == 0 { // nothing has been staged yet
		if v := d.live.View(id); v != nil {
			return v
		}
	}
	info, _ := d.topo.Graph(id)
	v := &deploy.GraphView{ID: id, Creatures: []deploy.CreatureView{}, Channels: []deploy.ChannelView{}}
	for _, id := range info.Creatures {
		v.Creatures = append(v.Creatures, d.viewCreature(id))
	}
	for _, id := range info.Channels {
		v.Channels = append(v.Channels, d.viewChannel(id))
	}
	return v
}

func (d *Draft) viewCreature(id journal.CreatureID) deploy.CreatureView {
	t, _ := d.topo.Creature(id)
	v := deploy.CreatureView{
		ID: id, Name: t.Name, Deployment: d.DeploymentOf(id), Parent: d.nameOf(t.Parent),
		State: journal.Running, Privileged: t.Privileged, Root: t.Root,
	}
	m, ok := d.Member(id)
	if !ok {
		return v
	}
	v.Address, v.Species = m.Spec.Address, m.Spec.Species
	state, stop := d.live.State(id)
	v.State = cmp.Or(state, v.State)
	switch {
	case t.Paused:
		v.State = journal.Paused
	case t.Stopped:
		v.State = journal.Stopped
	case stop != nil:
		v.State = journal.Paused
	}
	return v
}

func (d *Draft) viewChannel(id journal.ChannelID) deploy.ChannelView {
	t, _ := d.topo.Channel(id)
	ch, _ := d.Channel(id)
	v := deploy.ChannelView{ID: id, Name: t.Name, Address: ch.Address, Deployment: d.DeploymentOfChannel(id), Listeners: []string{}, Senders: []string{}}
	for _, e := range t.Edges {
		if e.Direction == journal.Listen {
			v.Listeners = append(v.Listeners, d.nameOf(e.Creature))
		} else {
			v.Senders = append(v.Senders, d.nameOf(e.Creature))
		}
	}
	return v
}

// nameOf returns the name of a creature, or "" if it does not exist.
func (d *Draft) nameOf(id journal.CreatureID) string {
	t, _ := d.topo.Creature(id)
	return t.Name
}

// party returns a creature in the form used in policy events.
func (d *Draft) party(id journal.CreatureID) deploy.Party {
	t, ok := d.topo.Creature(id)
	p := deploy.Party{ID: id, Name: t.Name, Privileged: t.Privileged}
	m, known := d.Member(id)
	if !known {
		return p
	}
	if !ok {
		p.Name, p.Privileged = m.Spec.Name, m.Spec.Privileged // it will be added
	}
	p.Address, p.Species, p.Deployment, p.Where = m.Spec.Address, m.Spec.Species, d.DeploymentOf(id), m.Spec.Where
	return p
}

// policyChannel returns a channel in the form used in policy events.
func (d *Draft) policyChannel(id journal.ChannelID) deploy.PolicyChannel {
	t, _ := d.topo.Channel(id)
	ch, _ := d.Channel(id)
	return deploy.PolicyChannel{ID: id, Name: t.Name, Address: ch.Address, Deployment: d.DeploymentOfChannel(id)}
}
