package meter_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/host/wasmbin/meter"
)

func TestRefusals(t *testing.T) {
	empty := func() *wasmbin.Module {
		m := &wasmbin.Module{}
		m.AddFunc(m.AddType(wasmbin.FuncType{}), wasmbin.Code{Body: []byte{byte(wasmbin.OpEnd)}})
		return m
	}
	for _, c := range []struct {
		what   string
		change func(m *wasmbin.Module)
		code   abi.Code
		names  string
	}{
		{"the pause function", func(m *wasmbin.Module) {
			m.AddFuncImports(wasmbin.Import{Module: meter.ImportModule, Name: meter.ImportPause})
		}, abi.Denied, meter.ImportModule},
		{"another reserved module", func(m *wasmbin.Module) {
			m.AddFuncImports(wasmbin.Import{Module: meter.Reserved + ".x", Name: "f"})
		}, abi.Denied, meter.Reserved + ".x"},
		{"the fuel", func(m *wasmbin.Module) { m.AddExport(meter.ExportFuel, wasmbin.ExternFunc, 0) }, abi.Denied, meter.ExportFuel},
		{"the start", func(m *wasmbin.Module) { m.AddExport(meter.ExportStart, wasmbin.ExternFunc, 0) }, abi.Denied, meter.ExportStart},
		{"a reserved export", func(m *wasmbin.Module) { m.AddExport(meter.Reserved, wasmbin.ExternFunc, 0) }, abi.Denied, meter.Reserved},
		{"4 GiB", func(m *wasmbin.Module) {
			m.Memories = []wasmbin.Memory{{Range: wasmbin.Range{Min: 1 << 16}}}
		}, abi.TooLarge, "4 GiB"},
	} {
		m := empty()
		c.change(m)
		infos, err := m.Validate(wasmbin.Limits{})
		if err != nil {
			t.Fatal(c.what, err)
		}
		_, err = meter.Instrument(m, infos)
		var e *abi.Error
		if !errors.As(err, &e) || e.Code != c.code || !strings.Contains(e.Message, c.names) || e.Remedy == "" {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	m := empty()
	if _, err := meter.Instrument(m, nil); abi.CodeOf(err) != abi.Internal {
		t.Errorf("infos of another module: %v", err)
	}
}

// TestStartRunsMetered runs a start function that never ends.
func TestStartRunsMetered(t *testing.T) {
	m, infos := decode(t, readModule(t, "work"))
	spin := m.Export("spin").Index
	m.Start = &spin
	meta, err := meter.Instrument(m, infos)
	if err != nil {
		t.Fatal(err)
	}
	if !meta.Start || meta.Tables || m.Start != nil {
		t.Errorf("Meta says %+v", *meta)
	}
	p := newProgram(t, m.Write(), setting{}, nil)
	// instance calls the start function with plenty of fuel: look by hand.
	mod, err := p.runtime.Instantiate(p.ctx, m.Write())
	if err != nil {
		t.Fatal("the module cannot be instantiated:", err)
	}
	p.guest = &guest{}
	if _, err := mod.ExportedFunction(meter.ExportStart).Call(p.ctx); !errors.Is(err, errFuel) {
		t.Errorf("without fuel it ended with %v", err)
	}
}

// TestTracesNameFunctions looks for the names of functions in the trace of a trap.
func TestTracesNameFunctions(t *testing.T) {
	g := newGuest(t, instrument(t, readModule(t, "work"), meter.Instrument), setting{depth: 3_000})
	_, err := g.call("deep", 1000)
	if !errors.Is(err, errDepth) {
		t.Fatal(err)
	}
	for _, name := range []string{".deep(i32) i32", "." + meter.Reserved + ".pause"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not in the trace:\n%v", name, err)
		}
	}
}

func TestSectionsWithOffsetsAreDropped(t *testing.T) {
	m, infos := decode(t, readModule(t, "work"))
	for _, name := range []string{"producers", ".debug_info", ".debug_line", "reloc.CODE", "linking", "sourceMappingURL", "terrarium"} {
		m.Customs = append(m.Customs, wasmbin.Custom{Name: name, After: wasmbin.SectionCode})
	}
	if _, err := meter.Instrument(m, infos); err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, c := range m.Customs {
		kept = append(kept, c.Name)
	}
	if got := strings.Join(kept, " "); got != "producers terrarium" {
		t.Errorf("what is left: %s", got)
	}
}

// No ref.func is left in the code: wazero would make and keep another
// reference each time. One global holds each, so that references stay the
// same.
func TestReferencesAreMadeOnce(t *testing.T) {
	m := &wasmbin.Module{}
	var body []byte
	for range 3 {
		for f := range uint32(2) {
			body = wasmbin.OpDrop.Append(wasmbin.AppendU32(wasmbin.OpRefFunc.Append(body), f))
		}
	}
	typ := m.AddType(wasmbin.FuncType{})
	for _, name := range []string{"a", "b"} {
		m.AddExport(name, wasmbin.ExternFunc, m.AddFunc(typ, wasmbin.Code{Body: wasmbin.OpEnd.Append(bytes.Clone(body))}))
	}
	m, infos := decode(t, m.Write())
	if _, err := meter.Instrument(m, infos); err != nil {
		t.Fatal(err)
	}
	for i := range m.Code {
		it := wasmbin.NewInstrs(m.Code[i].Body)
		for it.Next() {
			if it.Op == wasmbin.OpRefFunc {
				t.Errorf("function %d still executes ref.func", i)
			}
		}
	}
	var held []uint32
	for _, g := range m.Globals {
		if g.Init.Op == wasmbin.OpRefFunc && !g.Mutable {
			held = append(held, g.Init.Index)
		}
	}
	if !slices.Equal(held, []uint32{1, 2}) {
		t.Errorf("the globals hold references to %v", held)
	}
}
