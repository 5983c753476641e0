package engine

import (
	"context"

	"github.com/seed47132306/terrarium/engine/internal/sorted"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Rooted is what assigning a root did.
type Rooted struct {
	// Channels are the channels that the root listens on because it is the root, the
	// report channel first.
	Channels []journal.ChannelID
	Delta    journal.Delta
}

// AssignRoot makes a creature the root of its deployment, and privileged. The members in
// its graph may then send on the report channel, which is made if there is none, and the
// root gets its edges. If it is the root already, it gets the edges that it lacks. A
// former root loses the edges that it had as a root, which may split its graph, and keeps
// its privilege. A report channel in another graph is removed.
//
// If the creature belongs to no deployment, then it and all other such members of its graph
// form a new one.
func (e *Engine) AssignRoot(ctx context.Context, id journal.CreatureID) (Rooted, error) {
	return oneStep(ctx, e, func(b *Batch) (Rooted, error) { return b.AssignRoot(ctx, id) })
}

// AssignRoot is [Engine.AssignRoot] as a step of a batch.
func (b *Batch) AssignRoot(ctx context.Context, id journal.CreatureID) (Rooted, error) {
	channels, delta, err := b.x.AssignRoot(ctx, id)
	if err != nil {
		return Rooted{}, err
	}
	return Rooted{channels, journal.NewDelta(delta)}, nil
}

// comeIntoDeployments gives creatures and channels the deployments that the change assigns, before
// the stores are cut, so that their first records have them. It returns a function that undoes it.
func (x *change) comeIntoDeployments() (undo func()) {
	var undos []func()
	for id, deployment := range x.sealed.Joined {
		undos = append(undos, x.comeInto(x.creature(id), deployment))
	}
	for id, deployment := range x.sealed.JoinedChannels {
		ch := x.channel(id)
		before := ch.deployment
		ch.deployment = deployment
		x.e.setPolicy(ch)
		undos = append(undos, func() { ch.deployment = before; x.e.setPolicy(ch) })
	}
	for id, own := range x.sealed.Own {
		cr := x.creature(id)
		before := cr.own
		if cr.own = own; !x.e.topo.IsRoot(id) {
			cr.own = nil
		}
		undos = append(undos, func() { cr.own = before })
	}
	return func() {
		for _, undo := range undos {
			undo()
		}
	}
}

// comeInto changes the deployment that a creature belongs to.
func (x *change) comeInto(cr *creature, deployment string) (undo func()) {
	before := cr.deployment
	change := func(to string) {
		lives := x.e.creatures[cr.id] == cr
		if lives {
			x.e.countSpawned(cr, -1)
		}
		if cr.deployment = to; lives {
			x.e.countSpawned(cr, 1)
		}
	}
	change(deployment)
	return func() { change(before) }
}

// noteDeployments logs what comeIntoDeployments has changed.
func (x *change) noteDeployments() {
	changed := map[journal.CreatureID]bool{}
	for id := range x.sealed.Own {
		changed[id] = true
	}
	for id := range x.sealed.Joined {
		changed[id] = true
	}
	for _, id := range sorted.Keys(changed) {
		if cr := x.e.creatures[id]; cr != nil {
			x.e.noteRoot(cr)
			x.dirty[cr] = true // policies see its deployment
			g := x.home(cr)
			putCreature(g, x.record(g), cr)
		}
	}
	for _, id := range sorted.Keys(x.sealed.JoinedChannels) {
		if ch := x.e.channels[id]; ch != nil {
			x.e.noteReport(ch, false)
			x.putChannel(ch)
		}
	}
}
