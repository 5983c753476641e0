package meter_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/host/wasmbin/meter"
)

// The default limits of guests in tests.
const (
	plenty    = int64(1) << 50
	deep      = int64(4) << 20
	tableRoom = int64(1000)
)

// The errors that end guests.
var (
	errFuel  = errors.New("the fuel is used up")
	errDepth = errors.New("calls nest too deep")
)

func readModule(t testing.TB, name string) []byte {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join("testdata", name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

func decode(t testing.TB, wasm []byte) (*wasmbin.Module, []wasmbin.FuncInfo) {
	t.Helper()
	m, err := wasmbin.Read(wasm, wasmbin.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	infos, err := m.Validate(wasmbin.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return m, infos
}

type instrumenter func(*wasmbin.Module, []wasmbin.FuncInfo) (*meter.Meta, error)

// instrument returns the metered module, which must be valid.
func instrument(t testing.TB, wasm []byte, how instrumenter) []byte {
	t.Helper()
	m, infos := decode(t, wasm)
	if _, err := how(m, infos); err != nil {
		t.Fatal(err)
	}
	out := m.Write()
	decode(t, out)
	return out
}

// setting configures how a guest is run.
type setting struct {
	interpreter bool
	close       bool // wazero's own way to end a guest
	slice       int64
	limit       int64 // 0 means plenty
	depth       int64 // 0 means a large depth
}

// program is a compiled module, metered or not. Only one guest of it is in use
// at a time: the last one made.
type program struct {
	t        testing.TB
	ctx      context.Context
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	imports  map[string]api.GoModuleFunc
	guest    *guest
}

// guest is an instance of a program.
type guest struct {
	setting
	t       testing.TB
	ctx     context.Context
	mod     api.Module
	fuel    api.MutableGlobal // nil if the module is not metered
	nesting api.MutableGlobal
	budget  meter.Budget
	pauses  int
}

// newProgram compiles a module. Imported functions missing in imports return
// zeroes.
func newProgram(t testing.TB, wasm []byte, s setting, imports map[string]api.GoModuleFunc) *program {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	config := wazero.NewRuntimeConfigCompiler()
	if s.interpreter {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	config = config.WithCoreFeatures(api.CoreFeaturesV2).WithCloseOnContextDone(s.close)
	p := &program{t: t, ctx: ctx, runtime: wazero.NewRuntimeWithConfig(ctx, config), imports: imports}
	t.Cleanup(func() { p.runtime.Close(context.Background()) })
	var err error
	if p.compiled, err = p.runtime.CompileModule(ctx, wasm); err != nil {
		t.Fatal(err)
	}
	p.provide()
	return p
}

// provide makes every function that the module imports.
func (p *program) provide() {
	modules := map[string]wazero.HostModuleBuilder{}
	for _, f := range p.compiled.ImportedFunctions() {
		module, name, _ := f.Import()
		if module == wasi_snapshot_preview1.ModuleName {
			if p.runtime.Module(module) == nil {
				wasi_snapshot_preview1.MustInstantiate(p.ctx, p.runtime)
			}
			continue
		}
		b, ok := modules[module]
		if !ok {
			b = p.runtime.NewHostModuleBuilder(module)
			modules[module] = b
		}
		results := len(f.ResultTypes())
		do := func(_ context.Context, _ api.Module, stack []uint64) { clear(stack[:results]) }
		if own := p.imports[name]; own != nil {
			do = own
		}
		if module == meter.ImportModule {
			do = p.pause
		}
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(do), f.ParamTypes(), f.ResultTypes()).Export(name)
	}
	for _, b := range modules {
		if _, err := b.Instantiate(p.ctx); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *program) pause(_ context.Context, _ api.Module, stack []uint64) {
	p.guest.pauses++
	fuel, depth := int64(stack[0]), int64(stack[1])
	if depth < 0 {
		panic(errDepth)
	}
	more, ok := p.guest.budget.More(fuel)
	if !ok {
		panic(errFuel)
	}
	stack[0] = uint64(more)
}

// instance makes a guest, which replaces the last one.
func (p *program) instance(s setting) *guest {
	p.t.Helper()
	if p.guest != nil {
		p.guest.mod.Close(p.ctx)
	}
	g := &guest{setting: s, t: p.t, ctx: p.ctx}
	p.guest = g
	var err error
	g.mod, err = p.runtime.InstantiateModule(p.ctx, p.compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		p.t.Fatal(err)
	}
	if fuel, ok := g.mod.ExportedGlobal(meter.ExportFuel).(api.MutableGlobal); ok {
		g.fuel, g.nesting = fuel, g.mod.ExportedGlobal(meter.ExportDepth).(api.MutableGlobal)
	}
	if room, ok := g.mod.ExportedGlobal(meter.ExportTable).(api.MutableGlobal); ok {
		room.Set(uint64(tableRoom))
	}
	for _, name := range []string{meter.ExportStart, "_initialize"} {
		if g.mod.ExportedFunction(name) != nil {
			g.must(name)
		}
	}
	return g
}

func newGuest(t testing.TB, wasm []byte, s setting) *guest {
	t.Helper()
	return newProgram(t, wasm, s, nil).instance(s)
}

// call calls an exported function, after resetting all limits.
func (g *guest) call(name string, args ...uint64) ([]uint64, error) {
	g.pauses = 0
	if g.fuel != nil {
		g.budget = meter.Budget{Limit: g.limit, Slice: g.slice}
		if g.limit == 0 {
			g.budget.Limit = plenty
		}
		g.fuel.Set(uint64(g.budget.Begin()))
		depth := g.depth
		if depth == 0 {
			depth = deep
		}
		g.nesting.Set(uint64(depth))
	}
	return g.mod.ExportedFunction(name).Call(g.ctx, args...)
}

func (g *guest) must(name string, args ...uint64) []uint64 {
	g.t.Helper()
	results, err := g.call(name, args...)
	if err != nil {
		g.t.Fatalf("%s%v: %v", name, args, err)
	}
	return results
}

func (g *guest) used() int64 { return g.budget.Used(int64(g.fuel.Get())) }

// trapText returns the first line of an error, which says what happened.
func trapText(err error) string {
	if err == nil {
		return ""
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}
