package wasmgen

import "slices"

// open begins a block of any type; a counted loop gets a type that leaves the
// stack unchanged.
func (b *body) open(kind frameKind, opcode byte, counts bool) {
	t := b.gen.blockType(counts)
	if kind == ifFrame {
		b.need(append(slices.Clone(t.params), i32)...)
		b.pop(1)
	} else {
		b.need(t.params...)
	}
	counter := -1
	if counts {
		counter = int(b.newLocal(i32))
		b.op(opI32Const)
		b.code.signed(int64(1 + b.src.below(10)))
		b.indexed(opLocalSet, uint32(counter))
	}
	b.op(opcode)
	b.code.raw(t.encoding...)
	b.pop(len(t.params))
	b.frames = append(b.frames, frame{kind: kind, params: t.params, results: t.results, height: len(b.stack), counter: counter})
	b.push(t.params...)
	if kind == loopFrame {
		b.spend()
	}
}

func (b *body) block() {
	if len(b.frames) < deepest {
		b.open(blockFrame, opBlock, false)
	}
}

// loop repeats as often as branches inside it decide, possibly forever.
func (b *body) loop() {
	if len(b.frames) < deepest {
		b.open(loopFrame, opLoop, false)
	}
}

// countedLoop repeats a few times, unless a branch inside it decides
// otherwise.
func (b *body) countedLoop() {
	if len(b.frames) < deepest {
		b.open(loopFrame, opLoop, true)
	}
}

func (b *body) conditional() {
	if len(b.frames) < deepest {
		b.open(ifFrame, opIf, false)
	}
}

// endBlock closes the innermost block, or the first arm of it.
func (b *body) endBlock() {
	if len(b.frames) == 1 {
		return
	}
	f := b.top()
	if f.kind != ifFrame || slices.Equal(f.params, f.results) && !b.src.oneIn(2) {
		b.end()
		return
	}
	b.otherwise()
}

// otherwise starts the second arm of an if.
func (b *body) otherwise() {
	f := b.top()
	b.settle(f.results)
	b.op(opElse)
	b.stack = append(b.stack[:f.height], f.params...)
	f.kind, f.dead = elseFrame, false
}

// end closes the innermost block completely.
func (b *body) end() {
	f := b.top()
	if f.kind == ifFrame && !slices.Equal(f.params, f.results) {
		b.otherwise()
	}
	if f.counter >= 0 {
		b.settle(f.params)
		b.indexed(opLocalGet, uint32(f.counter))
		b.op(opI32Const)
		b.code.signed(1)
		b.op(opI32Sub)
		b.indexed(opLocalTee, uint32(f.counter))
		b.indexed(opBrIf, 0)
	}
	b.settle(f.results)
	b.op(opEnd)
	b.stack = append(b.stack[:f.height], f.results...)
	b.frames = b.frames[:len(b.frames)-1]
}

// target picks a label, counted from the innermost.
func (b *body) target() (uint32, *frame) {
	depth := b.src.below(len(b.frames))
	return uint32(depth), &b.frames[len(b.frames)-1-depth]
}

// parting decides whether to leave the block unconditionally. Leaving the
// function makes the rest of it dead, so that is rare.
func (b *body) parting() bool {
	return len(b.frames) > 1 || b.top().dead || b.src.oneIn(12)
}

func (b *body) br() {
	if !b.parting() {
		return
	}
	depth, f := b.target()
	b.need(f.label()...)
	b.indexed(opBr, depth)
	b.die()
}

func (b *body) brIf() {
	depth, f := b.target()
	b.need(append(slices.Clone(f.label()), i32)...)
	b.indexed(opBrIf, depth)
	b.pop(1)
}

func (b *body) brTable() {
	if !b.parting() {
		return
	}
	depth, f := b.target()
	var fitting []uint32
	// Dead code may branch to labels of different types at once, if they take
	// the same number of operands and none was pushed.
	loose := b.top().dead && len(b.stack) == b.top().height && b.src.oneIn(2)
	for d := range b.frames {
		label := b.frames[len(b.frames)-1-d].label()
		if slices.Equal(label, f.label()) || loose && len(label) == len(f.label()) {
			fitting = append(fitting, uint32(d))
		}
	}
	if loose {
		b.produce(i32)
	} else {
		b.need(append(slices.Clone(f.label()), i32)...)
	}
	n := b.src.below(6)
	if b.src.oneIn(16) {
		n = b.src.below(200)
	}
	if b.src.oneIn(2) {
		b.restrain(i32, guard{mask: 7})
	}
	b.op(opBrTable)
	b.code.u32(uint32(n))
	for range n {
		b.code.u32(pick(b.src, fitting))
	}
	b.code.u32(depth)
	b.die()
}

func (b *body) ret() {
	if !b.parting() {
		return
	}
	b.need(b.result...)
	b.op(opReturn)
	b.die()
}

func (b *body) unreachable() {
	if !b.parting() || !b.src.oneIn(4) {
		return // it ends the whole call
	}
	b.op(opUnreachable)
	b.die()
}

func (b *body) nop() {
	b.op(opNop)
}

func (b *body) call() {
	index := b.src.below(len(b.gen.funcs))
	t := b.gen.funcs[index]
	b.need(t.params...)
	b.indexed(opCall, uint32(index))
	b.pop(len(t.params))
	b.push(t.results...)
}

func (b *body) callIndirect() {
	table, ok := b.gen.tableOf(funcref)
	if !ok {
		return
	}
	index := uint32(b.src.below(len(b.gen.types)))
	t := b.gen.types[index]
	if known := b.gen.entries(table, t); len(known) > 0 && !b.src.oneIn(8) {
		b.need(t.params...)
		b.op(opI32Const)
		b.code.signed(int64(pick(b.src, known)))
		b.push(i32)
	} else {
		b.need(append(slices.Clone(t.params), i32)...)
		b.shape([]valueType{i32}, []guard{{mask: entry}})
	}
	b.op(opCallIndirect)
	b.code.u32(index)
	b.code.u32(uint32(table))
	b.pop(len(t.params) + 1)
	b.push(t.results...)
}
