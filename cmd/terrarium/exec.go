package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/connector"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/serve"
	"github.com/seed47132306/terrarium/telemetry"
	"github.com/spf13/cobra"
)

// engineFlags holds the flags of every command that runs an engine.
type engineFlags struct {
	session    string
	durability string
	syncEvery  time.Duration
	cache      cacheFlags
	seed       uint64
	workers    int
	hibernate  hibernateFlags
	fresh      bool
	verbose    bool
	noIndex    bool
	despite    bool
	shutdown   time.Duration
	retain     retainFlags
	noSocket   bool
	log        *slog.Logger // nil: text on standard error
	web        serve.Options
	handler    *serve.Handler // of the engine that is open
	closeDoor  func()
	collectAll func() // ends collectLess
	telemetry  telemetry.Options
	connectors []connector.Kind // besides those of the library
}

func (f *engineFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.session, "session", "", "keep sessions in `DIR`, and continue those that are there")
	fs.StringVar(&f.durability, "durability", "", "what a session survives: none (nothing is kept), normal (a killed process) or full (power loss too)")
	f.cache.add(fs)
	fs.Uint64Var(&f.seed, "seed", 0, "make ids repeatable")
	fs.IntVar(&f.workers, "workers", 0, "number of turns that run at the same time (default one per processor)")
	fs.BoolVar(&f.fresh, "fresh-instances", false, "run every turn on a new instance, to find creatures that keep state in linear memory")
	f.hibernate.add(fs)
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "print more on standard error")
	fs.BoolVar(&f.noIndex, "no-search-index", false, "do not build the search index in the background; session search is slower without it")
	fs.DurationVar(&f.syncEvery, "sync-every", 0, "with the durability normal, sync written data after at most this time, such as 1s (default the time in the recipes; without one, the system decides)")
	fs.DurationVar(&f.shutdown, "shutdown-timeout", engine.DefaultShutdownTimeout, "how long shutting down may take; running turns are interrupted after a third of it")
	f.retain.add(fs)
	fs.BoolVar(&f.noSocket, "no-socket", false, "do not listen on the socket beside the session directory, with which other commands reach this process")
	addDespite(fs, &f.despite)
}

// engineOptions converts the flags to options of the library.
func (f *engineFlags) engineOptions(cmd *cobra.Command, s streams) (terrarium.Options, error) {
	var err error
	if f.telemetry, err = telemetry.FromEnvironment(os.Environ()); err != nil {
		return terrarium.Options{}, failWith(exitUsage, err)
	}
	o := terrarium.Options{
		Dir: f.session, Scratch: f.session == "", Workers: f.workers,
		FreshInstances: f.fresh, NoSearchIndex: f.noIndex, Log: verbosity(s.err, f.verbose), PolicyProcess: policyProcess(), Compiler: compiler(), Translations: translations(),
		ShutdownTimeout: f.shutdown, Connectors: f.connectors,
	}
	if f.log != nil {
		o.Log = f.log
	}
	if o.CacheDir, o.CacheOptional, err = f.cache.resolve(); err != nil {
		return o, err
	}
	if f.workers < 0 {
		return o, usage("--workers %d: use a number of turns, or 0 for one per processor", f.workers)
	}
	if f.shutdown <= 0 {
		return o, usage("--shutdown-timeout %v: use a time above 0, such as 30s", f.shutdown)
	}
	if cmd.Flags().Changed("seed") {
		o.Seed = &f.seed
	}
	if err := f.hibernate.options(&o); err != nil {
		return o, err
	}
	if err := f.retain.options(&o); err != nil {
		return o, err
	}
	if o.SyncEvery = f.syncEvery; f.syncEvery != 0 && (f.session == "" || f.durability != "" && f.durability != journal.Normal.String()) {
		return o, usage("--sync-every is for --durability normal and needs --session: full syncs every group of writes, and none keeps nothing")
	}
	if f.durability == "" {
		return o, nil
	}
	d, ok := journal.ParseDurability(f.durability)
	if !ok {
		return o, usage("--durability %s: use none, normal or full", f.durability)
	}
	if d == journal.Volatile {
		if f.session != "" {
			return o, usage("--durability none keeps nothing, so it cannot be used with --session: leave one of them out")
		}
		o.Scratch = false
	}
	o.Durability = d
	return o, nil
}

// open starts an engine, unless ctx ends before it has begun.
func (f *engineFlags) open(ctx context.Context, cmd *cobra.Command, s streams) (*terrarium.Terrarium, error) {
	o, err := f.engineOptions(cmd, s)
	if err != nil {
		return nil, err
	}
	t, err := terrarium.New(ctx, o)
	switch {
	case err != nil && f.session == "":
		return nil, failWith(exitFailed, err)
	case err != nil:
		return nil, sessionExit(err)
	}
	if err := refuseDamage(s, f.session, t.Problems(), f.despite); err != nil {
		return nil, errors.Join(err, shut(ctx, t))
	}
	f.collectAll = collectLess(o.ProcessMemory)
	f.web.Log = o.Log
	f.closeDoor = f.openDoor(ctx, t)
	f.export(ctx, t)
	return t, nil
}

