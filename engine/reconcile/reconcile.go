// Package reconcile computes the changes from the existing state to the state
// that a deployment declares.
//
// A [Reconciliation] compares the two by address and stages the differences in
// a draft: creatures, channels, edges, names, the root and output wires.
// Without a [Drift] the deployment alone decides; with one, changes made at
// runtime stay, as in a three-way merge. The package does not know modules,
// instances and stores: its caller prepares creatures beforehand and applies
// the draft.
package reconcile

import (
	"context"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Base is the state before the draft; it extends [draft.Base].
type Base interface {
	draft.Base
	// Members iterates over all creatures, in any order.
	Members(yield func(draft.Member) bool)
	// Channels iterates over all channels of the topology, in any order.
	Channels(yield func(draft.Channel) bool)
	// Unclaimed reports whether a creature was restored only because its graph
	// was, and neither a recipe nor a restored session uses it.
	Unclaimed(journal.CreatureID) bool
}

// Runtime is the side of a reconciliation that knows modules, instances and mailboxes.
// Its methods enter the critical sections of graphs, so the caller must be in none.
type Runtime interface {
	// Create assigns an id to the creature prepared for a specification, and
	// registers it with the draft (see [draft.Draft.Add]). The operation that
	// adds it follows.
	Create(spec *deploy.CreatureSpec, id journal.CreatureID)
	// Update applies the settings of a specification to an existing creature.
	// It reports whether a running creature needs a new instance for that.
	Update(ctx context.Context, spec *deploy.CreatureSpec, id journal.CreatureID) (restarted bool)
	// Pending counts the deliveries that wait for a creature.
	Pending(journal.CreatureID) uint64
	// Unread counts the messages of a channel that its listeners have not
	// read. Leaving creatures are ignored.
	Unread(id journal.ChannelID, leaving map[journal.CreatureID]bool) uint64
}

// Options configures how a deployment is applied.
type Options struct {
	// Drift holds the changes since the deployment was last applied; with nil
	// the deployment alone decides.
	Drift *Drift
	// Incomplete means that part of the existing state could not be read:
	// something missing may exist, so it does not count as removed.
	Incomplete bool
	// Declared is what the deployment declared when it was last applied.
	Declared []deploy.Declaration
	// Restored means that a whole session was restored before, so that the
	// creatures and channels made by its creatures belong to it.
	Restored bool
}

// Result holds the outcome of a reconciliation, by address.
type Result struct {
	Creatures map[string]journal.CreatureID
	Channels  map[string]journal.ChannelID
	Resumed   []string // existed
	Changed   []string // those of Resumed that need a new instance
	Created   []string // did not exist
	Removed   []Removed
	// Redeclared holds the existing channels that get a new description or
	// address, with what the recipe says about them.
	Redeclared map[journal.ChannelID]deploy.ChannelSpec
}

// Removed is a creature or channel that existed and is no longer in the
// deployment.
type Removed struct {
	Address string // the name, if no recipe has declared it
	Pending uint64 // deliveries that waited for it; now dead letters
}

// Reconciliation applies one deployment: first [Reconciliation.Compare], then
// [Reconciliation.Judge], then [Reconciliation.Stage]. If one fails, the
// caller undoes the draft.
type Reconciliation struct {
	Result
	d       *deploy.Deployment
	draft   *draft.Draft
	base    Base
	runtime Runtime
	drift   *Drift
	before  []deploy.Declaration // see [Options.Declared]
	// live holds the deployment's existing creatures, by the address that they
	// have now.
	live    map[string]draft.Member
	leaving map[journal.CreatureID]bool
	// kept holds channels of the deployment that no recipe has and that were
	// restored with the session: they stay, with all their edges.
	kept map[journal.ChannelID]bool
	ops  []topology.Op // operations to stage
}

// New starts to apply the deployment of a draft ([draft.Options.Applying]).
func New(d *draft.Draft, base Base, runtime Runtime, o Options) *Reconciliation {
	r := &Reconciliation{
		Result: Result{
			Creatures: map[string]journal.CreatureID{}, Channels: map[string]journal.ChannelID{},
			Redeclared: map[journal.ChannelID]deploy.ChannelSpec{},
		},
		d: d.Applying, draft: d, base: base, runtime: runtime, drift: o.Drift, before: o.Declared,
		live: map[string]draft.Member{}, leaving: map[journal.CreatureID]bool{}, kept: map[journal.ChannelID]bool{},
	}
	for m := range base.Members {
		if m.Deployment == r.d.Name && m.Spec.Address != "" {
			r.live[r.d.NowAt(m.Spec.Address)] = m
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

// Compare computes the operations from the existing state to the deployment.
// It updates existing creatures and creates the others, and changes nothing
// else.
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
	return r.checkProtected(r.before)
}

// Judge asks the deployment's own policies about the whole change, once. If
// they deny it, nothing happens.
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

// Stage stages the operations of Compare, and then the output wires, because
// these need their ends in one graph.
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

// exists reports whether the deployment already has a creature at an address.
func (r *Reconciliation) exists(address string) bool {
	_, exists := r.live[address]
	return exists
}

// then appends operations.
func (r *Reconciliation) then(ops ...topology.Op) { r.ops = append(r.ops, ops...) }
