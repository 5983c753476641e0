package wasmgen

// observed lists the results of the function that shows the hidden state.
func (g *generator) observed() []valueType {
	var out []valueType
	for _, v := range g.globals {
		if v.t == funcref || v.t == externref {
			out = append(out, i32)
		} else {
			out = append(out, v.t)
		}
	}
	for range g.tables {
		out = append(out, i32, i32)
	}
	return out
}

// observe writes the body of that function. Its locals are an index and a sum.
func (g *generator) observe() []byte {
	const index, sum = 0, 1
	b := &body{gen: g}
	b.code.raw(1, 2, byte(i32))
	for i, v := range g.globals {
		b.indexed(opGlobalGet, uint32(i))
		if v.t == funcref || v.t == externref {
			b.op(opRefIsNull)
		}
	}
	for i := range g.tables {
		b.prefixed(prefixBulk, opTableSize, uint32(i))
		b.code.raw(opI32Const, 0, opLocalSet, index)
		b.code.raw(opI32Const, 0, opLocalSet, sum)
		b.code.raw(opBlock, noResult, opLoop, noResult)
		b.code.raw(opLocalGet, index)
		b.prefixed(prefixBulk, opTableSize, uint32(i))
		b.code.raw(opI32LtU, opI32Eqz, opBrIf, 1)
		b.code.raw(opLocalGet, sum, opI32Const, 1, opI32Shl, opLocalGet, sum, opI32Add) // 3 × sum
		b.code.raw(opLocalGet, index)
		b.indexed(opTableGet, uint32(i))
		b.code.raw(opRefIsNull, opI32Add, opLocalSet, sum)
		b.code.raw(opLocalGet, index, opI32Const)
		if g.tables[i].least < large {
			b.op(1)
		} else {
			b.op(61) // a few samples will do
		}
		b.code.raw(opI32Add, opLocalSet, index)
		b.code.raw(opBr, 0, opEnd, opEnd, opLocalGet, sum)
	}
	b.op(opEnd)
	return b.code.bytes
}

// pattern is how many different entries a large table starts with.
const pattern = 13

// prepare writes the body of the function that repeats the pattern in the
// large tables, because moving nulls has no visible effect.
func (g *generator) prepare() []byte {
	const n = 0
	b := &body{gen: g}
	b.code.raw(1, 1, byte(i32))
	for i, t := range g.tables {
		if t.least < large {
			continue
		}
		size := func() { b.prefixed(prefixBulk, opTableSize, uint32(i)) }
		b.code.raw(opI32Const, pattern, opLocalSet, n)
		b.code.raw(opBlock, noResult, opLoop, noResult)
		b.code.raw(opLocalGet, n, opI32Const, 1, opI32Shl)
		size()
		b.code.raw(opI32LtU, opI32Eqz, opBrIf, 1)
		b.code.raw(opLocalGet, n, opI32Const, 0, opLocalGet, n)
		b.prefixed(prefixBulk, opTableCopy, uint32(i), uint32(i))
		b.code.raw(opLocalGet, n, opI32Const, 1, opI32Shl, opLocalSet, n)
		b.code.raw(opBr, 0, opEnd, opEnd)
		b.code.raw(opLocalGet, n, opI32Const, 0)
		size()
		b.code.raw(opLocalGet, n, opI32Sub)
		b.prefixed(prefixBulk, opTableCopy, uint32(i), uint32(i))
	}
	b.op(opEnd)
	return b.code.bytes
}
