package meter

import "github.com/seed47132306/terrarium/host/wasmbin"

// The most that one native bulk instruction moves: bytes, and elements of a
// table. Larger moves are split.
const (
	chunkBytes    = 64 << 10
	chunkElements = chunkBytes / 8
)

// shortBytes is the largest size in bytes at which a bulk instruction without
// a constant size runs in place. Longer ones run in an added function.
const shortBytes = 4 << 10

// moduleView holds what planning needs to know about a module, before any
// function is renumbered.
type moduleView struct {
	types     []wasmbin.FuncType
	funcTypes []uint32
	imported  uint32
	// leaves holds for every defined function the cost of a call for the
	// caller, if the function is too small to be metered itself, and 0
	// otherwise.
	leaves []int64
}

func newView(m *wasmbin.Module) *moduleView {
	return &moduleView{types: m.Types, funcTypes: m.FuncTypes(), imported: uint32(m.ImportedFuncs()), leaves: make([]int64, len(m.Code))}
}

func (v *moduleView) funcType(index uint32) *wasmbin.FuncType { return &v.types[v.funcTypes[index]] }

// leaf returns the cost that callers pay for the function, or 0 if it is
// metered itself.
func (v *moduleView) leaf(index uint32) int64 {
	if index < v.imported {
		return 0
	}
	return v.leaves[index-v.imported]
}

// arity returns how many parameters and results a block has.
func (v *moduleView) arity(b wasmbin.BlockType) (params, results int) {
	if index, ok := b.Index(); ok {
		t := &v.types[index]
		return len(t.Params), len(t.Results)
	}
	if _, ok := b.Result(); ok {
		return 0, 1
	}
	return 0, 0
}

// cost returns the cost of an instruction; before is the preceding one.
func (v *moduleView) cost(in, before *wasmbin.Instr) int64 {
	switch in.Op {
	case wasmbin.OpCall:
		own := int64(costCall) + v.leaf(in.Index)
		if in.Index < v.imported {
			own = costGo
		}
		return own + operands(v.funcType(in.Index))
	case wasmbin.OpCallIndirect:
		return costIndirect + operands(&v.types[in.Index])
	case wasmbin.OpMemoryCopy, wasmbin.OpMemoryFill, wasmbin.OpMemoryInit:
		n, _ := constSize(before)
		return costOf(in.Op) + copyCost(n)
	}
	return costOf(in.Op)
}

func operands(t *wasmbin.FuncType) int64 {
	return beyond(len(t.Params)+len(t.Results), freeOperands)
}

// constSize returns the size of a bulk instruction if it is a constant pushed
// by the preceding instruction and needs no chunks.
func constSize(before *wasmbin.Instr) (n int64, ok bool) {
	if n = int64(uint32(before.Value)); before.Op != wasmbin.OpI32Const || n > chunkBytes {
		return 0, false
	}
	return n, true
}
