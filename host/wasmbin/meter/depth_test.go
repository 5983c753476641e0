package meter_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tetratelabs/wazero/api"

	"github.com/seed47132306/terrarium/host/wasmbin/meter"
)

func TestDepthEndsRecursion(t *testing.T) {
	wasm := instrument(t, readModule(t, "work"), meter.Instrument)
	for _, interpreter := range []bool{false, true} {
		for name, arg := range map[string]uint64{"deep": 1 << 30, "deep_wide": 1 << 30, "bounce": 0} {
			// wazero's interpreter allows at most 2,000 nested calls.
			g := newGuest(t, wasm, setting{interpreter: interpreter, depth: 100_000})
			if _, err := g.call(name, arg); !errors.Is(err, errDepth) {
				t.Errorf("%s, interpreter %t: ended with %v", name, interpreter, err)
			}
		}
	}
}

// deepest returns how many levels a function reaches.
func deepest(t *testing.T, wasm []byte, name string, s setting) uint64 {
	t.Helper()
	p := newProgram(t, wasm, s, nil)
	low, high := uint64(0), uint64(1)<<20 // low succeeds, high does not
	for high-low > 1 {
		middle := (low + high) / 2
		_, err := p.instance(s).call(name, middle)
		switch {
		case err == nil:
			low = middle
		case errors.Is(err, errDepth):
			high = middle
		default:
			t.Fatal(err)
		}
	}
	return low
}

func TestDepthDependsOnFrames(t *testing.T) {
	wasm := instrument(t, readModule(t, "work"), meter.Instrument)
	s := setting{depth: 50_000}
	narrow, wide := deepest(t, wasm, "deep", s), deepest(t, wasm, "deep_wide", s)
	if narrow < 300 || wide > narrow*2/3 {
		t.Errorf("narrow frames nest %d deep and wide ones %d", narrow, wide)
	}
	s.interpreter = true
	if got := deepest(t, wasm, "deep", s); got != narrow {
		t.Errorf("the compiler allows %d levels and the interpreter %d", narrow, got)
	}
	s = setting{depth: 100_000}
	if got := deepest(t, wasm, "deep", s); got < 2*narrow-2 || got > 2*narrow+2 {
		t.Errorf("%d levels in 50000 bytes and %d in twice of it", narrow, got)
	}
}

// TestDepthIsGivenBack repeatedly calls to the maximum depth.
func TestDepthIsGivenBack(t *testing.T) {
	wasm := instrument(t, readModule(t, "work"), meter.Instrument)
	s := setting{depth: 20_000}
	g := newGuest(t, wasm, s)
	most := deepest(t, wasm, "deep", s)
	for range 3 {
		g.must("deep", most)
		g.must("bomb", 8)
	}
}

// TestDepthCountsThroughHost lets hostcalls call the guest again.
func TestDepthCountsThroughHost(t *testing.T) {
	levels := 0
	again := func(ctx context.Context, m api.Module, stack []uint64) {
		levels++
		if _, err := m.ExportedFunction("nest").Call(ctx, stack[0]); err != nil {
			panic(err)
		}
	}
	wasm := instrument(t, readModule(t, "work"), meter.Instrument)
	g := newProgram(t, wasm, setting{}, map[string]api.GoModuleFunc{"again": again}).instance(setting{depth: 5_000})
	if _, err := g.call("nest", 1); !errors.Is(err, errDepth) {
		t.Errorf("it ended with %v", err)
	}
	if levels < 10 || levels > 100 {
		t.Errorf("the host was called at %d levels", levels)
	}
}