// shut closes an engine within its shutdown timeout. The end of ctx, which stops the
// command, does not shorten that time.
func shut(ctx context.Context, t *terrarium.Terrarium) error {
	err := t.Close(context.WithoutCancel(ctx))
	switch {
	case err == nil:
		return nil
	case errors.Is(err, engine.ErrLeftOpen):
		return failWith(exitLeftOpen, err)
	}
	return failWith(exitFailed, fmt.Errorf("closing the engine: %w", err))
}

// besides joins the error of a command and an error of ending it. The latter takes
// precedence over an interruption, which is only an exit code.
func besides(err, ending error) error {
	var e *exit
	if ending != nil && errors.As(err, &e) && e.err == nil {
		return ending
	}
	return errors.Join(err, ending)
}

func execCommand(s streams) *cobra.Command {
	var f engineFlags
	var rf recipeFlags
	var recipe string
	cmd := &cobra.Command{
		Use:   "exec",
		Short: "Run operations given as JSON lines",
		Long: `exec reads one request per line from standard input, for example

  {"id": 1, "op": "add_creature", "name": "a", "module": "builtin:echo"}

and writes one answer per line to standard output. Events of subscriptions appear
between the answers. docs/reference/operations.md lists the operations.
Without --session, exec uses a temporary session and removes it at the end.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return execute(cmd, s, &f, &rf, recipe)
		},
	}
	f.add(cmd)
	rf.add(cmd)
	cmd.Flags().StringVar(&recipe, "recipe", "", "apply the recipe in `PATH` before reading requests")
	return cmd
}

// tellUnjudged warns of deployments that are restored without their recipes, and so
// without their policies, sources and sinks.
func tellUnjudged(s streams, saved []journal.SavedGraph, advice string) {
	for _, part := range []struct {
		has  *regexp.Regexp
		text string
	}{
		{hasPolicies, "the policies and stop_when blocks of %s are not in force"},
		{hasConnectors, "the sources and sinks of %s do not run"},
	} {
		if names := recipesWith(saved, part.has); len(names) > 0 {
			fmt.Fprintf(s.err, "Warning: "+part.text+", because their recipes have not been applied.%s\n", strings.Join(names, ", "), advice)
		}
	}
}

// refuseUnjudged refuses to run a session without its policies, unless that is requested.
func refuseUnjudged(s streams, dir string, saved []journal.SavedGraph, requested bool) error {
	names := recipesWith(saved, hasPolicies)
	if requested || len(names) == 0 {
		tellUnjudged(s, saved, "")
		return nil
	}
	return failWith(exitSession, &abi.Error{
		Code: abi.Conflict, Message: fmt.Sprintf("no process runs %s, and this command would run it without the policies and stop_when blocks of %s", dir, strings.Join(names, ", ")),
		Remedy: "run it with terrarium serve or terrarium resume, and repeat the command meanwhile; --without-policies runs it without them",
	})
}

// recipesWith are the names of the recipes with blocks that a pattern finds.
func recipesWith(saved []journal.SavedGraph, block *regexp.Regexp) (names []string) {
	for _, r := range engine.RememberedIn(saved) {
		for _, text := range r.Source.Files {
			if block.MatchString(text) {
				names = append(names, printable(r.Name))
				break
			}
		}
	}
	return names
}

// These patterns find blocks in recipes, in HCL and in JSON. They also match comments that contain
// such a block.
var (
	hasPolicies   = regexp.MustCompile(`(?m)(^|[{,])\s*"?(policy|stop_when)"?\s*:?\s*[{"\[]`)
	hasConnectors = regexp.MustCompile(`(?m)(^|[{,])\s*"?(source|sink)"?\s*:?\s*[{"\[]`)
)

func execute(cmd *cobra.Command, s streams, f *engineFlags, rf *recipeFlags, recipe string) (err error) {
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	var deployment *deploy.Deployment
	if recipe != "" {
		r, err := rf.load(ctx, s, recipe)
		if err != nil {
			return err
		}
		deployment = r.Deployment()
	}
	t, err := f.open(ctx, cmd, s)
	if err != nil {
		return unlessInterrupted(ctx, err)
	}
	defer func() {
		if rerr := f.retain.pruneAtEnd(ctx, s, t); rerr != nil {
			err = besides(err, failWith(exitFailed, rerr))
		}
		if cerr := f.shut(ctx, t); cerr != nil {
			err = besides(err, cerr)
		}
	}()
	if deployment != nil {
		if _, err := t.ApplyDeployment(ctx, deployment); err != nil {
			return unlessInterrupted(ctx, applyExit(ctx, err))
		}
	} else {
		tellUnjudged(s, t.Saved(), " Apply them with --recipe or with the operation resume.")
		if _, _, err := t.Restore(ctx); err != nil {
			return unlessInterrupted(ctx, sessionExit(err))
		}
	}
	in := interruptible(func() (io.ReadCloser, error) { return s.in, nil })
	defer in.Close()
	unhook := context.AfterFunc(ctx, func() { in.Close() })
	defer unhook()
	err = operations.Serve(ctx, t, in, s.out)
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	return errors.Join(failWith(exitFailed, err), policyFailures(s, t))
}
