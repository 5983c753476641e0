package host

import (
	"context"
	"maps"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/wasmbin/meter"
)

// envModule is where AssemblyScript imports abort from.
const envModule = "env"

// An importable is a function that the host provides. It gets its arguments in wazero's
// stack form and leaves its result there. To end the guest it panics, see [call.stop].
type importable struct {
	signature
	call func(*call, []uint64)
}

// provided holds the functions that a module may import.
var provided = map[string]map[string]importable{
	abi.ImportModule: ownFunctions(),
	wasiModule:       wasiFunctions(),
	envModule:        envFunctions(),
}

func providedModules() []string { return []string{abi.ImportModule, wasiModule, envModule} }

// provideImports makes wazero's modules of the functions that guests import.
func provideImports(ctx context.Context, r wazero.Runtime) error {
	all := maps.Clone(provided)
	all[meter.ImportModule] = meterFunctions()
	for _, module := range slices.Sorted(maps.Keys(all)) {
		b := r.NewHostModuleBuilder(module)
		for _, name := range slices.Sorted(maps.Keys(all[module])) {
			f := all[module][name]
			b.NewFunctionBuilder().WithGoModuleFunction(f.wazero(), f.params, f.results).Export(name)
		}
		if _, err := b.Instantiate(ctx); err != nil {
			return &abi.Error{Code: abi.Internal, Op: "open host", Message: "the host functions cannot be provided", Err: err}
		}
	}
	return nil
}

// wazero returns the function as wazero calls it.
func (f *importable) wazero() api.GoModuleFunc {
	call := f.call
	return func(ctx context.Context, _ api.Module, stack []uint64) { call(callOf(ctx), stack) }
}
