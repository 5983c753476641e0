// Package terrarium runs creatures: sandboxed WebAssembly modules that talk
// over named channels. Creatures joined by channels form a graph with one
// environment and one session store; the graph changes while it runs.
//
// This package is the face for programs that embed it. It wires a Wasm host
// (package host), session stores (package sqlitestore) and recipes (package
// recipes) to an engine (package engine). Package operations offers everything as data.
//
//	t, err := terrarium.New(ctx, terrarium.Options{Dir: "session"})
//	...
//	defer t.Close(ctx)
//	applied, err := t.Apply(ctx, "team.hcl", terrarium.RecipeOptions{})
//	...
//	_, err = t.Send(ctx, applied.Channels["channel.tasks"], terrarium.Outgoing{Payload: line})
//
// A [Terrarium] is an [engine.Engine] with everything that it needs. What a program
// asks of the engine stands in forward.go.
package terrarium

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/internal/scratch"
	"github.com/seed47132306/terrarium/plugins"
	"github.com/seed47132306/terrarium/recipes"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// Version is the version of the library and the command.
const Version = "0.1.0"

// The types that an embedding program meets most, under the names that they
// have in package engine.
type (
	CreatureSpec  = deploy.CreatureSpec
	WireSpec      = deploy.WireSpec
	CreatureID    = journal.CreatureID
	ChannelID     = journal.ChannelID
	GraphID       = journal.GraphID
	SessionID     = journal.SessionID
	Event         = journal.Event
	Filter        = engine.Filter
	Outgoing      = engine.Outgoing
	Incoming      = engine.Incoming
	Durability    = journal.Durability
	Applied       = engine.Applied
	ReaderOptions = engine.ReaderOptions
	Error         = abi.Error
)

// The durabilities of a session; see [journal.Durability].
const (
	Volatile = journal.Volatile
	Normal   = journal.Normal
	Full     = journal.Full
)

// Options configure a [Terrarium]. The zero value keeps nothing on disk.
type Options struct {
	// Dir is the session directory; it is made if it does not exist, and
	// belongs to one process at a time. Empty means that nothing is kept.
	Dir string
	// Scratch, without Dir, keeps session stores in a temporary directory that
	// goes with Close: mailboxes and history are then bounded by the disk
	// rather than by memory. Those that killed processes of the same user have left
	// are removed first.
	Scratch bool
	// Retain bounds the history of each session; by default all of it is kept.
	Retain sqlitestore.Retention
	// MaxDiskBytes is a budget for the session directory; see
	// [sqlitestore.Options]. Zero means none.
	MaxDiskBytes int64
	// NoSearchIndex does without the index that makes [Terrarium.Search] quick, and
	// that is kept up to date in the background otherwise.
	NoSearchIndex bool
	// Durability of graphs that no recipe decides about; zero means Normal
	// where there is a session directory.
	Durability Durability
	// CacheDir keeps compiled modules between processes. It holds executable
	// code: nobody else may write there. Empty means no cache.
	CacheDir string
	// Seed makes the ids that the engine gives out repeatable.
	Seed *uint64
	// Workers is how many turns run at a time; zero means one per processor.
	Workers int
	// FreshInstances runs every turn on a new instance; see
	// [engine.Options.FreshInstances].
	FreshInstances bool
	// Paused lets nothing run, to change a saved session first; see
	// [engine.Options.Paused].
	Paused bool
	// ShutdownTimeout bounds [Terrarium.Close]; zero means
	// [engine.DefaultShutdownTimeout].
	ShutdownTimeout time.Duration
	// UnaccountedMemory is how much memory the process may hold beyond what is accounted
	// to creatures; see [engine.Options.UnaccountedMemory].
	UnaccountedMemory int64
	// PolicyProcess is that of recipes that [RecipeOptions] say nothing else of,
	// those of the operation apply among them.
	PolicyProcess []string
	// Compiler is the command, an executable and its arguments, that compiles
	// large modules in a process with limits: a program that does nothing but call
	// [ServeCompiler]. Without it they are compiled in this process.
	Compiler []string
	// Log gets what the engine has to say; nil discards it.
	Log *slog.Logger
}

// ServeCompiler compiles one module for another process, at the other end of the
// pipes. It bounds the time and memory of its own process, which should do nothing
// else.
func ServeCompiler(in io.Reader, out io.Writer) error { return host.ServeCompiler(in, out) }

