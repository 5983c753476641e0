package wasmbin

// ValueType is the type of an operand, local, global or table element, as the
// binary format writes it.
type ValueType byte

// The value types of Wasm 2.0.
const (
	I32       ValueType = 0x7f
	I64       ValueType = 0x7e
	F32       ValueType = 0x7d
	F64       ValueType = 0x7c
	V128      ValueType = 0x7b
	FuncRef   ValueType = 0x70
	ExternRef ValueType = 0x6f
)

// String returns the name of t in the text format, or "unknown" if t is not a
// value type.
func (t ValueType) String() string {
	switch t {
	case I32:
		return "i32"
	case I64:
		return "i64"
	case F32:
		return "f32"
	case F64:
		return "f64"
	case V128:
		return "v128"
	case FuncRef:
		return "funcref"
	case ExternRef:
		return "externref"
	}
	return "unknown"
}

// IsRef reports whether t is a reference type.
func (t ValueType) IsRef() bool { return t == FuncRef || t == ExternRef }

// valid reports whether t is a value type of Wasm 2.0.
func (t ValueType) valid() bool { return t >= V128 && t <= I32 || t.IsRef() }

// slots returns how many 8-byte slots a value of type t takes in a frame.
func (t ValueType) slots() int {
	if t == V128 {
		return 2
	}
	return 1
}

// FuncType is the signature of a function or of a block.
type FuncType struct {
	Params, Results []ValueType
}

// Range is the initial and the largest size of a table (in elements) or a
// memory (in pages of 64 KiB). The specification calls it limits.
type Range struct {
	Min, Max uint32
	HasMax   bool // otherwise Max is 0 and has no meaning
}

// Table is the type of a table.
type Table struct {
	Type ValueType // FuncRef or ExternRef
	Range
}

// Memory is the type of a linear memory.
type Memory struct{ Range }

// GlobalType is the type of a global.
type GlobalType struct {
	Type    ValueType
	Mutable bool
}

// Global is a global that the module defines.
type Global struct {
	GlobalType
	Init ConstExpr
}

// ConstExpr is a constant expression: in Wasm 2.0 exactly one instruction.
type ConstExpr struct {
	// Op is one of the five const instructions, ref.null, ref.func or global.get.
	Op Opcode
	// Type is the reference type of ref.null.
	Type ValueType
	// Index is the function of ref.func or the global of global.get.
	Index uint32
	// Lo holds the bits of a number, an i32 sign-extended; of a v128 Lo is the
	// lower and Hi the upper half.
	Lo, Hi uint64
}

// ExternKind is the kind of an import or export.
type ExternKind byte

// The kinds of imports and exports.
const (
	ExternFunc   ExternKind = 0
	ExternTable  ExternKind = 1
	ExternMemory ExternKind = 2
	ExternGlobal ExternKind = 3
)

// String returns the keyword of the text format.
func (k ExternKind) String() string {
	if int(k) < len(externNames) {
		return externNames[k]
	}
	return "unknown"
}

var externNames = [...]string{"func", "table", "memory", "global"}

// Import is one import. Kind determines which of the last fields is used.
type Import struct {
	Module, Name string
	Kind         ExternKind
	Type         uint32 // of a function: index into Module.Types
	Size         Range  // of a table or memory
	Value        ValueType
	Mutable      bool
}

// Export is one export: a name for the Index-th function, table, memory or global.
type Export struct {
	Name  string
	Kind  ExternKind
	Index uint32
}

// SegmentMode says when a segment is applied.
type SegmentMode byte

// The modes of element and data segments; only elements can be declarative.
const (
	Active SegmentMode = iota
	Passive
	Declarative
)

// Element is an element segment. It lists either Funcs or, if UsesExprs is
// set, Exprs.
type Element struct {
	Mode      SegmentMode
	Type      ValueType
	Table     uint32    // of an active segment
	Offset    ConstExpr // of an active segment
	UsesExprs bool
	Funcs     []uint32
	Exprs     []ConstExpr
}

// Len returns how many elements the segment has.
func (e *Element) Len() int { return max(len(e.Funcs), len(e.Exprs)) }

// Data is a data segment.
type Data struct {
	Mode   SegmentMode // Active or Passive
	Offset ConstExpr   // of an active segment
	Bytes  []byte
}

// LocalGroup is a run of locals of one type.
type LocalGroup struct {
	Count uint32
	Type  ValueType
}

// Code is the code of a function that the module defines.
type Code struct {
	Locals []LocalGroup // without the parameters
	// Body holds the instructions, the final end included.
	Body []byte
	// Offset is the start of Body in the input of Read; 0 in built code.
	Offset int
}

// LocalCount returns how many locals the code declares, without parameters.
func (c *Code) LocalCount() int {
	n := 0
	for _, g := range c.Locals {
		n += int(g.Count)
	}
	return n
}

// Custom is a custom section. Empty ones are left out when a module is read.
type Custom struct {
	Name  string
	Bytes []byte
	// After is the section that precedes it; SectionCustom at the very start.
	After SectionID
}

// SectionID identifies a section of the binary format.
type SectionID byte

// The sections, in the order of their numbers. DataCount stands between
// Element and Code in a module.
const (
	SectionCustom SectionID = iota
	SectionType
	SectionImport
	SectionFunction
	SectionTable
	SectionMemory
	SectionGlobal
	SectionExport
	SectionStart
	SectionElement
	SectionCode
	SectionData
	SectionDataCount
)

var sectionNames = [...]string{"custom", "type", "import", "function", "table", "memory", "global", "export",
	"start", "element", "code", "data", "data count"}

// String returns the name of the section in the specification.
func (s SectionID) String() string {
	if int(s) < len(sectionNames) {
		return sectionNames[s]
	}
	return "unknown"
}

// rank orders sections as in a module.
func (s SectionID) rank() int {
	if s == SectionDataCount {
		return 2*int(SectionElement) + 1
	}
	return 2 * int(s)
}
