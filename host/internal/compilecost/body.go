package compilecost

import "github.com/seed47132306/terrarium/host/wasmbin"

// Bounds on the analysis of one function. The output of toolchains stays below
// a tenth of them.
const (
	maxBlocks = 200_000
	maxLoops  = 100     // nested
	maxWords  = 4 << 20 // 8-byte words of the sets of live locals
)

// nowhere is the current block in unreachable code.
const nowhere = -1

// body is the control flow of one function as the compiler sees it. It is
// reused for every function.
type body struct {
	m         *wasmbin.Module
	funcTypes []uint32
	mutable   int64 // globals
	largest   int64 // blocks of the largest function so far

	blocks []block
	edges  []edge
	frames []frame
	uses   []access // locals read in a block before they are written there
	writes []access
	locals []local // by index; entries of earlier functions have another stamp

	function   int32 // stamp of this function
	current    int32 // block, or nowhere
	dead       int   // blocks opened in unreachable code
	loops      int   // open
	deepest    int   // nesting of loops
	copies     int64 // distinct locals that get the value of another in a loop, and parameters of loops
	fresh      bool  // the last instruction produced a new value
	calls      int64
	lookups    int64
	accesses   int64 // to memory
	boundsSum  int64
	trampoline int64 // edges that need a separate block
	moved      int64 // operands of calls
	expanded   int64 // moved and expanded are as in terms
	code       int64
}

// A frame is an open block, loop or if, or the function.
type frame struct {
	op     wasmbin.Opcode
	label  int32 // the target of a branch: the header of a loop, else the block after
	after  int32
	branch int32 // of an if: the block of its else
}

// An access is a local in a block.
type access struct{ block, local int32 }

// A local records the blocks in which it was last read and written, so that
// each access is counted once.
type local struct {
	function   int32
	read, wrtn int32
	copied     bool
	dense      int32 // its number among the locals that are live somewhere, or -1
}

func newBody(m *wasmbin.Module) *body {
	b := &body{m: m, funcTypes: m.FuncTypes(), function: -1}
	for _, g := range m.AllGlobals() {
		if g.Mutable {
			b.mutable++
		}
	}
	return b
}

// walk reads the function with that index among the defined ones. It returns
// false if the function is too large.
func (b *body) walk(i int) bool {
	b.reset(i)
	it := wasmbin.NewInstrs(b.m.Code[i].Body)
	for it.Next() && len(b.frames) > 0 {
		if b.current == nowhere {
			b.skip(&it.Instr)
		} else {
			b.instr(&it.Instr)
		}
		if len(b.blocks) > maxBlocks || b.deepest > maxLoops {
			return false
		}
	}
	b.largest = max(b.largest, int64(len(b.blocks))+b.trampoline)
	return true
}

func (b *body) reset(i int) {
	t := &b.m.Types[b.m.Funcs[i]]
	b.blocks, b.edges, b.frames = b.blocks[:0], b.edges[:0], b.frames[:0]
	b.uses, b.writes = b.uses[:0], b.writes[:0]
	b.function++
	b.dead, b.loops, b.deepest, b.copies, b.fresh = 0, 0, 0, 0, false
	b.calls, b.lookups, b.accesses, b.boundsSum, b.trampoline, b.moved = 0, 0, 0, 0, 0, 0
	b.expanded, b.code = 0, 0
	b.current = b.add(0, nowhere)
	b.begin(b.current)
	end := b.add(int64(len(t.Results)), nowhere)
	b.frames = append(b.frames, frame{op: wasmbin.OpBlock, label: end, after: end, branch: nowhere})
}

// skip follows the blocks of unreachable code.
func (b *body) skip(in *wasmbin.Instr) {
	switch in.Op {
	case wasmbin.OpBlock, wasmbin.OpLoop, wasmbin.OpIf:
		b.dead++
	case wasmbin.OpElse:
		if b.dead == 0 {
			b.otherwise()
		}
	case wasmbin.OpEnd:
		if b.dead == 0 {
			b.end()
		} else {
			b.dead--
		}
	}
}

func (b *body) instr(in *wasmbin.Instr) {
	at := &b.blocks[b.current]
	fresh := false
	p := priceOf(in.Op)
	b.code += int64(p.code)
	if !inTerms(in.Op) {
		b.expanded += int64(p.bytes)
	}
	switch in.Op {
	case wasmbin.OpLocalGet, wasmbin.OpLocalSet, wasmbin.OpLocalTee:
		b.access(in)
	case wasmbin.OpGlobalGet:
		b.lookups += at.chain + 1
		fresh = true
	case wasmbin.OpBlock, wasmbin.OpLoop, wasmbin.OpIf:
		b.open(in)
	case wasmbin.OpElse:
		b.otherwise()
	case wasmbin.OpEnd:
		b.end()
	case wasmbin.OpBr, wasmbin.OpBrIf, wasmbin.OpBrTable, wasmbin.OpReturn, wasmbin.OpUnreachable:
		b.branch(in)
	case wasmbin.OpCall, wasmbin.OpCallIndirect:
		b.calls++
		t := b.callee(in)
		b.moved += int64(len(t.Params) + len(t.Results))
		fresh = len(t.Results) > 0
	case wasmbin.OpMemoryCopy, wasmbin.OpMemoryInit:
	case wasmbin.OpMemoryFill:
		b.fill()
	case wasmbin.OpMemoryGrow, wasmbin.OpTableGrow:
		b.calls++
		fresh = true
	default:
		switch in.Op.Imm() {
		case wasmbin.ImmMemArg, wasmbin.ImmMemArgLane:
			b.accesses++
			at.known++
			b.lookups += 2 * (at.chain + 1)
		}
		fresh = makesValue(in.Op)
	}
	b.fresh = fresh
}

