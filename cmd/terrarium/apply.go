package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/internal/plainly"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/recipes"
	"github.com/seed47132306/terrarium/serve"
)

// applyFlags holds the flags of the apply command.
type applyFlags struct {
	recipeFlags
	session string
	format  string
	cache   cacheFlags
	despite bool
}

func applyCommand(s streams) *cobra.Command {
	f := &applyFlags{}
	cmd := &cobra.Command{
		Use:   "apply PLAN",
		Short: "Apply a saved plan",
		Long: `apply applies a plan that plan --out has saved. It makes exactly the changes in the plan.
If something that the plan depends on has changed since, apply changes nothing, and names
what has changed: a file of the recipe, a module, or the value of a variable. If planning
the session directory again would give another result, apply names the directory.

apply loads the recipe again, from the path in the plan. Variables keep the values that
they had when the plan was made. Sensitive values are not in the plan, and must be
passed again.

If a process runs the directory, it applies the plan. Otherwise no creature runs: resume
does that afterwards.`,
		Example: `  terrarium plan team.hcl --session S --out team.plan
  terrarium apply team.plan && terrarium resume S`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.apply(cmd.Context(), s, args[0]) },
	}
	f.recipeFlags.add(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.session, "session", "", "new path of the plan's session directory, if it has moved to `DIR`; for a plan without a session, a new directory")
	fs.StringVarP(&f.format, "format", "o", "text", "format of the result: text or json")
	f.cache.add(fs)
	addDespite(fs, &f.despite)
	return cmd
}

