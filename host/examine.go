package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/internal/compilecost"
	"github.com/seed47132306/terrarium/host/internal/lines"
	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/host/wasmbin/meter"
)

// Examination is what [Host.Examine] finds about a module.
type Examination struct {
	SHA256 string `json:"sha256"` // of the bytes, lower-case hex
	Bytes  int64  `json:"bytes"`
	// ABI is the version of the contract that the module is written for, or 0 if the
	// module does not declare one.
	ABI       int           `json:"abi"`
	Manifest  *abi.Manifest `json:"manifest,omitempty"`
	Imports   []Symbol      `json:"imports"`
	Exports   []Symbol      `json:"exports"`
	MemoryMin int64         `json:"memory_min"` // bytes
	MemoryMax int64         `json:"memory_max"` // bytes; 0 if the module declares none
	Sections  []SectionSize `json:"sections"`   // the largest first; of a module with very many, the first ones
	Debug     DebugInfo     `json:"debug"`
	// Near lists the limits that the module uses to a half or more, the most used first.
	Near []LimitUse `json:"near_limits"`
	// Compile is nil if the module cannot be compiled.
	Compile *CompileEstimate `json:"compile,omitempty"`
	// Engine is what would run the module, and EngineReason why. Both are empty if nothing
	// would.
	Engine       abi.Engine `json:"engine,omitempty"`
	EngineReason string     `json:"engine_reason,omitempty"`
	// Problems are the reasons why the module cannot be a creature. Each is an
	// [abi.Error]. All breaches of the contract are listed, and the first that
	// reading, validation and the estimate find.
	Problems []error `json:"-"`
}

// Symbol is an import or export.
type Symbol struct {
	Module string     `json:"module,omitempty"` // of an import
	Name   string     `json:"name"`
	Kind   SymbolKind `json:"kind"`
	Type   string     `json:"type,omitempty"` // of a function
}

// SymbolKind is the kind of an import or export. It is stable.
type SymbolKind string

// The kinds of imports and exports.
const (
	SymbolFunction SymbolKind = "function"
	SymbolTable    SymbolKind = "table"
	SymbolMemory   SymbolKind = "memory"
	SymbolGlobal   SymbolKind = "global"
)

// symbolKinds has the kinds by their number in the binary format.
var symbolKinds = [...]SymbolKind{SymbolFunction, SymbolTable, SymbolMemory, SymbolGlobal}

// SectionSize is a section of a module.
type SectionSize struct {
	Name   string `json:"name"`
	Custom bool   `json:"custom"`
	Bytes  int    `json:"bytes"`
}

// DebugInfo says what a module tells about its source.
type DebugInfo struct {
	Bytes int  `json:"bytes"` // of its custom sections with DWARF
	Lines bool `json:"lines"` // a trap names the file and line
	Names bool `json:"names"` // a trap names the functions
}

// LimitUse is how much of a limit a module uses.
type LimitUse struct {
	Limit string `json:"limit"` // the field of wasmbin.Limits
	Used  int64  `json:"used"`
	Most  int64  `json:"most"`
}

// CompileEstimate is the estimated cost of compiling a module, and the most that is
// allowed.
type CompileEstimate struct {
	MS        int64 `json:"ms"` // processor time, rounded up
	MostMS    int64 `json:"most_ms"`
	Bytes     int64 `json:"bytes"` // memory
	MostBytes int64 `json:"most_bytes"`
	// Function is the index of the function that takes the most time.
	Function int `json:"function"`
}

// Bounds of an examination, for hostile modules.
const (
	maxSections = 1000
	maxBreaches = 1000
)

// Examine describes a module, as far as it can be read, and finds all reasons why it
// cannot be a creature. It does not compile the module. The error is only about ctx.
func (h *Host) Examine(ctx context.Context, wasm []byte) (*Examination, error) {
	if err := ctx.Err(); err != nil {
		return nil, interrupted("examine", err)
	}
	x := &Examination{SHA256: hexSum(sha256.Sum256(wasm)), Bytes: int64(len(wasm)), Imports: []Symbol{}, Exports: []Symbol{}, Sections: []SectionSize{}, Near: []LimitUse{}}
	if err := h.checkSize("", wasm); err != nil {
		return x.fail(err), nil
	}
	if err := recognize("", wasm); err != nil {
		return x.fail(err), nil
	}
	x.listSections(wasm)
	m, err := wasmbin.Read(wasm, h.opts.Limits)
	if err != nil {
		return x.fail(err), nil
	}
	s := shapeOf(m)
	x.Problems, _ = breaches(s, maxBreaches)
	x.describe(s)
	infos, err := m.Validate(h.opts.Limits)
	x.nearLimits(m, infos, &h.opts.Limits)
	if err == nil {
		err = meter.Check(m)
	}
	if err != nil {
		return x.fail(err), nil
	}
	tells := x.Debug.Lines
	if x.estimate(m, infos, compilecost.Limits{Time: h.opts.CompileTime, Bytes: h.opts.CompileBytes}); x.Compile != nil && len(x.Problems) == 0 {
		if m.Customs = nil; tells {
			m.Customs = lines.Marks()
		}
		x.Engine, x.EngineReason = h.engine, reasons[h.engine]
		if code := h.translationOf(m.Write()); code != nil {
			x.Engine, x.EngineReason = abi.EngineTranslation, "the program has it as Go code, as "+code.Name
		}
	}
	return x, nil
}

