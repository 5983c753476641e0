// Package reconcile leads from what exists to what a deployment asks for.
//
// A [Reconciliation] compares the two by addresses and stages in a draft what makes
// them equal: creatures, channels, edges, names, the root and output wires. Without a
// [Drift] the deployment alone decides; with one, what was changed while it ran stays,
// as in a merge of three versions. Modules, instances and stores are not known here:
// the caller of the package prepares creatures beforehand and carries the draft out.
package reconcile

import (
	"context"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Base is what exists before the draft, as [draft.Base] has it.
type Base interface {
	draft.Base
	// Members are all creatures, in any order.
	Members(yield func(draft.Member) bool)
	// Channels are all channels that the topology has, in any order.
	Channels(yield func(draft.Channel) bool)
	// Unclaimed reports whether a creature was brought back only because its graph was,
	// and neither a recipe nor a restored session has a use for it.
	Unclaimed(journal.CreatureID) bool
}

// Runtime is the side of a reconciliation that knows modules, instances and mailboxes.
// Its methods enter the critical sections of graphs, so the caller must be in none.
type Runtime interface {
	// Create gives the creature that was prepared for a specification its id, and tells
	// the draft of it (see [draft.Draft.Add]). The operation that adds it follows.
	Create(spec *deploy.CreatureSpec, id journal.CreatureID)
	// Update gives a creature that exists the settings of its specification. It reports
	// whether that takes another instance of a creature that runs.
	Update(ctx context.Context, spec *deploy.CreatureSpec, id journal.CreatureID) (restarted bool)
	// Pending counts the deliveries that wait for a creature.
	Pending(journal.CreatureID) uint64
	// Unread counts the messages of a channel that creatures have not read, without
	// those that are leaving.
	Unread(id journal.ChannelID, leaving map[journal.CreatureID]bool) uint64
}

// Options say how a deployment is applied.
type Options struct {
	// Drift is what has been changed since it was applied last; nil: the deployment
	// decides alone.
	Drift *Drift
	// Incomplete says that part of what exists could not be read: what is missing may
	// be there, and was not removed.
	Incomplete bool
	// Restored says that a session was restored as a whole before, so that what its
	// creatures have made belongs to it.
	Restored bool
}

// Result says, by address, what a reconciliation comes to.
type Result struct {
	Creatures map[string]journal.CreatureID
	Channels  map[string]journal.ChannelID
	Resumed   []string // existed
	Changed   []string // those of Resumed that take another instance
	Created   []string // did not exist
	Removed   []Removed
	// Described are the channels that get another description.
	Described map[journal.ChannelID]string
}

// Removed is something that existed and the deployment does not have.
type Removed struct {
	Address string // the name, of what no recipe has declared
	Pending uint64 // deliveries that waited for it; they are dead letters now
}

// Reconciliation is one deployment being applied: first [Reconciliation.Compare], then
// [Reconciliation.Judge], then [Reconciliation.Stage]. If one fails, the caller undoes
// the draft.
type Reconciliation struct {
	Result
	d       *deploy.Deployment
	draft   *draft.Draft
	base    Base
	runtime Runtime
	drift   *Drift
	// live are the deployment's creatures that exist, by address.
	live    map[string]draft.Member
	leaving map[journal.CreatureID]bool
	// kept are channels of the deployment that no recipe has and that were restored
	// with the session: they stay, with all their edges.
	kept map[journal.ChannelID]bool
	ops  []topology.Op // to be staged
}

// New begins to apply the deployment that a draft is made for ([draft.Options.Applying]).
func New(d *draft.Draft, base Base, runtime Runtime, o Options) *Reconciliation {
	r := &Reconciliation{
		Result: Result{
			Creatures: map[string]journal.CreatureID{}, Channels: map[string]journal.ChannelID{},
			Described: map[journal.ChannelID]string{},
		},
		d: d.Applying, draft: d, base: base, runtime: runtime, drift: o.Drift,
		live: map[string]draft.Member{}, leaving: map[journal.CreatureID]bool{}, kept: map[journal.ChannelID]bool{},
	}
	for m := range base.Members {
		if m.Deployment == r.d.Name && m.Spec.Address != "" {
			r.live[m.Spec.Address] = m
		}
	}
	if o.Restored {
		r.keepRuntime()
	}
	if r.drift != nil {
		r.drift.sure = !r.drift.heals && len(r.live) > 0 && !o.Incomplete
	}
	return r
}

// Compare puts together what leads from what exists to what the deployment wants. It
// updates creatures that exist and creates the others, and changes nothing else.
func (r *Reconciliation) Compare(ctx context.Context) error {
	for i := range r.d.Creatures {
		if spec := &r.d.Creatures[i]; !r.drift.removed(r, spec.Address) {
			r.addCreature(ctx, spec)
		}
	}
	r.findLeaving()
	existing := r.channelsByAddress()
	wanted := r.drift.wanted(r, edgesOf(r.d), existing)
	if err := r.addChannels(wanted, existing); err != nil {
		return err
	}
	r.wire(wanted)
	r.setRoot(wanted)
	r.removeGone()
	r.setNames()
	return nil
}

// Judge asks the deployment's own policies about what applying it would do, once and
// as a whole. With a denial nothing of it happens.
func (r *Reconciliation) Judge(ctx context.Context) error {
	ev := deploy.PolicyEvent{PlannedChanges: deploy.PlannedChanges{Created: r.Created, Resumed: r.Resumed, Changed: r.Changed, Removed: []string{}}}
	for _, removed := range r.Removed {
		ev.Removed = append(ev.Removed, removed.Address)
	}
	var first journal.CreatureID
	if id, ok := r.Creatures[r.d.Root]; ok {
		first = id
	} else if len(r.d.Creatures) > 0 {
		first = r.Creatures[r.d.Creatures[0].Address]
	}
	return r.draft.JudgePlan(ctx, ev, first)
}

// Stage stages what Compare has put together, and then the output wires: they lead to
// members of the same graph.
func (r *Reconciliation) Stage(ctx context.Context) error {
	directs := r.draft.DirectsOf(r.ops...)
	if err := r.draft.Stage(r.ops...); err != nil {
		return err
	}
	if err := r.draft.Stage(r.draft.Unheard(directs)...); err != nil {
		return err
	}
	return r.wireOutputs(ctx)
}

// exists reports whether the deployment has a creature at an address already.
func (r *Reconciliation) exists(address string) bool {
	_, exists := r.live[address]
	return exists
}

// then adds operations behind the others.
func (r *Reconciliation) then(ops ...topology.Op) { r.ops = append(r.ops, ops...) }
