package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/sorted"
	"github.com/seed47132306/terrarium/engine/internal/species"
	"github.com/seed47132306/terrarium/engine/internal/storemeta"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/reconcile"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Applied reports what [Engine.Apply] did, by address.
type Applied = reconcile.Applied

// RemovedAddress is a creature or channel that existed and is not in the recipe.
type RemovedAddress = reconcile.Removed

// application is one call of Apply in progress.
type application struct {
	e        locked // while it runs
	d        *deploy.Deployment
	prepared map[string]*creature // by address
	species  []*species.Template
	drift    *reconcile.Drift      // what has changed while it ran and stays; nil: the recipe alone decides
	former   *deploy.Deployment    // the one applied now; nil if there is none
	adopted  map[string]abi.Module // the former modules of running creatures that took a prepared one, by the latter's address
	declared []deploy.Declaration  // when it was last applied
	result   Applied
}

// may refuses the recipe of another deployment of the same name, and finds out what
// applying it again leaves alone.
func (a *application) may(saved []journal.SavedGraph) error {
	a.former = a.e.deployments[a.d.Name]
	if a.former == nil {
		return reconcile.CheckTwins(a.d.Name, saved)
	}
	if a.drift == nil {
		a.drift = reconcile.HealingFrom(a.former.MovedBy(a.d))
	}
	return reconcile.CheckSource(a.d, a.former)
}

// run changes what exists into what the deployment declares. Its saved graphs have
// already been resumed.
func (a *application) run(ctx context.Context, h *holding) error {
	e := a.e
	x := newChange(e, "apply", draft.Options{Applying: a.d})
	x.summary = true
	x.recipe.meta = storemeta.Of(a.d)
	if d := a.d.Session.Durability; d != nil {
		x.recipe.durability = *d
		if e.storage == nil {
			x.recipe.durability = journal.Volatile
		}
	}
	r := reconcile.New(x.Draft, e, &recipeCreatures{a, x, h}, reconcile.Options{
		Drift: a.drift, Incomplete: len(e.problems) > 0, Restored: e.restored, Declared: a.declared,
	})
	if err := r.Compare(ctx); err != nil {
		x.Undo()
		return err
	}
	x.recipe.deployed = slices.Sorted(maps.Values(r.Creatures))
	for id, spec := range r.Redeclared {
		x.recipe.redeclared[e.channels[id]] = spec
	}
	if err := r.Judge(ctx); err != nil {
		x.Undo()
		x.logRefusals()
		return err
	}
	former, stops := e.putPolicy(a.d.Name, a.d.Policy), e.stops.Put(a.d.Name, a.d.StopWhen)
	err := cmp.Or(a.becomeWhole(ctx, x, h), r.Stage(ctx))
	if err != nil {
		x.Undo()
	} else {
		err = x.carryOut(ctx)
	}
	if err != nil {
		e.putPolicy(a.d.Name, former)
		e.stops.Put(a.d.Name, stops)
		if e.deployments[a.d.Name] == nil { // it counts as not applied, and its questions keep waiting
			e.policies.Delete(a.d.Name)
			e.askAgain()
		}
		return err
	}
	e.deployments[a.d.Name] = a.d
	e.askAgain()
	a.result = Applied{
		Creatures: r.Creatures, Channels: r.Channels, Resumed: r.Resumed, Changed: r.Changed, Created: r.Created, Removed: r.Removed,
		Problems: slices.Clone(e.problems),
	}
	return nil
}

// becomeWhole gives spawned creatures what [application.regrant] has prepared. One that stayed
// stopped only because it lacked something runs again.
func (a *application) becomeWhole(ctx context.Context, x *change, h *holding) (err error) {
	for _, id := range sorted.Keys(a.prepared) {
		if c := a.e.creatures[journal.CreatureID(id)]; c != nil && h.has(c) {
			former, lacked := c.module, c.husk && !c.savedStopped
			if x.become(ctx, c, a.prepared[id]) {
				a.adopted[id] = former
			}
			if x.recipe.resumed = append(x.recipe.resumed, c); lacked {
				err = cmp.Or(err, x.Stage(topology.SetStopped{ID: c.id}))
			}
		}
	}
	return err
}

// recipeCreatures are the creatures that an application passes to package reconcile.
type recipeCreatures struct {
	a *application
	x *change
	h *holding // creatures whose settings change
}

// Create implements [reconcile.Runtime], as the methods below do.
func (r *recipeCreatures) Create(spec *deploy.CreatureSpec, id journal.CreatureID) {
	c := r.a.prepared[spec.Address]
	c.id = id
	r.x.add(c)
}

func (r *recipeCreatures) Update(ctx context.Context, spec *deploy.CreatureSpec, id journal.CreatureID) (restarted bool) {
	c, live := r.a.prepared[spec.Address], r.a.e.creatures[id]
	running, held := live != c, r.h.has(live) // otherwise it was resumed just now
	if running && held {
		former := live.module
		if restarted = r.x.become(ctx, live, c); restarted {
			r.a.adopted[spec.Address] = former
		}
	}
	if !running || held {
		r.x.recipe.resumed = append(r.x.recipe.resumed, live)
	}
	return restarted
}

func (r *recipeCreatures) Pending(id journal.CreatureID) uint64 {
	c := r.a.e.creatures[id]
	g := c.home.enter()
	defer g.leave()
	return c.mb.pending()
}

func (r *recipeCreatures) Unread(id journal.ChannelID, leaving map[journal.CreatureID]bool) (n uint64) {
	ch := r.a.e.channels[id]
	g := ch.home.load().enter()
	defer g.leave()
	for _, s := range ch.feeds {
		if c := s.mb.creature; c != nil && !leaving[c.id] {
			n += s.unread()
		}
	}
	return n
}

// declaredBefore is what was declared last.
func (a *application) declaredBefore(graphs []journal.SavedGraph) []deploy.Declaration {
	if a.former != nil {
		return a.former.Declared
	}
	for _, graph := range a.e.graphs {
		g := graph.enter()
		graphs = append(graphs, journal.SavedGraph{Meta: g.meta, LastTime: g.now})
		g.leave()
	}
	return storemeta.DeclaredIn(graphs)[a.d.Name]
}
