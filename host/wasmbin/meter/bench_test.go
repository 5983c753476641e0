package meter_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seed47132306/terrarium/host/wasmbin/meter"
)

// workloads lists the programs on which metering is measured.
var workloads = []struct {
	name   string
	module func(testing.TB) []byte
	call   string
	arg    uint64
}{
	{"loop", work, "count", 100_000},
	{"memory", work, "memory_traffic", 100_000},
	{"recursion", work, "fib", 20},
	{"sort", work, "sort", 10_000},
	{"csort", buildC, "run", 1},
	{"go", buildGo, "run", 1},
}

func work(t testing.TB) []byte { return readModule(t, "work") }

func buildC(t testing.TB) []byte {
	if _, err := exec.LookPath("clang"); err != nil {
		t.Skip("clang is not installed; make toolchains installs it")
	}
	return build(t, nil, "clang", "--target=wasm32", "-O2", "-nostdlib", "-Wl,--no-entry", "testdata/csort/csort.c", "-o")
}

func buildGo(t testing.TB) []byte {
	return build(t, []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0"},
		"go", "build", "-trimpath", "-buildmode=c-shared", "-ldflags=-s -w", "-o")
}

// build runs a compiler; the name of its output is added as the last argument,
// or in front of the package for Go.
func build(t testing.TB, env []string, command ...string) []byte {
	t.Helper()
	target := filepath.Join(t.TempDir(), "module.wasm")
	command = append(command, target)
	if command[0] == "go" {
		command = append(command, "./testdata/gowork")
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command[0], err, out)
	}
	wasm, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// BenchmarkMetering runs each workload unmetered, metered, and with wazero's
// own way to end a guest.
func BenchmarkMetering(b *testing.B) {
	for _, w := range workloads {
		b.Run(w.name, func(b *testing.B) {
			wasm := w.module(b)
			for _, v := range []struct {
				name string
				wasm func() []byte
				setting
			}{
				{"unmetered", func() []byte { return wasm }, setting{}},
				{"metered", func() []byte { return instrument(b, wasm, meter.Instrument) }, setting{slice: meter.Slice}},
				{"close-on-context-done", func() []byte { return wasm }, setting{close: true}},
			} {
				b.Run(v.name, func(b *testing.B) {
					g := newGuest(b, v.wasm(), v.setting)
					for b.Loop() {
						g.must(w.call, w.arg)
					}
					if g.fuel != nil {
						b.ReportMetric(float64(g.used()), "fuel/op")
					}
				})
			}
		})
	}
}

// BenchmarkInstrument rewrites a module of standard Go.
func BenchmarkInstrument(b *testing.B) {
	wasm := buildGo(b)
	grown := 0
	b.SetBytes(int64(len(wasm)))
	for b.Loop() {
		b.StopTimer()
		m, infos := decode(b, wasm)
		b.StartTimer()
		if _, err := meter.Instrument(m, infos); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		grown = len(m.Write())
		b.StartTimer()
	}
	b.ReportMetric(float64(grown)/float64(len(wasm)), "size-ratio")
}

// BenchmarkCompile compiles the module unmetered and metered.
func BenchmarkCompile(b *testing.B) {
	wasm := buildGo(b)
	for _, v := range []struct {
		name string
		wasm []byte
	}{{"unmetered", wasm}, {"metered", instrument(b, wasm, meter.Instrument)}} {
		b.Run(v.name, func(b *testing.B) {
			for b.Loop() {
				newProgram(b, v.wasm, setting{}, nil)
			}
		})
	}
}
