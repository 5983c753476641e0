package wasmbin

import "fmt"

// singles holds the result lists of blocks with one result, by type.
var singles = func() (s [256][1]ValueType) {
	for i := range s {
		s[i][0] = ValueType(i)
	}
	return s
}()

// blockTypes returns the types that a block takes and leaves.
func (v *validator) blockTypes(b BlockType) (params, results []ValueType) {
	if t, ok := b.Result(); ok {
		return nil, singles[t][:]
	}
	index, ok := b.Index()
	if !ok {
		return nil, nil
	}
	if int64(index) >= int64(len(v.m.Types)) {
		v.fail(fmt.Sprintf("there is no type %d", index))
		return nil, nil
	}
	t := &v.m.Types[index]
	return t.Params, t.Results
}

func (v *validator) block(in *Instr) {
	params, results := v.blockTypes(in.Block)
	v.info.Blocks++
	if in.Op == OpLoop {
		v.info.Loops++
	}
	if depth := uint32(len(v.frames)); depth > v.info.BlockDepth {
		v.info.BlockDepth = depth
		v.most("BlockDepth", "nested blocks", uint64(depth), v.limits.BlockDepth)
	}
	v.most("Blocks", "blocks", uint64(v.info.Blocks), v.limits.Blocks)
	locals := uint64(v.info.Params) + uint64(v.info.Locals)
	v.most("LocalJoins", "combinations of a local and a block", locals*uint64(v.info.Blocks), v.limits.LocalJoins)
	v.moves(len(params) + len(results))
	if v.err != nil {
		return
	}
	if in.Op == OpIf {
		v.pop(I32)
	}
	v.popAll(params)
	v.open(in.Op, params, results)
}

func (v *validator) otherwise() {
	if v.frames[len(v.frames)-1].op != OpIf {
		v.fail("else without an if")
		return
	}
	if f := v.close(); v.err == nil {
		v.open(OpElse, f.params, f.results)
	}
}

func (v *validator) end() {
	f := v.close()
	if f.op == OpIf && !equalTypes(f.params, f.results) {
		v.fail("the results of an if without else differ from its parameters")
	}
	if v.err == nil && len(v.frames) > 0 {
		v.pushAll(f.results)
	}
}

// target returns the block that a branch of that depth leads to.
func (v *validator) target(depth uint32) *frame {
	if int64(depth) >= int64(len(v.frames)) {
		v.fail(fmt.Sprintf("%s has the label %d, but the highest one here is %d", v.it.Op, depth, len(v.frames)-1))
		return &v.frames[0]
	}
	return &v.frames[len(v.frames)-1-int(depth)]
}

func (v *validator) branch(in *Instr) {
	v.info.Branches++
	v.most("Branches", "branch targets", uint64(v.info.Branches), v.limits.Branches)
	switch in.Op {
	case OpBr:
		types := v.target(in.Index).label()
		v.moves(len(types))
		v.popAll(types)
		v.leave()
	case OpBrIf:
		v.pop(I32)
		types := v.target(in.Index).label()
		v.moves(len(types))
		v.popAll(types)
		v.pushAll(types)
	case OpBrTable:
		v.branchTable(in)
	case OpReturn:
		v.moves(len(v.signature.Results))
		v.popAll(v.signature.Results)
		v.leave()
	}
}

func (v *validator) branchTable(in *Instr) {
	v.pop(I32)
	v.info.BranchTable = max(v.info.BranchTable, in.Count)
	v.info.Branches += min(in.Count, 1<<24)
	v.most("BranchTable", "targets in a br_table", uint64(in.Count), v.limits.BranchTable)
	v.most("Branches", "branch targets", uint64(v.info.Branches), v.limits.Branches)
	arity := len(v.target(in.Index).label())
	if v.err != nil {
		return
	}
	for depth := range in.Labels() {
		types := v.target(depth).label()
		if len(types) != arity {
			v.fail("the targets of a br_table take different numbers of operands")
		}
		v.moves(arity)
		v.peekAll(types)
		if v.err != nil {
			return
		}
	}
	v.leave()
}

func (v *validator) call(in *Instr) {
	v.info.Calls++
	var t *FuncType
	if in.Op == OpCall {
		if !v.isFunction(in.Index) {
			v.fail(fmt.Sprintf("there is no function %d", in.Index))
			return
		}
		t = &v.m.Types[v.funcTypes[in.Index]]
	} else {
		if v.table(in.Index2) != FuncRef {
			v.fail("call_indirect needs a table of functions")
		}
		if int64(in.Index) >= int64(len(v.m.Types)) {
			v.fail(fmt.Sprintf("there is no type %d", in.Index))
			return
		}
		v.pop(I32)
		t = &v.m.Types[in.Index]
	}
	v.moves(len(t.Params) + len(t.Results))
	v.popAll(t.Params)
	v.pushAll(t.Results)
}