func (f *applyFlags) apply(ctx context.Context, s streams, path string) error {
	if err := checkFormat(f.format); err != nil {
		return err
	}
	p, err := readPlan(path)
	if err != nil {
		return err
	}
	if f.session == "" {
		f.session = p.Dir
	}
	switch {
	case f.session == "":
		return usage("the plan was made without a session directory: name a new one with --session DIR")
	case len(p.Sessions) > 0:
		if err := mustExist(f.session); err != nil {
			return err
		}
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	o, err := f.options()
	if err != nil {
		return err
	}
	r, diags := p.Load(ctx, o)
	if err := showFindings(s, diags); err != nil {
		return err
	}
	if err := p.CheckRecipe(r); err != nil { // before a directory is created
		return failWith(exitSession, err)
	}
	return f.applyIn(ctx, s, p, r)
}

// applyIn applies the plan with an engine in which nothing runs.
func (f *applyFlags) applyIn(ctx context.Context, s streams, p *terrarium.SavedPlan, r *recipes.Recipe) (err error) {
	conn, err := serve.DialSocket(ctx, f.session)
	switch {
	case err == nil:
		return f.applyRunning(ctx, s, remoteHolder(conn), p)
	case !errors.Is(err, fs.ErrNotExist):
		return failWith(exitSession, err)
	}
	o := terrarium.Options{Dir: f.session, Paused: true, Log: verbosity(s.err, false), Compiler: compiler(), Translations: translations()}
	if o.CacheDir, o.CacheOptional, err = f.cache.resolve(); err != nil {
		return err
	}
	t, err := terrarium.New(ctx, o)
	if err != nil {
		return unlessInterrupted(ctx, sessionExit(err))
	}
	var applied *terrarium.Applied
	var graphs []inspect.GraphStatus
	if err = refuseDamage(s, f.session, t.Problems(), f.despite); err == nil {
		applied, err = t.ApplyPlanned(ctx, p, r)
		err = explained(ctx, s, r, err)
	}
	if err == nil {
		graphs, err = t.Status("")
	}
	if err != nil {
		err = applyExit(ctx, err)
	}
	if err = errors.Join(err, shut(ctx, t)); err != nil {
		return unlessInterrupted(ctx, err)
	}
	return f.printApplied(s, p, operations.NewApplyResult(applied), ". To run it: terrarium resume "+f.session, graphs)
}

// applyRunning applies the plan in the process that runs the directory.
func (f *applyFlags) applyRunning(ctx context.Context, s streams, h *holder, p *terrarium.SavedPlan) error {
	o, err := f.options()
	if err == nil && len(f.varFiles) > 0 {
		err = usage("--var-file: a process runs the directory, and does not read the file; use --var")
	}
	if err != nil {
		return errors.Join(err, h.close(ctx))
	}
	var text bytes.Buffer
	if err := p.Write(&text); err != nil {
		return failWith(exitFailed, err)
	}
	var result operations.ApplyResult
	err = h.do(ctx, "apply", operations.ApplyArgs{Recipe: p.Recipe, Vars: o.Vars, Saved: text.Bytes()}, &result)
	var now operations.StatusResult
	if err == nil {
		err = h.do(ctx, "status", operations.StatusArgs{}, &now)
	} else {
		err = applyExit(ctx, err)
	}
	if err = errors.Join(err, h.close(ctx)); err != nil {
		return unlessInterrupted(ctx, err)
	}
	return f.printApplied(s, p, &result, "", now.Graphs)
}

// printApplied prints the result and, as text, whether the recipe has stopped in one of the graphs.
func (f *applyFlags) printApplied(s streams, p *terrarium.SavedPlan, r *operations.ApplyResult, next string, graphs []inspect.GraphStatus) error {
	if f.format == "json" {
		return printJSON(s, r)
	}
	_, err := fmt.Fprintf(s.text(), "Applied the plan: %d created, %d resumed, %d removed%s\n", len(r.Created), len(r.Resumed), len(r.Removed), next)
	for _, stop := range stopsIn(graphs) {
		if err == nil && stop.Deployment == p.Deployment {
			_, err = fmt.Fprintln(s.text(), stopLine(&stop))
		}
	}
	return failWith(exitFailed, err)
}

func readPlan(path string) (*terrarium.SavedPlan, error) {
	h, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	p, err := terrarium.ReadPlan(h)
	var typed *abi.Error
	if errors.As(err, &typed) {
		err = typed.With("path", path)
	}
	return p, failWith(exitUsage, err)
}

// openRegular opens a file. Opening anything else could block.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, usage("%s; save a plan with terrarium plan RECIPE --out FILE", plainly.Missing(path))
	case err != nil:
		return nil, failWith(exitUsage, err)
	case !info.Mode().IsRegular():
		return nil, usage("%s is not a regular file; save a plan with terrarium plan RECIPE --out FILE", path)
	}
	h, err := os.Open(path)
	return h, failWith(exitUsage, err)
}

// mayReplacePlan refuses to replace a file that is not a plan, such as the recipe.
func mayReplacePlan(path string) error {
	if path == "" {
		return nil
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := readPlan(path); err != nil && abi.CodeOf(err) != abi.Unsupported { // one of another version may be replaced
		return usage("--out %s: this file exists, and is not a saved plan; name another one", path)
	}
	return nil
}

// savePlan writes a plan to a file that only its owner can read.
func savePlan(s streams, path string, p *terrarium.SavedPlan) error {
	const private = 0o600
	var b bytes.Buffer
	err := p.Write(&b)
	if err == nil && b.Len() > terrarium.MaxSavedPlanBytes {
		err = &abi.Error{Code: abi.TooLarge, Op: "plan", Message: fmt.Sprintf("the plan has %d bytes, and a saved plan at most %d", b.Len(), terrarium.MaxSavedPlanBytes),
			Remedy: "apply the recipe without a saved plan, with terrarium run"}
	}
	if err == nil {
		err = writeWhole(path, b.Bytes(), private)
	}
	if err != nil {
		return failWith(exitFailed, fmt.Errorf("saving the plan: %w", err))
	}
	_, err = fmt.Fprintf(s.err, "Saved the plan to %s. To apply it: terrarium apply %s\n", printable(path), printable(path))
	return failWith(exitFailed, err)
}
