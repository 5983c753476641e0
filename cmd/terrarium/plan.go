package main

import (
	"context"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/diff"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/recipes"
	"github.com/seed47132306/terrarium/sqlitestore"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// planFlags holds the flags of the plan command.
type planFlags struct {
	recipeFlags
	planExit
	session string
	format  string
	out     string // file for the saved plan
	despite bool
}

// planExit is the exit code of a command that has shown a plan.
type planExit struct{ detailed bool }

func (p *planExit) add(fs *pflag.FlagSet) {
	fs.BoolVar(&p.detailed, "detailed-exitcode", false, "exit with 7 if the plan has changes, and with 0 if it has none")
}

// of returns the result of a command that has shown a plan. The exit code differs from
// those of errors. It is not 2, which other tools use, because 2 stands for a wrong command
// line.
func (p *planExit) of(plan *diff.Plan) error {
	if !p.detailed || plan.Empty() {
		return nil
	}
	return &exit{code: exitChanges, shown: true}
}

func planCommand(s streams) *cobra.Command {
	f := &planFlags{}
	cmd := &cobra.Command{
		Use:   "plan RECIPE",
		Short: "Show what a recipe would create, or change in a session directory",
		Long: `plan shows the changes that run would make at its start, address by address: what would
be created (+), removed (-), changed (~) or resumed unchanged (=). Without --session,
everything would be created. For other recipes in the directory, plan shows only
what would change for them. Sessions do not keep sensitive values, so plan cannot
show whether these change (?).

plan loads and initializes modules and runs the recipe's policies on plan, so that
it fails where run would. No creature runs and nothing changes. The directory may be
in use.

The recipe - is standard input, and --as FILE reads standard input in place of a file of
the recipe, as in validate.

With --out, the plan is also saved in a file for apply. The file contains the values of
variables, but only a hash of the sensitive ones. Only its owner can read it.

To plan changes of a recipe that is running, use the operation apply with plan_only.`,
		Example: `  terrarium plan team.hcl
  terrarium plan team.hcl --session S -o json
  terrarium plan team.hcl --session S --detailed-exitcode
  terrarium plan team.hcl --session S --out team.plan && terrarium apply team.plan`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.plan(cmd.Context(), s, args[0]) },
	}
	f.recipeFlags.add(cmd)
	f.addAs(cmd)
	f.planExit.add(cmd.Flags())
	cmd.Flags().StringVar(&f.session, "session", "", "compare with the sessions in `DIR`")
	cmd.Flags().StringVarP(&f.format, "format", "o", "text", "format of the plan: text or json")
	cmd.Flags().StringVar(&f.out, "out", "", "also save the plan in `FILE`, for apply")
	addDespite(cmd.Flags(), &f.despite)
	return cmd
}

func (f *planFlags) plan(ctx context.Context, s streams, path string) error {
	if err := checkFormat(f.format); err != nil {
		return err
	}
	if err := mayReplacePlan(f.out); err != nil {
		return err
	}
	if f.out != "" && (f.as != "" || path == standardInput) {
		return usage("--out %s: a plan of standard input cannot be saved; save the recipe first", f.out)
	}
	path, err := f.fromInput(s, path)
	if err != nil {
		return err
	}
	r, err := f.load(ctx, s, path)
	if err != nil {
		return err
	}
	if f.session == "" {
		plan, err := terrarium.PlanRecipe(ctx, r)
		return f.printPlan(ctx, s, r, plan, nil, explained(ctx, s, r, err))
	}
	if err := upToDate(ctx, f.session); err != nil {
		return err
	}
	return withView(ctx, f.session, func(v *sqlitestore.View) error {
		// Sessions that begin or end meanwhile would make the saved plan stale, or do not matter.
		sessions, err := v.Sessions(ctx)
		if err != nil {
			return failWith(exitSession, err)
		}
		plan, err := terrarium.PlanRecipeIn(ctx, v, r)
		return f.printPlan(ctx, s, r, plan, sessions, explained(ctx, s, r, err))
	})
}

// printPlan prints the part of a plan that concerns a recipe, and saves it with --out.
func (f *planFlags) printPlan(ctx context.Context, s streams, r *recipes.Recipe, plan *diff.Plan, sessions []journal.SessionInfo, err error) error {
	if err != nil {
		return applyExit(ctx, err)
	}
	name := r.Deployment().Name
	for _, p := range plan.Problems {
		showError(s.err, p)
	}
	plan = plan.About(name)
	if err := planned(showPlan(s, f.format, plan, name), f.session, plan.Problems, f.despite); err != nil {
		return err
	}
	if f.out != "" {
		saved, err := terrarium.NewSavedPlan(r, plan, sessions, f.session)
		if err != nil {
			return failWith(exitFailed, err)
		}
		if err := savePlan(s, f.out, saved); err != nil {
			return err
		}
	}
	return f.of(plan)
}

// planned ends a command that has shown a plan. It fails for damaged stores, as
// applying the plan would. They have already been shown.
func planned(err error, dir string, problems []error, despite bool) error {
	if err != nil || despite {
		return err
	}
	return damaged(dir, problems)
}
