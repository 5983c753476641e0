package host

import (
	"bufio"
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
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/internal/codecache"
	"github.com/seed47132306/terrarium/host/internal/compilecost"
	"github.com/seed47132306/terrarium/internal/scratch"
	"github.com/seed47132306/terrarium/internal/selflimit"
	"github.com/tetratelabs/wazero"
)

// Below these bounds a module is compiled in this process even if there is a
// command: starting a process takes longer than compiling such a module, and
// an estimate that is wrong by a factor does no harm.
const (
	cheapTime  = 200 * time.Millisecond
	cheapBytes = 32 << 20
)

// How far a compiling process may exceed the estimate, which is an upper bound
// for most modules.
const (
	graceTime   = 10 * time.Second // of processor time, and as much again as estimated
	graceMemory = 1 << 30          // bytes, and as much again as estimated
	slowness    = 5                // times the processor time, until the process is killed
)

// apart compiles modules in separate processes. Each leaves one entry for
// wazero's cache in its own directory. Methods may be called from any
// goroutine.
type apart struct {
	command []string

	mu      sync.Mutex   // held while an entry of dir is put in place, read or removed
	dir     *scratch.Dir // nil until there is a runtime
	cache   wazero.CompilationCache
	runtime wazero.Runtime
}

// compileOrder is the header that the process reads before the module.
type compileOrder struct {
	Dir     string `json:"dir"`     // where the process leaves the entry
	Memory  int64  `json:"memory"`  // bytes the process may use
	Seconds int64  `json:"seconds"` // of processor time
	Size    int    `json:"size"`    // bytes of the module
}

// compileAnswer is the result that the process writes. An empty one means
// success.
type compileAnswer struct {
	Refused string `json:"refused,omitempty"` // why the compiler refuses the module
	Failed  string `json:"failed,omitempty"`  // any other error
}

// ServeCompiler compiles one module for a [Host] of another process, at the
// other end of the pipes. The process should do nothing else, because its time
// and memory are bounded and exceeding them ends it. When the other process
// ends, which closes in, ServeCompiler returns an error without waiting for
// the compiler, and the process should exit. See [Options.Compiler].
func ServeCompiler(in io.Reader, out io.Writer) error {
	o, wasm, err := readOrder(in)
	if err != nil {
		return json.NewEncoder(out).Encode(compileAnswer{Failed: err.Error()})
	}
	answers, gone := make(chan compileAnswer, 1), make(chan struct{})
	go func() { answers <- compileFor(o, wasm) }() // a compilation cannot be interrupted; it ends with the process
	go func() {
		// A process that does not read all input has ended, and Wait returns
		// why.
		_, _ = io.Copy(io.Discard, in) // no more input follows; this waits for its end
		close(gone)
	}()
	select {
	case a := <-answers:
		return json.NewEncoder(out).Encode(a)
	case <-gone:
		return errors.New("the process that wanted the module compiled has ended")
	}
}

func readOrder(in io.Reader) (o compileOrder, wasm []byte, err error) {
	text := bufio.NewReader(in)
	head, err := text.ReadBytes('\n')
	if err != nil {
		return o, nil, err
	}
	if err := json.Unmarshal(head, &o); err != nil {
		return o, nil, err
	}
	wasm, err = io.ReadAll(io.LimitReader(text, int64(o.Size)))
	if err == nil && len(wasm) < o.Size {
		err = io.ErrUnexpectedEOF
	}
	return o, wasm, err
}

func compileFor(o compileOrder, wasm []byte) (a compileAnswer) {
	defer func() {
		if r := recover(); r != nil {
			a.Refused = fmt.Sprint(r)
		}
	}()
	ctx := context.Background()
	debug.SetMemoryLimit(o.Memory * 3 / 4)
	selflimit.AddressSpace(o.Memory)
	selflimit.ProcessorTime(o.Seconds)
	cache, err := wazero.NewCompilationCacheWithDir(o.Dir)
	if err != nil {
		return compileAnswer{Failed: err.Error()}
	}
	r := wazero.NewRuntimeWithConfig(ctx, runtimeConfig(Options{}).WithCompilationCache(cache))
	_, err = r.CompileModule(ctx, wasm)
	switch {
	case err == nil:
		return compileAnswer{}
	case codecache.Fault(err):
		return compileAnswer{Failed: err.Error()}
	}
	return compileAnswer{Refused: err.Error()}
}

// errNoProcess means that the compiling process failed for a reason other than
// the module.
var errNoProcess = errors.New("the process that compiles failed")

