package wasmrun

import (
	"context"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/seed47132306/terrarium/host/wasmbin/internal/wasmgen"
)

// MemoryPages bounds the memory of the modules, which may request more.
const MemoryPages = 16

// Runner configures how modules are run. Its zero value uses wazero's compiler
// without metering. It may be copied; only one goroutine at a time may use it.
type Runner struct {
	// Interpreter runs modules in wazero's interpreter.
	Interpreter bool
	// Refuel gives bounded modules new fuel before each call.
	Refuel bool
	// Host, if not nil, adds host modules before the module is instantiated.
	Host func(context.Context, wazero.Runtime) error
	// Start, if not nil, is called after the module is instantiated and before
	// any other function. Its error counts as an error of the start function.
	Start func(context.Context, api.Module) error
	// Before, if not nil, is called before each call.
	Before func(context.Context, api.Module) error
	// Stop, if not nil, reports whether an error of a call ends the run at
	// once.
	Stop func(error) bool
}

// Result is the result of a run.
type Result struct {
	// Transcript has a line for each observation, in order.
	Transcript []string
	// Stopped is the error that Stop recognized.
	Stopped error
}

// Run instantiates a module, calls each of its functions twice and records the
// resulting state. An error means that the engine refused the module.
func (r Runner) Run(ctx context.Context, module []byte) (*Result, error) {
	config := wazero.NewRuntimeConfigCompiler()
	if r.Interpreter {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	rt := wazero.NewRuntimeWithConfig(ctx, config.WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(MemoryPages))
	run := &run{Runner: r, rt: rt, result: &Result{}}
	err := run.all(ctx, module)
	if closed := rt.Close(ctx); err == nil {
		err = closed
	}
	return run.result, err
}

// run is the state of one run.
type run struct {
	Runner
	rt      wazero.Runtime
	mod     api.Module
	nested  int
	result  *Result
	started bool
}

func (r *run) note(format string, args ...any) {
	r.result.Transcript = append(r.result.Transcript, fmt.Sprintf(format, args...))
}

func (r *run) all(ctx context.Context, module []byte) error {
	compiled, err := r.rt.CompileModule(ctx, module)
	if err != nil {
		return err
	}
	if r.Host != nil {
		if err := r.Host(ctx, r.rt); err != nil {
			return err
		}
	}
	if err := r.imports(ctx, compiled); err != nil {
		return err
	}
	r.mod, err = r.rt.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err == nil && r.Start != nil {
		err = r.Start(ctx, r.mod)
	}
	if err != nil {
		r.failed("start", err)
		return nil
	}
	r.started = true
	r.colour()
	r.calls(ctx)
	return nil
}

// colour fills zero bytes of the memory, because moving zeroes has no visible
// effect.
func (r *run) colour() {
	if m := r.mod.ExportedMemory(wasmgen.Memory); m != nil {
		view, _ := m.Read(0, m.Size())
		for i := range view {
			if view[i] == 0 {
				view[i] = byte(uint32(i) * 0x9e3779b1 >> 24)
			}
		}
	}
}

// failed records an error, and reports whether it ends the run.
func (r *run) failed(what string, err error) {
	if r.Stop != nil && r.Stop(err) {
		r.result.Stopped = err
	}
	r.note("%s: %s", what, reason(err))
}

// reason returns the cause of a trap from wazero's text, without the stack.
func reason(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if i := strings.LastIndex(text, "wasm error: "); i >= 0 {
		return text[i+len("wasm error: "):]
	}
	// A segment out of bounds is named by its kind and number.
	if i := strings.LastIndex(text, ": "); i >= 0 {
		return text[i+2:]
	}
	return text
}

// calls calls the exported functions in the order of their names, and records
// the state at the end.
func (r *run) calls(ctx context.Context) {
	r.call(ctx, wasmgen.Prepare, 0)
	for round := range 2 {
		for _, name := range functions(r.mod) {
			r.call(ctx, name, uint64(round))
			if r.result.Stopped != nil {
				return
			}
		}
	}
	r.call(ctx, wasmgen.Observe, 0)
	if m := r.mod.ExportedMemory(wasmgen.Memory); m != nil {
		view, _ := m.Read(0, m.Size())
		r.note("memory of %d bytes: %08x", m.Size(), crc32.ChecksumIEEE(view))
	}
}

func functions(mod api.Module) []string {
	var names []string
	for i := range 100 {
		if name := fmt.Sprintf("f%d", i); mod.ExportedFunction(name) != nil {
			names = append(names, name)
		}
	}
	return names
}

// call calls an export with arguments derived from its name and the round.
func (r *run) call(ctx context.Context, name string, round uint64) {
	fn := r.mod.ExportedFunction(name)
	if fn == nil {
		return
	}
	fuel, _ := r.mod.ExportedGlobal(wasmgen.FuelGlobal).(api.MutableGlobal)
	if r.Refuel && fuel != nil {
		fuel.Set(wasmgen.Fuel)
	}
	if r.Before != nil {
		if err := r.Before(ctx, r.mod); err != nil {
			r.failed(name, err)
			return
		}
	}
	var args []uint64
	for i, t := range fn.Definition().ParamTypes() {
		args = append(args, value(t, round*37+uint64(i)*11+uint64(len(name))))
		if t == vector {
			args = append(args, round<<32|uint64(i))
		}
	}
	results, err := fn.Call(ctx, args...)
	if r.Refuel && fuel != nil {
		r.note("%s leaves %d", name, fuel.Get())
	}
	if err != nil {
		r.failed(name, err)
		return
	}
	for i, t := range slots(fn.Definition().ResultTypes()) {
		if t == api.ValueTypeI32 || t == api.ValueTypeF32 {
			results[i] &= 0xffffffff
		} else if t == reference {
			results[i] = min(results[i], 1) // where a function lies is not to be seen
		}
	}
	r.note("%s = %x", name, results)
}

const (
	vector    api.ValueType = 0x7b
	reference api.ValueType = 0x70
)

// slots returns the types of the words in which values are passed.
func slots(types []api.ValueType) []api.ValueType {
	var out []api.ValueType
	for _, t := range types {
		out = append(out, t)
		if t == vector {
			out = append(out, t)
		}
	}
	return out
}

// imports defines the functions that the module imports.
func (r *run) imports(ctx context.Context, compiled wazero.CompiledModule) error {
	builder := r.rt.NewHostModuleBuilder(wasmgen.ImportModule)
	any := false
	for _, f := range compiled.ImportedFunctions() {
		module, name, _ := f.Import()
		if module != wasmgen.ImportModule {
			continue
		}
		any = true
		builder.NewFunctionBuilder().
			WithGoModuleFunction(r.imported(name, f), f.ParamTypes(), f.ResultTypes()).
			Export(name)
	}
	if !any {
		return nil
	}
	_, err := builder.Instantiate(ctx)
	return err
}

// imported handles a call from a module: it records the arguments and derives
// the results from them.
func (r *run) imported(name string, f api.FunctionDefinition) api.GoModuleFunc {
	params, results := f.ParamTypes(), f.ResultTypes()
	return func(ctx context.Context, mod api.Module, stack []uint64) {
		seed := uint64(len(params))
		for i, t := range params {
			if t == api.ValueTypeI32 || t == api.ValueTypeF32 {
				stack[i] &= 0xffffffff
			}
			seed = seed*31 + stack[i]
		}
		r.note("%s(%x)", name, stack[:len(params)])
		if name == wasmgen.Again && r.started && r.nested < 3 {
			r.nested++
			defer func() { r.nested-- }()
			if _, err := mod.ExportedFunction(wasmgen.Reentry).Call(ctx); err != nil {
				panic(err)
			}
		}
		for i, t := range results {
			stack[i] = value(t, seed+uint64(i))
		}
	}
}

// value makes a value of a type from a number.
func value(t api.ValueType, seed uint64) uint64 {
	switch t {
	case api.ValueTypeI32:
		return seed % 1000
	case api.ValueTypeF32:
		return api.EncodeF32(float32(seed%1000) - 500)
	case api.ValueTypeF64:
		return api.EncodeF64(float64(seed%1000) / 7)
	case reference:
		return 0
	case api.ValueTypeExternref:
		return seed % 2
	}
	return seed
}
