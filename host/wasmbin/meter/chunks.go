package meter

import "github.com/seed47132306/terrarium/host/wasmbin"

// The parameters and locals of the functions that replace bulk instructions.
const (
	bulkTo = iota
	bulkFrom
	bulkCount
	bulkChunk
)

// bulkForm is what distinguishes the bulk instructions. Their operands are the
// destination, the source or value, and the size.
type bulkForm struct {
	chunk    int64  // the most that one native instruction handles
	shift    int64  // 1<<shift of them cost a unit
	fixed    int64  // additional cost of a chunk
	toSize   func() // pushes the size of the destination, i64
	fromSize func() // the same for the source; nil if there is none
	back     bool   // ranges may overlap, so the copy may have to start at the end
	value    wasmbin.ValueType
}

// bulk makes the function that runs a bulk instruction in chunks.
// Out-of-bounds ranges are left to the native instruction, which detects them
// before it writes anything.
func (h *helpers) bulk(key helperKey) helper {
	var a asm
	f := h.bulkForm(&a, key)
	native := func() { a.native(key.op, key.index, key.index2) }

	h.beyond(&a, bulkTo, f.toSize)
	if f.fromSize != nil {
		h.beyond(&a, bulkFrom, f.fromSize)
		a.op(wasmbin.OpI32Or)
	}
	a.block(wasmbin.OpIf, wasmbin.BlockEmpty)
	a.get(bulkTo)
	a.get(bulkFrom)
	a.get(bulkCount)
	native()
	a.op(wasmbin.OpReturn, wasmbin.OpEnd)

	if f.back {
		a.get(bulkTo)
		a.get(bulkFrom)
		a.op(wasmbin.OpI32GtU)
		a.block(wasmbin.OpIf, wasmbin.BlockEmpty)
		h.downwards(&a, &f, native)
		a.op(wasmbin.OpReturn, wasmbin.OpEnd)
	}
	h.upwards(&a, &f, native)
	a.op(wasmbin.OpEnd)
	return helper{key.op.String(), wasmbin.FuncType{Params: types(i32, f.value, i32)},
		wasmbin.Code{Locals: []wasmbin.LocalGroup{{Count: 1, Type: i32}}, Body: a.code}}
}

func (h *helpers) bulkForm(a *asm, key helperKey) bulkForm {
	memory := func() {
		a.index(wasmbin.OpMemorySize, 0)
		a.op(wasmbin.OpI64ExtendI32U)
		a.number(wasmbin.OpI64Const, 16)
		a.op(wasmbin.OpI64Shl)
	}
	table := func(index uint32) func() {
		return func() {
			a.index(wasmbin.OpTableSize, index)
			a.op(wasmbin.OpI64ExtendI32U)
		}
	}
	length := func(n int) func() { return func() { a.number(wasmbin.OpI64Const, int64(n)) } }
	bytes := bulkForm{chunk: chunkBytes, shift: bytesPerUnitLog, fixed: costCopy, toSize: memory, value: i32}
	elements := bulkForm{chunk: chunkElements, shift: 0, fixed: costCopy, toSize: table(key.index), value: i32}
	switch key.op {
	case wasmbin.OpMemoryCopy:
		bytes.fromSize, bytes.back = memory, true
		return bytes
	case wasmbin.OpMemoryFill:
		bytes.fixed = costFillChunk
		return bytes
	case wasmbin.OpMemoryInit:
		bytes.fromSize = length(len(h.module.Data[key.index].Bytes))
		return bytes
	case wasmbin.OpTableCopy:
		elements.fromSize, elements.back = table(key.index2), true
	case wasmbin.OpTableInit:
		elements.toSize = table(key.index2)
		elements.fromSize = length(h.module.Elements[key.index].Len())
	default: // table.fill
		elements.fixed = costFillChunk
		elements.value = h.module.AllTables()[key.index].Type
	}
	return elements
}

// beyond pushes whether a range exceeds a size.
func (h *helpers) beyond(a *asm, start uint32, size func()) {
	a.get(start)
	a.op(wasmbin.OpI64ExtendI32U)
	a.get(bulkCount)
	a.op(wasmbin.OpI64ExtendI32U, wasmbin.OpI64Add)
	size()
	a.op(wasmbin.OpI64GtU)
}

// takeChunk sets bulkChunk to the size of the next chunk and charges for it.
func (h *helpers) takeChunk(a *asm, f *bulkForm) {
	a.get(bulkCount)
	a.number(wasmbin.OpI32Const, f.chunk)
	a.get(bulkCount)
	a.number(wasmbin.OpI32Const, f.chunk)
	a.op(wasmbin.OpI32LtU, wasmbin.OpSelect)
	a.set(bulkChunk)
	h.pay(a, func() {
		a.get(bulkChunk)
		a.op(wasmbin.OpI64ExtendI32U)
		a.number(wasmbin.OpI64Const, f.shift)
		a.op(wasmbin.OpI64ShrU)
		a.number(wasmbin.OpI64Const, f.fixed)
		a.op(wasmbin.OpI64Add)
	})
}

// less appends local -= bulkChunk.
func less(a *asm, local uint32) {
	a.get(local)
	a.get(bulkChunk)
	a.op(wasmbin.OpI32Sub)
	a.set(local)
}

// more appends local += bulkChunk.
func more(a *asm, local uint32) {
	a.get(local)
	a.get(bulkChunk)
	a.op(wasmbin.OpI32Add)
	a.set(local)
}

// upwards runs the chunks from the first to the last. There is always at least
// one: an empty chunk still detects a dropped segment.
func (h *helpers) upwards(a *asm, f *bulkForm, native func()) {
	a.block(wasmbin.OpLoop, wasmbin.BlockEmpty)
	h.takeChunk(a, f)
	a.get(bulkTo)
	a.get(bulkFrom)
	a.get(bulkChunk)
	native()
	more(a, bulkTo)
	if f.fromSize != nil {
		more(a, bulkFrom)
	}
	h.again(a)
}

// downwards runs the chunks from the last to the first.
func (h *helpers) downwards(a *asm, f *bulkForm, native func()) {
	end := func(local uint32) {
		a.get(local)
		a.get(bulkCount)
		a.op(wasmbin.OpI32Add)
		a.get(bulkChunk)
		a.op(wasmbin.OpI32Sub)
	}
	a.block(wasmbin.OpLoop, wasmbin.BlockEmpty)
	h.takeChunk(a, f)
	end(bulkTo)
	end(bulkFrom)
	a.get(bulkChunk)
	native()
	h.again(a)
}

// again repeats the loop until everything is done.
func (h *helpers) again(a *asm) {
	less(a, bulkCount)
	a.get(bulkCount)
	a.index(wasmbin.OpBrIf, 0)
	a.op(wasmbin.OpEnd)
}
