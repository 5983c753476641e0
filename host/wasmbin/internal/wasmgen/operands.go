package wasmgen

// One operand in reckless is not restricted, even if it is out of range.
const reckless = 12

// apply emits an instruction with its operands in place.
func (b *body) apply(ins instruction) {
	b.need(ins.in...)
	switch {
	case ins.immediate == memArg || ins.immediate == memArgLane:
		guards := make([]guard, len(ins.in))
		guards[0] = b.addressGuard()
		b.shape(ins.in, guards)
	case ins.danger == divides:
		b.shape(ins.in[1:], []guard{{odd: true}})
	case ins.danger == truncates:
		b.shape(ins.in, []guard{{mask: 0xff}})
	}
	if ins.prefix == 0 {
		b.op(byte(ins.code))
	} else {
		b.prefixed(ins.prefix, ins.code)
	}
	b.immediates(ins)
	b.pop(len(ins.in))
	b.push(ins.out...)
	b.canonical(ins.nan)
}

func (b *body) immediates(ins instruction) {
	switch ins.immediate {
	case memArg, memArgLane:
		b.code.u32(uint32(b.src.below(ins.align + 1)))
		b.code.u32(b.offset())
		if ins.immediate == memArgLane {
			b.op(byte(b.src.below(ins.lanes)))
		}
	case lane:
		b.op(byte(b.src.below(ins.lanes)))
	case shuffle:
		for range 16 {
			b.op(byte(b.src.below(ins.lanes)))
		}
	case bare:
	}
}

// offset picks a mostly small offset, sometimes one beyond every memory.
func (b *body) offset() uint32 {
	if b.src.oneIn(64) {
		return uint32(b.src.bits(4))
	}
	return uint32(b.src.next())
}

// guard brings an operand into range. Its zero value does nothing.
type guard struct {
	mask int32 // of an integer, or of the integer part of a float
	odd  bool
}

// addressGuard keeps most accesses in the first pages.
func (b *body) addressGuard() guard {
	return guard{mask: pick(b.src, []int32{0xff, 0xff, 0xfff, 0xfffc, 0xffff, 0x1ffff})}
}

// shape applies guards to the operands on top of the stack.
func (b *body) shape(types []valueType, guards []guard) {
	if b.src.oneIn(reckless) {
		return
	}
	last := len(types) - 1
	for i := last; i > 0; i-- { // those above the first wait in scratch locals
		b.indexed(opLocalSet, b.scratchLocal(types[i], 1+i))
	}
	for i, t := range types {
		if i > 0 {
			b.indexed(opLocalGet, b.scratchLocal(t, 1+i))
		}
		b.restrain(t, guards[i])
	}
}

// restrain applies one guard to the value on top of the stack.
func (b *body) restrain(t valueType, g guard) {
	if g == (guard{}) {
		return
	}
	switch t {
	case f32:
		b.op(opBitsF32)
	case f64:
		b.op(opBitsF64)
	}
	if t == i32 || t == f32 {
		b.op(opI32Const)
	} else {
		b.op(opI64Const)
	}
	if g.odd {
		b.code.signed(1)
	} else {
		b.code.signed(int64(g.mask))
	}
	switch {
	case t == i32 && g.odd:
		b.op(opI32Or)
	case t == i64 && g.odd:
		b.op(opI64Or)
	case t == i32:
		b.op(opI32And)
	case t == i64:
		b.op(opI64And)
	case t == f32:
		b.code.raw(opI32And, opConvertF32)
	case t == f64:
		b.code.raw(opI64And, opConvertF64)
	}
}

// indices needs as many i32 operands as there are masks, and applies them.
func (b *body) indices(masks ...int32) {
	types := make([]valueType, len(masks))
	guards := make([]guard, len(masks))
	for i, m := range masks {
		types[i], guards[i] = i32, guard{mask: m}
	}
	b.need(types...)
	b.shape(types, guards)
}
