package meter

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/host/internal/lines"
	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/host/wasmbin/internal/wasmgen"
	"github.com/seed47132306/terrarium/host/wasmbin/internal/wasmrun"
)

// trace instruments a module and returns the origins of its code.
func trace(t testing.TB, module []byte) (*wasmbin.Module, *Origins) {
	t.Helper()
	m, err := wasmbin.Read(module, wasmbin.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	infos, err := m.Validate(wasmbin.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	_, o, err := Trace(m, infos)
	if err != nil {
		t.Fatal(err)
	}
	return m, o
}

// TestEveryInstructionHasItsOrigin checks the whole code of generated modules:
// each new instruction comes from one of the guest, in their order, none of
// which is left out, and copied ones from the same bytes.
func TestEveryInstructionHasItsOrigin(t *testing.T) {
	for seed := range uint64(300) {
		wasm := wasmgen.Generate(wasmgen.Seeded(seed))
		guest, _ := wasmbin.Read(wasm, wasmbin.Limits{})
		m, o := trace(t, wasm)
		if again := instrumented(&testing.T{}, wasm); !bytes.Equal(again, m.Write()) {
			t.Fatalf("seed %d: Trace and Instrument differ", seed)
		}
		for f := range guest.Code {
			var starts []int
			it := wasmbin.NewInstrs(guest.Code[f].Body)
			for it.Next() {
				starts = append(starts, guest.Code[f].Offset-guest.CodeOffset+it.Start)
			}
			next := 0 // the first instruction not seen yet
			it = wasmbin.NewInstrs(m.Code[f].Body)
			for it.Next() {
				from, before, ok := o.Of(m.CodeOffsets()[f] + it.Start)
				i, exact := slices.BinarySearch(starts, from)
				switch {
				case !ok || !exact:
					t.Fatalf("seed %d, function %d, offset %d: %d is no instruction of it", seed, f, it.Start, from)
				case i == next && !before:
					next++
				case i != next && i != next-1:
					t.Fatalf("seed %d, function %d, offset %d: it comes from instruction %d, expected %d", seed, f, it.Start, i, next)
				}
				at := guest.CodeOffset + from
				if _, own := o.kindAt(f, it.Start); own && !bytes.HasPrefix(wasm[at:], m.Code[f].Body[it.Start:it.End]) {
					t.Fatalf("seed %d, function %d, offset %d: %v differs from its origin", seed, f, it.Start, it.Op)
				}
			}
			if next != len(starts) {
				t.Fatalf("seed %d, function %d: %d of %d instructions are left", seed, f, next, len(starts))
			}
		}
	}
}

// kindAt reports whether the code at an offset of a body is copied.
func (o *Origins) kindAt(function, offset int) (kind originKind, isCopied bool) {
	for _, r := range o.ranges[function] {
		if int(r.at) <= offset {
			kind = r.kind
		}
	}
	return kind, kind == copied
}

// TestTrapsComeFromTheirOrigins runs generated modules, each with a trap at a
// random instruction, in both engines and with and without metering: all tell
// the same places for every frame of every trap.
func TestTrapsComeFromTheirOrigins(t *testing.T) {
	compared, reached := 0, 0
	for seed := range uint64(200) {
		wasm, trap := withTrap(t, wasmgen.Generate(wasmgen.Seeded(seed)), rand.New(rand.NewPCG(seed, 1)))
		m, o := trace(t, wasm)
		m.Customs = lines.Marks()
		metered := m.Write()
		m, err := wasmbin.Read(wasm, wasmbin.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		m.Customs = lines.Marks()
		plain := m.Write()
		want, stopped := traps(t, metered, wasmrun.Runner{}, o)
		if stopped {
			continue
		}
		for what, run := range map[string]func() [][]int{
			"the interpreter": func() [][]int {
				got, _ := traps(t, metered, wasmrun.Runner{Interpreter: true}, o)
				return got
			},
			"without metering":                    func() [][]int { return plainTraps(t, plain, wasmrun.Runner{}) },
			"without metering in the interpreter": func() [][]int { return plainTraps(t, plain, wasmrun.Runner{Interpreter: true}) },
		} {
			got := run()
			if len(got) != len(want) {
				t.Fatalf("seed %d, %s: %d traps, want %d", seed, what, len(got), len(want))
			}
			for i := range got {
				n := min(len(got[i]), len(want[i])) // wazero cuts long stacks
				if n == 0 && len(got[i])+len(want[i]) > 0 || !slices.Equal(got[i][:n], want[i][:n]) {
					t.Fatalf("seed %d, %s, trap %d: at %v, want %v", seed, what, i, got[i], want[i])
				}
				compared += n
				if n > 0 && got[i][0] == trap {
					reached++
				}
			}
		}
	}
	if compared < 1000 || reached < 400 {
		t.Errorf("%d frames were compared, and %d traps were those of the test", compared, reached)
	}
}

// withTrap puts an unreachable instruction before a random one, and returns its
// offset in the code section.
func withTrap(t *testing.T, wasm []byte, random *rand.Rand) ([]byte, int) {
	t.Helper()
	m, err := wasmbin.Read(wasm, wasmbin.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	f := random.IntN(len(m.Code))
	var starts []int
	it := wasmbin.NewInstrs(m.Code[f].Body)
	for it.Next() {
		starts = append(starts, it.Start)
	}
	at := starts[random.IntN(len(starts))]
	body := m.Code[f].Body
	m.Code[f].Body = slices.Concat(body[:at], wasmbin.OpUnreachable.Append(nil), body[at:])
	return m.Write(), m.CodeOffsets()[f] + at
}

// traps returns the places of the traps of a run, each innermost first.
func traps(t *testing.T, module []byte, r wasmrun.Runner, o *Origins) (places [][]int, stopped bool) {
	t.Helper()
	r.Stop = func(err error) bool {
		var stack []int
		for line := range strings.Lines(err.Error()) {
			if offset, ok := lines.Offset(line); ok {
				if from, _, ok := o.Of(int(offset)); ok {
					stack = append(stack, from)
				}
			}
		}
		places = append(places, stack)
		return false
	}
	stopped = meteredRun(t, module, r, genFuel).Stopped != nil
	return places, stopped
}

func plainTraps(t *testing.T, module []byte, r wasmrun.Runner) (places [][]int) {
	t.Helper()
	r.Stop = func(err error) bool {
		var stack []int
		for line := range strings.Lines(err.Error()) {
			if offset, ok := lines.Offset(line); ok {
				stack = append(stack, int(offset))
			}
		}
		places = append(places, stack)
		return false
	}
	if _, err := r.Run(context.Background(), module); err != nil {
		t.Fatal(err)
	}
	return places
}
