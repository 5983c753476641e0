package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/internal/codecache"
	"github.com/seed47132306/terrarium/host/internal/compilecost"
	"github.com/seed47132306/terrarium/host/internal/memory"
	"github.com/seed47132306/terrarium/host/translation"
	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/host/wasmbin/meter"
	"github.com/seed47132306/terrarium/internal/scratch"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Options configures a [Host]. The zero value is ready for use.
type Options struct {
	// CacheDir is a directory that keeps compiled code between processes. It
	// is created if it does not exist, and must be private: entries altered by
	// another user or program are refused. Empty means no cache.
	CacheDir string
	// CacheOptional does without a cache that cannot be used, and reports that to
	// Log. Otherwise [New] returns an error.
	CacheOptional bool
	// CacheKey is the file with the key that authenticates entries of the
	// cache. It is created if it does not exist, and must not lie in the
	// cache. Empty means terrarium/cache.key in the user's configuration
	// directory.
	CacheKey string
	// MaxModuleBytes is the size of the largest accepted module, in bytes; 0
	// means [abi.MaxModuleBytes].
	MaxModuleBytes int64
	// Limits bounds the parts of a module. Zero fields mean the defaults,
	// which accept the output of compilers. ModuleBytes is ignored in favour
	// of MaxModuleBytes.
	Limits wasmbin.Limits
	// CompileTime and CompileBytes bound what compiling one module may cost.
	// CompileTime is processor time; 1.5 µs are added to it for each byte of
	// code, up to a minute in all. CompileBytes is memory for the largest
	// function and all machine code. The cost is estimated beforehand, because
	// a compilation cannot be interrupted. Zero means 8 seconds and 512 MiB.
	CompileTime  time.Duration
	CompileBytes int64
	// Compiler is the command, an executable and its arguments, that compiles
	// modules which take more than a moment: a program that only calls
	// [ServeCompiler]. Its processes are killed if they exceed their time or,
	// on Linux, their memory, and when no caller still waits for them.
	// Without it all modules are compiled in this process, bounded by the
	// estimate alone.
	Compiler []string
	// Interpreter runs guests without compiling them to machine code: slow,
	// but it starts at once and works on every platform. Platforms without a
	// compiler always use the interpreter.
	Interpreter bool
	// Translations are modules that were translated to Go when the program was built, such
	// as those of the creatures that ship with terrarium, in package plugins/native. A
	// module runs as its translation if the hash of its metered form is that of the
	// translation, and if the translation gives the same results on the machine: with the
	// same fuel, limits and errors. There are two exceptions. A limit stack above 16 MiB,
	// or 4 MiB on 32-bit machines, counts as 16 or 4 MiB: a guest that needs more is ended
	// by a trap. And the bits of results that are not a number may differ, as they do
	// between wazero's compiler and interpreter. Interpreter and Compiler are for the other
	// modules.
	Translations []translation.Code
	// Log receives refused cache entries and other warnings; nil discards
	// them.
	Log *slog.Logger
}

// Host compiles modules. All methods may be called from any goroutine.
type Host struct {
	opts      Options
	runtime   wazero.Runtime
	cache     *codecache.Cache // nil without CacheDir
	memories  *memory.Pool
	handles   *handles
	originals originals
	apart     *apart              // nil without Compiler
	instance  wazero.ModuleConfig // shared by all instances

	translations map[string]*translation.Code // by the hash of the metered module
	engine       abi.Engine                   // of the other modules

	imageFrom int64 // the constant of this name; tests use a lower value

	mu      sync.Mutex
	closed  bool
	modules table
}

var _ abi.Host = (*Host)(nil)

// New returns a host. It fails if the cache directory cannot be used.
func New(ctx context.Context, opts Options) (*Host, error) {
	if opts.MaxModuleBytes <= 0 {
		opts.MaxModuleBytes = abi.MaxModuleBytes
	}
	opts.Limits.ModuleBytes = int(opts.MaxModuleBytes)
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	h := &Host{
		opts:     opts,
		instance: instanceConfig(),
		modules:  table{},
		memories: memory.NewPool(),
		handles:  newHandles(),

		translations: translationsOf(opts.Translations),
		engine:       engineOf(context.WithoutCancel(ctx), opts),

		imageFrom: imageFrom,
	}
	cfg := runtimeConfig(opts)
	if len(opts.Compiler) > 0 && !opts.Interpreter {
		h.apart = &apart{command: opts.Compiler}
		scratch.Sweep(opts.Log) // removes files left by compiling processes that were killed
	}
	if opts.CacheDir != "" {
		var err error
		switch h.cache, err = codecache.Open(ctx, opts.CacheDir, opts.CacheKey, opts.Log); {
		case err == nil:
			h.tellRefused()
			cfg = cfg.WithCompilationCache(h.cache.Wazero)
		case opts.CacheOptional && ctx.Err() == nil:
			opts.Log.Info("compiled modules are not kept for later processes", "error", err)
		default:
			return nil, err
		}
	}
	h.runtime = wazero.NewRuntimeWithConfig(ctx, cfg)
	if err := provideImports(ctx, h.runtime); err != nil {
		return nil, errors.Join(err, h.Close(ctx))
	}
	return h, nil
}

