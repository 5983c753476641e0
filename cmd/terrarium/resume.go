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

// resumeFlags holds the flags of the resume command.
type resumeFlags struct {
	runFlags
	planExit
	topology string
	moved    []string
	plan     bool
}

func resumeCommand(s streams) *cobra.Command {
	f := &resumeFlags{}
	cmd := &cobra.Command{
		Use:   "resume DIR",
		Short: "Resume everything in a session directory",
		Long: `resume loads the recipes of a session directory again, each from the file from which
it was applied, and then continues like run. A recipe may have been edited. Creatures
and channels are matched by their addresses: a creature that is still in the recipe
resumes with its state and with the deliveries that wait for it.

If a recipe's file is missing, resume uses the copy that the session keeps. Variables
keep their values, except for sensitive ones: they are never stored, and must be
passed again. Creatures and channels that did not come from a recipe are restored as
they were. If a recipe is not valid, nothing is resumed and nothing changes.

Before anything runs, resume lists what creatures, sources and sinks can reach outside,
and the requests to the outside that have no result yet and will be sent again.

With --plan, resume shows what would change and changes nothing. The directory may be
in use then.

DIR may also be a file from session export. The session then continues in the new
directory that --session names; the same command again resumes that directory.`,
		Example: `  terrarium resume S --plan
  terrarium resume S --output report --exit-when-idle
  terrarium resume S --topology last
  terrarium resume alone.db --session NEW`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.resume(cmd, s, args[0]) },
	}
	f.runFlags.add(cmd)
	fs := cmd.Flags()
	f.planExit.add(fs)
	fs.Lookup("detailed-exitcode").Usage = "with --plan: " + fs.Lookup("detailed-exitcode").Usage
	fs.StringArrayVar(&f.outputs, "output", nil, "print the messages of `CHANNEL`; may be repeated")
	fs.StringVarP(&f.format, "format", "o", "text", "format of outputs, or with --plan of the plan: text or json")
	f.addFollow(cmd)
	fs.StringVar(&f.topology, "topology", "recipe", "what determines the graphs: recipe; or last, which also keeps changes made while the recipes ran")
	fs.StringArrayVar(&f.moved, "recipe", nil, "new path of a recipe that has moved, as `NAME=PATH`; may be repeated")
	fs.BoolVar(&f.plan, "plan", false, "show what would change, and change nothing")
	fs.Lookup("session").Usage = "for an exported file: continue in `DIR`, which must not exist yet, or must come from the same file"
	return cmd
}

// resumeOptions converts the flags to options of the library.
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
			return o, usage("--recipe %s: write it as NAME=PATH, where NAME is the deployment's name", m)
		}
		o.Recipes[name] = path
	}
	return o, nil
}

func (f *resumeFlags) resume(cmd *cobra.Command, s streams, path string) (err error) {
	if err := checkFormat(f.format); err != nil {
		return err
	}
	if f.detailed && !f.plan {
		return usage("--detailed-exitcode: it is only for --plan")
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
		return usage("--session %s: leave it out; it is only for an exported file, and a session directory is resumed in place", f.session)
	}
	found, err := f.findInDirectory(ctx, s, path, o)
	if err != nil || f.plan {
		return unlessInterrupted(ctx, err)
	}
	f.session = path
	return f.goOn(ctx, cmd, s, found)
}

// findInDirectory finds the recipes of a directory and, with --plan, prints what would
// change. The directory may be in use. It is not changed, except that files of an older
// version are migrated.
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
			if err := f.checkResumed(found, graphs); err != nil {
				return err
			}
			return f.tellOutside(ctx, s, v, found, graphs)
		}
		plan, err := terrarium.PlanDirectory(ctx, v, found)
		if err != nil {
			return applyExit(ctx, explainedOf(ctx, s, found, err))
		}
		for _, p := range plan.Problems[len(problems):] { // the earlier ones have been shown
			showError(s.err, p)
		}
		if err := planned(showPlan(s, f.format, plan, ""), dir, problems, f.despite); err != nil {
			return err
		}
		return f.of(plan)
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
		Code: abi.NotFound, Message: dir + " has no live session to resume: it is empty, or all its sessions have ended",
		Remedy: "start one with terrarium run RECIPE --session " + dir, IDs: map[string]string{"path": dir},
	}
}

// tellFound reports problems, missing recipes, and deployments without a recipe.
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
			fmt.Fprintf(s.err, "%s has no recipe: it is restored as it was.\n", printable(r.Name))
		case r.Copied:
			fmt.Fprintf(s.err, "The recipe of %s is missing (%s); using the copy in the session. If it has moved, use --recipe %s=PATH.\n",
				printable(r.Name), printable(r.Path), printable(r.Name))
		}
	}
}

// checkResumed is checkChannels for resume. It checks nothing if a deployment or
// creature without a recipe is restored, as its channels are not known yet.
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

// goOn resumes everything and runs it.
func (f *resumeFlags) goOn(ctx context.Context, cmd *cobra.Command, s streams, found []terrarium.FoundRecipe) error {
	return f.runWith(ctx, cmd, s, func(ctx context.Context, x *running) ([]*terrarium.Applied, error) {
		resumed, err := x.t.ResumeRecipes(ctx, found)
		err = explainedOf(ctx, s, found, err)
		if err != nil {
			return nil, err
		}
		for _, p := range resumed.Problems {
			showError(s.err, p)
		}
		for i := range found {
			f.tellOutputs(s, found[i].Deployment())
		}
		return resumed.Applied, nil
	})
}

// resumeFile continues an exported session in a new directory.
func (f *resumeFlags) resumeFile(ctx context.Context, cmd *cobra.Command, s streams, file string, o terrarium.ResumeOptions) (err error) {
	if f.session == "" && !f.plan {
		return usage("%s is a file: name a new directory for the session with --session DIR", file)
	}
	found, err := f.unpackExported(ctx, s, file, o)
	if err != nil || f.plan {
		return err
	}
	return f.goOnAlone(ctx, cmd, s, found)
}

// unpackExported finds the recipes of an exported file, and creates the directory in
// which its session continues.
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
			fmt.Fprintf(s.err, "Resuming %s, which was created from %s.\n", printable(f.session), printable(file))
		}
		return f.findInDirectory(ctx, s, f.session, o)
	}
	if found, err = f.findInDirectory(ctx, s, adopted, o); err != nil || f.plan {
		return nil, err
	}
	return found, f.forkAlone(ctx, adopted)
}

// hasBegun reports whether the directory of --session already continues the adopted
// session of an exported file, for example after a killed command.
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

// forkAlone creates the directory in which the session of an exported file continues.
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

// goOnAlone is goOn for an exported file. It warns of creatures that are not in the file.
func (f *resumeFlags) goOnAlone(ctx context.Context, cmd *cobra.Command, s streams, found []terrarium.FoundRecipe) error {
	return f.runWith(ctx, cmd, s, func(ctx context.Context, x *running) ([]*terrarium.Applied, error) {
		resumed, err := x.t.ResumeRecipes(ctx, found)
		err = explainedOf(ctx, s, found, err)
		if err != nil {
			return nil, err
		}
		for _, a := range resumed.Applied {
			for _, address := range a.Created {
				fmt.Fprintf(s.err, "Warning: %s is not in the file; it starts without state.\n", printable(address))
			}
		}
		return resumed.Applied, nil
	})
}
