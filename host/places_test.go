package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/internal/codecache"
	"github.com/seed47132306/terrarium/host/wasmbin"
)

// faultLines returns the lines of fault.c that its comments name.
func faultLines(t testing.TB) map[string]int {
	source, err := os.ReadFile("testdata/lines/fault.c")
	if err != nil {
		t.Fatal(err)
	}
	lines, tag := map[string]int{}, regexp.MustCompile(`// here: (.*)`)
	for i, line := range strings.Split(string(source), "\n") {
		if m := tag.FindStringSubmatch(line); m != nil {
			lines[m[1]] = i + 1
		}
	}
	return lines
}

// ways lists the ways in which a host gets the code that it runs.
func ways(t *testing.T) map[string]Options {
	command := self(t, asCompiler)
	return map[string]Options{
		"compiler": {}, "interpreter": {Interpreter: true}, "cache": {CacheDir: t.TempDir()},
		"process": {Compiler: command}, "process and cache": {Compiler: command, CacheDir: t.TempDir()},
	}
}

// padded returns a module with one more function, so large that another process
// compiles the module. The places of the other functions stay.
func padded(t testing.TB, wasm []byte) []byte {
	m, err := wasmbin.Read(wasm, wasmbin.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	before := m.CodeOffsets()
	for i, c := range m.Code {
		if c.Offset-m.CodeOffset != before[i] {
			t.Fatalf("writing the module moves function %d", i)
		}
	}
	m.AddFunc(m.AddType(wasmbin.FuncType{}), padding())
	if after := m.CodeOffsets()[:len(before)]; !slices.Equal(before, after) {
		t.Fatalf("the functions have moved from %v to %v", before, after)
	}
	return m.Write()
}

// TestPlaces checks that every way to end a guest tells the lines of its
// source, innermost first, with inlined calls.
func TestPlaces(t *testing.T) {
	lines := faultLines(t)
	wasm := padded(t, readModule(t, "lines/fault"))
	for way, o := range ways(t) {
		t.Run(way, func(t *testing.T) {
			if o.CacheDir != "" {
				compile(t, newHost(t, o), wasm) // the other host finds the code in the cache
			}
			m := compile(t, newHost(t, o), wasm)
			for _, c := range []struct {
				what   string
				kind   abi.Kind
				code   abi.Code
				text   string
				places []string
			}{
				{"divides by zero", 1, abi.Trapped, "integer divide by zero", []string{"divide", "twice", "case 1"}},
				{"reads out of bounds", 2, abi.Trapped, "out of bounds memory access", []string{"reach", "case 2"}},
				{"traps", 3, abi.Trapped, "unreachable", []string{"case 3"}},
				{"recurses", 4, abi.LimitExceeded, "the limit stack", nil},
				{"loops", 5, abi.OutOfFuel, "the limit fuel", []string{"spin", "case 5"}},
				{"calls what is no function", 6, abi.Trapped, "invalid table access", []string{"call", "case 6"}},
			} {
				t.Run(c.what, func(t *testing.T) {
					i := instantiate(t, m, &abi.Limits{Deadline: time.Minute, Fuel: 1_000_000, Stack: 64 << 10})
					err := i.Handle(t.Context(), &fakeTurn{}, c.kind, 0)
					if abi.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text) {
						t.Fatalf("the error is %v, want %v with %q", err, c.code, c.text)
					}
					at := 0
					for _, p := range c.places {
						place := fmt.Sprintf("at fault.c:%d:", lines[p])
						next := strings.Index(err.Error()[at:], place)
						if lines[p] == 0 || next < 0 {
							t.Fatalf("the error has no %s (%s) behind %q: %v", place, p, err.Error()[:at], err)
						}
						at += next
					}
					if c.places == nil && !strings.Contains(err.Error(), "(in sink at fault.c:") {
						t.Errorf("the error does not tell where it recursed: %v", err)
					}
				})
			}
		})
	}
}

// failOf returns the text of the error with which a guest ends.
func failOf(t testing.TB, m abi.Module, kind abi.Kind) string {
	t.Helper()
	i := instantiate(t, m, &abi.Limits{Deadline: time.Minute, Fuel: 1_000_000, Stack: 64 << 10})
	err := i.Handle(t.Context(), &fakeTurn{}, kind, 0)
	if err == nil {
		t.Fatalf("the kind %d does not end the guest", kind)
	}
	if err := i.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return err.Error()
}

