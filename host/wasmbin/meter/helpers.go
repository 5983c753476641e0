package meter

import "github.com/seed47132306/terrarium/host/wasmbin"

// helpers holds the functions added to a module. Each is made on first use.
type helpers struct {
	module   *wasmbin.Module
	imported uint32 // functions the guest imports
	host     uint32 // the imported function
	first    uint32 // index of the first added function

	fuel, depth, table uint32 // globals
	pause              uint32 // calls host
	triple             uint32 // the type of three i32
	grows              bool   // table is made

	known map[helperKey]uint32
	added []helper
	refs  map[uint32]uint32 // the globals that hold references, by function of the guest
}

// helperKey identifies a helper by the instruction it replaces.
type helperKey struct {
	op            wasmbin.Opcode
	index, index2 uint32
}

type helper struct {
	name string
	typ  wasmbin.FuncType
	code wasmbin.Code
}

const (
	i32 = wasmbin.I32
	i64 = wasmbin.I64
)

func types(t ...wasmbin.ValueType) []wasmbin.ValueType { return t }

// newHelpers adds to a module the import and the globals that it shares with
// the host.
func newHelpers(m *wasmbin.Module) *helpers {
	h := &helpers{module: m, imported: uint32(m.ImportedFuncs()), known: make(map[helperKey]uint32), refs: make(map[uint32]uint32)}
	h.host = m.AddFuncImports(wasmbin.Import{Module: ImportModule, Name: ImportPause,
		Type: m.AddType(wasmbin.FuncType{Params: types(i64, i64), Results: types(i64)})})
	h.triple = m.AddType(wasmbin.FuncType{Params: types(i32, i32, i32)})
	h.first = h.host + 1 + uint32(len(m.Funcs))
	h.fuel = h.global(ExportFuel)
	h.depth = h.global(ExportDepth)
	h.addPause()
	return h
}

// global adds a global that the host sets.
func (h *helpers) global(export string) uint32 {
	index := h.module.AddGlobal(wasmbin.Global{GlobalType: wasmbin.GlobalType{Type: i64, Mutable: true},
		Init: wasmbin.ConstExpr{Op: wasmbin.OpI64Const}})
	h.module.AddExport(export, wasmbin.ExternGlobal, index)
	return index
}

// finish adds the functions to the module.
func (h *helpers) finish() {
	m := h.module
	for i := range h.added {
		f := &h.added[i]
		index := m.AddFunc(m.AddType(f.typ), f.code)
		if m.Names != nil {
			m.Names.Funcs = append(m.Names.Funcs, wasmbin.FuncName{Index: index, Name: Reserved + "." + f.name})
		}
	}
}

// moved returns the new index of a guest function, after the import of host.
func (h *helpers) moved(function uint32) uint32 { return wasmbin.Shift(h.imported, 1)(function) }

// ref returns the index of the global that holds the reference to a guest
// function. wazero makes a new reference whenever ref.func is executed and
// keeps all of them as long as the instance, which no limit bounds. The
// constant of a global is made once.
func (h *helpers) ref(function uint32) uint32 {
	global, ok := h.refs[function]
	if !ok {
		global = h.module.AddGlobal(wasmbin.Global{GlobalType: wasmbin.GlobalType{Type: wasmbin.FuncRef},
			Init: wasmbin.ConstExpr{Op: wasmbin.OpRefFunc, Index: h.moved(function)}})
		h.refs[function] = global
	}
	return global
}

// index returns the index of the helper that replaces an instruction.
func (h *helpers) index(in *wasmbin.Instr) uint32 {
	key := helperKey{op: in.Op}
	switch in.Op.Imm() {
	case wasmbin.ImmTable, wasmbin.ImmDataMemory:
		key.index = in.Index
	case wasmbin.ImmTableTable, wasmbin.ImmElemTable:
		key.index, key.index2 = in.Index, in.Index2
	}
	if i, ok := h.known[key]; ok {
		return i
	}
	var made helper
	switch in.Op {
	case wasmbin.OpMemoryGrow:
		made = h.memoryGrow()
	case wasmbin.OpTableGrow:
		made = h.tableGrow(key.index)
	default:
		made = h.bulk(key)
	}
	h.known[key] = h.add(made)
	return h.known[key]
}

func (h *helpers) add(f helper) uint32 {
	h.added = append(h.added, f)
	return h.first + uint32(len(h.added)) - 1
}

