package wasmbin

// Usage returns how much of each limit a module uses: Read and Validate accept it
// with these limits, and refuse it with a smaller one. infos is the result of
// Validate, or nil; then the fields that depend on instructions are 0. ModuleBytes is
// always 0, and so are the fields for things that the module does not have.
func (m *Module) Usage(infos []FuncInfo) Limits {
	u := Limits{
		CustomSections: len(m.Customs), Types: len(m.Types), Imports: len(m.Imports),
		Functions: m.ImportedFuncs() + len(m.Funcs), Tables: len(m.AllTables()), Globals: m.ImportedGlobals() + len(m.Globals),
		Exports: len(m.Exports), ElementSegments: len(m.Elements), DataSegments: len(m.Data),
	}
	for i := range m.Types {
		t := &m.Types[i]
		u.Params, u.Results = max(u.Params, len(t.Params)), max(u.Results, len(t.Results))
		u.TypeOperands += len(t.Params) + len(t.Results)
	}
	for _, t := range m.AllTables() {
		u.TableElements += int(t.Min)
	}
	for _, mem := range m.AllMemories() {
		u.MemoryPages = max(u.MemoryPages, int(mem.Min))
	}
	for i := range m.Elements {
		u.Elements += m.Elements[i].Len()
	}
	m.nameUsage(&u)
	for i := range m.Code {
		c := &m.Code[i]
		size := len(AppendU32(nil, uint32(len(c.Locals)))) + len(c.Body)
		for _, g := range c.Locals {
			size += len(AppendU32(nil, g.Count)) + 1
		}
		u.BodyBytes = max(u.BodyBytes, size)
		u.CodeBytes += size
	}
	for i := range infos {
		infos[i].usage(&u)
	}
	return u
}

// nameUsage raises the limits of names.
func (m *Module) nameUsage(u *Limits) {
	longest := func(name string) { u.NameBytes = max(u.NameBytes, len(name)) }
	for i := range m.Imports {
		longest(m.Imports[i].Module)
		longest(m.Imports[i].Name)
	}
	for i := range m.Exports {
		longest(m.Exports[i].Name)
	}
	for i := range m.Customs {
		longest(m.Customs[i].Name)
	}
	if m.Names == nil {
		return
	}
	u.ModuleNameBytes = len(m.Names.Module)
	longest(m.Names.Module)
	for i := range m.Names.Funcs {
		longest(m.Names.Funcs[i].Name)
	}
}

// usage raises the limits that one function uses.
func (f *FuncInfo) usage(u *Limits) {
	locals := int(f.Params + f.Locals)
	u.TotalLocals += locals
	u.TotalMoves += int(f.Moves)
	u.Locals = max(u.Locals, locals)
	u.BlockDepth = max(u.BlockDepth, int(f.BlockDepth))
	u.Blocks = max(u.Blocks, int(f.Blocks))
	u.BranchTable = max(u.BranchTable, int(f.BranchTable))
	u.Branches = max(u.Branches, int(f.Branches))
	u.StackHeight = max(u.StackHeight, int(f.StackHeight))
	u.OperandMoves = max(u.OperandMoves, int(f.Moves))
	u.LocalJoins = max(u.LocalJoins, locals*int(f.Blocks))
}
