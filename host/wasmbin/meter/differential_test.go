package meter

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/host/wasmbin/internal/wasmgen"
	"github.com/seed47132306/terrarium/host/wasmbin/internal/wasmrun"
)

// The limits of a generated module. The depth is less than wazero's
// interpreter allows, and the table elements are more than a module can
// request.
const (
	genFuel     = 100_000
	genDepth    = 100_000
	genElements = 1 << 30
)

func TestMeteredModulesBehaveAlike(t *testing.T) {
	for seed := range uint64(200) {
		compareMetered(t, wasmgen.Generate(wasmgen.Seeded(seed)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// FuzzMetered runs generated modules with and without metering.
func FuzzMetered(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(wasmgen.Seeded(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		compareMetered(t, wasmgen.Generate(data))
	})
}

// compareMetered checks that metering has no observable effect on a module,
// and that the fuel depends on neither the engine nor the slices.
func compareMetered(t *testing.T, module []byte) {
	t.Helper()
	instrumented := instrumented(t, module)
	metered := meteredRun(t, instrumented, wasmrun.Runner{}, genFuel/7)
	compareRuns(t, "compiler (-) and interpreter (+)", metered,
		meteredRun(t, instrumented, wasmrun.Runner{Interpreter: true}, genFuel/7))
	if metered.Stopped != nil {
		return
	}
	compareRuns(t, "large (-) and small (+) slices", metered, meteredRun(t, instrumented, wasmrun.Runner{}, 300))
	plain, err := wasmrun.Runner{}.Run(context.Background(), module)
	if err != nil {
		t.Fatalf("wazero refuses the module: %v", err)
	}
	if d := cmp.Diff(plain.Transcript, metered.Transcript); d != "" {
		t.Errorf("unmetered (-) and metered (+) differ:\n%s", d)
	}
	for i, cost := range work(t, module) {
		if metered.Fuel[i] < cost {
			t.Errorf("before call %d the fuel used is %d, for work of %d", i, metered.Fuel[i], cost)
		}
	}
}

// instrumented returns a module with metering, which is still valid.
func instrumented(t *testing.T, module []byte) []byte {
	t.Helper()
	m, infos := readValid(t, module)
	if _, err := Instrument(m, infos); err != nil {
		t.Fatalf("Instrument: %v", err)
	}
	out := m.Write()
	readValid(t, out)
	return out
}

func readValid(t *testing.T, module []byte) (*wasmbin.Module, []wasmbin.FuncInfo) {
	t.Helper()
	m, err := wasmbin.Read(module, wasmbin.Limits{})
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	infos, err := m.Validate(wasmbin.Limits{})
	if err != nil {
		t.Fatalf("Validate: %v", err)
	}
	return m, infos
}

// usage is a run of a metered module.
type usage struct {
	*wasmrun.Result
	Fuel []int64 // used by everything up to the end of each call
}

func compareRuns(t *testing.T, which string, a, b usage) {
	t.Helper()
	if d := cmp.Diff(a.Transcript, b.Transcript); d != "" {
		t.Errorf("%s differ:\n%s", which, d)
	}
	if d := cmp.Diff(a.Fuel, b.Fuel); d != "" {
		t.Errorf("%s use different fuel:\n%s", which, d)
	}
}

var (
	errFuel  = errors.New("out of fuel")
	errDepth = errors.New("too deep")
)

// meteredRun runs an instrumented module as a host does, and calls paused
// whenever the module pauses.
func meteredRun(t *testing.T, module []byte, r wasmrun.Runner, slice int64, paused ...func(api.Module)) usage {
	t.Helper()
	budget := Budget{Limit: genFuel, Slice: slice}
	var out usage
	left := func(mod api.Module) int64 { return int64(mod.ExportedGlobal(ExportFuel).Get()) }
	set := func(mod api.Module, name string, value int64) {
		if g, ok := mod.ExportedGlobal(name).(api.MutableGlobal); ok {
			g.Set(uint64(value))
		}
	}
	r.Host = func(ctx context.Context, rt wazero.Runtime) error {
		_, err := rt.NewHostModuleBuilder(ImportModule).NewFunctionBuilder().
			WithGoModuleFunction(pause(&budget, paused), []api.ValueType{api.ValueTypeI64, api.ValueTypeI64}, []api.ValueType{api.ValueTypeI64}).
			Export(ImportPause).Instantiate(ctx)
		return err
	}
	r.Start = func(ctx context.Context, mod api.Module) error {
		set(mod, ExportFuel, budget.Begin())
		set(mod, ExportTable, genElements)
		set(mod, ExportDepth, genDepth)
		if start := mod.ExportedFunction(ExportStart); start != nil {
			_, err := start.Call(ctx)
			return err
		}
		return nil
	}
	r.Before = func(_ context.Context, mod api.Module) error {
		out.Fuel = append(out.Fuel, budget.Used(left(mod)))
		set(mod, ExportDepth, genDepth)
		return nil
	}
	see := r.Stop
	r.Stop = func(err error) bool {
		return see != nil && see(err) || errors.Is(err, errFuel) || errors.Is(err, errDepth)
	}
	result, err := r.Run(context.Background(), module)
	if err != nil {
		t.Fatalf("wazero refuses the metered module: %v", err)
	}
	out.Result = result
	return out
}

// pause is the function that a module calls when its slice or depth is used
// up.
func pause(budget *Budget, paused []func(api.Module)) api.GoModuleFunc {
	return func(_ context.Context, mod api.Module, stack []uint64) {
		for _, f := range paused {
			f(mod)
		}
		fuel, depth := int64(stack[0]), int64(stack[1])
		if depth < 0 {
			panic(errDepth)
		}
		if fuel >= 0 {
			return
		}
		more, ok := budget.More(fuel)
		if !ok {
			panic(errFuel)
		}
		stack[0] = uint64(more)
	}
}

// exportCounted is the global of count.
const exportCounted = "counted"

// count makes a module add up the cost of each instruction in place: the
// simplest possible meter. Its result is a lower bound of the charge, because
// it ignores costs that depend on operands.
func count(m *wasmbin.Module) {
	global := m.AddGlobal(wasmbin.Global{
		GlobalType: wasmbin.GlobalType{Type: wasmbin.I64, Mutable: true},
		Init:       wasmbin.ConstExpr{Op: wasmbin.OpI64Const},
	})
	m.AddExport(exportCounted, wasmbin.ExternGlobal, global)
	for i := range m.Code {
		var a asm
		it := wasmbin.NewInstrs(m.Code[i].Body)
		for it.Next() {
			if c := costOf(it.Op); c > 0 {
				a.index(wasmbin.OpGlobalGet, global)
				a.number(wasmbin.OpI64Const, c)
				a.op(wasmbin.OpI64Add)
				a.index(wasmbin.OpGlobalSet, global)
			}
			a.raw(m.Code[i].Body[it.Start:it.End])
		}
		m.Code[i].Body = a.code
	}
}

func counted(mod api.Module) int64 { return int64(mod.ExportedGlobal(exportCounted).Get()) }

// work holds the counts of a module before each call, like the fuel in usage.
func work(t *testing.T, module []byte) []int64 {
	t.Helper()
	m, _ := readValid(t, module)
	count(m)
	var out []int64
	r := wasmrun.Runner{Before: func(_ context.Context, mod api.Module) error {
		out = append(out, counted(mod))
		return nil
	}}
	if _, err := r.Run(context.Background(), m.Write()); err != nil {
		t.Fatalf("wazero refuses the counting module: %v", err)
	}
	return out
}

// A counting module is metered in slices of one unit, so that each check of
// the fuel becomes a pause: checks must not be far apart in any module.
func TestPausesAreNotFarApart(t *testing.T) {
	for seed := range uint64(120) {
		m, _ := readValid(t, wasmgen.Generate(wasmgen.Seeded(seed)))
		count(m)
		infos, err := m.Validate(wasmbin.Limits{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if _, err := Instrument(m, infos); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		last, most := int64(0), int64(0)
		meteredRun(t, m.Write(), wasmrun.Runner{}, 1, func(mod api.Module) {
			now := counted(mod)
			most = max(most, now-last)
			last = now
		})
		if most > maxRun {
			t.Errorf("seed %d: work of %d without a pause", seed, most)
		}
	}
}
