package terrarium

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/diff"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/recipes"
	"github.com/seed47132306/terrarium/recipes/policy"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// ResumeOptions configures how the deployments in a session directory are applied again.
type ResumeOptions struct {
	// RecipeOptions sets the values of variables. Earlier values are remembered, unless
	// they are sensitive.
	RecipeOptions
	// Recipes holds the paths of recipes that have moved, by deployment.
	Recipes map[string]string
	// Last keeps changes that were made while the recipes ran; see
	// [deploy.Deployment.Last]. Without it the recipes alone decide.
	Last bool
	// Outside also fills [Resumed.Outside]. That needs a plan, which takes about as long as
	// resuming without it.
	Outside bool
}

// FoundRecipe is the recipe of a deployment in a session directory.
type FoundRecipe struct {
	engine.Remembered
	// Recipe is nil for a deployment without a recipe, which is restored as it was.
	Recipe *recipes.Recipe
	// Path is the path of the recipe.
	Path string
	// Copied says that the file is missing, and that Recipe is the copy in the
	// session.
	Copied bool
	last   *deploy.Deployment
}

// Deployment returns the deployment to apply, or nil.
func (f *FoundRecipe) Deployment() *deploy.Deployment {
	if f.Recipe == nil {
		return nil
	}
	d := *f.Recipe.Deployment()
	d.Last = f.last
	return &d
}

// FindRecipes reads and checks the recipes of remembered deployments, without an engine.
// Recipes that have only warnings can be applied.
func FindRecipes(ctx context.Context, list []engine.Remembered, o ResumeOptions) ([]FoundRecipe, Diagnostics) {
	h, err := host.New(ctx, host.Options{})
	if err != nil {
		return nil, Diagnostics{{Severity: recipes.Error, Summary: "The modules cannot be inspected", Detail: err.Error()}}
	}
	found, diags := findRecipes(ctx, list, o, o.loading(h))
	if err := h.Close(ctx); err != nil {
		diags = append(diags, recipes.Diagnostic{Severity: recipes.Warning, Summary: "The module inspector did not close", Detail: err.Error()})
	}
	return found, diags
}

func findRecipes(ctx context.Context, list []engine.Remembered, o ResumeOptions, ro recipes.Options) (out []FoundRecipe, diags Diagnostics) {
	known := map[string]bool{}
	ro.Shared = len(list) > 1
	for _, r := range list {
		known[r.Name] = true
		f, more := findRecipe(ctx, r, o, ro)
		out, diags = append(out, f), append(diags, more...)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Recipes)) {
		if !known[name] {
			diags = append(diags, recipes.Diagnostic{
				Severity: recipes.Error, Summary: "No such deployment", Detail: fmt.Sprintf("A recipe is given for the deployment %q, but the session has no such deployment.", name),
				Remedy: "session list shows the deployments.",
			})
		}
	}
	return out, diags
}

// findRecipe finds the recipe at its path, at its new path, or otherwise in the session.
func findRecipe(ctx context.Context, r engine.Remembered, o ResumeOptions, ro recipes.Options) (FoundRecipe, Diagnostics) {
	f := FoundRecipe{Remembered: r, Path: r.Source.Path}
	ro.Given = r.Source.Variables
	moved, isGiven := o.Recipes[r.Name]
	if isGiven {
		f.Path = moved
	}
	if f.Path == "" {
		return f, nil
	}
	var diags Diagnostics
	if ro.Missing(f.Path) && !isGiven {
		f.Copied = true
		f.Recipe, diags = recipes.LoadSource(ctx, r.Source, ro)
	} else {
		f.Recipe, diags = recipes.Load(ctx, f.Path, ro)
	}
	if f.Recipe == nil {
		return f, diags
	}
	if name := f.Recipe.Deployment().Name; name != r.Name {
		return f, append(diags, recipes.Diagnostic{
			Severity: recipes.Error, Summary: "Another deployment", Range: recipes.Range{File: f.Path},
			Detail: fmt.Sprintf("The recipe is named %q, but its name in the session is %q.", name, r.Name),
			Remedy: fmt.Sprintf("Set the old name again with terrarium { name = %q }, or give the path of the recipe with that name.", r.Name),
		})
	}
	if o.Last {
		last, more := lastApplied(ctx, r, ro)
		f.last, diags = last, append(diags, more...)
	}
	return f, diags
}

