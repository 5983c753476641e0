package wasmbin

// Module is a decoded module. Its byte slices are views of the input of Read,
// which must not change while the Module is used; nothing writes through them.
//
// Index spaces start with the imports of a kind, followed by the module's own
// definitions: function i is an import below ImportedFuncs() and otherwise has
// type Funcs[i-ImportedFuncs()] and code Code[i-ImportedFuncs()].
//
// A Module is safe for concurrent reading, but not for concurrent change.
type Module struct {
	Types    []FuncType
	Imports  []Import
	Funcs    []uint32 // for every defined function, its index into Types
	Tables   []Table
	Memories []Memory
	Globals  []Global
	Exports  []Export
	Start    *uint32 // the start function; nil when there is none
	Elements []Element
	// DataCount is the content of the data count section, or nil. If it is not
	// nil, Write derives it from Data.
	DataCount *uint32
	Code      []Code
	// CodeOffset is the start of the content of the code section in the input of
	// Read. Debug information counts from there.
	CodeOffset int
	Data       []Data
	// Names is the part of the name section that is kept, or nil.
	Names   *Names
	Customs []Custom // without the name section
}

// Names holds the names that appear in stack traces. Names of locals, labels
// and other things are dropped when a module is read: they are for debuggers,
// and looking them up is quadratic in places.
type Names struct {
	Module string
	Funcs  []FuncName
}

// FuncName is the name of a function for stack traces.
type FuncName struct {
	Index uint32
	Name  string
}

// imported counts the imports of a kind.
func (m *Module) imported(kind ExternKind) int {
	n := 0
	for i := range m.Imports {
		if m.Imports[i].Kind == kind {
			n++
		}
	}
	return n
}

// ImportedFuncs returns how many functions are imported: the index of the
// first defined one. It scans the imports.
func (m *Module) ImportedFuncs() int { return m.imported(ExternFunc) }

// ImportedGlobals returns how many globals are imported. It scans the imports.
func (m *Module) ImportedGlobals() int { return m.imported(ExternGlobal) }

// FuncTypes returns the type of every function as an index into Types,
// imported ones first.
func (m *Module) FuncTypes() []uint32 {
	out := make([]uint32, 0, m.ImportedFuncs()+len(m.Funcs))
	for i := range m.Imports {
		if m.Imports[i].Kind == ExternFunc {
			out = append(out, m.Imports[i].Type)
		}
	}
	return append(out, m.Funcs...)
}

// AllTables returns every table, imported ones first.
func (m *Module) AllTables() []Table {
	var out []Table
	for i := range m.Imports {
		if imp := &m.Imports[i]; imp.Kind == ExternTable {
			out = append(out, Table{imp.Value, imp.Size})
		}
	}
	return append(out, m.Tables...)
}

// AllMemories returns every memory, imported ones first. Wasm 2.0 allows one.
func (m *Module) AllMemories() []Memory {
	var out []Memory
	for i := range m.Imports {
		if imp := &m.Imports[i]; imp.Kind == ExternMemory {
			out = append(out, Memory{imp.Size})
		}
	}
	return append(out, m.Memories...)
}

// AllGlobals returns the type of every global, imported ones first.
func (m *Module) AllGlobals() []GlobalType {
	out := make([]GlobalType, 0, m.ImportedGlobals()+len(m.Globals))
	for i := range m.Imports {
		if imp := &m.Imports[i]; imp.Kind == ExternGlobal {
			out = append(out, GlobalType{imp.Value, imp.Mutable})
		}
	}
	for i := range m.Globals {
		out = append(out, m.Globals[i].GlobalType)
	}
	return out
}

// Export returns the export with that name, or nil if there is none.
func (m *Module) Export(name string) *Export {
	for i := range m.Exports {
		if m.Exports[i].Name == name {
			return &m.Exports[i]
		}
	}
	return nil
}
