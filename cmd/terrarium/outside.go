package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/diff"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// outside writes what becomes reachable outside, and what becomes of open requests.
func (w planWriter) outside(list []diff.OutsidePlan) {
	begun, open := false, false
	for i := range list {
		o := &list[i]
		if open = open || len(o.Requests) > 0; o.Revoked {
			continue // only its requests are open
		}
		if !begun {
			w.line("Reachable outside:")
		}
		begun = true
		reaches := strings.Join(o.Reaches, "; ")
		if o.Lacking {
			reaches = "its sensitive settings are not stored, so its requests wait until the recipe is applied"
		}
		w.line("    %s: %s", strings.TrimSuffix(inFull(o.Deployment, o.Address, o.Name)+" → "+o.Capability, " → "), reaches)
	}
	if !open {
		return
	}
	w.line("Open requests to the outside:")
	for i := range list {
		for _, q := range list[i].Requests {
			w.request(&list[i], &q)
		}
	}
}

var becomes = map[diff.RequestFuture]string{
	diff.RequestSent:   "will be sent again, with the same key",
	diff.RequestWaits:  "will wait for its sensitive settings",
	diff.RequestDenied: "will get the result denied: the capability is no longer granted",
}

func (w planWriter) request(o *diff.OutsidePlan, q *diff.OpenRequest) {
	what := cmp.Or(q.Request, "request")
	w.line("    %s → %s: %s (key %s) %s", inFull(o.Deployment, o.Address, o.Name), o.Capability, what, q.ID, becomes[q.Becomes])
}

// tellOutside lists what becomes reachable outside before anything runs. It makes a plan only
// if something may be.
func (f *resumeFlags) tellOutside(ctx context.Context, s streams, v *sqlitestore.View, found []terrarium.FoundRecipe, graphs []journal.SavedGraph) error {
	if f.quiet || !reachesOutside(found, graphs) {
		return nil
	}
	plan, err := terrarium.PlanDirectory(ctx, v, found)
	if err != nil {
		return applyExit(ctx, explainedOf(ctx, s, found, err))
	}
	w := planWriter{bufio.NewWriter(s.err)}
	w.outside(plan.Outside)
	return failWith(exitFailed, w.Flush())
}

// reaches reports whether a recipe has something outside.
func reaches(d *deploy.Deployment) bool {
	return len(diff.Connectors([]*deploy.Deployment{d})) > 0 ||
		slices.ContainsFunc(d.Creatures, func(c deploy.CreatureSpec) bool { return len(c.Capabilities) > 0 }) ||
		slices.ContainsFunc(d.Species, func(s deploy.SpeciesSpec) bool { return len(s.Spec.Capabilities) > 0 })
}

// reachesOutside reports whether a recipe, or a saved creature, has something outside.
func reachesOutside(found []terrarium.FoundRecipe, graphs []journal.SavedGraph) bool {
	for i := range found {
		if d := found[i].Deployment(); d != nil && reaches(d) {
			return true
		}
	}
	for i := range graphs {
		for k := range graphs[i].Creatures {
			var spec deploy.StoredSpec
			if json.Unmarshal(graphs[i].Creatures[k].Spec, &spec) != nil || len(spec.Capabilities) > 0 {
				return true
			}
		}
	}
	return false
}