// addPause adds the function that calls the host: its parameter is the depth,
// and the fuel is in the global. On a negative depth the host must end the
// guest; if it does not, the guest traps.
func (h *helpers) addPause() {
	var a asm
	a.index(wasmbin.OpGlobalGet, h.fuel)
	a.get(0)
	a.index(wasmbin.OpCall, h.host)
	a.index(wasmbin.OpGlobalSet, h.fuel)
	a.get(0)
	a.number(wasmbin.OpI64Const, 0)
	a.op(wasmbin.OpI64LtS)
	a.block(wasmbin.OpIf, wasmbin.BlockEmpty)
	a.op(wasmbin.OpUnreachable, wasmbin.OpEnd, wasmbin.OpEnd)
	h.pause = h.add(helper{"pause", wasmbin.FuncType{Params: types(i64)}, wasmbin.Code{Body: a.code}})
}

// pay appends the charge of the units on the stack, and the check of the fuel.
func (h *helpers) pay(a *asm, units func()) {
	a.index(wasmbin.OpGlobalGet, h.fuel)
	units()
	a.op(wasmbin.OpI64Sub)
	a.index(wasmbin.OpGlobalSet, h.fuel)
	a.index(wasmbin.OpGlobalGet, h.fuel)
	a.number(wasmbin.OpI64Const, 0)
	a.op(wasmbin.OpI64LtS)
	a.block(wasmbin.OpIf, wasmbin.BlockEmpty)
	a.number(wasmbin.OpI64Const, 0)
	a.index(wasmbin.OpCall, h.pause)
	a.op(wasmbin.OpEnd)
}

// memoryGrow charges by the pages added. wazero cannot represent the size of a
// memory of 4 GiB, so the last page is never granted.
func (h *helpers) memoryGrow() helper {
	const delta, result = 0, 1
	var a asm
	a.index(wasmbin.OpMemorySize, 0)
	a.op(wasmbin.OpI64ExtendI32U)
	a.get(delta)
	a.op(wasmbin.OpI64ExtendI32U, wasmbin.OpI64Add)
	a.number(wasmbin.OpI64Const, maxPages)
	a.op(wasmbin.OpI64GtU)
	h.refuse(&a)
	a.get(delta)
	a.index(wasmbin.OpMemoryGrow, 0)
	h.grown(&a, result, func() {
		h.pay(&a, func() {
			a.get(delta)
			a.op(wasmbin.OpI64ExtendI32U)
			a.number(wasmbin.OpI64Const, costPage)
			a.op(wasmbin.OpI64Mul)
		})
	})
	return helper{"memory.grow", wasmbin.FuncType{Params: types(i32), Results: types(i32)},
		wasmbin.Code{Locals: []wasmbin.LocalGroup{{Count: 1, Type: i32}}, Body: a.code}}
}

// tableGrow lets a table grow within the elements that the host allows.
func (h *helpers) tableGrow(table uint32) helper {
	const value, delta, result = 0, 1, 2
	if !h.grows {
		h.grows, h.table = true, h.global(ExportTable)
	}
	var a asm
	wide := func() {
		a.get(delta)
		a.op(wasmbin.OpI64ExtendI32U)
	}
	wide()
	a.index(wasmbin.OpGlobalGet, h.table)
	a.op(wasmbin.OpI64GtS)
	h.refuse(&a)
	a.get(value)
	a.get(delta)
	a.index(wasmbin.OpTableGrow, table)
	h.grown(&a, result, func() {
		a.index(wasmbin.OpGlobalGet, h.table)
		wide()
		a.op(wasmbin.OpI64Sub)
		a.index(wasmbin.OpGlobalSet, h.table)
		h.pay(&a, func() {
			wide()
			a.number(wasmbin.OpI64Const, costElement)
			a.op(wasmbin.OpI64Mul)
		})
	})
	element := h.module.AllTables()[table].Type
	return helper{"table.grow", wasmbin.FuncType{Params: types(element, i32), Results: types(i32)},
		wasmbin.Code{Locals: []wasmbin.LocalGroup{{Count: 1, Type: i32}}, Body: a.code}}
}

// refuse returns the result for "nothing was added", if the condition on the stack holds.
func (h *helpers) refuse(a *asm) {
	a.block(wasmbin.OpIf, wasmbin.BlockEmpty)
	a.number(wasmbin.OpI32Const, -1)
	a.op(wasmbin.OpReturn, wasmbin.OpEnd)
}

// grown ends a function with the result on the stack, after running then if
// something was added.
func (h *helpers) grown(a *asm, result uint32, then func()) {
	a.index(wasmbin.OpLocalTee, result)
	a.number(wasmbin.OpI32Const, -1)
	a.op(wasmbin.OpI32Ne)
	a.block(wasmbin.OpIf, wasmbin.BlockEmpty)
	then()
	a.op(wasmbin.OpEnd)
	a.get(result)
	a.op(wasmbin.OpEnd)
}
