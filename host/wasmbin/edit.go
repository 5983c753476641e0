package wasmbin

// AddType returns the index of the type t, and adds it unless the module has
// an equal one. It scans all types.
func (m *Module) AddType(t FuncType) uint32 {
	for i := range m.Types {
		if equalTypes(m.Types[i].Params, t.Params) && equalTypes(m.Types[i].Results, t.Results) {
			return uint32(i)
		}
	}
	m.Types = append(m.Types, t)
	return uint32(len(m.Types) - 1)
}

// AddFuncImports appends imports of functions and returns the index of the
// first; the others follow it. The module's own functions move up by that
// number: everything outside bodies is renumbered. The caller renumbers the
// calls and ref.func instructions of the bodies with the same shift, see [Shift].
func (m *Module) AddFuncImports(imports ...Import) (first uint32) {
	first = uint32(m.ImportedFuncs())
	m.RenumberFuncs(Shift(first, uint32(len(imports))))
	for _, imp := range imports {
		imp.Kind = ExternFunc
		m.Imports = append(m.Imports, imp)
	}
	return first
}

// AddFunc appends a function of that type and returns its index.
func (m *Module) AddFunc(typ uint32, code Code) uint32 {
	m.Funcs = append(m.Funcs, typ)
	m.Code = append(m.Code, code)
	return uint32(m.ImportedFuncs() + len(m.Funcs) - 1)
}

// AddGlobal appends a global and returns its index.
func (m *Module) AddGlobal(g Global) uint32 {
	m.Globals = append(m.Globals, g)
	return uint32(m.ImportedGlobals() + len(m.Globals) - 1)
}

// AddExport appends an export. Validation checks that names are unique.
func (m *Module) AddExport(name string, kind ExternKind, index uint32) {
	m.Exports = append(m.Exports, Export{name, kind, index})
}

// Shift returns the renumbering that moves all indices from first on up by n.
func Shift(first, n uint32) func(uint32) uint32 {
	return func(i uint32) uint32 {
		if i >= first {
			return i + n
		}
		return i
	}
}

// RenumberFuncs replaces every function index outside bodies: in exports, the
// start, elements, globals and names. The caller changes the index spaces
// themselves, Imports, Funcs and Code, and the bodies.
func (m *Module) RenumberFuncs(index func(uint32) uint32) {
	for i := range m.Exports {
		if m.Exports[i].Kind == ExternFunc {
			m.Exports[i].Index = index(m.Exports[i].Index)
		}
	}
	if m.Start != nil {
		start := index(*m.Start)
		m.Start = &start
	}
	for i := range m.Globals {
		m.Globals[i].Init.renumber(index)
	}
	for i := range m.Elements {
		e := &m.Elements[i]
		for j := range e.Funcs {
			e.Funcs[j] = index(e.Funcs[j])
		}
		for j := range e.Exprs {
			e.Exprs[j].renumber(index)
		}
	}
	if m.Names != nil {
		m.Names.renumber(index)
	}
}

func (e *ConstExpr) renumber(index func(uint32) uint32) {
	if e.Op == OpRefFunc {
		e.Index = index(e.Index)
	}
}