// fill adds the blocks of memory.fill, which becomes a loop of copies.
func (b *body) fill() {
	header := b.blocks[b.current].header
	loop, after := b.add(1, nowhere), b.add(0, header)
	b.blocks[loop].loop, b.blocks[loop].header = true, loop
	b.connect(after, 1) // if there is nothing to fill
	b.connect(loop, 1)
	b.leave()
	b.begin(loop)
	b.connect(loop, 1)
	b.connect(after, 1)
	b.leave()
	b.begin(after)
}

// callee returns the type of the called function.
func (b *body) callee(in *wasmbin.Instr) *wasmbin.FuncType {
	t := in.Index
	if in.Op == wasmbin.OpCall {
		t = b.funcTypes[in.Index]
	}
	return &b.m.Types[t]
}

// makesValue reports whether the value on top of the stack after an
// instruction was produced by it, and not already below its operands.
func makesValue(op wasmbin.Opcode) bool {
	switch {
	case op >= wasmbin.OpI32Store && op <= wasmbin.OpI64Store32:
		return false
	case op == wasmbin.OpNop, op == wasmbin.OpDrop, op == wasmbin.OpGlobalSet, op == wasmbin.OpTableSet:
		return false
	case op == wasmbin.OpTableSize:
		return true
	case op >= wasmbin.OpMemoryInit && op <= wasmbin.OpTableFill:
		return false
	case op == wasmbin.OpV128Store, op >= wasmbin.OpV128Store8Lane && op <= wasmbin.OpV128Store64Lane:
		return false
	}
	return true
}

func (b *body) access(in *wasmbin.Instr) {
	for int(in.Index) >= len(b.locals) {
		b.locals = append(b.locals, local{function: -1})
	}
	l := &b.locals[in.Index]
	if l.function != b.function {
		*l = local{function: b.function, read: nowhere, wrtn: nowhere, dense: -1}
	}
	if in.Op == wasmbin.OpLocalGet {
		b.lookups += b.blocks[b.current].chain + 1
		if l.read != b.current && l.wrtn != b.current {
			l.read = b.current
			b.uses = append(b.uses, access{b.current, int32(in.Index)})
		}
		return
	}
	if l.wrtn != b.current {
		l.wrtn = b.current
		b.writes = append(b.writes, access{b.current, int32(in.Index)})
	}
	if !b.fresh && b.loops > 0 && !l.copied {
		l.copied = true
		b.copies++
	}
}

// arities returns how many operands a block takes and leaves.
func (b *body) arities(t wasmbin.BlockType) (params, results int64) {
	if index, ok := t.Index(); ok {
		f := &b.m.Types[index]
		return int64(len(f.Params)), int64(len(f.Results))
	}
	if _, ok := t.Result(); ok {
		return 0, 1
	}
	return 0, 0
}

func (b *body) open(in *wasmbin.Instr) {
	params, results := b.arities(in.Block)
	header := b.blocks[b.current].header
	f := frame{op: in.Op, branch: nowhere}
	f.after = b.add(results, header)
	f.label = f.after
	switch in.Op {
	case wasmbin.OpLoop:
		f.label = b.add(params, nowhere)
		b.blocks[f.label].loop, b.blocks[f.label].header = true, f.label
		b.loops++
		b.deepest = max(b.deepest, b.loops)
		b.copies += params
		b.connect(f.label, 1)
		b.leave()
		b.begin(f.label)
	case wasmbin.OpIf:
		then := b.add(0, header)
		f.branch = b.add(0, header)
		b.connect(then, 1)
		b.connect(f.branch, 1)
		b.leave()
		b.begin(then)
	}
	b.frames = append(b.frames, f)
}

func (b *body) otherwise() {
	f := &b.frames[len(b.frames)-1]
	if b.current != nowhere {
		b.connect(f.after, 1)
		b.leave()
	}
	b.begin(f.branch)
	f.branch = nowhere
}

func (b *body) end() {
	f := b.frames[len(b.frames)-1]
	if b.current != nowhere {
		b.connect(f.after, 1)
		b.leave()
	}
	if f.branch != nowhere { // an if without else
		b.begin(f.branch)
		b.connect(f.after, 1)
		b.leave()
	}
	if f.op == wasmbin.OpLoop {
		b.loops--
	}
	b.frames = b.frames[:len(b.frames)-1]
	if len(b.frames) > 0 {
		b.begin(f.after)
	}
}

func (b *body) branch(in *wasmbin.Instr) {
	label := func(depth uint32) int32 { return b.frames[len(b.frames)-1-int(depth)].label }
	switch in.Op {
	case wasmbin.OpBr:
		b.connect(label(in.Index), 1)
	case wasmbin.OpReturn:
		b.connect(b.frames[0].after, 1)
	case wasmbin.OpBrIf:
		next := b.add(0, b.blocks[b.current].header)
		b.connect(label(in.Index), 1)
		b.trampoline++
		b.connect(next, 1)
		b.leave()
		b.begin(next)
		return
	case wasmbin.OpBrTable:
		b.table(in, label)
	}
	b.leave()
}

// table connects to the targets of a br_table. Repeated targets are one edge,
// so that a long table does not slow down the sets of live locals.
func (b *body) table(in *wasmbin.Instr, label func(uint32) int32) {
	to, count := int32(nowhere), int32(0)
	for depth := range in.Labels() {
		b.trampoline++
		b.expanded += bytesPerTarget
		if next := label(depth); next != to {
			if count > 0 {
				b.connect(to, count)
			}
			to, count = next, 0
		}
		count++
	}
	b.connect(to, count)
}
