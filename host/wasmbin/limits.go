package wasmbin

// Limits bounds the parts of a module. A field that is 0 or less means its
// default, so Limits{} means the defaults.
type Limits struct {
	ModuleBytes     int // the whole module
	CustomSections  int // custom sections
	NameBytes       int // one name: of an import, an export, a custom section, a function
	ModuleNameBytes int // the name of the module in the name section
	Types           int // function types
	Params          int // parameters of one type
	Results         int // results of one type
	TypeOperands    int // parameters and results of all types together
	Imports         int // imports of all kinds
	Functions       int // functions, imported and defined
	Tables          int // tables, imported and defined
	TableElements   int // initial elements of all tables together
	MemoryPages     int // initial pages of 64 KiB of the memory
	Globals         int // globals, imported and defined
	Exports         int // exports of all kinds
	ElementSegments int // element segments
	Elements        int // elements of all segments together
	DataSegments    int // data segments
	CodeBytes       int // the bodies of all functions together
	TotalLocals     int // the locals of all functions together, parameters included
	TotalMoves      int // the OperandMoves of all functions together

	// Of one function:

	BodyBytes    int // its body: declarations of locals and instructions
	Locals       int // its locals, parameters included
	BlockDepth   int // how deeply blocks nest
	Blocks       int // block, loop and if instructions
	BranchTable  int // targets of one br_table
	Branches     int // targets of all its branches together
	StackHeight  int // operands on the stack at once
	OperandMoves int // parameters and results of its calls, blocks and branches together
	LocalJoins   int // its locals times its blocks: a compiler may have to merge every local at every block
}

// DefaultLimits returns the default limits. The README of the package compares
// them with the output of toolchains.
func DefaultLimits() Limits {
	return Limits{
		ModuleBytes:     64 << 20,
		CustomSections:  1_000,
		NameBytes:       64 << 10,
		ModuleNameBytes: 200,
		Types:           10_000,
		Params:          255,
		Results:         255,
		TypeOperands:    100_000,
		Imports:         1_000,
		Functions:       100_000,
		Tables:          100,
		TableElements:   1_000_000,
		MemoryPages:     65_536,
		Globals:         20_000,
		Exports:         2_000,
		ElementSegments: 10_000,
		Elements:        200_000,
		DataSegments:    200_000,
		CodeBytes:       48 << 20,
		TotalLocals:     2_000_000,
		TotalMoves:      10_000_000,

		BodyBytes:    2 << 20,
		Locals:       20_000,
		BlockDepth:   20_000,
		Blocks:       50_000,
		BranchTable:  50_000,
		Branches:     100_000,
		StackHeight:  1_000,
		OperandMoves: 200_000,
		LocalJoins:   20_000_000,
	}
}

// withDefaults sets unset fields to their defaults.
func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	for _, f := range []struct{ set, def *int }{
		{&l.ModuleBytes, &d.ModuleBytes}, {&l.CustomSections, &d.CustomSections}, {&l.NameBytes, &d.NameBytes},
		{&l.ModuleNameBytes, &d.ModuleNameBytes},
		{&l.Types, &d.Types}, {&l.Params, &d.Params}, {&l.Results, &d.Results},
		{&l.TypeOperands, &d.TypeOperands}, {&l.Imports, &d.Imports},
		{&l.Functions, &d.Functions}, {&l.Tables, &d.Tables}, {&l.TableElements, &d.TableElements},
		{&l.MemoryPages, &d.MemoryPages}, {&l.Globals, &d.Globals}, {&l.Exports, &d.Exports},
		{&l.ElementSegments, &d.ElementSegments}, {&l.Elements, &d.Elements}, {&l.DataSegments, &d.DataSegments},
		{&l.CodeBytes, &d.CodeBytes}, {&l.TotalLocals, &d.TotalLocals}, {&l.TotalMoves, &d.TotalMoves},
		{&l.BodyBytes, &d.BodyBytes}, {&l.Locals, &d.Locals},
		{&l.BlockDepth, &d.BlockDepth}, {&l.Blocks, &d.Blocks}, {&l.BranchTable, &d.BranchTable},
		{&l.Branches, &d.Branches}, {&l.StackHeight, &d.StackHeight}, {&l.OperandMoves, &d.OperandMoves},
		{&l.LocalJoins, &d.LocalJoins},
	} {
		if *f.set <= 0 {
			*f.set = *f.def
		}
	}
	return l
}