// runtimeConfig chooses WebAssembly 2.0 without extensions: every wazero
// platform compiles it, and all its costs are understood.
func runtimeConfig(opts Options) wazero.RuntimeConfig {
	cfg := wazero.NewRuntimeConfig()
	if opts.Interpreter {
		cfg = wazero.NewRuntimeConfigInterpreter()
	}
	return cfg.
		WithCoreFeatures(api.CoreFeaturesV2).
		WithDebugInfoEnabled(true) // offsets in stack traces, see lines.Marks; no module has DWARF of its own here
}

// Inspect checks a module as Compile does, and describes it without compiling
// it.
func (h *Host) Inspect(ctx context.Context, wasm []byte) (*abi.ModuleInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, interrupted("inspect", err)
	}
	if err := h.checkSize("inspect", wasm); err != nil {
		return nil, err
	}
	_, s, _, err := h.check("inspect", wasm)
	if err != nil {
		return nil, err
	}
	return s.info(sha256.Sum256(wasm), int64(len(wasm))), nil
}

// Compile implements [abi.Host]. A call that finds the same bytes being
// compiled waits for the result, or for its own context. A compilation in
// another process is stopped when the contexts of all callers have ended.
func (h *Host) Compile(ctx context.Context, wasm []byte) (abi.Module, error) {
	if err := ctx.Err(); err != nil {
		return nil, interrupted("compile", err)
	}
	if err := h.checkSize("compile", wasm); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(wasm)
	c, work, err := h.acquire(ctx, sum)
	if err != nil {
		return nil, err
	}
	stays := context.AfterFunc(ctx, c.leave)
	defer stays()
	if work != nil {
		c.err = c.compile(work, wasm)
		close(c.ready)
		c.stopCompiling() // the compilation has ended
	}
	select {
	case <-c.ready:
	case <-ctx.Done():
		_ = c.release(ctx) // the compiling caller holds its own reference
		return nil, interrupted("compile", ctx.Err())
	}
	if c.err != nil {
		_ = c.release(ctx) // there is nothing to close
		if cause := ctx.Err(); cause != nil {
			return nil, interrupted("compile", cause)
		}
		return nil, c.err
	}
	return &Module{compiled: c}, nil
}

// acquire returns the entry for sum with one more reference. The caller that
// has to compile the module also gets a context for the compilation. Because
// others may wait for it too, this context outlives the context of the first
// caller.
func (h *Host) acquire(ctx context.Context, sum [sha256.Size]byte) (c *compiled, work context.Context, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, nil, &abi.Error{Code: abi.Stopped, Op: "compile", Message: "the host is closed"}
	}
	c, ok := h.modules[sum]
	if !ok {
		c = &compiled{host: h, sum: sum, ready: make(chan struct{})}
		work, c.stopCompiling = context.WithCancel(context.WithoutCancel(ctx))
		h.modules[sum] = c
	}
	c.refs++
	c.waiting++
	return c, work, nil
}

// HeapBytes returns how many bytes of the Go heap the linear memories of all
// instances take: 0 on platforms where addresses can be reserved for them.
func (h *Host) HeapBytes() int64 { return h.memories.InHeap.Load() }

// Close implements [abi.Host].
func (h *Host) Close(ctx context.Context) error {
	h.mu.Lock()
	already := h.closed
	h.closed = true
	modules := slices.Collect(maps.Values(h.modules))
	h.mu.Unlock()
	if already {
		return nil
	}
	for _, c := range modules {
		c.images.close()
	}
	h.handles.close()
	err := h.runtime.Close(ctx)
	if h.apart != nil {
		err = errors.Join(err, h.apart.close(ctx))
	}
	err = errors.Join(err, h.originals.close())
	h.memories.Close()
	if h.cache != nil {
		err = errors.Join(err, h.cache.Close(ctx))
	}
	if err != nil {
		return &abi.Error{Code: abi.Internal, Op: "close host", Message: "wazero did not close cleanly", Err: err}
	}
	return nil
}

func (h *Host) checkSize(op string, wasm []byte) error {
	if int64(len(wasm)) > h.opts.MaxModuleBytes {
		return &abi.Error{Code: abi.TooLarge, Op: op,
			Message: fmt.Sprintf("the module has %d bytes; at most %d are allowed", len(wasm), h.opts.MaxModuleBytes),
			Remedy:  "build it for size, and strip its debug information"}
	}
	return nil
}

// check makes all checks that precede compilation by wazero.
func (h *Host) check(op string, wasm []byte) (*wasmbin.Module, *shape, []wasmbin.FuncInfo, error) {
	if err := recognize(op, wasm); err != nil {
		return nil, nil, nil, err
	}
	m, err := wasmbin.Read(wasm, h.opts.Limits)
	if err != nil {
		return nil, nil, nil, withOp(op, err)
	}
	s := shapeOf(m)
	if err := checkContract(op, s); err != nil {
		return nil, nil, nil, err
	}
	infos, err := m.Validate(h.opts.Limits)
	if err != nil {
		return nil, nil, nil, withOp(op, err)
	}
	if err := meter.Check(m); err != nil {
		var e *abi.Error
		if errors.As(err, &e) {
			e.Op = op
		}
		return nil, nil, nil, err
	}
	return m, s, infos, nil
}

