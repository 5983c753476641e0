package host

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/internal/codecache"
	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/internal/scratch"
	"github.com/seed47132306/terrarium/internal/selflimit"
)

// With the first argument the test binary is the compiler; with the others it is a
// compiler that exceeds its limits, never ends or ends at once. With asHost it is a
// process that starts a compilation by one that never ends.
const (
	asCompiler = "terrarium-compiler"
	asGlutton  = "terrarium-glutton"
	asSloth    = "terrarium-sloth"
	asFailure  = "terrarium-failure"
	asHost     = "terrarium-host"
)

// serveCompiler obeys the argument, and reports whether there was one.
func serveCompiler() (code int, ok bool) {
	switch {
	case len(os.Args) != 2:
		return 0, false
	case os.Args[1] == asCompiler:
		if err := ServeCompiler(os.Stdin, os.Stdout); err != nil {
			return 1, true
		}
		return 0, true
	case os.Args[1] == asGlutton:
		selflimit.AddressSpace(1 << 20)
		selflimit.ProcessorTime(1)
		kept := make([][]byte, 0, 1<<20)
		for {
			kept = append(kept, make([]byte, 1<<20))
		}
	case os.Args[1] == asSloth:
		return sloth(), true
	case os.Args[1] == asFailure:
		return 1, true
	case os.Args[1] == asHost:
		return hostOfASloth(), true
	}
	return 0, false
}

// sloth is a compiler that accepts an order and never ends by itself. It
// reports its process id on a socket in the directory for temporary files;
// that connection ends with the process.
func sloth() int {
	text := bufio.NewReader(os.Stdin)
	head, err := text.ReadBytes('\n')
	var o compileOrder
	if err = errors.Join(err, json.Unmarshal(head, &o)); err != nil {
		return 3
	}
	c, err := net.Dial("unix", filepath.Join(o.Dir, "..", "..", "sloth"))
	if err != nil {
		return 3
	}
	fmt.Fprintln(c, os.Getpid())
	_, _ = io.Copy(io.Discard, text)
	return 1
}

// hostOfASloth lets a sloth compile the module in its input.
func hostOfASloth() int {
	path, err := os.Executable()
	if err != nil {
		return 3
	}
	wasm, rerr := io.ReadAll(os.Stdin)
	h, err := New(context.Background(), Options{Compiler: []string{path, asSloth}})
	if err = errors.Join(err, rerr); err != nil {
		return 3
	}
	if _, err := h.Compile(context.Background(), wasm); err != nil {
		return 1
	}
	return 0
}

func self(t *testing.T, argument string) []string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{path, argument}
}

// large returns a creature large enough to be compiled in a process: it has a
// function with many loads that is never called.
func large(t testing.TB) []byte {
	m, err := wasmbin.Read(readModule(t, "echo"), wasmbin.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	m.AddFunc(m.AddType(wasmbin.FuncType{}), padding())
	return m.Write()
}

// padding is the code of a function that takes long to compile.
func padding() wasmbin.Code {
	body := append(wasmbin.OpI32Const.Append(nil), 0)
	for range 30_000 {
		body = append(wasmbin.OpI32Load.Append(body), 2, 0)
	}
	return wasmbin.Code{Body: wasmbin.OpEnd.Append(wasmbin.OpDrop.Append(body))}
}

// compiles compiles and instantiates the large module, and returns what was logged.
func compiles(t *testing.T, o Options) (string, error) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	var log bytes.Buffer
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	h, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*")); err != nil || len(left) != 0 {
			t.Errorf("left behind: %v (%v)", left, err)
		}
	}()
	m, err := h.Compile(t.Context(), large(t))
	if err != nil {
		return log.String(), err
	}
	i, err := m.Instantiate(t.Context(), nil, &fakeTurn{})
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return log.String(), m.Close(t.Context())
}

func TestCompileApart(t *testing.T) {
	if said, err := compiles(t, Options{Compiler: self(t, asCompiler)}); err != nil || said != "" {
		t.Errorf("%v, logged %q", err, said)
	}
}

// A cached module needs no process.
func TestCompileApartIntoTheCache(t *testing.T) {
	dir := t.TempDir()
	for _, command := range [][]string{self(t, asCompiler), {filepath.Join(dir, "none")}} {
		if said, err := compiles(t, Options{CacheDir: dir, Compiler: command}); err != nil || said != "" {
			t.Errorf("with %s: %v, logged %q", command[1:], err, said)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, codecache.Subdir, scratch.Cache+"*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

func TestCompilerThatExceedsItsLimits(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		_, err := compiles(t, Options{CacheDir: dir, Compiler: self(t, asGlutton)})
		if abi.CodeOf(err) != abi.TooLarge || !strings.Contains(err.Error(), "MiB of memory") {
			t.Errorf("cache %q: %v", dir, err)
		}
	}
}

// If a compiler runs out of time without having used the processor, the machine was busy,
// and the module is not at fault.
func TestCompilerThatIsStarved(t *testing.T) {
	command := exec.Command(self(t, asSloth)[0], asSloth)
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // the signal
	for late, want := range map[bool]string{true: "less busy", false: "external signal"} {
		err := untimely(compileOrder{Seconds: 10, Memory: 1 << 30}, late, command.ProcessState, errNoProcess)
		if abi.CodeOf(err) != abi.Unavailable || !strings.Contains(err.Error(), want) {
			t.Errorf("late %v: %v", late, err)
		}
	}
}

// A process that cannot be started is reported, and the module is compiled
// here.
func TestCompilerThatIsMissing(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		said, err := compiles(t, Options{CacheDir: dir, Compiler: []string{filepath.Join(t.TempDir(), "none")}})
		if err != nil || !strings.Contains(said, "compiled in this process") {
			t.Errorf("cache %q: %v, logged %q", dir, err, said)
		}
	}
}

// BenchmarkCompile compares compiling a large module in a process and in this
// one.
func BenchmarkCompile(b *testing.B) {
	path, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for name, command := range map[string][]string{"here": nil, "apart": {path, asCompiler}} {
		b.Run(name, func(b *testing.B) {
			wasm := large(b)
			for b.Loop() {
				h, err := New(b.Context(), Options{Compiler: command})
				if err != nil {
					b.Fatal(err)
				}
				m, err := h.Compile(b.Context(), wasm)
				if err != nil {
					b.Fatal(err)
				}
				if err := errors.Join(m.Close(b.Context()), h.Close(b.Context())); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
