// Package terrarium runs creatures: sandboxed WebAssembly modules that talk
// over named channels. Creatures joined by channels form a graph with one
// environment and one session store; the graph changes while it runs.
//
// This package is the API for embedding programs. It connects a Wasm host (package
// host), session stores (package sqlitestore) and recipes (package recipes) to an
// engine (package engine). Package operations offers the same API as data.
//
//	t, err := terrarium.New(ctx, terrarium.Options{Dir: "session"})
//	...
//	defer t.Close(ctx)
//	applied, err := t.Apply(ctx, "team.hcl", terrarium.RecipeOptions{})
//	...
//	_, err = t.Send(ctx, applied.Channels["channel.tasks"], terrarium.Outgoing{Payload: line})
//
// A [Terrarium] is an [engine.Engine] with its host and stores. The engine's methods for
// embedding programs are in forward.go.
package terrarium

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/connector"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/host/translation"
	"github.com/seed47132306/terrarium/internal/scratch"
	"github.com/seed47132306/terrarium/recipes"
	"github.com/seed47132306/terrarium/recipes/policy"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// Version is the version of the library and the command.
const Version = "0.1.0"

// The types that embedding programs use most, under their names in package engine.
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
	Reader        = engine.Reader
	ReaderOptions = engine.ReaderOptions
	Error         = abi.Error
)

// The durabilities of a session; see [journal.Durability].
const (
	Volatile = journal.Volatile
	Normal   = journal.Normal
	Full     = journal.Full
)