// reasons say why an engine is used if there is no translation.
var reasons = map[abi.Engine]string{
	abi.EngineCompiler:    "the program has no translation of it",
	abi.EngineInterpreter: "the program has no translation of it, and there is no compiler for this processor",
}

// fail adds a problem that is not about the contract.
func (x *Examination) fail(err error) *Examination {
	var e *abi.Error
	if errors.As(err, &e) { // the operation says nothing here
		shown := *e
		shown.Op = ""
		err = &shown
	}
	x.Problems = append(x.Problems, err)
	return x
}

func (x *Examination) listSections(wasm []byte) {
	for _, s := range wasmbin.Sections(wasm, maxSections) {
		custom := s.ID == wasmbin.SectionCustom
		x.Sections = append(x.Sections, SectionSize{Name: s.Name, Custom: custom, Bytes: s.Bytes})
		if custom && lines.IsDebug(s.Name) {
			x.Debug.Bytes += s.Bytes
		}
	}
	slices.SortStableFunc(x.Sections, func(a, b SectionSize) int { return b.Bytes - a.Bytes })
}

func (x *Examination) describe(s *shape) {
	x.Manifest = s.manifest
	if s.exportsFunction(abi.ExportMarker) {
		x.ABI = abi.Version
	}
	for i := range s.Imports {
		imp := &s.Imports[i]
		symbol := Symbol{Module: imp.Module, Name: imp.Name, Kind: symbolKinds[imp.Kind]}
		if t, ok := s.signatureAt(imp.Type); ok && imp.Kind == wasmbin.ExternFunc {
			symbol.Type = t.String()
		}
		x.Imports = append(x.Imports, symbol)
	}
	for i := range s.Exports {
		e := &s.Exports[i]
		symbol := Symbol{Name: e.Name, Kind: symbolKinds[e.Kind]}
		if t, ok := s.functionType(e.Index); ok && e.Kind == wasmbin.ExternFunc {
			symbol.Type = t.String()
		}
		x.Exports = append(x.Exports, symbol)
	}
	for _, mem := range s.Memories {
		x.MemoryMin, x.MemoryMax = int64(mem.Min)*abi.PageBytes, int64(mem.Max)*abi.PageBytes
	}
	x.Debug.Lines = lines.Of(s.Module) != nil
	x.Debug.Names = s.Names != nil && len(s.Names.Funcs) > 0
}

// nearLimits compares what the module uses with the limits.
func (x *Examination) nearLimits(m *wasmbin.Module, infos []wasmbin.FuncInfo, limits *wasmbin.Limits) {
	usage, defaults := m.Usage(infos), wasmbin.DefaultLimits()
	usage.ModuleBytes = int(x.Bytes)
	used, most, standard := reflect.ValueOf(usage), reflect.ValueOf(*limits), reflect.ValueOf(defaults)
	for i := range used.NumField() {
		u := LimitUse{Limit: used.Type().Field(i).Name, Used: used.Field(i).Int(), Most: most.Field(i).Int()}
		if u.Most <= 0 {
			u.Most = standard.Field(i).Int()
		}
		if u.Used >= u.Most/2 {
			x.Near = append(x.Near, u)
		}
	}
	slices.SortStableFunc(x.Near, func(a, b LimitUse) int { return cmp.Compare(b.Used*a.Most, a.Used*b.Most) })
}

// estimate estimates what compiling a valid module costs, metered as it would be. It
// changes the module.
func (x *Examination) estimate(m *wasmbin.Module, infos []wasmbin.FuncInfo, limits compilecost.Limits) *Examination {
	static := takeStatic(m)
	if static.outside != "" {
		x.fail(&abi.Error{Code: abi.InvalidArgument, Message: "it cannot be instantiated: " + static.outside,
			Remedy: "give the memory or the table an initial size that has room for its segments"})
	}
	if x.Bytes > weighedTwice {
		if _, err := compilecost.Estimate(m, infos, limits); err != nil {
			return x.fail(err)
		}
	}
	if _, err := meter.Instrument(m, infos); err != nil {
		return x.fail(err)
	}
	static.exportGlobals(m)
	cost, err := compilecost.Estimate(m, infos, limits)
	if err != nil {
		return x.fail(err)
	}
	most, bytes := limits.For(m)
	x.Compile = &CompileEstimate{MS: (cost.Time + time.Millisecond - 1).Milliseconds(), MostMS: most.Milliseconds(), Bytes: cost.Bytes, MostBytes: bytes, Function: cost.Function}
	return x
}
