package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/connector/files"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/spf13/cobra"
)

// runFlags holds the flags of the run command.
type runFlags struct {
	engineFlags
	recipeFlags
	inputs       []string
	outputs      []string
	exitWhenIdle bool
	follow       bool
	format       string
	quiet        bool
	// watch, if set, is called before the recipe is applied. It returns a function
	// that ends watching and is called when the run is over.
	watch func(ctx context.Context, t *terrarium.Terrarium, done func()) (end func() error, err error)
}

func runCommand(s streams) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run RECIPE",
		Short: "Run a recipe",
		Long: `run applies a recipe, sends the lines of files or standard input to channels, and
prints the messages of other channels. It runs until it is interrupted or, with
--exit-when-idle, until all input has been handled.

With --session DIR everything is kept, and a later run continues from there. It skips
the lines that an earlier run has read, even if the file has grown since. An input is
identified by its beginning, at most 64 KiB, not by its name. Without --session, run uses
a temporary session and removes it at the end.

With --follow, run waits for more lines at the end of an input file, as tail -F does, and
continues with the new file when a log is rotated.

If the reader of standard output closes it, the run ends as if it were done.`,
		Example: `  terrarium run examples/quickstart --input lines=examples/quickstart/lines.txt --output report --exit-when-idle
  terrarium run examples/log-triage --input lines=/var/log/dpkg.log --output alerts --exit-when-idle --session S`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, s, args[0]) },
	}
	f.add(cmd)
	fs := cmd.Flags()
	fs.StringArrayVar(&f.outputs, "output", nil, "print the messages of `CHANNEL`; may be repeated")
	fs.StringVarP(&f.format, "format", "o", "text", "format of outputs: text or json")
	f.addFollow(cmd)
	return cmd
}

// add adds the flags that every run of a recipe has.
func (f *runFlags) add(cmd *cobra.Command) {
	f.engineFlags.add(cmd)
	f.recipeFlags.add(cmd)
	fs := cmd.Flags()
	fs.StringArrayVar(&f.inputs, "input", nil, "send each line of a file to a channel, as `CHANNEL=FILE`; - is standard input; may be repeated")
	fs.BoolVar(&f.exitWhenIdle, "exit-when-idle", false, "exit when all input has been handled")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "print no progress and no summary on standard error")
}

// addFollow adds the flag of commands whose inputs can be followed.
func (f *runFlags) addFollow(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.follow, "follow", false, "at the end of an input file, wait for more lines, even across log rotation")
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
	return f.runWith(ctx, cmd, s, func(ctx context.Context, x *running) ([]*terrarium.Applied, error) {
		applied, err := x.t.ApplyDeployment(ctx, d)
		if err == nil {
			f.tellOutputs(s, d)
		}
		return []*terrarium.Applied{applied}, explained(ctx, s, r, err)
	})
}

// runWith runs the recipes that begin applies until the run is done.
func (f *runFlags) runWith(ctx context.Context, cmd *cobra.Command, s streams, begin func(context.Context, *running) ([]*terrarium.Applied, error)) error {
	if f.follow && f.exitWhenIdle {
		return usage("--follow: a followed file has no end, so it cannot be used with --exit-when-idle; leave out one of them")
	}
	inputs, err := openInputs(f.inputs, s, f.follow)
	if err != nil {
		return err
	}
	defer closeInputs(inputs)
	if !slices.ContainsFunc(inputs, func(in *input) bool { return in.info == nil }) { // otherwise the recipe reads standard input
		f.connectors = append(f.connectors, files.NewStdin(func() io.ReadCloser {
			return interruptible(func() (io.ReadCloser, error) { return s.in, nil })
		}))
	}
	t, err := f.open(ctx, cmd, s)
	if err != nil {
		return unlessInterrupted(ctx, err)
	}
	x := &running{f: f, s: s, t: t, inputs: inputs}
	x.begin = func(ctx context.Context) ([]*terrarium.Applied, error) { return begin(ctx, x) }
	err = x.watched(ctx)
	if rerr := f.retain.pruneAtEnd(ctx, s, t); rerr != nil {
		err = errors.Join(err, failWith(exitFailed, rerr))
	}
	if cerr := f.shut(ctx, t); cerr != nil {
		err = errors.Join(err, cerr)
	}
	if err == nil && ctx.Err() != nil {
		x.tellHowToGoOn()
		return interrupted(ctx)
	}
	if errors.Is(err, errNoReader) {
		return nil
	}
	return err
}

// checkChannels finds misspelt channels and duplicates before anything starts.
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
		return usage("%s %s: the recipe has no such channel; its channels are %s", flag, name, strings.Join(known, ", "))
	}
	ambiguous := func(flag, name string) error {
		return usage("%s %s: several recipes of the session have a channel of this name; run only one of them, with terrarium run RECIPE --session DIR", flag, name)
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
