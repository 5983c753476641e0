package meter

import "github.com/seed47132306/terrarium/host/wasmbin"

// The most that one native bulk instruction moves: bytes, and elements of a
// table. More goes in several.
const (
	chunkBytes    = 64 << 10
	chunkElements = chunkBytes / 8
)

// shortBytes is up to how many bytes a bulk instruction whose size is not a
// constant is done in place. What is longer goes through a function of the
// module.
const shortBytes = 4 << 10

// moduleView is what planning needs to know of a module, before any function is
// renumbered.
type moduleView struct {
	types     []wasmbin.FuncType
	funcTypes []uint32
	imported  uint32
	// leaves has for every defined function what a call of it costs the caller,
	// if it is so small that it does not meter itself, and 0 otherwise.
	leaves []int64
}

func newView(m *wasmbin.Module) *moduleView {
	return &moduleView{types: m.Types, funcTypes: m.FuncTypes(), imported: uint32(m.ImportedFuncs()), leaves: make([]int64, len(m.Code))}
}

func (v *moduleView) funcType(index uint32) *wasmbin.FuncType { return &v.types[v.funcTypes[index]] }

// leaf is what the function charges its callers instead of charging itself, 0
// when it charges itself.
func (v *moduleView) leaf(index uint32) int64 {
	if index < v.imported {
		return 0
	}
	return v.leaves[index-v.imported]
}

// arity is how many parameters and results a block has.
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

// cost is what an instruction costs; before is the one in front of it.
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

// constSize is the size of a bulk instruction when it is a constant that the
// instruction before it pushes, and one that needs no chunks.
func constSize(before *wasmbin.Instr) (n int64, ok bool) {
	if n = int64(uint32(before.Value)); before.Op != wasmbin.OpI32Const || n > chunkBytes {
		return 0, false
	}
	return n, true
}
