package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/seed47132306/terrarium/abi"
)

// Options configures a [Host]. The zero value is ready for use.
type Options struct {
	// CacheDir is a directory that keeps compiled code between processes. It
	// is made when it does not exist. Empty means no cache.
	CacheDir string
	// MaxModuleBytes is the largest module that is looked at, in bytes; 0 means
	// [abi.MaxModuleBytes].
	MaxModuleBytes int64
	// MaxTableElements bounds how far the tables of one instance can grow all
	// together; 0 means the default of [abi.Limits]. The limit `table` of an
	// instance bounds what its tables have from the start.
	MaxTableElements int64
	// Interpreter runs guests without compiling them to machine code: slow,
	// but it starts at once and works on every platform. Without it, platforms
	// that have no compiler use the interpreter by themselves.
	Interpreter bool

	// uninterruptible leaves out the polling for the deadline, so that
	// benchmarks can tell its price.
	uninterruptible bool
}

// Host compiles modules. All methods may be called from any goroutine.
type Host struct {
	opts     Options
	runtime  wazero.Runtime
	cache    wazero.CompilationCache // nil without CacheDir
	instance wazero.ModuleConfig     // shared by all instances
	calls    []api.Closer            // the host modules guests import from

	mu      sync.Mutex
	closed  bool
	modules map[[sha256.Size]byte]*compiled
}

var _ abi.Host = (*Host)(nil)

// New returns a host. It fails when the cache directory cannot be used.
func New(ctx context.Context, opts Options) (*Host, error) {
	if opts.MaxModuleBytes <= 0 {
		opts.MaxModuleBytes = abi.MaxModuleBytes
	}
	if opts.MaxTableElements <= 0 {
		opts.MaxTableElements = abi.DefaultLimits.Table
	}
	h := &Host{
		opts:     opts,
		instance: instanceConfig(),
		modules:  map[[sha256.Size]byte]*compiled{},
	}
	cfg := runtimeConfig(opts)
	if opts.CacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(opts.CacheDir)
		if err != nil {
			return nil, &abi.Error{Code: abi.Unavailable, Op: "open host", Message: "the compilation cache cannot be used",
				Remedy: "name a directory that can be written, or none", IDs: map[string]string{"path": opts.CacheDir}, Err: err}
		}
		h.cache = cache
		cfg = cfg.WithCompilationCache(cache)
	}
	h.runtime = wazero.NewRuntimeWithConfig(ctx, cfg)
	if err := h.provideImports(ctx); err != nil {
		return nil, errors.Join(err, h.Close(ctx))
	}
	return h, nil
}

// runtimeConfig chooses WebAssembly 2.0 without extensions: what every wazero
// platform compiles, and nothing whose cost is not understood.
func runtimeConfig(opts Options) wazero.RuntimeConfig {
	cfg := wazero.NewRuntimeConfig()
	if opts.Interpreter {
		cfg = wazero.NewRuntimeConfigInterpreter()
	}
	return cfg.
		WithCoreFeatures(api.CoreFeaturesV2).
		WithDebugInfoEnabled(false). // stack traces name functions; source lines would keep all DWARF in memory
		WithCloseOnContextDone(!opts.uninterruptible)
}

func (h *Host) provideImports(ctx context.Context) error {
	for _, provide := range []func(context.Context, wazero.Runtime) (api.Closer, error){
		provideHostcalls, provideWASI, provideAssemblyScript,
	} {
		c, err := provide(ctx, h.runtime)
		if err != nil {
			return &abi.Error{Code: abi.Internal, Op: "open host", Message: "the host functions cannot be provided", Err: err}
		}
		h.calls = append(h.calls, c)
	}
	return nil
}

