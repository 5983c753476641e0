package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
)

// runFlags are the flags of run.
type runFlags struct {
	engineFlags
	recipeFlags
	inputs       []string
	outputs      []string
	exitWhenIdle bool
	format       string
	quiet        bool
}

func runCommand(s streams) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run RECIPE",
		Short: "Run a recipe on real input",
		Long: `run applies a recipe, feeds lines of files or of standard input to channels and
prints what arrives on others, until it is interrupted or, with
--exit-when-idle, until all input has been handled.

With --session DIR everything is kept, and a later run goes on from there: a
line of input that was taken in before is not taken in again, also if the file
has grown meanwhile. Without it, a temporary session is used that goes when
the run ends.`,
		Example: `  terrarium run examples/quickstart --exit-when-idle
  terrarium run examples/log-triage --input lines=/var/log/dpkg.log --output alerts --exit-when-idle --session S`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, s, args[0]) },
	}
	f.engineFlags.add(cmd)
	f.recipeFlags.add(cmd)
	fs := cmd.Flags()
	fs.StringArrayVar(&f.inputs, "input", nil, "send each line of a file to a channel, as `CHANNEL=FILE`; FILE - is standard input; may be repeated")
	fs.StringArrayVar(&f.outputs, "output", nil, "print what arrives on `CHANNEL`; may be repeated")
	fs.BoolVar(&f.exitWhenIdle, "exit-when-idle", false, "end when all input has been handled")
	fs.StringVarP(&f.format, "format", "o", "text", "how outputs are printed: text or json")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "no progress and no summary on standard error")
	return cmd
}

// running is one run under way.
type running struct {
	f       *runFlags
	s       streams
	t       *terrarium.Terrarium
	applied *terrarium.Applied
	recipe  string
	inputs  []*input
	printer *printer
	report  *reporter
}

func (f *runFlags) run(cmd *cobra.Command, s streams, recipe string) (err error) {
	if f.format != "text" && f.format != "json" {
		return usage("-o %s: use text or json", f.format)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	r, err := f.load(ctx, s, recipe)
	if err != nil {
		return err
	}
	d := r.Deployment()
	if err := f.checkChannels(d); err != nil {
		return err
	}
	inputs, err := openInputs(f.inputs, s)
	if err != nil {
		return err
	}
	defer closeInputs(inputs)
	t, err := f.open(cmd, s)
	if err != nil {
		return err
	}
	x := &running{f: f, s: s, t: t, recipe: recipe, inputs: inputs}
	err = x.do(ctx, d)
	if cerr := shut(t); cerr != nil {
		err = errors.Join(err, failWith(exitFailed, fmt.Errorf("closing the engine: %w", cerr)))
	}
	if err == nil && ctx.Err() != nil {
		x.tellHowToGoOn()
		return &exit{code: exitInterrupted, shown: true}
	}
	return err
}

// checkChannels finds misspelt channels before anything is started.
func (f *runFlags) checkChannels(d *engine.Deployment) error {
	names := map[string]bool{}
	var known []string
	for _, ch := range d.Channels {
		names[ch.Name], names[ch.Address] = true, true
		known = append(known, ch.Name)
	}
	if d.Root != "" {
		names[engine.ReportChannel] = true
	}
	check := func(flag, name string) error {
		if names[name] {
			return nil
		}
		return usage("%s %s: the recipe has no such channel; it has %s", flag, name, strings.Join(known, ", "))
	}
	for _, in := range f.inputs {
		name, file, ok := strings.Cut(in, "=")
		if !ok || name == "" || file == "" {
			return usage("--input %s: write it as CHANNEL=FILE, or CHANNEL=- for standard input", in)
		}
		if err := check("--input", name); err != nil {
			return err
		}
	}
	for _, name := range f.outputs {
		if err := check("--output", name); err != nil {
			return err
		}
	}
	return nil
}

// do runs the deployment until it is idle or interrupted.
func (x *running) do(ctx context.Context, d *engine.Deployment) error {
	x.report = newReporter(x)
	applied, err := x.t.Engine.Apply(ctx, d)
	if err != nil {
		return sessionExit(err)
	}
	x.applied = applied
	x.tellRemoved()
	x.printer, err = newPrinter(x)
	if err != nil {
		return failWith(exitFailed, err)
	}
	watch := x.report.start()
	err = x.feedAndPrint(ctx)
	watch()
	x.report.summary(ctx.Err() != nil)
	if err != nil {
		return failWith(exitFailed, err)
	}
	if n := x.t.DeadLetters(); n > 0 && ctx.Err() == nil {
		return failWith(exitDeadLetters, fmt.Errorf("%s became dead letters%s", deliveries(n), x.whereToLook()))
	}
	return nil
}

// feedAndPrint feeds the inputs and prints the outputs. It returns when the
// run is over and nothing of it is running any more.
func (x *running) feedAndPrint(ctx context.Context) error {
	printing, stopPrinting := context.WithCancel(ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer stopPrinting()
	wait.Go(func() { x.printer.run(printing) })

	feeding, stopFeeding := context.WithCancelCause(ctx)
	defer stopFeeding(nil)
	var feeders sync.WaitGroup
	errs := make(chan error, len(x.inputs))
	for _, in := range x.inputs {
		feeders.Go(func() {
			if err := in.feed(feeding, x); err != nil {
				errs <- err
				stopFeeding(err)
			}
		})
	}
	// A read from standard input does not end with a context.
	unhook := context.AfterFunc(feeding, func() { closeInputs(x.inputs) })
	defer unhook()
	feeders.Wait()
	select {
	case err := <-errs:
		if ctx.Err() == nil {
			return err
		}
		return nil
	default:
	}
	if !x.f.exitWhenIdle {
		select {
		case <-ctx.Done():
			return nil
		case <-x.printer.failed:
			return x.printer.err
		}
	}
	if err := x.t.WaitIdle(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	return x.printer.drain(ctx)
}

// tellRemoved says what a saved session had and the recipe does not.
func (x *running) tellRemoved() {
	if x.f.quiet {
		return
	}
	for _, r := range x.applied.Removed {
		fmt.Fprintf(x.s.err, "%s is not in the recipe any more; its history stays", r.Address)
		if r.Pending > 0 {
			fmt.Fprintf(x.s.err, ", and %d waiting messages became dead letters", r.Pending)
		}
		fmt.Fprintln(x.s.err)
	}
}

// tellHowToGoOn says after an interruption what has been kept.
func (x *running) tellHowToGoOn() {
	if x.f.session == "" {
		fmt.Fprintln(x.s.err, "Interrupted. Nothing was kept; with --session DIR a later run goes on from here.")
		return
	}
	fmt.Fprintf(x.s.err, "Interrupted. Everything is kept; go on with: %s\n", strings.Join(quoteAll(os.Args), " "))
}

func (x *running) whereToLook() string {
	if x.f.session == "" {
		return "; run it with --session DIR to look at them afterwards"
	}
	return "; see them with: terrarium session events " + x.f.session + " --kind dead_letter"
}

// quoteAll quotes words for a shell where they need it.
func quoteAll(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w
		if w == "" || strings.ContainsAny(w, " \t\n'\"$&|;<>()*?[]#~`\\!{}") {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return out
}
