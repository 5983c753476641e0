package wasmgen

// steps maps each byte to a step. Zero closes a block.
var steps = func() [256]func(*body) {
	var out [256]func(*body)
	n := 0
	for _, s := range []struct {
		weight int
		step   func(*body)
	}{
		{14, (*body).endBlock},
		{36, (*body).scalar},
		{31, (*body).vector},
		{16, (*body).access},
		{10, (*body).vectorAccess},
		{12, (*body).getLocal},
		{12, (*body).setLocal},
		{6, (*body).teeLocal},
		{6, (*body).getGlobal},
		{8, (*body).setGlobal},
		{6, (*body).number},
		{6, (*body).block},
		{4, (*body).loop},
		{7, (*body).countedLoop},
		{8, (*body).conditional},
		{3, (*body).br},
		{8, (*body).brIf},
		{3, (*body).brTable},
		{1, (*body).ret},
		{2, (*body).unreachable},
		{1, (*body).nop},
		{8, (*body).call},
		{6, (*body).callIndirect},
		{4, (*body).drop},
		{4, (*body).choose},
		{2, (*body).chooseTyped},
		{2, (*body).reference},
		{2, (*body).isNull},
		{2, (*body).memorySize},
		{2, (*body).memoryGrow},
		{3, (*body).memoryFill},
		{6, (*body).memoryCopy},
		{2, (*body).memoryInit},
		{1, (*body).dataDrop},
		{2, (*body).tableGet},
		{2, (*body).tableSet},
		{1, (*body).tableSize},
		{1, (*body).tableGrow},
		{1, (*body).tableFill},
		{3, (*body).tableCopy},
		{1, (*body).tableInit},
		{1, (*body).elemDrop},
	} {
		for range s.weight {
			out[n] = s.step
			n++
		}
	}
	if n != len(out) {
		panic("wasmgen: the weights of the steps do not fill a byte")
	}
	return out
}()

func (b *body) scalar() {
	b.apply(pick(b.src, scalars))
}

func (b *body) vector() {
	b.apply(pick(b.src, vectors))
}

func (b *body) access() {
	if b.gen.memory.present {
		b.apply(pick(b.src, accesses))
	}
}

func (b *body) vectorAccess() {
	if b.gen.memory.present {
		b.apply(pick(b.src, vectorAccesses))
	}
}

func (b *body) getLocal() {
	b.readLocal(pick(b.src, allTypes))
}

// sink picks the type of a value to take off the stack: mostly that of the top
// value.
func (b *body) sink() valueType {
	if len(b.stack) > b.top().height && !b.src.oneIn(8) {
		return b.stack[len(b.stack)-1]
	}
	return pick(b.src, allTypes)
}

func (b *body) setLocal() {
	t := b.sink()
	if i, ok := b.localOf(t); ok {
		b.need(t)
		b.indexed(opLocalSet, i)
		b.pop(1)
	}
}

func (b *body) teeLocal() {
	t := b.sink()
	if i, ok := b.localOf(t); ok {
		b.need(t)
		b.indexed(opLocalTee, i)
	}
}

func (b *body) getGlobal() {
	b.readGlobal(pick(b.src, allTypes))
}

func (b *body) setGlobal() {
	t := b.sink()
	for i, g := range b.gen.globals {
		if g.t == t && g.mutable && !b.src.oneIn(3) {
			b.need(t)
			b.indexed(opGlobalSet, uint32(i))
			b.pop(1)
			return
		}
	}
}

func (b *body) number() {
	b.constant(pick(b.src, allTypes))
}

func (b *body) drop() {
	b.need(b.sink())
	b.op(opDrop)
	b.pop(1)
}

// choose emits a select without a type, which is not allowed for references.
func (b *body) choose() {
	t := pick(b.src, append([]valueType{v128}, numbers...))
	b.need(t, t, i32)
	b.op(opSelect)
	b.pop(2)
}

func (b *body) chooseTyped() {
	t := pick(b.src, allTypes)
	b.need(t, t, i32)
	b.code.raw(opSelectTyped, 1, byte(t)) // wazero knows no other form of the one
	b.pop(2)
}

func (b *body) reference() {
	b.constant(pick(b.src, []valueType{funcref, externref}))
}

func (b *body) isNull() {
	t := pick(b.src, []valueType{funcref, externref})
	if s := b.sink(); s == funcref || s == externref {
		t = s
	}
	b.need(t)
	b.op(opRefIsNull)
	b.pop(1)
	b.push(i32)
}
