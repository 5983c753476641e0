package conformance

import (
	"cmp"
	"context"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// spawnable is how many creatures of each species may be alive.
const spawnable = 16

// apply sets the creature up as part of a deployment, because a creature spawns only the
// species of its own one.
func (b *bench) apply(ctx context.Context) error {
	if len(b.c.Peers) > 0 {
		return &abi.Error{Code: abi.InvalidArgument, Message: "the case has species and peers", Remedy: "divide it into two cases"}
	}
	never := deploy.RestartPolicy{Mode: deploy.RestartNever}
	const address = "creature.subject"
	subject := deploy.CreatureSpec{
		Address: address, Name: "subject", Module: b.c.Module, Config: b.c.Config, Restart: never, Privileged: b.c.Privileged, Limits: limits,
	}
	d := &deploy.Deployment{Name: "case"}
	addresses := map[string]string{} // by name of the channel
	channel := func(name string) string {
		addresses[name] = "channel." + name
		d.Channels = append(d.Channels, deploy.ChannelSpec{Address: addresses[name], Name: name})
		return addresses[name]
	}
	for _, alias := range b.c.Listen {
		subject.Listen = append(subject.Listen, deploy.WireSpec{Channel: channel(journal.Listen.String() + " " + alias), Alias: alias})
	}
	for _, alias := range b.c.Send {
		subject.Send = append(subject.Send, deploy.WireSpec{Channel: channel(journal.Send.String() + " " + alias), Alias: alias})
	}
	d.Creatures = []deploy.CreatureSpec{subject}
	for _, s := range b.c.Species {
		spec := deploy.CreatureSpec{Module: cmp.Or(s.Module, b.c.Module), Config: s.Config, Restart: never, Limits: limits}
		d.Species = append(d.Species, deploy.SpeciesSpec{Name: s.Name, Spec: spec, Spawnable: spawnable})
	}
	applied, err := b.t.ApplyDeployment(ctx, d)
	if err != nil {
		return &startError{err}
	}
	b.subject = applied.Creatures[address]
	for name, address := range addresses {
		b.channels[name] = applied.Channels[address]
	}
	return b.markElsewhere(ctx)
}

// markElsewhere makes the marking channel in another graph: a deployment has no channel
// without an edge, and a channel that is made later would be a change of the creature's
// surroundings.
func (b *bench) markElsewhere(ctx context.Context) error {
	return b.t.Batch(ctx, func(batch *engine.Batch) error {
		other, _, err := batch.AddCreature(ctx, deploy.CreatureSpec{Name: markName, Module: b.c.Module, Config: b.c.Config, Limits: limits})
		if err != nil {
			return err
		}
		mark, err := batch.AddChannel(ctx, batch.GraphOf(other.Creature), markName, "")
		b.channels[markName] = mark.Channel
		return err
	})
}
