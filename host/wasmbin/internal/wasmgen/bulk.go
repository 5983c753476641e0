package wasmgen

// Masks of the operands of bulk instructions: a page or two of memory, and
// lengths around the sizes at which implementations work in pieces.
var (
	places  = []int32{0xff, 0xfff, 0xffff, 0x1ffff}
	lengths = []int32{0x1f, 0xff, 0xfff, 0xffff, 0x3ffff}
)

func (b *body) memorySize() {
	if !b.gen.memory.present {
		return
	}
	b.op(opMemorySize)
	b.op(0)
	b.push(i32)
}

func (b *body) memoryGrow() {
	if !b.gen.memory.present {
		return
	}
	b.indices(pick(b.src, []int32{3, 3, 3, -1}))
	b.op(opMemoryGrow)
	b.op(0)
}

// spans lists lengths around those at which implementations change their
// strategy.
var spans = []int{0, 1, 7, 127, 128, 129, 4097, large + 1, 1 << 16, 1<<16 + 1, 1<<16 + 4099, 1<<17 + 3, 1<<17 + 777}

// exact pushes numbers, as constants or hidden from code that looks for
// constants.
func (b *body) exact(numbers ...int) {
	for i, n := range numbers {
		b.op(opI32Const)
		b.code.signed(int64(int32(n)))
		if b.src.oneIn(2) {
			x := b.scratchLocal(i32, 1+i)
			b.indexed(opLocalSet, x)
			b.indexed(opLocalGet, x)
		}
		b.push(i32)
	}
}

// within picks a span smaller than size, and a place for it.
func (b *body) within(size int) (at, n int) {
	n = pick(b.src, spans)
	if n > size || b.src.oneIn(3) {
		n = max(0, size-b.src.below(600))
	}
	return int(b.src.bits(2)) % (size - n + 1), n
}

func (b *body) memoryFill() {
	if !b.gen.memory.present {
		return
	}
	if b.src.oneIn(2) {
		at, n := b.within(b.gen.memory.least << 16)
		b.exact(at, b.src.below(256), n)
	} else {
		b.indices(pick(b.src, places), -1, pick(b.src, lengths))
	}
	b.prefixed(prefixBulk, opMemoryFill)
	b.op(0)
	b.pop(3)
}

func (b *body) memoryCopy() {
	if !b.gen.memory.present {
		return
	}
	if b.src.oneIn(2) {
		b.overlapping(b.gen.memory.least << 16)
	} else {
		b.indices(pick(b.src, places), pick(b.src, places), pick(b.src, lengths))
	}
	b.prefixed(prefixBulk, opMemoryCopy)
	b.code.raw(0, 0)
	b.pop(3)
}

// overlapping pushes the operands of a copy over a short distance, up or down.
func (b *body) overlapping(size int) {
	at, n := b.within(size)
	far := min(at+b.src.below(600), size-n)
	if b.src.oneIn(2) {
		at, far = far, at
	}
	b.exact(far, at, n)
}

func (b *body) memoryInit() {
	if !b.gen.memory.present || len(b.gen.data) == 0 {
		return
	}
	b.indices(pick(b.src, places), 7, 15)
	b.prefixed(prefixBulk, opMemoryInit, uint32(b.src.below(len(b.gen.data))))
	b.op(0)
	b.pop(3)
}

func (b *body) dataDrop() {
	if len(b.gen.data) > 0 {
		b.prefixed(prefixBulk, opDataDrop, uint32(b.src.below(len(b.gen.data))))
	}
}

// entry masks the index of a table's entry.
const entry = 7

// entries masks an index or a number of entries of a table.
func (b *body) entries(index uint32) int32 {
	if b.gen.tables[index].least < large {
		return entry
	}
	return pick(b.src, []int32{entry, large - 1, 2*large - 1})
}

func (b *body) tableGet() {
	if i, t, ok := b.table(); ok {
		b.indices(b.entries(i))
		b.indexed(opTableGet, i)
		b.pop(1)
		b.push(t)
	}
}

func (b *body) tableSet() {
	if i, t, ok := b.table(); ok {
		b.need(i32, t)
		b.shape([]valueType{i32, t}, []guard{{mask: b.entries(i)}, {}})
		b.indexed(opTableSet, i)
		b.pop(2)
	}
}

func (b *body) tableSize() {
	if i, _, ok := b.table(); ok {
		b.prefixed(prefixBulk, opTableSize, i)
		b.push(i32)
	}
}

func (b *body) tableGrow() {
	if i, t, ok := b.table(); ok {
		b.need(t, i32)
		// Always bounded: a table of 2³¹ entries is a memory bomb.
		b.restrain(i32, guard{mask: entry})
		b.prefixed(prefixBulk, opTableGrow, i)
		b.pop(2)
		b.push(i32)
	}
}

func (b *body) tableFill() {
	if i, t, ok := b.table(); ok {
		b.need(i32, t, i32)
		b.shape([]valueType{i32, t, i32}, []guard{{mask: b.entries(i)}, {}, {mask: b.entries(i)}})
		b.prefixed(prefixBulk, opTableFill, i)
		b.pop(3)
	}
}

func (b *body) tableCopy() {
	to, t, ok := b.table()
	if !ok {
		return
	}
	from, _ := b.gen.tableOf(t)
	if least := b.gen.tables[to].least; int(to) == from && (least >= large || b.src.oneIn(2)) {
		b.overlapping(least)
	} else {
		b.indices(b.entries(to), b.entries(uint32(from)), max(b.entries(to), b.entries(uint32(from))))
	}
	b.prefixed(prefixBulk, opTableCopy, to, uint32(from))
	b.pop(3)
}

func (b *body) tableInit() {
	i, t, ok := b.table()
	if !ok {
		return
	}
	var fitting []uint32
	for n, s := range b.gen.elements {
		if s.t == t {
			fitting = append(fitting, uint32(n))
		}
	}
	if len(fitting) == 0 {
		return
	}
	b.indices(entry, 3, 3)
	b.prefixed(prefixBulk, opTableInit, pick(b.src, fitting), i)
	b.pop(3)
}

func (b *body) elemDrop() {
	if len(b.gen.elements) > 0 {
		b.prefixed(prefixBulk, opElemDrop, uint32(b.src.below(len(b.gen.elements))))
	}
}

// table picks any table.
func (b *body) table() (index uint32, t valueType, ok bool) {
	if len(b.gen.tables) == 0 {
		return 0, 0, false
	}
	i := b.src.below(len(b.gen.tables))
	return uint32(i), b.gen.tables[i].t, true
}
