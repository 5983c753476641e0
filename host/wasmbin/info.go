package wasmbin

// FuncInfo holds the findings of validation about a function's code.
type FuncInfo struct {
	Params      uint32 // parameters
	Locals      uint32 // declared locals, without parameters
	LocalSlots  uint32 // 8-byte slots of parameters and locals; a v128 takes two
	StackHeight uint32 // the most operands on the stack at once
	Vectors     bool   // v128 values occur on the stack; each takes two 8-byte slots
	Instrs      uint32 // instructions
	Blocks      uint32 // block, loop and if instructions
	Loops       uint32 // loop instructions
	BlockDepth  uint32 // how deeply blocks nest
	BranchTable uint32 // the most targets of one br_table
	Branches    uint32 // targets of all branches
	Moves       uint32 // operands of calls, blocks and branches, see Limits.OperandMoves
	Calls       uint32 // call and call_indirect instructions
}

// StackSlots returns the most 8-byte slots that the operands on the stack
// take: an upper bound if some are vectors.
func (f *FuncInfo) StackSlots() int {
	if f.Vectors {
		return 2 * int(f.StackHeight)
	}
	return int(f.StackHeight)
}
