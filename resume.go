package terrarium

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/diff"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/recipes"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// ResumeOptions say how the deployments that a session directory remembers are
// applied again.
type ResumeOptions struct {
	// RecipeOptions give variables their values: those that were given before are
	// remembered, unless they are sensitive.
	RecipeOptions
	// Recipes are the paths of recipes that have moved, by deployment.
	Recipes map[string]string
	// Last keeps what was changed while the recipes ran, as
	// [deploy.Deployment.Last] says. Without it the recipes decide alone.
	Last bool
}

// FoundRecipe is the recipe of one deployment that a session directory remembers.
type FoundRecipe struct {
	engine.Remembered
	// Recipe is nil if no recipe made the deployment: it comes back as it was.
	Recipe *recipes.Recipe
	// Path is where the recipe is.
	Path string
	// Copied says that there is none any more, and that Recipe is the copy that
	// the session has.
	Copied bool
	last   *deploy.Deployment
}

// Deployment is what there is to be applied, or nil.
func (f *FoundRecipe) Deployment() *deploy.Deployment {
	if f.Recipe == nil {
		return nil
	}
	d := *f.Recipe.Deployment()
	d.Last = f.last
	return &d
}

// FindRecipes reads and checks the recipes of the deployments that sessions
// remember, without an engine. Warnings come with recipes that can be applied.
func FindRecipes(ctx context.Context, list []engine.Remembered, o ResumeOptions) ([]FoundRecipe, Diagnostics) {
	h, err := host.New(ctx, host.Options{})
	if err != nil {
		return nil, Diagnostics{{Severity: recipes.Error, Summary: "The modules cannot be looked into", Detail: err.Error()}}
	}
	found, diags := findRecipes(ctx, h, list, o)
	if err := h.Close(ctx); err != nil {
		diags = append(diags, recipes.Diagnostic{Severity: recipes.Warning, Summary: "The module inspector did not close", Detail: err.Error()})
	}
	return found, diags
}

func findRecipes(ctx context.Context, h *host.Host, list []engine.Remembered, o ResumeOptions) (out []FoundRecipe, diags Diagnostics) {
	known := map[string]bool{}
	for _, r := range list {
		known[r.Name] = true
		f, more := findRecipe(ctx, h, r, o, len(list) > 1)
		out, diags = append(out, f), append(diags, more...)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Recipes)) {
		if !known[name] {
			diags = append(diags, recipes.Diagnostic{
				Severity: recipes.Error, Summary: "No such deployment", Detail: fmt.Sprintf("The session has no deployment %q, for which a recipe is given.", name),
				Remedy: "session list shows the deployments.",
			})
		}
	}
	return out, diags
}

// findRecipe finds the recipe where it was, where it is said to be now, or else
// in the session.
func findRecipe(ctx context.Context, h *host.Host, r engine.Remembered, o ResumeOptions, shared bool) (FoundRecipe, Diagnostics) {
	f := FoundRecipe{Remembered: r, Path: r.Source.Path}
	ro := recipes.Options{
		Vars: o.Vars, VarFiles: o.VarFiles, Env: o.Env, Given: r.Source.Variables, Shared: shared,
		Inspector: h, Builtins: builtins{}, Version: Version, PolicyProcess: o.PolicyProcess,
	}
	moved, isGiven := o.Recipes[r.Name]
	if isGiven {
		f.Path = moved
	}
	if f.Path == "" {
		return f, nil
	}
	var diags Diagnostics
	if _, err := os.Stat(f.Path); errors.Is(err, fs.ErrNotExist) && !isGiven {
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
			Detail: fmt.Sprintf("The recipe is called %q, and the session remembers it as %q.", name, r.Name),
			Remedy: fmt.Sprintf("Give it the name back: terrarium { name = %q }; or say where the recipe of that name is.", r.Name),
		})
	}
	if o.Last {
		last, more := lastApplied(ctx, r, ro)
		f.last, diags = last, append(diags, more...)
	}
	return f, diags
}

// lastApplied reads the copy of the recipe that the session has. What its
// modules are does not matter any more.
func lastApplied(ctx context.Context, r engine.Remembered, o recipes.Options) (*deploy.Deployment, Diagnostics) {
	o.Shared, o.ShapeOnly, o.Inspector, o.Version = true, true, nil, ""
	recipe, diags := recipes.LoadSource(ctx, r.Source, o)
	if recipe == nil {
		for i := range diags {
			diags[i].Summary = "In the copy of the recipe that the session has: " + diags[i].Summary
		}
		return nil, diags
	}
	return recipe.Deployment(), nil
}

// Resumed is what [Terrarium.Resume] did.
type Resumed struct {
	Recipes []FoundRecipe
	// Applied are those of Recipes that have one, in their order.
	Applied []*Applied
	// Restored are the graphs that came back as they were, because no recipe made
	// them.
	Restored []GraphID
	// Problems are stores that could not be read, and creatures that stay stopped.
	Problems []error
}