// Options configures a [Terrarium]. The zero value keeps nothing on disk.
type Options struct {
	// Dir is the session directory. It is created if it does not exist, and only one
	// process at a time can use it. Empty means that nothing is kept.
	Dir string
	// Scratch, without Dir, keeps session stores in a temporary directory that Close
	// removes. Mailboxes and history are then bounded by the disk rather than by memory.
	// Temporary directories of killed processes of the same user are removed first.
	Scratch bool
	// Retain bounds the history of each session. By default all history is kept.
	Retain sqlitestore.Retention
	// MaxDiskBytes is a budget for the session directory; see
	// [sqlitestore.Options]. Zero means none.
	MaxDiskBytes int64
	// SyncEvery bounds what a power failure can lose from sessions of the durability Normal;
	// see [sqlitestore.Options]. It takes precedence over what recipes set, and cannot be
	// combined with another Durability. The time is that of Clock.
	SyncEvery time.Duration
	// NoSearchIndex turns off the index that makes [Terrarium.Search] fast. Otherwise
	// the index is updated in the background.
	NoSearchIndex bool
	// Durability applies to graphs whose recipes do not set it. Zero means Normal if
	// there is a session directory.
	Durability Durability
	// Clock tells the time; nil means the clock of the machine. With a clock that the
	// caller moves, [Terrarium.WaitIdle] fires the timers that have come due. With a
	// [ManualClock], [Terrarium.Advance] moves it.
	Clock engine.Clock
	// Host runs modules instead of a host that the terrarium makes with CacheDir,
	// CacheOptional, Compiler and Translations. Several terrariums can share one. The caller closes it,
	// after [Terrarium.Close]. If it has no method Inspect, recipes are checked by compiling
	// their modules.
	Host abi.Host
	// Storage keeps sessions instead of Dir and Scratch. The caller closes it, after
	// [Terrarium.Close]. Everything works as with Dir if it is a [sqlitestore.Directory].
	// Otherwise [Terrarium.Search] does not work, copies need a [journal.Exporter], and
	// [Terrarium.CheckModule] needs a [replay.Source].
	Storage journal.Storage
	// FS contains the files with paths that begin with fs:/, such as recipes and modules
	// that go:embed has put into the program. A recipe in FS reads no files outside FS. A
	// session remembers such paths, so a later start should have the same FS. How symbolic
	// links are treated depends on FS; for a folder that untrusted users can write to, use
	// the FS of an [os.Root].
	FS fs.FS
	// Modules returns modules by name, for references SCHEME:NAME in recipes and
	// specifications; see [ModuleResolver].
	Modules map[string]ModuleResolver
	// Policy judges what the members of every applied deployment do, after the policies of
	// its recipe; see [deploy.Policies]. Creatures without a deployment, and graphs that are
	// restored without their recipe, have no policies. Nil allows everything.
	Policy deploy.Policy
	// Capabilities are kinds of capabilities that recipes can grant to creatures, besides
	// http and llm; see package capability. A kind named http or llm replaces that one, and gets
	// the settings of its block. Two kinds of one name are an error.
	Capabilities []capability.Kind
	// Connectors are kinds of sources and sinks that recipes can declare, besides those
	// of [ConnectorKinds]; see package connector. A kind of the same name and direction replaces
	// that one.
	Connectors []connector.Kind
	// NoConnectors keeps the sources and sinks of recipes from running.
	NoConnectors bool
	// CacheDir keeps compiled modules between processes. It holds executable code, so
	// no other user may have write access. Empty means no cache.
	CacheDir string
	// CacheOptional does without the cache if it cannot be used, and reports that to Log.
	// Otherwise [New] returns an error.
	CacheOptional bool
	// Seed makes the ids of the engine repeatable.
	Seed *uint64
	// Workers is the number of turns that run at the same time. Zero means one per processor.
	Workers int
	// FreshInstances runs every turn on a new instance; see
	// [engine.Options.FreshInstances].
	FreshInstances bool
	// Paused runs no turns, so that a saved session can be changed first; see
	// [engine.Options.Paused].
	Paused bool
	// ShutdownTimeout bounds [Terrarium.Close]; zero means
	// [engine.DefaultShutdownTimeout].
	ShutdownTimeout time.Duration
	// UnaccountedMemory bounds the memory of the process that is not accounted to
	// creatures; see [engine.Options.UnaccountedMemory].
	UnaccountedMemory int64
	// HibernateAfter is how long creatures are idle before they hibernate, and ProcessMemory
	// is the memory of the process that makes them hibernate sooner; see
	// [engine.Options.HibernateAfter] and [engine.Options.ProcessMemory].
	HibernateAfter time.Duration
	ProcessMemory  int64
	// PolicyProcess is the default for [RecipeOptions] without one, including those of
	// the operation apply.
	PolicyProcess []string
	// Compiler is the command, an executable and its arguments, that compiles large
	// modules in a process with limits. The program must only call [ServeCompiler].
	// Without it, large modules are compiled in this process.
	Compiler []string
	// Translations are modules that run as Go code in this program, instead of in a Wasm
	// engine: those of package plugins/native, and those that terrarium translate makes.
	// Results stay the same, with the exceptions that [host.Options] states.
	Translations []translation.Code
	// Log gets the engine's own messages. Nil discards them.
	Log *slog.Logger
}

// ServeCompiler compiles one module for the process at the other end of the pipes. It
// bounds the time and memory of its own process, which should do nothing else.
func ServeCompiler(in io.Reader, out io.Writer) error { return host.ServeCompiler(in, out) }

// Terrarium is an engine with its host and its session directory. Its methods
// may be called from any goroutine.
type Terrarium struct {
	engine  *engine.Engine
	host    abi.Host
	storage journal.Storage               // nil: volatile
	owned   []func(context.Context) error // close what New has made, in this order
	clock   *ManualClock                  // Options.Clock, if it is one
	log     *slog.Logger
	// defaults are those of RecipeOptions, and policies has the processes that they start.
	defaults        RecipeOptions
	policy          deploy.Policy // Options.Policy
	policies        policy.Processes
	shutdownTimeout time.Duration // zero: the default
	connectors      Connectors
	applying        chan struct{} // has room for one application and the change of its connectors
	looking         chan struct{} // has room for as many calls of GraphsAt as run at a time
	repeating       chan struct{} // has room for as many calls of ReplayTurn as run at a time
	replayTurnTime  time.Duration // bounds one of them

	releasing  sync.Once
	released   chan struct{} // closed when everything has been released
	releaseErr error         // valid once released is closed
}