// Terrarium is an engine with its host and its session directory. Its methods
// may be called from any goroutine.
type Terrarium struct {
	engine  *engine.Engine
	host    *host.Host
	storage *sqlitestore.Directory // nil: volatile
	scratch *scratch.Dir           // nil: none
	log     *slog.Logger
	// policyProcess is Options.PolicyProcess.
	policyProcess   []string
	shutdownTimeout time.Duration // zero: the default

	releasing  sync.Once
	released   chan struct{} // closed when everything is given up
	releaseErr error         // valid when it is
}

// New starts an engine. Saved graphs of the session directory stay as they are
// until [Terrarium.Apply] or [engine.Engine.Restore] brings them back.
//
// The error has the code unavailable when another process owns the directory,
// and names its process id. ctx bounds the start only.
func New(ctx context.Context, o Options) (*Terrarium, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	t := &Terrarium{log: o.Log, policyProcess: o.PolicyProcess, shutdownTimeout: o.ShutdownTimeout}
	if err := t.open(ctx, o); err != nil {
		return nil, errors.Join(err, t.release(context.WithoutCancel(ctx)))
	}
	return t, nil
}

func (t *Terrarium) open(ctx context.Context, o Options) (err error) {
	if t.host, err = host.New(ctx, host.Options{CacheDir: o.CacheDir, Compiler: o.Compiler, Log: o.Log}); err != nil {
		return err
	}
	dir := o.Dir
	if dir == "" && o.Scratch {
		if t.scratch, err = scratch.Make(scratch.Sessions, o.Log); err != nil {
			return err
		}
		dir = filepath.Join(t.scratch.Path, "session")
	}
	eo := engine.Options{
		Host: t.host, Durability: o.Durability, Load: LoadModule, Seed: o.Seed,
		Workers: o.Workers, FreshInstances: o.FreshInstances, Paused: o.Paused, ShutdownTimeout: o.ShutdownTimeout,
		UnaccountedMemory: o.UnaccountedMemory, Log: o.Log,
	}
	if dir != "" {
		if t.storage, err = sqlitestore.Open(ctx, dir, sqlitestore.Options{Retain: o.Retain, MaxDiskBytes: o.MaxDiskBytes, SearchIndex: !o.NoSearchIndex && o.Dir != ""}); err != nil {
			return err
		}
		eo.Storage = t.storage
	}
	t.engine, err = engine.New(ctx, eo)
	return err
}

// Close stops the engine and gives up the session directory, within
// [Options.ShutdownTimeout] or the deadline of ctx, as [engine.Engine.Close] tells. What
// was acknowledged is on disk when it returns. With [engine.ErrLeftOpen] in its error,
// the directory belongs to the process until that ends, or a later Close succeeds.
func (t *Terrarium) Close(ctx context.Context) error {
	bound, begun := engine.CloseBound(ctx, cmp.Or(t.shutdownTimeout, engine.DefaultShutdownTimeout)), time.Now()
	err := t.engine.Close(ctx)
	if errors.Is(err, engine.ErrLeftOpen) {
		return err // its stores are in use
	}
	t.releasing.Do(func() {
		t.released = make(chan struct{})
		go func() {
			defer close(t.released)
			t.releaseErr = t.release(context.WithoutCancel(ctx))
		}()
	})
	end := time.NewTimer(bound - time.Since(begun))
	defer end.Stop()
	select {
	case <-t.released:
		return errors.Join(err, t.releaseErr)
	case <-end.C:
		return errors.Join(err, &abi.Error{
			Code: abi.Deadline, Op: "close", Message: fmt.Sprintf("the session directory did not close within %v; it leaves work in the background", bound),
			Remedy: "everything is written, and the session can be gone on with when the process has ended; for a slow disk raise the shutdown timeout",
			Err:    engine.ErrLeftOpen,
		})
	}
}

// Directory is the session directory, to be read, or nil if there is none. Close closes it.
func (t *Terrarium) Directory() *sqlitestore.Directory { return t.storage }

// release gives up what New got hold of.
func (t *Terrarium) release(ctx context.Context) error {
	var errs []error
	if t.storage != nil {
		errs = append(errs, t.storage.Close())
	}
	if t.scratch != nil {
		errs = append(errs, t.scratch.Remove())
	}
	if t.host != nil {
		errs = append(errs, t.host.Close(ctx))
	}
	return errors.Join(errs...)
}

// RecipeOptions say how a recipe is read.
type RecipeOptions struct {
	// Vars are values of variables: text for a variable of type string, an HCL
	// expression for any other.
	Vars map[string]string
	// VarFiles are files of assignments.
	VarFiles []string
	// Env are environment variables in the form of os.Environ, of which those
	// that begin with TERRARIUM_VAR_ give variables a value.
	Env []string
	// PolicyProcess is the command, an executable and its arguments, that runs
	// policies with isolation = "process": a program that does nothing but call
	// [ServePolicies]. Without it recipes that have such policies are refused.
	PolicyProcess []string
	// Tests has [LoadRecipe] report mistakes in test blocks too.
	Tests bool
	// Isolation says which policies run in such processes besides: "foreign", the same as
	// empty, those of recipes with a file or folder that another user owns or every user
	// can write; "all"; or "none".
	Isolation string
}

