package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
)

// watchStops calls enough once conditions of recipes have stopped all creatures. It returns
// then, or when the context ends.
func (x *running) watchStops(ctx context.Context, enough func()) {
	if x.beside != nil {
		return // the recipe may be edited
	}
	sub := x.t.Subscribe(engine.Filter{Kinds: []journal.EventKind{journal.EventRecipeStopped}}, 0)
	defer sub.Close()
	if x.allStopped() {
		enough()
		return
	}
	for range sub.All(ctx) {
		if x.allStopped() {
			enough()
			return
		}
		x.tellStops()
	}
}

// allStopped reports whether a recipe has stopped and no creature of another one works.
func (x *running) allStopped() bool {
	graphs, err := x.t.Status("")
	if err != nil || len(stopsIn(graphs)) == 0 {
		return false
	}
	for i := range graphs {
		if slices.ContainsFunc(graphs[i].Creatures, func(c inspect.CreatureStatus) bool { return !stands(c.State) }) {
			return false
		}
	}
	return true
}

// stopsIn lists why recipes have stopped in some graphs.
func stopsIn(graphs []inspect.GraphStatus) (out []journal.RecipeStop) {
	for i := range graphs {
		out = append(out, graphs[i].Stopped...)
	}
	return out
}

// stopLine says that a recipe has stopped, and why.
func stopLine(s *journal.RecipeStop) string {
	return fmt.Sprintf("%s has stopped, because %s holds: %s", s.Deployment, s.Condition, s.Reason)
}

// tellStops says which recipes have stopped, and how they continue.
func (x *running) tellStops() {
	graphs, err := x.t.Status("")
	if err != nil {
		return // the engine is closed
	}
	for _, s := range stopsIn(graphs) {
		how := "use --session DIR to be able to continue"
		if x.f.session != "" {
			how = "to continue, change or remove the block in the recipe, and run terrarium resume " + x.f.session
		}
		x.report.say("%s; %s", stopLine(&s), how)
	}
}

// statesOf are the states of the creatures of a saved graph.
func statesOf(g *journal.SavedGraph) map[journal.CreatureID]journal.CreatureState {
	out := map[journal.CreatureID]journal.CreatureState{}
	stopped := g.Stopped()
	for i := range g.Creatures {
		c := &g.Creatures[i]
		if out[c.ID] = c.State(); stopped[c.Deployment].Condition != "" && out[c.ID] == journal.Running {
			out[c.ID] = journal.Paused
		}
	}
	return out
}