// New starts an engine. Saved graphs of the session directory do not run until
// [Terrarium.Apply] or [engine.Engine.Restore] restores them.
//
// If another process is using the directory, the error has the code unavailable and
// names the process id. ctx only bounds the start.
func New(ctx context.Context, o Options) (*Terrarium, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	t := &Terrarium{
		log: o.Log, policy: o.Policy, shutdownTimeout: o.ShutdownTimeout,
		defaults: RecipeOptions{PolicyProcess: o.PolicyProcess, FS: o.FS, Modules: o.Modules, Capabilities: o.Capabilities, Connectors: o.Connectors},
	}
	t.applying, t.looking, t.repeating = make(chan struct{}, 1), make(chan struct{}, maxLooking), make(chan struct{}, maxRepeating)
	t.replayTurnTime = replayTurnTime
	t.connectors.open(&o)
	if err := t.open(ctx, o); err != nil {
		return nil, errors.Join(err, t.release(context.WithoutCancel(ctx)))
	}
	return t, nil
}

func (t *Terrarium) open(ctx context.Context, o Options) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	if err := t.openHost(ctx, o); err != nil {
		return err
	}
	if err := t.openStorage(ctx, o); err != nil {
		return err
	}
	t.clock, _ = o.Clock.(*ManualClock)
	eo := engine.Options{
		Host: t.host, Durability: o.Durability, Load: t.defaults.LoadModule, Clock: o.Clock, ManualClock: t.clock != nil, Seed: o.Seed,
		Workers: o.Workers, FreshInstances: o.FreshInstances, Paused: o.Paused, ShutdownTimeout: o.ShutdownTimeout,
		UnaccountedMemory: o.UnaccountedMemory, HibernateAfter: o.HibernateAfter, ProcessMemory: o.ProcessMemory, Log: o.Log, Capabilities: withOwn(o.Capabilities),
	}
	eo.Storage = t.storage
	t.engine, err = engine.New(ctx, eo)
	return err
}

// check refuses options that contradict each other.
func (o *Options) check() error {
	if o.Storage != nil && (o.Dir != "" || o.Scratch) {
		return &abi.Error{Code: abi.InvalidArgument, Op: "new", Message: "Options has a Storage, and also a Dir or Scratch", Remedy: "set only one of them"}
	}
	if o.SyncEvery != 0 && (o.Dir == "" || o.Durability == Full) {
		return &abi.Error{
			Code: abi.InvalidArgument, Op: "open", Message: "SyncEvery is for sessions that are kept with the durability normal",
			Remedy: "leave it out: the durability full syncs every group of writes, and without a session directory nothing survives the process",
		}
	}
	if err := o.checkKinds(); err != nil {
		return err
	}
	return checkSchemes(o.Modules)
}

func (t *Terrarium) openHost(ctx context.Context, o Options) error {
	if t.host = o.Host; t.host != nil {
		return nil
	}
	h, err := host.New(ctx, host.Options{CacheDir: o.CacheDir, CacheOptional: o.CacheOptional, Compiler: o.Compiler, Translations: o.Translations, Log: o.Log})
	if err != nil {
		return err
	}
	t.host, t.owned = h, append(t.owned, h.Close)
	return nil
}

func (t *Terrarium) openStorage(ctx context.Context, o Options) error {
	if t.storage = o.Storage; t.storage != nil {
		return nil
	}
	dir := o.Dir
	if dir == "" && o.Scratch {
		s, err := scratch.Make(scratch.Sessions, o.Log)
		if err != nil {
			return err
		}
		t.owned = slices.Insert(t.owned, 0, func(context.Context) error { return s.Remove() })
		dir = filepath.Join(s.Path, "session")
	}
	if dir == "" {
		return nil
	}
	so := sqlitestore.Options{Retain: o.Retain, MaxDiskBytes: o.MaxDiskBytes, SyncEvery: o.SyncEvery, SearchIndex: !o.NoSearchIndex && o.Dir != ""}
	if o.Clock != nil {
		so.Now, so.Timer = o.Clock.Now, o.Clock.Timer
	}
	s, err := sqlitestore.Open(ctx, dir, so)
	if err != nil {
		return err
	}
	t.storage, t.owned = s, slices.Insert(t.owned, 0, func(context.Context) error { return s.Close() })
	return nil
}