// compile runs a process that compiles a module into a new directory, and
// returns the path of the entry below it.
func (a *apart) compile(ctx context.Context, wasm []byte, cost compilecost.Cost, dir string) (entry string, err error) {
	seconds := int64((2*cost.Time + graceTime) / time.Second)
	order := compileOrder{Dir: dir, Memory: 2*cost.Bytes + graceMemory, Seconds: seconds, Size: len(wasm)}
	said, err := a.ask(ctx, order, wasm)
	if err != nil {
		return "", err
	}
	var answer compileAnswer
	if err := json.Unmarshal(said, &answer); err != nil {
		return "", fmt.Errorf("%w: it is not a compiler: %w", errNoProcess, err)
	}
	switch {
	case answer.Refused != "":
		return "", &abi.Error{Code: abi.Unsupported, Op: "compile", Message: "the compiler refuses the module: " + answer.Refused,
			Remedy: "check the module with wasm-validate"}
	case answer.Failed != "":
		return "", fmt.Errorf("%w: %s", errNoProcess, answer.Failed)
	}
	found, err := filepath.Glob(filepath.Join(dir, codecache.EntryDirs+"*", "*"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("%w: it left %d entries", errNoProcess, len(found))
	}
	return filepath.Rel(dir, found[0])
}

// ask runs a process with an order and returns its answer.
func (a *apart) ask(ctx context.Context, order compileOrder, wasm []byte) (said []byte, err error) {
	head, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, slowness*time.Duration(order.Seconds)*time.Second)
	defer cancel()
	command := exec.CommandContext(bounded, a.command[0], a.command[1:]...)
	command.Env = []string{}
	command.SysProcAttr = ofItsOwn() // an interrupt from the terminal is for this process only
	var answer, complaint bytes.Buffer
	command.Stdout, command.Stderr = &answer, &limited{buffer: &complaint, room: 4 << 10}
	in, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoProcess, err)
	}
	if err := command.Start(); err != nil {
		if ctx.Err() != nil {
			return nil, interrupted("compile", context.Cause(ctx))
		}
		return nil, fmt.Errorf("%w: %w", errNoProcess, err)
	}
	// The pipe stays open: when it closes, the other process knows that this
	// one has ended. If the other process ends first, the writing ends too.
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = io.Copy(in, io.MultiReader(bytes.NewReader(head), strings.NewReader("\n"), bytes.NewReader(wasm)))
	}()
	err = command.Wait() // closes the pipe
	<-written
	switch {
	case err == nil:
		return answer.Bytes(), nil
	case ctx.Err() != nil:
		return nil, interrupted("compile", context.Cause(ctx))
	}
	return nil, untimely(order, bounded.Err() != nil, command.ProcessState, fmt.Errorf("%w: %.200q", err, complaint.String()))
}

// untimely says why a compiling process ended without an answer: its limits,
// or a signal from outside.
func untimely(order compileOrder, late bool, state *os.ProcessState, err error) error {
	const fatal = 2 // the exit code of a Go program that runs out of memory or time
	var signal syscall.Signal
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		signal = status.Signal()
	} else if code := state.ExitCode(); code > 128 {
		signal = syscall.Signal(code - 128)
	}
	used := state.UserTime() + state.SystemTime()
	switch {
	case late && used < time.Duration(order.Seconds)*time.Second/2: // the processor was busy with something else
		return &abi.Error{Code: abi.Unavailable, Op: "compile",
			Message: fmt.Sprintf("the process that compiled the module was given only %v of processor time in %d seconds", used.Round(time.Millisecond), slowness*order.Seconds),
			Remedy:  "try again when the machine is less busy", Err: err}
	case late, used >= time.Duration(order.Seconds)*time.Second, state.ExitCode() == fatal:
		return &abi.Error{Code: abi.TooLarge, Op: "compile",
			Message: fmt.Sprintf("compiling the module took more than %d seconds of processor time or %d MiB of memory", order.Seconds, order.Memory>>20),
			Remedy:  "split its largest functions, or compile it with less inlining", Err: err}
	case signal != 0:
		return &abi.Error{Code: abi.Unavailable, Op: "compile",
			Message: fmt.Sprintf("the process that compiled the module was ended by an external signal (%v) after %v of processor time", signal, used.Round(time.Millisecond)),
			Remedy:  "try again; if the signal was not sent on purpose, the system was out of memory, so free some first", Err: err}
	}
	return fmt.Errorf("%w: %w", errNoProcess, err)
}

// limited keeps the first bytes written to it.
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

// loadApart compiles a module in another process and loads it into a runtime
// that holds only modules compiled so. It removes the entry afterwards.
func (h *Host) loadApart(ctx context.Context, wasm []byte, cost compilecost.Cost) (wazero.CompiledModule, wazero.Runtime, error) {
	a := h.apart
	if err := a.open(ctx, h); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errNoProcess, err)
	}
	work, err := os.MkdirTemp(a.dir.Path, "work-")
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
	place := filepath.Join(a.dir.Path, entry)
	if err := os.Rename(filepath.Join(work, entry), place); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errNoProcess, err)
	}
	defer os.Remove(place)
	m, err := h.compileModule(context.WithoutCancel(ctx), a.runtime, wasm)
	return m, a.runtime, err
}

// open makes the runtime and its directory on first use.
func (a *apart) open(ctx context.Context, h *Host) (err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.runtime != nil {
		return nil
	}
	if a.dir == nil {
		if a.dir, err = scratch.Make(scratch.Code, h.opts.Log); err != nil {
			return err
		}
	}
	if a.cache, err = wazero.NewCompilationCacheWithDir(a.dir.Path); err != nil {
		return err
	}
	r := wazero.NewRuntimeWithConfig(ctx, runtimeConfig(h.opts).WithCompilationCache(a.cache))
	if err := provideImports(ctx, r); err != nil {
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
	if a.dir != nil {
		errs = append(errs, a.dir.Remove())
	}
	return errors.Join(errs...)
}
