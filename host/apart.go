package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/internal/compilecost"
)

// What is compiled in this process although there is a command for it: starting a
// process takes longer than such a module, and an estimate that is wrong by a
// factor does no harm.
const (
	cheapTime  = 200 * time.Millisecond
	cheapBytes = 32 << 20
)

// How far a process that compiles may go beyond the estimate, which is an upper
// bound for most modules.
const (
	graceTime   = 10 * time.Second // of processor time, and as much again as estimated
	graceMemory = 1 << 30          // bytes, and as much again as estimated
	slowness    = 5                // times the processor time, until the process is killed
)

// apart compiles modules in processes of their own, each of which leaves one entry
// for wazero's cache in a directory of its own. Methods may be called from any
// goroutine.
type apart struct {
	command []string

	mu      sync.Mutex // entries of dir are put in place, read and removed by one at a time
	dir     string     // "" until there is a runtime
	cache   wazero.CompilationCache
	runtime wazero.Runtime
}

// compileOrder is what the process reads, before the module.
type compileOrder struct {
	Dir     string `json:"dir"`     // where it leaves the entry
	Memory  int64  `json:"memory"`  // bytes it may use
	Seconds int64  `json:"seconds"` // of processor time
}

// compileAnswer is what it writes. An empty one is success.
type compileAnswer struct {
	Refused string `json:"refused,omitempty"` // what the compiler says of the module
	Failed  string `json:"failed,omitempty"`  // anything else
}

// ServeCompiler compiles one module for a [Host] of another process, at the other
// end of the pipes: it is all that the process should do, for its time and its
// memory are bounded, and exceeding them ends it. See [Options.Compiler].
func ServeCompiler(in io.Reader, out io.Writer) error {
	return json.NewEncoder(out).Encode(compileFor(in))
}

func compileFor(in io.Reader) (a compileAnswer) {
	defer func() {
		if r := recover(); r != nil {
			a.Refused = fmt.Sprint(r)
		}
	}()
	ctx := context.Background()
	all, err := io.ReadAll(in)
	if err != nil {
		return compileAnswer{Failed: err.Error()}
	}
	head, wasm, _ := bytes.Cut(all, []byte("\n"))
	var o compileOrder
	if err := json.Unmarshal(head, &o); err != nil {
		return compileAnswer{Failed: err.Error()}
	}
	debug.SetMemoryLimit(o.Memory * 3 / 4)
	limitProcess(o.Memory, o.Seconds)
	cache, err := wazero.NewCompilationCacheWithDir(o.Dir)
	if err != nil {
		return compileAnswer{Failed: err.Error()}
	}
	r := wazero.NewRuntimeWithConfig(ctx, runtimeConfig(Options{}).WithCompilationCache(cache))
	_, err = r.CompileModule(ctx, wasm)
	switch {
	case err == nil:
		return compileAnswer{}
	case cacheFault(err):
		return compileAnswer{Failed: err.Error()}
	}
	return compileAnswer{Refused: err.Error()}
}

// errNoProcess is that a module could not be compiled apart for a reason that
// does not lie in the module.
var errNoProcess = errors.New("the process that compiles failed")

// compile has a process compile a module into a new directory, and returns the
// path of the entry below it.
func (a *apart) compile(ctx context.Context, wasm []byte, cost compilecost.Cost, dir string) (entry string, err error) {
	seconds := int64((2*cost.Time + graceTime) / time.Second)
	order := compileOrder{Dir: dir, Memory: 2*cost.Bytes + graceMemory, Seconds: seconds}
	head, err := json.Marshal(order)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, slowness*time.Duration(seconds)*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, a.command[0], a.command[1:]...)
	command.Env = []string{}
	command.Stdin = io.MultiReader(bytes.NewReader(head), bytes.NewReader([]byte("\n")), bytes.NewReader(wasm))
	var said, complaint bytes.Buffer
	command.Stdout, command.Stderr = &said, &limited{buffer: &complaint, room: 4 << 10}
	err = command.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return "", &abi.Error{Code: abi.TooLarge, Op: "compile",
			Message: fmt.Sprintf("compiling the module took more than %d seconds of processor time or %d MiB of memory", seconds, order.Memory>>20),
			Remedy:  "split its largest functions, or compile it with less inlining", Err: fmt.Errorf("%w: %.200q", err, complaint.String())}
	} else if err != nil {
		return "", fmt.Errorf("%w: %w", errNoProcess, err)
	}
	var answer compileAnswer
	if err := json.Unmarshal(said.Bytes(), &answer); err != nil {
		return "", fmt.Errorf("%w: it is no compiler: %w", errNoProcess, err)
	}
	switch {
	case answer.Refused != "":
		return "", &abi.Error{Code: abi.Unsupported, Op: "compile", Message: "the compiler refuses the module: " + answer.Refused,
			Remedy: "check the module with wasm-validate"}
	case answer.Failed != "":
		return "", fmt.Errorf("%w: %s", errNoProcess, answer.Failed)
	}
	found, err := filepath.Glob(filepath.Join(dir, entryDirs+"*", "*"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("%w: it left %d entries", errNoProcess, len(found))
	}
	return filepath.Rel(dir, found[0])
}

// limited keeps the beginning of what is written.
type limited struct {
	buffer *bytes.Buffer
	room   int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.room)
	l.room -= n
	l.buffer.Write(p[:n])
	return len(p), nil
}

// load compiles a module apart and loads it into a runtime that has nothing but
// what came about this way. Its entry is gone afterwards.
func (h *Host) loadApart(ctx context.Context, wasm []byte, cost compilecost.Cost) (wazero.CompiledModule, wazero.Runtime, error) {
	a := h.apart
	if err := a.open(ctx, h); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errNoProcess, err)
	}
	work, err := os.MkdirTemp(a.dir, workDirs)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errNoProcess, err)
	}
	defer os.RemoveAll(work)
	entry, err := a.compile(ctx, wasm, cost, work)
	if err != nil {
		return nil, nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	place := filepath.Join(a.dir, entry)
	if err := os.Rename(filepath.Join(work, entry), place); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errNoProcess, err)
	}
	defer os.Remove(place)
	m, err := h.compileModule(ctx, a.runtime, wasm)
	return m, a.runtime, err
}

// open makes the runtime and its directory when they are first needed.
func (a *apart) open(ctx context.Context, h *Host) (err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.runtime != nil {
		return nil
	}
	if a.dir == "" {
		if a.dir, err = os.MkdirTemp("", "terrarium-code-"); err != nil {
			return err
		}
	}
	if a.cache, err = wazero.NewCompilationCacheWithDir(a.dir); err != nil {
		return err
	}
	r := wazero.NewRuntimeWithConfig(ctx, runtimeConfig(h.opts).WithCompilationCache(a.cache))
	if err := h.provideImports(ctx, r); err != nil {
		return errors.Join(err, r.Close(ctx))
	}
	a.runtime = r
	return nil
}

func (a *apart) close(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var errs []error
	if a.runtime != nil {
		errs = append(errs, a.runtime.Close(ctx), a.cache.Close(ctx))
	}
	if a.dir != "" {
		errs = append(errs, os.RemoveAll(a.dir))
	}
	return errors.Join(errs...)
}