// Close stops the engine and releases the session directory, within
// [Options.ShutdownTimeout] or the deadline of ctx; see [engine.Engine.Close]. When it
// returns, all acknowledged data is on disk. If its error contains [engine.ErrLeftOpen],
// the process keeps the directory until the process ends or a later Close succeeds.
func (t *Terrarium) Close(ctx context.Context) error {
	bound, begun := engine.CloseBound(ctx, cmp.Or(t.shutdownTimeout, engine.DefaultShutdownTimeout)), time.Now()
	t.connectors.close()
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
			Code: abi.Deadline, Op: "close", Message: fmt.Sprintf("the session directory did not close within %v; background work is still running", bound),
			Remedy: "everything is written, and the session can be resumed after the process has ended; for a slow disk, raise the shutdown timeout",
			Err:    engine.ErrLeftOpen,
		})
	}
}

// Directory returns the session directory for reading, or nil if there is none. Close
// closes it, unless it is [Options.Storage].
func (t *Terrarium) Directory() *sqlitestore.Directory {
	dir, _ := t.storage.(*sqlitestore.Directory)
	return dir
}

// release releases the resources that New acquired.
func (t *Terrarium) release(ctx context.Context) error {
	t.policies.Close()
	var errs []error
	for _, closes := range t.owned {
		errs = append(errs, closes(ctx))
	}
	return errors.Join(errs...)
}

// RecipeOptions configures how a recipe is read.
type RecipeOptions struct {
	// Vars holds values of variables: text for a variable of type string, an HCL
	// expression for any other type.
	Vars map[string]string
	// VarFiles lists files with values of variables.
	VarFiles []string
	// Env holds environment variables in the form of os.Environ. Those with the prefix
	// TERRARIUM_VAR_ set variables.
	Env []string
	// PolicyProcess is the command, an executable and its arguments, that runs
	// policies with isolation = "process". The program must only call [ServePolicies].
	// Without it, recipes with such policies are refused.
	PolicyProcess []string
	// FS contains the files with paths that begin with fs:/, and Modules returns modules by
	// name; see [Options]. Without them, a terrarium uses those of its own options.
	FS      fs.FS
	Modules map[string]ModuleResolver
	// Capabilities are the kinds of capabilities that the recipe can grant, and Connectors
	// the kinds of sources and sinks that it can declare; see [Options].
	Capabilities []capability.Kind
	Connectors   []connector.Kind
	// Tests makes [LoadRecipe] report errors in test blocks too.
	Tests bool
	// Unsaved are texts that take the place of files when [LoadRecipe] reads a recipe, by
	// path, such as those that an editor has not saved.
	Unsaved map[string][]byte
	// ReadsUnsaved makes it an error if the recipe does not read one of the Unsaved texts.
	ReadsUnsaved bool
	// Within is the absolute path of a folder, or empty. [LoadRecipe] does not read modules
	// and catalogs outside it.
	Within string
	// ShapeOnly makes [LoadRecipe] skip modules and catalogs: the recipe cannot be
	// applied, but it lists the modules that it names.
	ShapeOnly bool
	// Isolation selects further policies that run in such processes. "foreign", the
	// default, means those of recipes with a file or directory that another user owns or
	// that every user can write to. The other values are "all" and "none".
	Isolation string
}

// ServePolicies runs policies for the process at the other end of the pipes, until in
// ends. It bounds the memory of its own process and ends the process if a script exceeds
// the bound, so the process should do nothing else.
func ServePolicies(in io.Reader, out io.Writer) error { return recipes.ServePolicies(in, out) }