// lastApplied reads the copy of the recipe in the session. It does not check the modules.
func lastApplied(ctx context.Context, r engine.Remembered, o recipes.Options) (*deploy.Deployment, Diagnostics) {
	o.Shared, o.ShapeOnly, o.Inspector, o.Version = true, true, nil, ""
	recipe, diags := recipes.LoadSource(ctx, r.Source, o)
	if recipe == nil {
		for i := range diags {
			diags[i].Summary = "In the session's copy of the recipe: " + diags[i].Summary
		}
		return nil, diags
	}
	return recipe.Deployment(), nil
}

// Resumed is the result of [Terrarium.Resume].
type Resumed struct {
	Recipes []FoundRecipe
	// Applied holds the results for Recipes that are not nil, in their order.
	Applied []*Applied
	// Restored lists the graphs without a recipe, which were restored as they were.
	Restored []GraphID
	// Problems lists stores that could not be read, and creatures that stay stopped.
	Problems []error
	// Outside lists what has become reachable outside, and what becomes of the requests that
	// were open before anything ran. It is nil without [ResumeOptions.Outside].
	Outside []diff.OutsidePlan
}

// Resume resumes everything in the session directory. It applies the recipes of the
// deployments again, edited or not, and restores creatures and channels without a recipe as
// they were. If a recipe is not valid, nothing is resumed and nothing changes.
func (t *Terrarium) Resume(ctx context.Context, o ResumeOptions) (*Resumed, error) {
	found, err := t.findRecipes(ctx, o)
	if err != nil {
		return nil, err
	}
	plan := &diff.Plan{}
	if o.Outside {
		if plan, err = planResume(ctx, t, found); err != nil {
			return nil, err
		}
	}
	out, err := t.ResumeRecipes(ctx, found)
	if out != nil {
		out.Outside = plan.Outside
	}
	return out, err
}

// findRecipes finds the recipes of the deployments in the session directory.
func (t *Terrarium) findRecipes(ctx context.Context, o ResumeOptions) ([]FoundRecipe, error) {
	found, diags := findRecipes(ctx, t.Remembered(), o, t.loading(o.RecipeOptions))
	return found, diags.Err()
}

// ResumeRecipes is [Terrarium.Resume] with recipes that have already been found.
func (t *Terrarium) ResumeRecipes(ctx context.Context, found []FoundRecipe) (*Resumed, error) {
	out := &Resumed{Recipes: found}
	deployments := deploymentsOf(found)
	if len(deployments) > 1 { // the second may fail after the first is applied
		if _, err := t.Plan(ctx, deployments...); err != nil {
			return nil, err
		}
	}
	var err error
	if out.Applied, err = t.ApplyAll(ctx, deployments...); err != nil {
		return nil, err
	}
	out.Restored, out.Problems, err = t.Restore(ctx)
	return out, err
}

func deploymentsOf(found []FoundRecipe) (out []*deploy.Deployment) {
	for i := range found {
		if d := found[i].Deployment(); d != nil {
			out = append(out, d)
		}
	}
	return out
}

// PlanResume returns the changes that [Terrarium.Resume] would make.
func (t *Terrarium) PlanResume(ctx context.Context, o ResumeOptions) (*diff.Plan, error) {
	found, err := t.findRecipes(ctx, o)
	if err != nil {
		return nil, err
	}
	return planResume(ctx, t, found)
}

func planResume(ctx context.Context, t *Terrarium, found []FoundRecipe) (*diff.Plan, error) {
	return planning(t.policy, deploymentsOf(found), func(d []*deploy.Deployment) (*diff.Plan, error) { return t.engine.PlanResume(ctx, d...) })
}

// planning makes a plan of deployments. Their policies run in processes that end with the
// plan.
func planning(also deploy.Policy, deployments []*deploy.Deployment, plan func([]*deploy.Deployment) (*diff.Plan, error)) (*diff.Plan, error) {
	var p policy.Processes
	defer p.Close()
	return plan(judged(&p, also, deployments...))
}

