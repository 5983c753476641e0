package host

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
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

// ways are the ways in which a host comes by the code that it runs.
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
