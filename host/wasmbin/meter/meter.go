package meter

import (
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/wasmbin"
)

// The names shared by host and module. A guest must not use a name that starts
// with Reserved for an imported module or an export.
const (
	Reserved = "terrarium:meter"

	ImportModule = Reserved            // the module of the imported function
	ImportPause  = "pause"             // func(fuel, depth i64) (fuel i64)
	ExportFuel   = Reserved + ".fuel"  // mutable i64: fuel left in the slice
	ExportDepth  = Reserved + ".depth" // mutable i64: bytes of frames that calls may still take
	ExportTable  = Reserved + ".table" // mutable i64: elements by which tables may still grow
	ExportStart  = Reserved + ".start" // func(): the start function
)

// Slice is a good size for a slice: pauses cost about one percent of the time,
// and even the slowest guest reaches the next pause within about a
// millisecond.
const Slice = 50_000

// maxPages is the largest memory in pages of 64 KiB. wazero cannot represent
// the size of a memory of 4 GiB.
const maxPages = 1<<16 - 1

// Meta describes an instrumented module to a host.
type Meta struct {
	Start  bool // the guest has a start function, exported as ExportStart
	Tables bool // the guest can grow tables, and exports ExportTable
}

// Instrument adds metering to m. infos must be the result of a successful
// m.Validate just before; m stays valid. m must not be used after an error.
//
// Custom sections that contain code offsets, such as debugging information,
// are dropped, because the offsets would be wrong. [Trace] tells the right ones.
//
// The error is an *abi.Error: denied for a guest that uses reserved names,
// too_large for a memory of 4 GiB.
func Instrument(m *wasmbin.Module, infos []wasmbin.FuncInfo) (*Meta, error) {
	return instrument(m, infos, false, nil)
}

// instrument implements Instrument. If exact is set, each segment charges its
// own cost and nothing is paid in advance, as a reference for tests.
func instrument(m *wasmbin.Module, infos []wasmbin.FuncInfo, exact bool, origins *Origins) (*Meta, error) {
	if err := refuse(m); err != nil {
		return nil, err
	}
	if len(infos) != len(m.Code) {
		return nil, &abi.Error{Code: abi.Internal, Op: "meter", Message: "the module was changed after it was validated"}
	}
	view := newView(m)
	p := &planner{view: view, slack: slack}
	findLeaves(m, p)
	p.exact = exact
	h := newHelpers(m)
	meta := &Meta{Start: m.Start != nil}
	rewrite(m, infos, p, h, origins)
	h.finish()
	meta.Tables = h.grows
	if m.Start != nil {
		m.AddExport(ExportStart, wasmbin.ExternFunc, *m.Start)
		m.Start = nil
	}
	dropOffsets(m)
	return meta, nil
}

// Check returns the error that Instrument would, without changing the module.
func Check(m *wasmbin.Module) error { return refuse(m) }

// refuse returns an error for a module that cannot be metered.
func refuse(m *wasmbin.Module) error {
	for i := range m.Imports {
		if strings.HasPrefix(m.Imports[i].Module, Reserved) {
			return reserved("imports from the module", m.Imports[i].Module)
		}
	}
	for i := range m.Exports {
		if strings.HasPrefix(m.Exports[i].Name, Reserved) {
			return reserved("exports", m.Exports[i].Name)
		}
	}
	for _, mem := range m.AllMemories() {
		if mem.Min > maxPages {
			return &abi.Error{Code: abi.TooLarge, Op: "meter", Message: "the module starts with a memory of 4 GiB",
				Remedy: "declare a smaller initial memory"}
		}
	}
	return nil
}

func reserved(uses, name string) error {
	return &abi.Error{Code: abi.Denied, Op: "meter", Message: "the module " + uses + " " + name + ", a name that is reserved for the host",
		Remedy: "use another name"}
}

// rewrite replaces the code of all functions.
func rewrite(m *wasmbin.Module, infos []wasmbin.FuncInfo, p *planner, h *helpers, origins *Origins) {
	e := &emitter{view: p.view, helpers: h, origins: origins}
	for i := range m.Code {
		code := &m.Code[i]
		if origins != nil {
			origins.begin()
		}
		if p.view.leaves[i] > 0 {
			*code = e.leaf(code)
			continue
		}
		results := len(m.Types[m.Funcs[i]].Results)
		info := &infos[i]
		planned := p.plan(code.Body, results, int(info.Params+info.Locals), entryCost(info))
		*code = e.function(code, planned, info)
	}
}

// entryCost returns the cost of entering a function: its locals are set to
// zero.
func entryCost(info *wasmbin.FuncInfo) int64 { return 2 + int64(info.LocalSlots)/16 }

// frameWeight estimates the bytes of a function's frame. wazero keeps in it
// the values needed after a call, each in its own slot: mostly locals and
// operands, but possibly every value computed and every local merged.
func frameWeight(info *wasmbin.FuncInfo, joins int) int64 {
	const fixed, slot = 64, 8
	return fixed + slot*(int64(info.LocalSlots)+int64(info.StackSlots())) + int64(info.Instrs)/2 + int64(joins)
}

// dropOffsets drops the custom sections that refer to offsets in the code.
func dropOffsets(m *wasmbin.Module) {
	kept := m.Customs[:0:0]
	for _, c := range m.Customs {
		switch {
		case strings.HasPrefix(c.Name, ".debug_"), strings.HasPrefix(c.Name, "reloc."),
			c.Name == "linking", c.Name == "sourceMappingURL", c.Name == "external_debug_info":
		default:
			kept = append(kept, c)
		}
	}
	m.Customs = kept
}
