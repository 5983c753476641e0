package wasmbin

import "fmt"

// letterTypes maps the letters in opInfo to types.
var letterTypes = [...]ValueType{'i': I32, 'I': I64, 'f': F32, 'F': F64, 'V': V128}

// simple checks an instruction with fixed types.
func (v *validator) simple() {
	info := v.it.info
	if info.imm != ImmNone {
		v.immediates(info)
	}
	for i := len(info.pops) - 1; i >= 0; i-- {
		v.pop(letterTypes[info.pops[i]])
	}
	if info.pushes != "" {
		v.push(letterTypes[info.pushes[0]])
	}
}

func (v *validator) immediates(info *opInfo) {
	in := &v.it.Instr
	switch info.imm {
	case ImmMemArg, ImmMemArgLane:
		v.memory()
		if in.Align > info.align {
			v.fail(fmt.Sprintf("%s has an alignment of 2^%d bytes; at most 2^%d are allowed", in.Op, in.Align, info.align))
		}
		if info.imm == ImmMemArgLane {
			v.lane(in.Lane, info.lanes)
		}
	case ImmMemory, ImmMemoryMemory:
		v.memory()
	case ImmLane:
		v.lane(in.Lane, info.lanes)
	case ImmShuffle:
		for _, lane := range in.Raw {
			v.lane(lane, 32)
		}
	case ImmDataMemory:
		v.memory()
		v.data(in.Index)
	case ImmData:
		v.data(in.Index)
	case ImmElem:
		v.element(in.Index)
	case ImmElemTable:
		t := v.table(in.Index2)
		if e := v.element(in.Index); v.err == nil && e.Type != t {
			v.fail(fmt.Sprintf("table.init copies %s to a table of %s", e.Type, t))
		}
	case ImmTableTable:
		if to, from := v.table(in.Index), v.table(in.Index2); v.err == nil && to != from {
			v.fail(fmt.Sprintf("table.copy copies %s to a table of %s", from, to))
		}
	case ImmTable:
		v.table(in.Index)
	}
}

func (v *validator) memory() {
	if v.memories == 0 {
		v.fail(v.it.Op.String() + " needs a memory, but the module has none")
	}
}

func (v *validator) lane(lane, lanes byte) {
	if lane >= lanes {
		v.fail(fmt.Sprintf("%s has no lane %d", v.it.Op, lane))
	}
}

func (v *validator) data(index uint32) {
	switch {
	case v.m.DataCount == nil:
		v.fail(v.it.Op.String() + " needs a data count section")
	case index >= *v.m.DataCount:
		v.fail(fmt.Sprintf("there is no data segment %d", index))
	}
}

func (v *validator) element(index uint32) *Element {
	if int64(index) >= int64(len(v.m.Elements)) {
		v.fail(fmt.Sprintf("there is no element segment %d", index))
		return &Element{}
	}
	return &v.m.Elements[index]
}

// table returns the type of the elements of a table.
func (v *validator) table(index uint32) ValueType {
	if int64(index) >= int64(len(v.tables)) {
		v.fail(fmt.Sprintf("there is no table %d", index))
		return unknown
	}
	return v.tables[index].Type
}

// special checks an instruction whose types depend on the context.
func (v *validator) special() {
	in := &v.it.Instr
	switch in.Op {
	case OpLocalGet, OpLocalSet, OpLocalTee:
		v.localAccess(in)
	case OpGlobalGet, OpGlobalSet:
		v.globalAccess(in)
	case OpBlock, OpLoop, OpIf:
		v.block(in)
	case OpElse:
		v.otherwise()
	case OpEnd:
		v.end()
	case OpBr, OpBrIf, OpBrTable, OpReturn:
		v.branch(in)
	case OpUnreachable:
		v.leave()
	case OpCall, OpCallIndirect:
		v.call(in)
	case OpDrop:
		v.pop(unknown)
	case OpSelect:
		v.choose()
	case OpSelectT:
		v.pop(I32)
		v.pop(in.Type)
		v.pop(in.Type)
		v.push(in.Type)
	default:
		v.reference(in)
	}
}

func (v *validator) localAccess(in *Instr) {
	t, ok := v.local(in.Index)
	if !ok {
		v.fail(fmt.Sprintf("there is no local %d", in.Index))
		return
	}
	if in.Op != OpLocalGet {
		v.pop(t)
	}
	if in.Op != OpLocalSet {
		v.push(t)
	}
}

func (v *validator) globalAccess(in *Instr) {
	if int64(in.Index) >= int64(len(v.globals)) {
		v.fail(fmt.Sprintf("there is no global %d", in.Index))
		return
	}
	g := v.globals[in.Index]
	if in.Op == OpGlobalGet {
		v.push(g.Type)
		return
	}
	if !g.Mutable {
		v.fail(fmt.Sprintf("global %d is not mutable", in.Index))
	}
	v.pop(g.Type)
}

// choose checks a select without a type, which must not have references.
func (v *validator) choose() {
	v.pop(I32)
	a, b := v.pop(unknown), v.pop(unknown)
	switch {
	case a.IsRef() || b.IsRef():
		v.fail("a select of references must state its type")
	case a == unknown:
		v.push(b)
	case b != unknown && a != b:
		v.fail(fmt.Sprintf("the operands of select have different types, %s and %s", b, a))
	default:
		v.push(a)
	}
}

// reference checks the instructions on references and tables.
func (v *validator) reference(in *Instr) {
	switch in.Op {
	case OpRefNull:
		v.push(in.Type)
	case OpRefIsNull:
		if t := v.pop(unknown); t != unknown && !t.IsRef() {
			v.fail("ref.is_null takes a reference, but gets " + t.String())
		}
		v.push(I32)
	case OpRefFunc:
		if !v.isFunction(in.Index) || !v.isDeclared(in.Index) {
			v.fail(fmt.Sprintf("ref.func uses function %d, which does not exist or is not declared", in.Index))
		}
		v.push(FuncRef)
	case OpTableGet:
		t := v.table(in.Index)
		v.pop(I32)
		v.push(t)
	case OpTableSet:
		v.pop(v.table(in.Index))
		v.pop(I32)
	case OpTableGrow:
		t := v.table(in.Index)
		v.pop(I32)
		v.pop(t)
		v.push(I32)
	case OpTableFill:
		t := v.table(in.Index)
		v.pop(I32)
		v.pop(t)
		v.pop(I32)
	default:
		v.fail("the validator has no rule for " + in.Op.String())
	}
}
