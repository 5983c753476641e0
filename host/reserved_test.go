package host

import (
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/host/wasmbin/meter"
)

// Inspect refuses the same modules as Compile.
func TestInspectRefusesWhatCompileDoes(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(m *wasmbin.Module)
		code   abi.Code
		says   string
	}{
		{"a reserved export", func(m *wasmbin.Module) { m.AddExport(meter.ExportFuel, wasmbin.ExternFunc, 0) }, abi.Denied, "reserved"},
		{"an imported handler", func(m *wasmbin.Module) {
			typ := m.AddType(wasmbin.FuncType{Params: []wasmbin.ValueType{wasmbin.I32, wasmbin.I32}, Results: []wasmbin.ValueType{wasmbin.I32}})
			imported := m.AddFuncImports(wasmbin.Import{Module: abi.ImportModule, Name: "random", Type: typ})
			m.Export(abi.ExportHandle).Index = imported
		}, abi.InvalidArgument, "creature_handle is a function that the module imports"},
	} {
		m, err := wasmbin.Read(readModule(t, "echo"), wasmbin.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		c.change(m)
		h := newHost(t, Options{})
		_, err = h.Inspect(t.Context(), m.Write())
		_, cerr := h.Compile(t.Context(), m.Write())
		for _, err := range []error{err, cerr} {
			if abi.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", c.what, err)
			}
		}
	}
}
