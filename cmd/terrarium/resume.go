package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore"
	"github.com/spf13/cobra"
)

// resumeFlags are the flags of resume.
type resumeFlags struct {
	runFlags
	topology string
	moved    []string
	plan     bool
}

func resumeCommand(s streams) *cobra.Command {
	f := &resumeFlags{}
	cmd := &cobra.Command{
		Use:   "resume DIR",
		Short: "Go on with everything that a session directory has",
		Long: `resume applies the recipes of a session directory again, each from where it was,
edited or not, and goes on like run. Creatures and channels are matched by their
addresses; what is still there goes on with its state and what waits for it.

A recipe that is gone is replaced by the copy that the session has. Variables
keep the values that they were given, except for sensitive ones, which are never
kept and have to be given again. What no recipe made comes back as it was. If a
recipe is not valid, nothing is resumed and nothing changes.

With --plan it says what would change and changes nothing, also while the
directory is in use. Instead of a directory it takes a file that session export
has written, and --session for the new directory in which it goes on. The same
command again goes on with that directory.`,
		Example: `  terrarium resume S --plan
  terrarium resume S --output report --exit-when-idle
  terrarium resume S --topology last
  terrarium resume alone.db --session NEW`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.resume(cmd, s, args[0]) },
	}
	f.add(cmd)
	fs := cmd.Flags()
	fs.StringArrayVar(&f.outputs, "output", nil, "print what arrives on `CHANNEL`; may be repeated")
	fs.StringVarP(&f.format, "format", "o", "text", "how outputs, or with --plan the plan, are printed: text or json")
	fs.StringVar(&f.topology, "topology", "recipe", "what decides about the shape: recipe, or last, which also keeps what was changed while the recipes ran")
	fs.StringArrayVar(&f.moved, "recipe", nil, "where a recipe is that has moved, as `NAME=PATH`; may be repeated")
	fs.BoolVar(&f.plan, "plan", false, "say what would change, and change nothing")
	fs.Lookup("session").Usage = "of an exported file: keep what follows in `DIR`, which must not exist, or be one that was begun from this file"
	return cmd
}

// options are the flags in the words of the library.
func (f *resumeFlags) resumeOptions() (o terrarium.ResumeOptions, err error) {
	if o.RecipeOptions, err = f.options(); err != nil {
		return o, err
	}
	switch f.topology {
	case "recipe":
	case "last":
		o.Last = true
	default:
		return o, usage("--topology %s: use recipe or last", f.topology)
	}
	o.Recipes = map[string]string{}
	for _, m := range f.moved {
		name, path, ok := strings.Cut(m, "=")
		if !ok || name == "" || path == "" {
			return o, usage("--recipe %s: write it as NAME=PATH, with the name of the deployment", m)
		}
		o.Recipes[name] = path
	}
	return o, nil
}

func (f *resumeFlags) resume(cmd *cobra.Command, s streams, path string) (err error) {
	if err := checkFormat(f.format); err != nil {
		return err
	}
	o, err := f.resumeOptions()
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	if info, serr := os.Stat(path); serr == nil && info.Mode().IsRegular() {
		return f.resumeFile(ctx, cmd, s, path, o)
	}
	if f.session != "" {
		return usage("--session %s: it goes with an exported file; a directory goes on in itself", f.session)
	}
	found, err := f.findInDirectory(ctx, s, path, o)
	if err != nil || f.plan {
		return unlessInterrupted(ctx, err)
	}
	f.session = path
	return f.goOn(ctx, cmd, s, found)
}

// findInDirectory finds the recipes of a directory and, if that was asked for, prints what
// would change. The directory may be in use, and nothing in it changes, except
// that one that an older version has left is brought up to date.
func (f *resumeFlags) findInDirectory(ctx context.Context, s streams, dir string, o terrarium.ResumeOptions) (found []terrarium.FoundRecipe, err error) {
	if err := upToDate(ctx, dir); err != nil {
		return nil, err
	}
	err = withView(ctx, dir, func(v *sqlitestore.View) error {
		graphs, problems, err := v.Live(ctx)
		if err != nil {
			return failWith(exitSession, err)
		}
		if !f.plan || len(graphs) == 0 {
			if err := refuseDamage(s, dir, problems, f.despite); err != nil {
				return err
			}
		}
		if len(graphs) == 0 {
			return failWith(exitSession, cmp.Or(errors.Join(problems...), nothingToResume(dir)))
		}
		var diags terrarium.Diagnostics
		found, diags = terrarium.FindRecipes(ctx, engine.RememberedIn(graphs), o)
		if err := showFindings(s, diags); err != nil {
			return err
		}
		f.tellFound(s, found, problems)
		if !f.plan {
			return f.checkResumed(found, graphs)
		}
		plan, err := terrarium.PlanDirectory(ctx, v, found)
		if err != nil {
			return applyExit(ctx, explainedOf(ctx, s, found, err))
		}
		for _, p := range plan.Problems[len(problems):] { // the others have been shown
			showError(s.err, p)
		}
		return planned(showPlan(s, f.format, plan, ""), dir, problems, f.despite)
	})
	return found, err
}

// explainedOf is explained for several recipes.
func explainedOf(ctx context.Context, s streams, found []terrarium.FoundRecipe, err error) error {
	for i := range found {
		if e := (*exit)(nil); found[i].Recipe != nil && !errors.As(err, &e) {
			err = explained(ctx, s, found[i].Recipe, err)
		}
	}
	return err
}

