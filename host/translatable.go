package host

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/internal/lines"
	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/host/wasmbin/meter"
)

// Translatable is the metered form of a module, arranged for its translation to Go. See
// package translation.
type Translatable struct {
	// SHA256 is the hash of the metered module, in lower-case hex.
	SHA256 string
	// Floats reports whether the module calculates with floating-point numbers.
	Floats bool
	// Wasm is the arranged module. From the module h, it imports its memory under the
	// name memory, and functions with the types of Imports under the names f0, f1 and so
	// on. It exports each of Functions as fn followed by its index, and each of Globals
	// as g followed by its index.
	Wasm []byte
	// Imports are the types of the imported functions.
	Imports []TranslatedType
	// Functions are the functions that the host calls, and Globals those that it reads and
	// sets, both by name.
	Functions []TranslatedFunction
	Globals   []TranslatedGlobal
}

// TranslatedType is the type of a function: the names of its value types, as in Go.
type TranslatedType struct{ Params, Results []string }

// TranslatedFunction is a function that the host calls.
type TranslatedFunction struct {
	Name  string // for the host
	Index uint32
	TranslatedType
}

// TranslatedGlobal is a global that the host reads and sets.
type TranslatedGlobal struct {
	Name  string // for the host
	Index uint32
}

// goTypes are the types of Go for values of Wasm.
var goTypes = map[wasmbin.ValueType]string{wasmbin.I32: "int32", wasmbin.I64: "int64", wasmbin.F32: "float32", wasmbin.F64: "float64"}

// called are the functions that the host calls.
var called = []string{abi.ExportHandle, abi.ExportInit, abi.ExportStop, abi.ExportInitialize, meter.ExportStart}

// Translatable checks and meters a module as Compile does, and arranges it for translation.
// The error has the code [abi.Unsupported] for a module whose translation would not behave
// like the module in every respect.
func (h *Host) Translatable(ctx context.Context, wasm []byte) (*Translatable, error) {
	const op = "translate"
	if err := ctx.Err(); err != nil {
		return nil, interrupted(op, err)
	}
	if err := h.checkSize(op, wasm); err != nil {
		return nil, err
	}
	m, _, infos, err := h.check(op, wasm)
	if err != nil {
		return nil, err
	}
	if err := untranslatable(m); err != nil {
		return nil, err
	}
	t := &Translatable{Floats: hasFloats(m)}
	s := takeStatic(m)
	if _, err := meter.Instrument(m, infos); err != nil {
		return nil, withOp(op, err)
	}
	s.exportGlobals(m)
	m.Customs = nil
	sum := sha256.Sum256(m.Write())
	t.SHA256 = hexSum(sum)
	t.arrange(m)
	t.Wasm = m.Write()
	return t, nil
}

// untranslatable returns why a module cannot be translated, or nil.
func untranslatable(m *wasmbin.Module) error {
	refuse := func(message, remedy string) error {
		return &abi.Error{Code: abi.Unsupported, Op: "translate", Message: message, Remedy: remedy}
	}
	if lines.Of(m) != nil {
		return refuse("the module has debugging information, but a translation cannot name lines of source when it traps", "build it without debugging information, or strip it")
	}
	for i := range m.Code {
		it := wasmbin.NewInstrs(m.Code[i].Body)
		for it.Next() {
			switch {
			case it.Op>>8 == 0xfd:
				return refuse("the module uses vector instructions", "build it without the feature simd128")
			case it.Op == wasmbin.OpTableGet, it.Op == wasmbin.OpTableSet, it.Op == wasmbin.OpTableFill,
				it.Op == wasmbin.OpTableCopy, it.Op == wasmbin.OpTableInit, it.Op == wasmbin.OpElemDrop:
				return refuse("the module uses the instruction "+it.Op.String()+", which a translation cannot tell from an access to memory when it traps", "build it without the feature reference-types")
			}
		}
	}
	return nil
}

// hasFloats reports whether a module calculates with floating-point numbers.
func hasFloats(m *wasmbin.Module) bool {
	float := func(t wasmbin.ValueType) bool { return t == wasmbin.F32 || t == wasmbin.F64 }
	for i := range m.Types {
		if slices.ContainsFunc(m.Types[i].Params, float) || slices.ContainsFunc(m.Types[i].Results, float) {
			return true
		}
	}
	for i := range m.Globals {
		if float(m.Globals[i].Type) {
			return true
		}
	}
	for i := range m.Code {
		it := wasmbin.NewInstrs(m.Code[i].Body)
		for it.Next() {
			if pops, pushes, _ := it.Op.Operands(); strings.ContainsAny(pops+pushes, "fF") {
				return true
			}
		}
	}
	return false
}

// arrange gives everything that a translation shares with the host a plain name, and makes
// the memory an import.
func (t *Translatable) arrange(m *wasmbin.Module) {
	const host = "h"
	for i := range m.Imports {
		imp := &m.Imports[i]
		imp.Module, imp.Name = host, "f"+decimal(uint64(i))
		t.Imports = append(t.Imports, translatedType(&m.Types[imp.Type]))
	}
	functions := m.FuncTypes()
	for _, name := range called {
		if e := m.Export(name); e != nil {
			t.Functions = append(t.Functions, TranslatedFunction{name, e.Index, translatedType(&m.Types[functions[e.Index]])})
		}
	}
	for i := range m.Exports {
		if e := &m.Exports[i]; e.Kind == wasmbin.ExternGlobal && strings.HasPrefix(e.Name, meter.Reserved) {
			t.Globals = append(t.Globals, TranslatedGlobal{e.Name, e.Index})
		}
	}
	m.Exports, m.Names = nil, nil
	exported := map[string]bool{}
	export := func(name string, kind wasmbin.ExternKind, index uint32) {
		if name += decimal(uint64(index)); !exported[name] {
			exported[name] = true
			m.AddExport(name, kind, index)
		}
	}
	for _, f := range t.Functions {
		export("fn", wasmbin.ExternFunc, f.Index)
	}
	for _, g := range t.Globals {
		export("g", wasmbin.ExternGlobal, g.Index)
	}
	for _, memory := range m.Memories {
		m.Imports = append(m.Imports, wasmbin.Import{Module: host, Name: "memory", Kind: wasmbin.ExternMemory, Size: memory.Range})
	}
	m.Memories = nil
}

func translatedType(t *wasmbin.FuncType) (out TranslatedType) {
	for _, p := range t.Params {
		out.Params = append(out.Params, goTypes[p])
	}
	for _, r := range t.Results {
		out.Results = append(out.Results, goTypes[r])
	}
	return out
}
