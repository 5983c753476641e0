package main

import (
	"context"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/diff"
	"github.com/seed47132306/terrarium/sqlitestore"
	"github.com/spf13/cobra"
)

// planFlags are the flags of plan.
type planFlags struct {
	recipeFlags
	session string
	format  string
	despite bool
}

func planCommand(s streams) *cobra.Command {
	f := &planFlags{}
	cmd := &cobra.Command{
		Use:   "plan RECIPE",
		Short: "Say what a recipe would make, or change in a session directory",
		Long: `plan says what run would begin with: address by address, what comes, what goes,
what goes on, and what is different then. Without --session that is everything.
Of other recipes in the directory it tells only what becomes different for them.
No session keeps sensitive values, so whether these change cannot be told.
Modules are loaded and started, and the recipe's policies on plan are asked, so
that a plan fails where run would. Nothing runs and nothing changes; the directory
may be in use.

For a recipe that runs, ask its engine: the operation apply with plan_only.`,
		Example: `  terrarium plan team.hcl
  terrarium plan team.hcl --session S -o json`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.plan(cmd.Context(), s, args[0]) },
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.session, "session", "", "compare with what is in `DIR`")
	cmd.Flags().StringVarP(&f.format, "format", "o", "text", "how the plan is printed: text or json")
	addDespite(cmd.Flags(), &f.despite)
	return cmd
}

func (f *planFlags) plan(ctx context.Context, s streams, path string) error {
	if err := checkFormat(f.format); err != nil {
		return err
	}
	r, err := f.load(ctx, s, path)
	if err != nil {
		return err
	}
	name := r.Deployment().Name
	if f.session == "" {
		plan, err := terrarium.PlanRecipe(ctx, r)
		return f.printPlan(ctx, s, name, plan, explained(ctx, s, r, err))
	}
	if err := upToDate(ctx, f.session); err != nil {
		return err
	}
	return withView(ctx, f.session, func(v *sqlitestore.View) error {
		plan, err := terrarium.PlanRecipeIn(ctx, v, r)
		return f.printPlan(ctx, s, name, plan, explained(ctx, s, r, err))
	})
}

// printPlan prints a plan as far as it concerns a recipe.
func (f *planFlags) printPlan(ctx context.Context, s streams, name string, plan *diff.Plan, err error) error {
	if err != nil {
		return applyExit(ctx, err)
	}
	for _, p := range plan.Problems {
		showError(s.err, p)
	}
	return planned(showPlan(s, f.format, plan.About(name), name), f.session, plan.Problems, f.despite)
}

// planned ends a command that has shown a plan. It fails where carrying the plan out
// would, as stores are damaged, and these have been shown.
func planned(err error, dir string, problems []error, despite bool) error {
	if err != nil || despite {
		return err
	}
	return damaged(dir, problems)
}
