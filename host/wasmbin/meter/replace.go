package meter

import "github.com/seed47132306/terrarium/host/wasmbin"

// replaces reports whether metering replaces an instruction. before is the
// preceding instruction.
func replaces(in, before *wasmbin.Instr) bool {
	switch in.Op {
	case wasmbin.OpCall, wasmbin.OpCallIndirect, wasmbin.OpRefFunc, wasmbin.OpMemoryGrow,
		wasmbin.OpTableGrow, wasmbin.OpTableCopy, wasmbin.OpTableInit, wasmbin.OpTableFill:
		return true
	case wasmbin.OpMemoryCopy, wasmbin.OpMemoryFill, wasmbin.OpMemoryInit:
		_, constant := constSize(before)
		return !constant
	}
	return false
}

// replace writes the replacement of an instruction. It must also be valid in
// dead code.
func (e *emitter) replace(in *wasmbin.Instr) {
	switch in.Op {
	case wasmbin.OpCall:
		e.call(in.Index)
	case wasmbin.OpCallIndirect:
		e.lend()
		e.index(in.Op, in.Index, in.Index2)
		e.reload()
	case wasmbin.OpRefFunc:
		e.index(wasmbin.OpGlobalGet, e.helpers.ref(in.Index))
	case wasmbin.OpMemoryCopy, wasmbin.OpMemoryFill, wasmbin.OpMemoryInit:
		e.memoryBulk(in)
	default:
		e.index(wasmbin.OpCall, e.helpers.index(in))
		e.reload()
	}
}

// call writes a call of a function. Leaves need no extra code: they call
// nothing and do not change the fuel.
func (e *emitter) call(function uint32) {
	leaf := e.view.leaf(function) > 0
	if !leaf {
		e.lend()
	}
	e.index(wasmbin.OpCall, e.helpers.moved(function))
	if !leaf {
		e.reload()
	}
}

// lend passes the depth to a function that is about to be called.
func (e *emitter) lend() {
	e.get(e.depth)
	e.index(wasmbin.OpGlobalSet, e.helpers.depth)
}

// memoryBulk runs a short bulk instruction in place and a long one in a
// function.
func (e *emitter) memoryBulk(in *wasmbin.Instr) {
	e.index(wasmbin.OpLocalTee, e.size)
	e.get(e.size)
	e.number(wasmbin.OpI32Const, shortBytes)
	e.op(wasmbin.OpI32LeU)
	e.block(wasmbin.OpIf, wasmbin.BlockType(e.helpers.triple))
	e.remaining()
	e.take(func() {
		e.get(e.size)
		e.number(wasmbin.OpI32Const, bytesPerUnitLog)
		e.op(wasmbin.OpI32ShrU, wasmbin.OpI64ExtendI32U)
	})
	e.native(in.Op, in.Index, in.Index2)
	e.op(wasmbin.OpElse)
	e.index(wasmbin.OpCall, e.helpers.index(in))
	e.reload()
	e.op(wasmbin.OpEnd)
}

// native appends a bulk instruction itself.
func (a *asm) native(op wasmbin.Opcode, index, index2 uint32) {
	switch op.Imm() {
	case wasmbin.ImmMemoryMemory:
		a.index(op, 0, 0)
	case wasmbin.ImmMemory:
		a.index(op, 0)
	case wasmbin.ImmDataMemory:
		a.index(op, index, 0)
	case wasmbin.ImmTable:
		a.index(op, index)
	default:
		a.index(op, index, index2)
	}
}