// judged returns the deployments with their policies, which run in processes of p where they
// need one, and with the policy also.
func judged(p *policy.Processes, also deploy.Policy, deployments ...*deploy.Deployment) []*deploy.Deployment {
	out := slices.Clone(deployments)
	for i, d := range out {
		own := *d
		if s, ok := d.Policy.(*policy.Set); ok {
			own.Policy = s.In(p)
		}
		if also != nil {
			own.Policy = deploy.Policies(own.Policy, also)
		}
		out[i] = &own
	}
	return out
}

// PlanApply returns the changes that [Terrarium.Apply] would make: for the members of the
// recipe, and for others that would change.
func (t *Terrarium) PlanApply(ctx context.Context, path string, o RecipeOptions) (*diff.Plan, error) {
	_, plan, err := t.planApply(ctx, path, o)
	return plan, err
}

// SavePlan is PlanApply, and also returns the plan for [Terrarium.ApplyPlan].
func (t *Terrarium) SavePlan(ctx context.Context, path string, o RecipeOptions) (*diff.Plan, *SavedPlan, error) {
	r, plan, err := t.planApply(ctx, path, o)
	if err != nil {
		return nil, nil, err
	}
	sessions, err := t.Sessions(ctx)
	if err != nil {
		return nil, nil, err
	}
	saved, err := NewSavedPlan(r, plan, sessions, "")
	return plan, saved, err
}

func (t *Terrarium) planApply(ctx context.Context, path string, o RecipeOptions) (*recipes.Recipe, *diff.Plan, error) {
	r, diags := recipes.Load(ctx, path, t.loading(o))
	if err := diags.Err(); err != nil {
		return nil, nil, err
	}
	d := r.Deployment()
	plan, err := t.Plan(ctx, d)
	if err != nil {
		return nil, nil, err
	}
	return r, plan.About(d.Name), nil
}

// PlanRecipe returns the plan of applying a recipe to an empty engine.
func PlanRecipe(ctx context.Context, r *recipes.Recipe) (*diff.Plan, error) {
	return planSaved(ctx, engine.PlanSaved, nil, nil, nil, r.Capabilities(), []*deploy.Deployment{r.Deployment()})
}

// PlanRecipeIn returns the plan of applying a recipe to a session directory. Another process
// may be using the directory, and nothing in it changes.
func PlanRecipeIn(ctx context.Context, v *sqlitestore.View, r *recipes.Recipe) (*diff.Plan, error) {
	graphs, problems, err := v.Live(ctx)
	if err != nil {
		return nil, err
	}
	return planSaved(ctx, engine.PlanSaved, graphs, problems, v, r.Capabilities(), []*deploy.Deployment{r.Deployment()})
}

// PlanDirectory returns the plan of resuming a session directory with the recipes. Another
// process may be using the directory, and nothing in it changes.
func PlanDirectory(ctx context.Context, v *sqlitestore.View, found []FoundRecipe) (*diff.Plan, error) {
	graphs, problems, err := v.Live(ctx)
	if err != nil {
		return nil, err
	}
	var kinds []capability.Kind
	for i := range found {
		if r := found[i].Recipe; r != nil {
			kinds = append(kinds, r.Capabilities()...)
		}
	}
	return planSaved(ctx, engine.PlanSavedResume, graphs, problems, v, kinds, deploymentsOf(found))
}

// planner is [engine.PlanSaved] or [engine.PlanSavedResume].
type planner func(context.Context, engine.Options, []journal.SavedGraph, []error, journal.Archive, ...*deploy.Deployment) (*diff.Plan, error)

func planSaved(ctx context.Context, how planner, graphs []journal.SavedGraph, problems []error, archive journal.Archive, kinds []capability.Kind, deployments []*deploy.Deployment) (plan *diff.Plan, err error) {
	h, err := host.New(ctx, host.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Close(context.WithoutCancel(ctx))) }()
	return planning(nil, deployments, func(d []*deploy.Deployment) (*diff.Plan, error) {
		return how(ctx, engine.Options{Host: h, Load: LoadModule, Capabilities: withOwn(kinds)}, graphs, problems, archive, d...)
	})
}
