package main

import (
	"context"
	"errors"
	"strings"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/spf13/cobra"
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
	// watch, if set, is called before the recipe is applied. What it returns ends
	// watching, and is called when the run is over.
	watch func(ctx context.Context, t *terrarium.Terrarium, done func()) (end func() error, err error)
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
has grown meanwhile. An input is known by its beginning, 64 KiB at most, and not
by its name. Without --session, a temporary session is used that goes when the
run ends.

When nobody reads standard output any more, the run ends as if it was done.`,
		Example: `  terrarium run examples/quickstart --input lines=examples/quickstart/lines.txt --output report --exit-when-idle
  terrarium run examples/log-triage --input lines=/var/log/dpkg.log --output alerts --exit-when-idle --session S`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, s, args[0]) },
	}
	f.add(cmd)
	fs := cmd.Flags()
	fs.StringArrayVar(&f.outputs, "output", nil, "print what arrives on `CHANNEL`; may be repeated")
	fs.StringVarP(&f.format, "format", "o", "text", "how outputs are printed: text or json")
	return cmd
}

// add adds the flags that every run of a recipe has.
func (f *runFlags) add(cmd *cobra.Command) {
	f.engineFlags.add(cmd)
	f.recipeFlags.add(cmd)
	fs := cmd.Flags()
	fs.StringArrayVar(&f.inputs, "input", nil, "send each line of a file to a channel, as `CHANNEL=FILE`; FILE - is standard input; may be repeated")
	fs.BoolVar(&f.exitWhenIdle, "exit-when-idle", false, "end when all input has been handled")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "no progress and no summary on standard error")
}

func (f *runFlags) run(cmd *cobra.Command, s streams, recipe string) error {
	if err := checkFormat(f.format); err != nil {
		return err
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	r, err := f.load(ctx, s, recipe)
	if err != nil {
		return err
	}
	d := r.Deployment()
	if err := f.checkChannels([]*deploy.Deployment{d}); err != nil {
		return err
	}
	return f.runWith(ctx, cmd, s, func(ctx context.Context, t *terrarium.Terrarium) ([]*terrarium.Applied, error) {
		applied, err := t.ApplyDeployment(ctx, d)
		return []*terrarium.Applied{applied}, explained(ctx, s, r, err)
	})
}

// runWith runs what begin applies until it is done.
func (f *runFlags) runWith(ctx context.Context, cmd *cobra.Command, s streams, begin func(context.Context, *terrarium.Terrarium) ([]*terrarium.Applied, error)) error {
	inputs, err := openInputs(f.inputs, s)
	if err != nil {
		return err
	}
	defer closeInputs(inputs)
	t, err := f.open(ctx, cmd, s)
	if err != nil {
		return unlessInterrupted(ctx, err)
	}
	x := &running{f: f, s: s, t: t, inputs: inputs}
	x.begin = func(ctx context.Context) ([]*terrarium.Applied, error) { return begin(ctx, t) }
	err = x.watched(ctx)
	if rerr := f.retain.pruneAtEnd(ctx, s, t); rerr != nil {
		err = errors.Join(err, failWith(exitFailed, rerr))
	}
	if cerr := shut(ctx, t); cerr != nil {
		err = errors.Join(err, cerr)
	}
	if err == nil && ctx.Err() != nil {
		x.tellHowToGoOn()
		return interrupted(ctx)
	}
	if errors.Is(err, errNobodyReads) {
		return nil
	}
	return err
}

// checkChannels finds channels that are misspelt or named twice before anything
// is started.
func (f *runFlags) checkChannels(deployments []*deploy.Deployment) error {
	addresses, several := map[string]string{}, map[string]bool{}
	var known []string
	for _, d := range deployments {
		for _, ch := range d.Channels {
			several[ch.Name], several[ch.Address] = addresses[ch.Name] != "", addresses[ch.Name] != ""
			addresses[ch.Name], addresses[ch.Address] = ch.Address, ch.Address
			known = append(known, ch.Name)
		}
		if d.Root != "" {
			several[deploy.ReportChannel] = addresses[deploy.ReportChannel] != ""
			addresses[deploy.ReportChannel] = deploy.ReportChannel
		}
	}
	unknown := func(flag, name string) error {
		return usage("%s %s: the recipe has no such channel; it has %s", flag, name, strings.Join(known, ", "))
	}
	ambiguous := func(flag, name string) error {
		return usage("%s %s: several recipes of the session have a channel of that name; run that one recipe instead: terrarium run RECIPE --session DIR", flag, name)
	}
	for _, in := range f.inputs {
		name, file, ok := strings.Cut(in, "=")
		if !ok || name == "" || file == "" {
			return usage("--input %s: write it as CHANNEL=FILE, or CHANNEL=- for standard input", in)
		}
		if addresses[name] == "" {
			return unknown("--input", name)
		}
		if several[name] {
			return ambiguous("--input", name)
		}
	}
	printed := map[string]bool{}
	for _, name := range f.outputs {
		address := addresses[name]
		if address == "" {
			return unknown("--output", name)
		}
		if several[name] {
			return ambiguous("--output", name)
		}
		if printed[address] {
			return usage("--output %s: this channel is already an output", name)
		}
		printed[address] = true
	}
	return nil
}