func nothingToResume(dir string) error {
	return &abi.Error{
		Code: abi.NotFound, Message: "no session of " + dir + " goes on: it has none, or all have ended",
		Remedy: "begin anew with terrarium run RECIPE --session DIR", IDs: map[string]string{"path": dir},
	}
}

// tellFound says what else than edited recipes is going to be resumed.
func (f *resumeFlags) tellFound(s streams, found []terrarium.FoundRecipe, problems []error) {
	for _, p := range problems {
		showError(s.err, p)
	}
	if f.quiet {
		return
	}
	for i := range found {
		switch r := &found[i]; {
		case r.Recipe == nil:
			fmt.Fprintf(s.err, "%s was made by no recipe: it comes back as it was.\n", printable(r.Name))
		case r.Copied:
			fmt.Fprintf(s.err, "The recipe of %s is gone (%s): the copy that the session has takes its place. If it has moved: --recipe %s=PATH\n",
				printable(r.Name), printable(r.Path), printable(r.Name))
		}
	}
}

// checkResumed is checkChannels. Where something comes back that no recipe made,
// nobody knows its channels before.
func (f *resumeFlags) checkResumed(found []terrarium.FoundRecipe, graphs []journal.SavedGraph) error {
	var deployments []*deploy.Deployment
	for i := range found {
		if d := found[i].Deployment(); d != nil {
			deployments = append(deployments, d)
		}
	}
	loose := len(deployments) < len(found)
	for i := range graphs {
		for k := range graphs[i].Creatures {
			loose = loose || graphs[i].Creatures[k].Address == ""
		}
	}
	if loose {
		return nil
	}
	return f.checkChannels(deployments)
}

// goOn brings everything back, and runs it.
func (f *resumeFlags) goOn(ctx context.Context, cmd *cobra.Command, s streams, found []terrarium.FoundRecipe) error {
	return f.runWith(ctx, cmd, s, func(ctx context.Context, t *terrarium.Terrarium) ([]*terrarium.Applied, error) {
		resumed, err := t.ResumeRecipes(ctx, found)
		err = explainedOf(ctx, s, found, err)
		if err != nil {
			return nil, err
		}
		for _, p := range resumed.Problems {
			showError(s.err, p)
		}
		return resumed.Applied, nil
	})
}

// resumeFile goes on with an exported session in a directory of its own.
func (f *resumeFlags) resumeFile(ctx context.Context, cmd *cobra.Command, s streams, file string, o terrarium.ResumeOptions) (err error) {
	if f.session == "" && !f.plan {
		return usage("%s is a file: say with --session DIR where it is to go on", file)
	}
	found, err := f.unpackExported(ctx, s, file, o)
	if err != nil || f.plan {
		return err
	}
	return f.goOnAlone(ctx, cmd, s, found)
}

// unpackExported finds the recipes of an exported file, and makes the directory in which its
// session goes on.
func (f *resumeFlags) unpackExported(ctx context.Context, s streams, file string, o terrarium.ResumeOptions) (found []terrarium.FoundRecipe, err error) {
	adopted, leave, err := sqlitestore.AdoptAside(ctx, file)
	if err != nil {
		return nil, failWith(exitSession, err)
	}
	defer func() { err = errors.Join(err, failWith(exitFailed, leave())) }()
	begun, err := f.hasBegun(ctx, adopted)
	if err != nil {
		return nil, err
	}
	if begun {
		if !f.quiet {
			fmt.Fprintf(s.err, "%s has been begun from %s before: it goes on there.\n", printable(f.session), printable(file))
		}
		return f.findInDirectory(ctx, s, f.session, o)
	}
	if found, err = f.findInDirectory(ctx, s, adopted, o); err != nil || f.plan {
		return nil, err
	}
	return found, f.forkAlone(ctx, adopted)
}

// hasBegun reports whether the session of an exported file, which has been adopted, has
// been gone on with in the directory named before, by a command that was killed perhaps.
func (f *resumeFlags) hasBegun(ctx context.Context, adopted string) (begun bool, err error) {
	if f.session == "" {
		return false, nil
	}
	err = withView(ctx, adopted, func(v *sqlitestore.View) error {
		info, err := pick(ctx, v, "")
		if err != nil {
			return err
		}
		begun, err = v.IsForkedTo(ctx, info.Session, f.session)
		return failWith(exitSession, err)
	})
	return begun, err
}

// forkAlone makes the directory in which the session of an exported file goes on.
func (f *resumeFlags) forkAlone(ctx context.Context, adopted string) error {
	return withView(ctx, adopted, func(v *sqlitestore.View) error {
		info, err := pick(ctx, v, "")
		if err != nil {
			return err
		}
		_, err = v.Fork(ctx, info.Session, f.session)
		return failWith(exitSession, err)
	})
}

// goOnAlone is goOn, and says who is not in the file.
func (f *resumeFlags) goOnAlone(ctx context.Context, cmd *cobra.Command, s streams, found []terrarium.FoundRecipe) error {
	return f.runWith(ctx, cmd, s, func(ctx context.Context, t *terrarium.Terrarium) ([]*terrarium.Applied, error) {
		resumed, err := t.ResumeRecipes(ctx, found)
		err = explainedOf(ctx, s, found, err)
		if err != nil {
			return nil, err
		}
		for _, a := range resumed.Applied {
			for _, address := range a.Created {
				fmt.Fprintf(s.err, "Warning: %s is not in the file, and begins with nothing.\n", printable(address))
			}
		}
		return resumed.Applied, nil
	})
}
