package meter

import "github.com/seed47132306/terrarium/host/wasmbin"

// InstrumentExactly charges each segment separately.
func InstrumentExactly(m *wasmbin.Module, infos []wasmbin.FuncInfo) (*Meta, error) {
	return instrument(m, infos, true, nil)
}