// tellRefused logs the cache entries refused since the last call.
func (h *Host) tellRefused() {
	for _, err := range h.cache.Refused() {
		h.opts.Log.Warn("an entry of the compilation cache was refused", "error", err)
	}
}

// compileCached compiles a module, using the cache if there is one, and
// another process if the module is large enough. It returns the runtime that
// holds the module.
func (h *Host) compileCached(ctx context.Context, wasm []byte, cost compilecost.Cost) (wazero.CompiledModule, wazero.Runtime, error) {
	if h.cache != nil {
		if err := h.cache.Refresh(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, nil, interrupted("compile", context.Cause(ctx))
			}
			h.opts.Log.Warn("what other processes have compiled is not used", "error", err)
		}
	}
	if h.apart != nil && (cost.Time > cheapTime || cost.Bytes > cheapBytes) {
		var err error
		if h.cache != nil {
			err = h.fillCache(ctx, wasm, cost)
		} else {
			var m wazero.CompiledModule
			var r wazero.Runtime
			if m, r, err = h.loadApart(ctx, wasm, cost); err == nil {
				return m, r, nil
			}
		}
		switch {
		case errors.Is(err, errNoProcess):
			h.opts.Log.Warn("a module is compiled in this process", "error", err)
		case err != nil:
			return nil, nil, err
		}
	}
	m, err := h.compileHere(context.WithoutCancel(ctx), wasm)
	return m, h.runtime, err
}

// fillCache compiles a module in another process if the cache does not have
// it.
func (h *Host) fillCache(ctx context.Context, wasm []byte, cost compilecost.Cost) error {
	sum := sha256.Sum256(wasm)
	if h.cache.Knows(sum) {
		return nil
	}
	work, err := h.cache.WorkDir()
	if err != nil {
		return fmt.Errorf("%w: %w", errNoProcess, err)
	}
	defer os.RemoveAll(work)
	entry, err := h.apart.compile(ctx, wasm, cost, work)
	if err != nil {
		return err
	}
	if err := h.cache.Take(ctx, sum, work, entry); err != nil {
		return fmt.Errorf("%w: %w", errNoProcess, err)
	}
	return nil
}

// compileHere compiles a module in this process. If the cache made the
// compilation fail, it is retried once without the bad entry. A cache that
// cannot be written costs only time.
func (h *Host) compileHere(ctx context.Context, wasm []byte) (wazero.CompiledModule, error) {
	m, err := h.compileModule(ctx, h.runtime, wasm)
	if h.cache == nil {
		return m, err
	}
	if abi.CodeOf(err) == abi.Unavailable {
		cerr := h.cache.Recheck(ctx)
		h.tellRefused()
		if m, err = h.compileModule(ctx, h.runtime, wasm); err != nil {
			return nil, errors.Join(err, cerr)
		}
	} else if err != nil {
		return nil, err
	}
	if cerr := h.cache.Seal(ctx); cerr != nil {
		h.opts.Log.Warn("compiled code is not kept for the next process", "error", cerr)
	}
	h.tellRefused()
	return m, nil
}

// compileModule converts wazero's errors, and its panics on modules that
// should have been refused, to errors of this package.
func (h *Host) compileModule(ctx context.Context, r wazero.Runtime, wasm []byte) (m wazero.CompiledModule, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = &abi.Error{Code: abi.Unsupported, Op: "compile", Message: fmt.Sprintf("the compiler failed on the module: %v", fault),
				Remedy: "check the module with wasm-validate"}
		}
	}()
	m, err = r.CompileModule(ctx, wasm)
	switch {
	case err == nil:
		return m, nil
	case codecache.Fault(err):
		return nil, &abi.Error{Code: abi.Unavailable, Op: "compile", Message: "the compilation cache is damaged or cannot be written",
			Remedy: "free some disk space, or use no cache", Err: err}
	default:
		// Validation should have refused the module, so this is a defect of
		// validation.
		return nil, &abi.Error{Code: abi.Unsupported, Op: "compile", Message: "the compiler refuses the module",
			Remedy: "check the module with wasm-validate", Err: err}
	}
}

// interrupted returns the error for work that a caller's context ended.
func interrupted(op string, cause error) *abi.Error {
	if errors.Is(cause, context.DeadlineExceeded) {
		return &abi.Error{Code: abi.Deadline, Op: op, Message: "the caller's time ran out", Err: cause}
	}
	return &abi.Error{Code: abi.Stopped, Op: op, Message: "the caller cancelled it", Err: cause}
}

// withOp sets the operation of an error.
func withOp(op string, err error) error {
	var e *abi.Error
	if errors.As(err, &e) && e.Op == "" {
		c := *e
		c.Op = op
		return &c
	}
	return err
}

func hexSum(sum [sha256.Size]byte) string { return hex.EncodeToString(sum[:]) }