// Diagnostics lists errors and warnings about a recipe. recipes.WriteText shows them with
// their lines.
type Diagnostics = recipes.Diagnostics

// LoadRecipe reads and checks a recipe and its modules, without an engine. A recipe with
// warnings only can be applied.
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

// inspecting calls load with a host that can inspect modules.
func inspecting(ctx context.Context, load func(*host.Host) Diagnostics) Diagnostics {
	h, err := host.New(ctx, host.Options{})
	if err != nil {
		return Diagnostics{{Severity: recipes.Error, Summary: "The modules cannot be inspected", Detail: err.Error()}}
	}
	diags := load(h)
	if err := h.Close(ctx); err != nil {
		diags = append(diags, recipes.Diagnostic{Severity: recipes.Warning, Summary: "The module inspector did not close", Detail: err.Error()})
	}
	return diags
}

// loading converts the options to those of package recipes.
func (o RecipeOptions) loading(inspector recipes.Inspector) recipes.Options {
	return recipes.Options{Vars: o.Vars, VarFiles: o.VarFiles, Env: o.Env, Inspector: inspector, Builtins: builtins{}, Modules: o.sources(), Capabilities: o.Capabilities, Connectors: append(ConnectorKinds(), o.Connectors...), FS: o.FS, Version: Version, PolicyProcess: o.PolicyProcess, Isolation: o.Isolation, Tests: o.Tests, ShapeOnly: o.ShapeOnly,
		Unsaved: o.Unsaved, ReadsUnsaved: o.ReadsUnsaved, Within: o.Within}
}

// Apply reads a recipe and applies it, all or nothing; see [engine.Engine.Apply]. If the
// recipe is not valid, the error describes the first fault; [LoadRecipe] returns all of
// them.
func (t *Terrarium) Apply(ctx context.Context, path string, o RecipeOptions) (*Applied, error) {
	r, diags := recipes.Load(ctx, path, t.loading(o))
	if err := diags.Err(); err != nil {
		return nil, err
	}
	return t.ApplyDeployment(ctx, r.Deployment())
}

// or returns o, with the values of other where o has none.
func (o RecipeOptions) or(other RecipeOptions) RecipeOptions {
	if o.PolicyProcess == nil {
		o.PolicyProcess = other.PolicyProcess
	}
	if o.FS == nil {
		o.FS = other.FS
	}
	if o.Modules == nil {
		o.Modules = other.Modules
	}
	if o.Capabilities == nil {
		o.Capabilities = other.Capabilities
	}
	if o.Connectors == nil {
		o.Connectors = other.Connectors
	}
	return o
}

// loading returns the options with which the terrarium loads a recipe.
func (t *Terrarium) loading(o RecipeOptions) recipes.Options {
	return o.or(t.defaults).loading(inspectorOf(t.host))
}

// ApplyFS is [Terrarium.Apply] for a recipe in a file system such as one of go:embed. path
// has slashes, as in [fs.ValidPath]; "." is the root. The rules and limits are those of
// folders: the recipe reads its files within its folder, and modules and catalogs within
// fsys. In messages, plans and the session, its path is fs:/ and path.
//
// How symbolic links are treated depends on the file system: [os.DirFS] follows them
// out of its folder. For a folder that untrusted users can write to, use the FS of an
// [os.Root].
//
// [Terrarium.Resume] and [Terrarium.Restore] read such modules from [Options.FS]. A program
// that calls ApplyFS at every start does not need them.
func (t *Terrarium) ApplyFS(ctx context.Context, fsys fs.FS, path string, o RecipeOptions) (*Applied, error) {
	if !fs.ValidPath(path) {
		return nil, &abi.Error{
			Code: abi.InvalidArgument, Op: "apply", Message: fmt.Sprintf("%q is not a path in a file system of the program", path),
			Remedy: "use slashes, and no leading slash and no ..",
		}
	}
	o.FS = fsys
	return t.Apply(ctx, "fs:/"+strings.TrimPrefix(path, "."), o)
}
