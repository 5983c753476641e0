package main

import (
	"context"
	"os"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/diff"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/recipes"
)

// recipeSource is where the recipes of a service come from.
type recipeSource struct {
	options terrarium.RecipeOptions
	paths   []string
	first   []*deploy.Deployment
	// remembered are the deployments of the session directory, if there are no paths.
	remembered []engine.Remembered
}

// recipes loads the recipes of the command line.
func (f *serveFlags) recipes(ctx context.Context, s streams, paths []string) (r recipeSource, err error) {
	if r.options, err = f.options(); err != nil {
		return r, err
	}
	r.paths = paths
	for _, path := range paths {
		loaded, err := f.load(ctx, s, path)
		if err != nil {
			return r, err
		}
		r.first = append(r.first, loaded.Deployment())
	}
	return r, nil
}

// begin applies the recipes, or resumes those of the session directory.
func (r *recipeSource) begin(ctx context.Context, t *terrarium.Terrarium) (problems []error, err error) {
	if len(r.paths) > 0 {
		_, err := t.ApplyAll(ctx, r.first...)
		return nil, err
	}
	r.remembered = t.Remembered()
	resumed, err := t.Resume(ctx, terrarium.ResumeOptions{RecipeOptions: r.options})
	if err != nil {
		return nil, err
	}
	return resumed.Problems, nil
}

// plan returns what begin would do, or nil if nothing can become reachable outside: a plan
// costs as much as the beginning.
func (r *recipeSource) plan(ctx context.Context, t *terrarium.Terrarium) (*diff.Plan, error) {
	if len(r.paths) == 0 {
		o := terrarium.ResumeOptions{RecipeOptions: r.options}
		if found, _ := terrarium.FindRecipes(ctx, t.Remembered(), o); !reachesOutside(found, nil) {
			return nil, nil
		}
		return t.PlanResume(ctx, o)
	}
	for _, d := range r.first {
		if reaches(d) {
			return t.Plan(ctx, r.first...)
		}
	}
	return nil, nil
}

// logOutside logs what becomes reachable outside, before anything runs, and what becomes of
// open requests.
func (x *service) logOutside(p *diff.Plan) {
	for i := range p.Outside {
		o := &p.Outside[i]
		if !o.Revoked {
			x.log.Info("reachable outside", "of", inFull(o.Deployment, o.Address, o.Name), "capability", o.Capability, "reaches", o.Reaches, "lacks_settings", o.Lacking)
		}
		for _, q := range o.Requests {
			x.log.Info("an open request to the outside", "of", inFull(o.Deployment, o.Address, o.Name), "capability", o.Capability, "request", q.Request, "key", q.ID, "becomes", q.Becomes)
		}
	}
}

// read reads the recipes again.
func (r *recipeSource) read(ctx context.Context) (out []*deploy.Deployment, diags terrarium.Diagnostics) {
	for _, path := range r.paths {
		loaded, more := loadRecipe(ctx, path, r.options)
		if diags = append(diags, more...); loaded != nil {
			out = append(out, loaded.Deployment())
		}
	}
	if len(r.remembered) > 0 {
		found, more := terrarium.FindRecipes(ctx, r.remembered, terrarium.ResumeOptions{RecipeOptions: r.options})
		diags = append(diags, more...)
		for i := range found {
			if d := found[i].Deployment(); d != nil {
				out = append(out, d)
			}
		}
	}
	return out, diags
}

// reloadUntil reads the recipes again at each signal.
func (x *service) reloadUntil(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case <-signals:
			x.notifyReloading()
			x.reloadTokens()
			x.reload(journal.Attribute(ctx, journal.Attribution{Via: "reload"}))
			x.notify("READY=1")
		case <-ctx.Done():
			return
		}
	}
}

// reloadTokens reads the token file again. If that is not possible, the former tokens remain.
func (x *service) reloadTokens() {
	path := x.f.tokenPath()
	if path == "" {
		return
	}
	tokens, err := readTokens(path)
	if err != nil {
		x.log.Error("the token file was not read; the former tokens remain", "error", operations.NewErrorRecord(err))
		return
	}
	x.h.SetTokens(tokens)
}

// reload applies the recipes as they are now. If that is not possible, the former ones
// remain.
func (x *service) reload(ctx context.Context) {
	deployments, diags := x.source.read(ctx)
	failed := false
	for i := range diags {
		d := &diags[i]
		if d.Severity == recipes.Error {
			failed = true
			x.log.Error("the recipe is not valid", "diagnostic", d.Error())
			continue
		}
		x.log.Warn("a warning about the recipe", "diagnostic", d.Error())
	}
	if failed {
		x.log.Error("nothing was applied; the former recipes remain")
		return
	}
	plan, err := x.t.Plan(ctx, deployments...)
	if err != nil {
		x.log.Error("the recipes cannot be applied; the former ones remain", "error", operations.NewErrorRecord(err))
		return
	}
	if plan.Empty() {
		x.log.Info("the recipes have not changed")
		return
	}
	x.logOutside(plan)
	applied, err := x.t.ApplyAll(ctx, deployments...)
	if err != nil {
		x.log.Error("the recipes were not applied", "error", operations.NewErrorRecord(err))
		return
	}
	for _, a := range applied {
		x.log.Info("the recipe was applied", "created", a.Created, "changed", a.Changed, "removed", len(a.Removed))
	}
	for i := range plan.Graphs { // as planned: a creature's tool may have changed more
		x.log.Info("the graphs have changed", "kind", plan.Graphs[i].Kind, "before", plan.Graphs[i].Before, "after", plan.Graphs[i].After)
	}
}
