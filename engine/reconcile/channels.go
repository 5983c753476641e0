package reconcile

import (
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/topology"
)

// channelsByAddress returns the existing channels of the deployment, by the
// address that they have now.
func (r *Reconciliation) channelsByAddress() map[string]draft.Channel {
	out := map[string]draft.Channel{}
	for ch := range r.base.Channels {
		if ch.Deployment == r.d.Name {
			out[r.d.NowAt(ch.Address)] = ch
		}
	}
	return out
}

// channelSpecsOf returns the recipe's channels, and the report channel if
// there is a root.
func channelSpecsOf(d *deploy.Deployment) []deploy.ChannelSpec {
	specs := d.Channels
	if d.Root != "" {
		specs = append(slices.Clone(specs), deploy.ChannelSpec{
			Address: draft.ReportAddress, Name: deploy.ReportChannel, Description: draft.ReportDescription,
		})
	}
	return specs
}

// addChannels declares new channels, each in the graph of the first creature
// that will have an edge to it. If another channel in that graph has the name,
// one of another deployment or made at run time, the new channel gets a number,
// as in a merge.
func (r *Reconciliation) addChannels(wanted []wantedEdge, existing map[string]draft.Channel) error {
	first := map[string]string{}
	for _, w := range wanted {
		if first[w.channel] == "" {
			first[w.channel] = w.creature
		}
	}
	for _, spec := range channelSpecsOf(r.d) {
		near := first[spec.Address]
		ch, exists := existing[spec.Address]
		switch {
		case near == "" && r.drift == nil:
			return &abi.Error{
				Code: abi.InvalidArgument, Op: "apply", Message: spec.Address + " has neither listeners nor senders",
				Remedy: "wire it to a creature, or remove it from the recipe", IDs: map[string]string{"channel": spec.Address},
			}
		case exists:
			r.Channels[spec.Address] = ch.ID
			if ch.Description != spec.Description || ch.Address != spec.Address {
				r.Redeclared[ch.ID] = spec
			}
			continue
		case near == "":
			continue // the channel was removed, or all creatures that would use it
		}
		ch = draft.Channel{
			ID: r.draft.IDs.NewChannel(), Label: spec.Name, Description: spec.Description, Deployment: r.d.Name, Address: spec.Address,
		}
		r.Channels[spec.Address] = ch.ID
		r.draft.AddChannel(ch)
		r.then(topology.AddChannel{
			ID: ch.ID, With: r.Creatures[near], Name: spec.Name, Numbered: true, Report: spec.Address == draft.ReportAddress,
		})
	}
	return nil
}
