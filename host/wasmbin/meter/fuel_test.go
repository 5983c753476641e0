package meter_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tetratelabs/wazero/api"

	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/host/wasmbin/meter"
)

// jobs lists calls of the module work that end.
var jobs = []struct {
	name string
	arg  uint64
}{
	{"count", 0}, {"count", 1}, {"count", 5000}, {"memory_traffic", 3000}, {"fib", 14}, {"sort", 200},
	{"trap_late", 1}, {"trap_late", 900}, {"deep", 300}, {"deep_wide", 200}, {"bomb", 9}, {"tick", 3},
	{"copy_once", 10}, {"copy_once", 5000}, {"copy_once", 1 << 20}, {"copy_once", 1 << 30}, {"grow", 2},
}

// TestSameAsUnmetered compares results, traps and memory.
func TestSameAsUnmetered(t *testing.T) {
	wasm := readModule(t, "work")
	plain := newGuest(t, wasm, setting{})
	metered := newGuest(t, instrument(t, wasm, meter.Instrument), setting{slice: 100})
	for _, job := range jobs {
		want, wantErr := plain.call(job.name, job.arg)
		got, err := metered.call(job.name, job.arg)
		if fmt.Sprint(got) != fmt.Sprint(want) || trapText(err) != trapText(wantErr) {
			t.Errorf("%s(%d) = %v, %s; unmetered %v, %s", job.name, job.arg, got, trapText(err), want, trapText(wantErr))
		}
	}
	if !equalMemory(plain, metered) {
		t.Error("the memories differ")
	}
}

func equalMemory(a, b *guest) bool {
	left, _ := a.mod.Memory().Read(0, a.mod.Memory().Size())
	right, _ := b.mod.Memory().Read(0, b.mod.Memory().Size())
	return string(left) == string(right)
}

// TestFuelDoesNotVary runs everything on both engines and in slices of all
// sizes, to its end and to limits on the way.
func TestFuelDoesNotVary(t *testing.T) {
	wasm := instrument(t, readModule(t, "work"), meter.Instrument)
	programs := map[bool]*program{}
	for _, interpreter := range []bool{false, true} {
		programs[interpreter] = newProgram(t, wasm, setting{interpreter: interpreter}, nil)
	}
	settings := []setting{{interpreter: true}, {slice: 1}, {slice: 37}, {slice: 1000, interpreter: true}, {slice: 1 << 40}}
	for _, job := range jobs {
		run := func(s setting) string {
			g := programs[s.interpreter].instance(s)
			results, err := g.call(job.name, job.arg)
			return fmt.Sprintf("%d used, %v, %s", g.used(), results, trapText(err))
		}
		g := programs[false].instance(setting{})
		_, _ = g.call(job.name, job.arg) // how it ends is compared below
		used := g.used()
		for _, limit := range []int64{0, 1, used / 2, used - 1, used} {
			want := run(setting{limit: limit})
			for _, s := range settings {
				s.limit = limit
				if got := run(s); got != want {
					t.Errorf("%s(%d) %+v: %s; want %s", job.name, job.arg, s, got, want)
				}
			}
		}
	}
}

// TestLimitEndsEverything runs guests that never end by themselves.
func TestLimitEndsEverything(t *testing.T) {
	wasm := instrument(t, readModule(t, "work"), meter.Instrument)
	for _, name := range []string{"spin", "bomb", "host_loop", "fill_loop", "grow_loop"} {
		const limit = 2_000_000
		g := newGuest(t, wasm, setting{limit: limit, slice: meter.Slice})
		var args []uint64
		if name == "bomb" {
			args = []uint64{60}
		}
		_, err := g.call(name, args...)
		if !errors.Is(err, errFuel) {
			t.Errorf("%s ended with %v", name, err)
		}
		if over := g.used() - limit; over <= 0 || over > 20_000 {
			t.Errorf("%s used %d more than its limit", name, over)
		}
		if g.pauses < limit/meter.Slice {
			t.Errorf("%s paused only %d times", name, g.pauses)
		}
	}
}

// TestHostcallSeesFuel reads and lowers the fuel while the guest waits.
func TestHostcallSeesFuel(t *testing.T) {
	const price = 10_000
	var seen []int64
	var g *guest
	tick := func(context.Context, api.Module, []uint64) {
		fuel := int64(g.fuel.Get())
		seen = append(seen, g.budget.Left(fuel))
		g.fuel.Set(uint64(fuel - price))
	}
	wasm := instrument(t, readModule(t, "work"), meter.Instrument)
	g = newProgram(t, wasm, setting{}, map[string]api.GoModuleFunc{"tick": tick}).instance(setting{limit: 50_000})
	g.must("tick", 1)
	if len(seen) != 2 || seen[0]-seen[1] != price {
		t.Errorf("the hostcalls saw %v left; between them are %d", seen, price)
	}
	if want := 50_000 - seen[1] + price; g.used() != want {
		t.Errorf("%d used in the end, want %d", g.used(), want)
	}
	if _, err := g.call("host_loop"); !errors.Is(err, errFuel) || len(seen) > 2+6 {
		t.Errorf("%d expensive hostcalls ended with %v", len(seen)-2, err)
	}
}

// TestChargesAreClose compares the charges with the exact cost.
func TestChargesAreClose(t *testing.T) {
	wasm := readModule(t, "work")
	metered := newGuest(t, instrument(t, wasm, meter.Instrument), setting{})
	exact := newGuest(t, instrument(t, wasm, meter.InstrumentExactly), setting{})
	for _, job := range jobs {
		_, err := metered.call(job.name, job.arg)
		if _, exactErr := exact.call(job.name, job.arg); trapText(err) != trapText(exactErr) {
			t.Fatalf("%s(%d) ended with %v, and exactly metered with %v", job.name, job.arg, err, exactErr)
		}
		if err == nil && (metered.used() < exact.used() || metered.used() > 2*exact.used()) {
			t.Errorf("%s(%d) used %d; exactly it is %d", job.name, job.arg, metered.used(), exact.used())
		}
	}
}

// TestLongCodePauses runs long code without loops whose instructions are
// expensive, in one piece and behind many loops.
func TestLongCodePauses(t *testing.T) {
	expensive := func(body []byte) []byte {
		body = append(wasmbin.OpI32Const.Append(body), 0)
		return wasmbin.OpDrop.Append(append(wasmbin.OpMemoryGrow.Append(body), 0))
	}
	for _, loops := range []bool{false, true} {
		m := &wasmbin.Module{Memories: []wasmbin.Memory{{}}}
		var body []byte
		for i := range 8_000 {
			body = expensive(body)
			if loops && i%40 == 0 {
				body = wasmbin.BlockEmpty.Append(wasmbin.OpLoop.Append(body))
				body = wasmbin.OpEnd.Append(body)
			}
		}
		f := m.AddFunc(m.AddType(wasmbin.FuncType{}), wasmbin.Code{Body: wasmbin.OpEnd.Append(body)})
		m.AddExport("run", wasmbin.ExternFunc, f)
		g := newGuest(t, instrument(t, m.Write(), meter.Instrument), setting{slice: 50_000})
		g.must("run")
		if g.used() < 2_000_000 || g.pauses < int(g.used()/80_000) {
			t.Errorf("loops %t: it paused %d times in %d units", loops, g.pauses, g.used())
		}
	}
}