// Resume goes on with everything that the session directory has: it applies the
// deployments again by their recipes, edited or not, and brings back what no
// recipe made as it was. A recipe that is not valid changes nothing, and resumes
// nothing.
func (t *Terrarium) Resume(ctx context.Context, o ResumeOptions) (*Resumed, error) {
	found, err := t.findRecipes(ctx, o)
	if err != nil {
		return nil, err
	}
	return t.ResumeRecipes(ctx, found)
}

// findRecipes finds the recipes of what the session directory remembers.
func (t *Terrarium) findRecipes(ctx context.Context, o ResumeOptions) ([]FoundRecipe, error) {
	o.RecipeOptions = t.completed(o.RecipeOptions)
	found, diags := findRecipes(ctx, t.host, t.Remembered(), o)
	return found, diags.Err()
}

// ResumeRecipes is [Terrarium.Resume] with recipes that have been found before.
func (t *Terrarium) ResumeRecipes(ctx context.Context, found []FoundRecipe) (*Resumed, error) {
	out := &Resumed{Recipes: found}
	deployments := deploymentsOf(found)
	if len(deployments) > 1 { // the second may fail when the first is done
		if _, err := planAndClose(deployments, func() (*diff.Plan, error) { return t.engine.Plan(ctx, deployments...) }); err != nil {
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

// PlanResume says what [Terrarium.Resume] would do.
func (t *Terrarium) PlanResume(ctx context.Context, o ResumeOptions) (*diff.Plan, error) {
	found, err := t.findRecipes(ctx, o)
	if err != nil {
		return nil, err
	}
	deployments := deploymentsOf(found)
	return planAndClose(deployments, func() (*diff.Plan, error) { return t.engine.PlanResume(ctx, deployments...) })
}

// planAndClose makes a plan, and lets go of what policies have needed for it, such
// as processes. They can be asked again all the same.
func planAndClose(deployments []*deploy.Deployment, plan func() (*diff.Plan, error)) (*diff.Plan, error) {
	out, err := plan()
	for _, d := range deployments {
		if c, ok := d.Policy.(io.Closer); ok {
			err = errors.Join(err, c.Close())
		}
	}
	return out, err
}

// PlanApply says what [Terrarium.Apply] would do: with the members of the recipe,
// and with others if something becomes of them.
func (t *Terrarium) PlanApply(ctx context.Context, path string, o RecipeOptions) (*diff.Plan, error) {
	r, diags := recipes.Load(ctx, path, t.completed(o).loading(t.host))
	if err := diags.Err(); err != nil {
		return nil, err
	}
	d := r.Deployment()
	plan, err := planAndClose([]*deploy.Deployment{d}, func() (*diff.Plan, error) { return t.engine.Plan(ctx, d) })
	if err != nil {
		return nil, err
	}
	return plan.About(d.Name), nil
}

// PlanRecipe says what applying a recipe makes where there is nothing yet.
func PlanRecipe(ctx context.Context, r *recipes.Recipe) (*diff.Plan, error) {
	return planSaved(ctx, engine.PlanSaved, nil, nil, nil, []*deploy.Deployment{r.Deployment()})
}

// PlanRecipeIn says what applying a recipe to a session directory changes. Somebody else
// may be using the directory, and nothing in it changes.
func PlanRecipeIn(ctx context.Context, v *sqlitestore.View, r *recipes.Recipe) (*diff.Plan, error) {
	graphs, problems, err := v.Live(ctx)
	if err != nil {
		return nil, err
	}
	return planSaved(ctx, engine.PlanSaved, graphs, problems, v, []*deploy.Deployment{r.Deployment()})
}

// PlanDirectory says what resuming a session directory with the recipes would do.
// Somebody else may be using the directory, and nothing in it changes.
func PlanDirectory(ctx context.Context, v *sqlitestore.View, found []FoundRecipe) (*diff.Plan, error) {
	graphs, problems, err := v.Live(ctx)
	if err != nil {
		return nil, err
	}
	return planSaved(ctx, engine.PlanSavedResume, graphs, problems, v, deploymentsOf(found))
}

// planner is [engine.PlanSaved] or [engine.PlanSavedResume].
type planner func(context.Context, engine.Options, []journal.SavedGraph, []error, journal.Archive, ...*deploy.Deployment) (*diff.Plan, error)

func planSaved(ctx context.Context, how planner, graphs []journal.SavedGraph, problems []error, archive journal.Archive, deployments []*deploy.Deployment) (plan *diff.Plan, err error) {
	h, err := host.New(ctx, host.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Close(context.WithoutCancel(ctx))) }()
	return planAndClose(deployments, func() (*diff.Plan, error) {
		return how(ctx, engine.Options{Host: h, Load: LoadModule}, graphs, problems, archive, deployments...)
	})
}