// ServePolicies runs policies for another process, at the other end of the pipes,
// until in ends. It bounds the memory of its own process, and ends it when a script
// exceeds that: it is all that the process should do.
func ServePolicies(in io.Reader, out io.Writer) error { return recipes.ServePolicies(in, out) }

// Diagnostics are what is wrong with a recipe; recipes.WriteText shows them with
// the lines concerned.
type Diagnostics = recipes.Diagnostics

// LoadRecipe reads and checks a recipe, modules included, without an engine.
// Warnings come with a recipe that can be applied.
func LoadRecipe(ctx context.Context, path string, o RecipeOptions) (*recipes.Recipe, Diagnostics) {
	var r *recipes.Recipe
	diags := inspecting(ctx, func(h *host.Host) (diags Diagnostics) {
		r, diags = recipes.Load(ctx, path, o.loading(h))
		return diags
	})
	return r, diags
}

// OpenConsole loads a recipe for evaluating expressions; see [recipes.OpenConsole].
func OpenConsole(ctx context.Context, path string, o RecipeOptions) (*recipes.Console, Diagnostics) {
	return recipes.OpenConsole(ctx, path, o.loading(nil))
}

// inspecting calls load with a host that can look into modules.
func inspecting(ctx context.Context, load func(*host.Host) Diagnostics) Diagnostics {
	h, err := host.New(ctx, host.Options{})
	if err != nil {
		return Diagnostics{{Severity: recipes.Error, Summary: "The modules cannot be looked into", Detail: err.Error()}}
	}
	diags := load(h)
	if err := h.Close(ctx); err != nil {
		diags = append(diags, recipes.Diagnostic{Severity: recipes.Warning, Summary: "The module inspector did not close", Detail: err.Error()})
	}
	return diags
}

// loading are the options in the words of package recipes.
func (o RecipeOptions) loading(h *host.Host) recipes.Options {
	return recipes.Options{Vars: o.Vars, VarFiles: o.VarFiles, Env: o.Env, Inspector: h, Builtins: builtins{}, Version: Version, PolicyProcess: o.PolicyProcess, Isolation: o.Isolation, Tests: o.Tests}
}

// Apply reads a recipe and makes it exist: all of it, or on an error nothing;
// see [engine.Engine.Apply]. For a recipe that is not valid the error tells the
// first thing that is wrong; [LoadRecipe] tells all of them.
func (t *Terrarium) Apply(ctx context.Context, path string, o RecipeOptions) (*Applied, error) {
	r, diags := recipes.Load(ctx, path, t.completed(o).loading(t.host))
	if err := diags.Err(); err != nil {
		return nil, err
	}
	return t.engine.Apply(ctx, r.Deployment())
}

// completed are the options with what the terrarium was given for all recipes.
func (t *Terrarium) completed(o RecipeOptions) RecipeOptions {
	if o.PolicyProcess == nil {
		o.PolicyProcess = t.policyProcess
	}
	return o
}

// builtins are the creatures that ship with the library, for recipes.
type builtins struct{}

func (builtins) Names() []string                  { return plugins.Names() }
func (builtins) Wasm(name string) ([]byte, error) { return plugins.Get(name) }

// BuiltinPrefix begins the name of a module that ships with the library.
const BuiltinPrefix = "builtin:"

// LoadModule reads a module: a file, or with the prefix builtin: one that
// ships with the library.
func LoadModule(_ context.Context, name string) ([]byte, error) {
	if short, ok := strings.CutPrefix(name, BuiltinPrefix); ok {
		return plugins.Get(short)
	}
	b, err := readModule(name)
	if err == nil {
		return b, nil
	}
	if full := abi.TooManyFiles(err); full != nil {
		return nil, full.With("path", name)
	}
	remedy := "name a file, or one that ships with terrarium: " + BuiltinPrefix + strings.Join(plugins.Names(), ", "+BuiltinPrefix)
	return nil, &abi.Error{
		Code: abi.NotFound, Message: "the module cannot be read", Remedy: remedy,
		IDs: map[string]string{"path": name}, Err: err,
	}
}

// readModule reads a file, but not one without an end, such as a device. Of one
// that is too large it reads enough for the host to find that out.
func readModule(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, abi.MaxModuleBytes+1))
}