// Inspect checks a module as Compile does, but for the function bodies, and
// describes it without compiling it.
func (h *Host) Inspect(ctx context.Context, wasm []byte) (*abi.ModuleInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, interrupted("inspect", err)
	}
	if err := h.checkSize("inspect", wasm); err != nil {
		return nil, err
	}
	s, err := check("inspect", wasm)
	if err != nil {
		return nil, err
	}
	return s.info(sha256.Sum256(wasm), int64(len(wasm))), nil
}

// Compile implements [abi.Host]. A call that finds the same bytes being
// compiled waits for the result, or for its own context.
func (h *Host) Compile(ctx context.Context, wasm []byte) (abi.Module, error) {
	if err := ctx.Err(); err != nil {
		return nil, interrupted("compile", err)
	}
	if err := h.checkSize("compile", wasm); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(wasm)
	c, first, err := h.acquire(sum)
	if err != nil {
		return nil, err
	}
	if first {
		// Others may be waiting for this compilation, so it outlives the
		// context of whoever happened to come first.
		c.err = c.compile(context.WithoutCancel(ctx), wasm)
		close(c.ready)
	}
	select {
	case <-c.ready:
	case <-ctx.Done():
		_ = c.release(ctx) // whoever compiles it holds a reference of its own
		return nil, interrupted("compile", ctx.Err())
	}
	if c.err != nil {
		_ = c.release(ctx)
		return nil, c.err
	}
	return &Module{compiled: c}, nil
}

// acquire returns the entry for sum with one more reference. first is true for
// the one caller that has to compile it.
func (h *Host) acquire(sum [sha256.Size]byte) (c *compiled, first bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, false, &abi.Error{Code: abi.Stopped, Op: "compile", Message: "the host is closed"}
	}
	c, ok := h.modules[sum]
	if !ok {
		c = &compiled{host: h, sum: sum, ready: make(chan struct{})}
		h.modules[sum] = c
	}
	c.refs++
	return c, !ok, nil
}

// Close implements [abi.Host].
func (h *Host) Close(ctx context.Context) error {
	h.mu.Lock()
	already := h.closed
	h.closed = true
	h.mu.Unlock()
	if already {
		return nil
	}
	err := h.runtime.Close(ctx)
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

// check is everything that is looked at before wazero sees a module.
func check(op string, wasm []byte) (*shape, error) {
	if err := recognise(op, wasm); err != nil {
		return nil, err
	}
	s, err := scan(wasm)
	if err != nil {
		return nil, withOp(op, err)
	}
	if err := checkContract(op, s); err != nil {
		return nil, err
	}
	return s, nil
}

// compileModule turns wazero's errors, and its panics on modules that its
// decoder should have refused, into ours.
func (h *Host) compileModule(ctx context.Context, wasm []byte) (m wazero.CompiledModule, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &abi.Error{Code: abi.Unsupported, Op: "compile", Message: fmt.Sprintf("the compiler gave up on the module: %v", r),
				Remedy: "check the module with wasm-validate"}
		}
	}()
	m, err = h.runtime.CompileModule(ctx, wasm)
	switch {
	case err == nil:
		return m, nil
	case strings.Contains(err.Error(), "feature \""): // wazero's wording; there is no typed error for it
		return nil, &abi.Error{Code: abi.Unsupported, Op: "compile", Message: "the module needs an extension of WebAssembly 2.0",
			Remedy: "build it without threads, exceptions, tail calls and garbage collection", Err: err}
	default:
		return nil, &abi.Error{Code: abi.InvalidArgument, Op: "compile", Message: "the module is not valid WebAssembly",
			Remedy: "build it again; wasm-validate tells more", Err: err}
	}
}

// interrupted is the error for work that a caller's context ended.
func interrupted(op string, cause error) *abi.Error {
	if errors.Is(cause, context.DeadlineExceeded) {
		return &abi.Error{Code: abi.Deadline, Op: op, Message: "the caller's time ran out", Err: cause}
	}
	return &abi.Error{Code: abi.Stopped, Op: op, Message: "the caller gave up", Err: cause}
}

// withOp names the operation in an error that was made below it.
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