// stripped returns a module without its debugging information.
func stripped(t testing.TB, wasm []byte) []byte {
	m, err := wasmbin.Read(wasm, wasmbin.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	m.Customs = nil
	return m.Write()
}

// temporary makes a directory for temporary files, and returns a function that counts the
// copies of original modules in it.
func temporary(t *testing.T) func() int {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	return func() int {
		files, err := filepath.Glob(filepath.Join(dir, "*", "original-*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
}

// Without debugging information errors have the names of functions; without names, errors
// of limits have no place.
func TestNoPlaces(t *testing.T) {
	files := temporary(t)
	m := compile(t, newHost(t, Options{}), stripped(t, readModule(t, "lines/fault")))
	for kind, want := range map[abi.Kind]string{
		1: "creature_handle: the guest trapped: integer divide by zero (in divide < creature_handle)",
		5: "creature_handle: the guest used up the limit fuel, 1000000 units (in spin < creature_handle); raise the limit fuel, or do less in one turn",
	} {
		if got := failOf(t, m, kind); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
	if files() != 0 {
		t.Errorf("%d files are kept", files())
	}
	long, err := wasmbin.Read(readModule(t, "lines/fault"), wasmbin.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range long.Names.Funcs {
		long.Names.Funcs[i].Name = strings.Repeat("n", 60_000)
	}
	long.Customs = nil
	nameless := *long
	nameless.Names = nil
	want := "creature_handle: the guest used up the limit fuel, 1000000 units; raise the limit fuel, or do less in one turn"
	if got := failOf(t, compile(t, newHost(t, Options{}), nameless.Write()), 5); got != want {
		t.Errorf("without names it says %q, want %q", got, want)
	}
	name := strings.Repeat("n", maxFrameName) + "…"
	if got := failOf(t, compile(t, newHost(t, Options{}), long.Write()), 1); !strings.HasSuffix(got, "(in "+name+" < "+name+")") {
		t.Errorf("with long names it says %.300q", got)
	}
}

// The original module is kept in a file as long as the code, and is read once
// for each place.
func TestPlacesAreRemembered(t *testing.T) {
	files := temporary(t)
	h := newHost(t, Options{})
	m := compile(t, h, readModule(t, "lines/fault"))
	if files() != 1 {
		t.Fatalf("%d files are kept", files())
	}
	first := failOf(t, m, 1)
	file := m.(*Module).compiled.places.file
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	if again := failOf(t, m, 1); again != first || !strings.Contains(again, "fault.c:") {
		t.Errorf("first it says %q, then %q", first, again)
	}
	if other := failOf(t, m, 3); !strings.HasSuffix(other, "unreachable (in creature_handle)") {
		t.Errorf("without the original it says %q", other)
	}
	if err := os.Rename(file+".away", file); err != nil {
		t.Fatal(err)
	}
	i := instantiate(t, m, nil)
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if files() != 1 {
		t.Errorf("%d files are kept while there is an instance", files())
	}
	if err := i.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if files() != 0 {
		t.Errorf("%d files are left", files())
	}
}

// Modules with the same code share an entry of the cache, and each has its own
// lines.
func TestSameCodeWithOtherLines(t *testing.T) {
	dir := t.TempDir()
	texts := map[string]bool{}
	for _, name := range []string{"lines/fault", "lines/fault5", "lines/fault"} {
		h := newHost(t, Options{CacheDir: dir})
		a, b := compile(t, h, readModule(t, name)), compile(t, h, readModule(t, "lines/fault5"))
		texts[failOf(t, a, 1)], texts[failOf(t, b, 1)] = true, true
	}
	if len(texts) != 1 {
		t.Errorf("versions 4 and 5 of DWARF say: %v", texts)
	}
	entries, err := filepath.Glob(filepath.Join(dir, codecache.Subdir, codecache.EntryDirs+"*", "*"))
	if err != nil || len(entries) != 1 {
		t.Errorf("the cache has %v (%v)", entries, err)
	}
}

// TestPlacesAtOnce lets many guests of a module trap at once.
func TestPlacesAtOnce(t *testing.T) {
	m := compile(t, newHost(t, Options{}), readModule(t, "lines/fault"))
	var group sync.WaitGroup
	for n := range 8 {
		kind := abi.Kind(1 + n%3)
		i := instantiate(t, m, nil)
		group.Go(func() {
			if err := i.Handle(context.Background(), &fakeTurn{}, kind, 0); err == nil || !strings.Contains(err.Error(), "fault.c:") {
				t.Errorf("the kind %d says %v", kind, err)
			}
		})
	}
	group.Wait()
}

// A turn takes the same allocations with debugging information and without.
func TestPlacesCostNothingBeforeATrap(t *testing.T) {
	h := newHost(t, Options{})
	var allocations [2]float64
	for n, wasm := range [][]byte{readModule(t, "lines/fault"), stripped(t, readModule(t, "lines/fault"))} {
		i, turn := instantiate(t, compile(t, h, wasm), nil), &quietTurn{}
		allocations[n] = testing.AllocsPerRun(100, func() {
			if err := i.Handle(t.Context(), turn, 0, 0); err != nil {
				t.Fatal(err)
			}
		})
	}
	if allocations[0] != allocations[1] {
		t.Errorf("a turn allocates %v times, and %v without debugging information", allocations[0], allocations[1])
	}
}
