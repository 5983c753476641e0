package wasmgen

import (
	"encoding/binary"
	"math"
)

// deepestOperand bounds the expressions that produce a missing operand.
const deepestOperand = 3

// produce pushes one value of a type.
func (b *body) produce(t valueType) {
	floor := b.floor
	b.nested, b.floor = b.nested+1, len(b.stack)
	defer func() { b.nested, b.floor = b.nested-1, floor }()
	switch choice := b.src.below(8); {
	case choice < 2:
		b.constant(t)
	case choice < 5:
		if !b.readLocal(t) {
			b.constant(t)
		}
	case choice < 6:
		if !b.readGlobal(t) {
			b.constant(t)
		}
	case b.nested <= deepestOperand && len(producers[t]) > 0:
		b.apply(pick(b.src, producers[t]))
	default:
		b.constant(t)
	}
}

// readLocal pushes a local of the type, if there is one.
func (b *body) readLocal(t valueType) bool {
	i, ok := b.localOf(t)
	if ok {
		b.indexed(opLocalGet, i)
		b.push(t)
	}
	return ok
}

// localOf searches for a shared local of the type from a random place on.
func (b *body) localOf(t valueType) (uint32, bool) {
	if b.shared == 0 {
		return 0, false
	}
	start := b.src.below(b.shared)
	for n := range b.shared {
		if i := (start + n) % b.shared; b.locals[i] == t {
			return uint32(i), true
		}
	}
	return 0, false
}

func (b *body) readGlobal(t valueType) bool {
	var fitting []uint32
	for i, g := range b.gen.globals {
		if g.t == t {
			fitting = append(fitting, uint32(i))
		}
	}
	if len(fitting) == 0 {
		return false
	}
	b.indexed(opGlobalGet, pick(b.src, fitting))
	b.push(t)
	return true
}

func (b *body) constant(t valueType) {
	b.gen.constant(&b.code, t)
	b.push(t)
}

// remarkable lists numbers at which instructions change their behaviour.
var remarkable = []int64{
	0, 1, -1, 2, 7, 8, 31, 32, 33, 63, 64, 127, 128, 255, 256, 0x7fff, 0x8000, 0xffff, 0x10000,
	math.MaxInt32, math.MinInt32, math.MaxUint32, math.MaxInt64, math.MinInt64, 1 << 53,
}

var remarkableFloats = []float64{
	0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 1.5, math.Pi, 1e10, -1e10, 1 << 31, -(1 << 31), 1 << 32, 1 << 63, -(1 << 63),
	math.MaxFloat32, math.SmallestNonzeroFloat32, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1), math.NaN(),
}

func (g *generator) integer() int64 {
	if g.src.oneIn(4) {
		return int64(g.src.bits(1 + g.src.below(8)))
	}
	return remarkable[int(g.src.next())%len(remarkable)]
}

func (g *generator) float() float64 {
	if g.src.oneIn(4) {
		return math.Float64frombits(g.src.bits(8))
	}
	return remarkableFloats[int(g.src.next())%len(remarkableFloats)]
}

// constant writes the instruction that pushes a constant; it is one that may
// also initialize globals.
func (g *generator) constant(code *buffer, t valueType) {
	switch t {
	case i32:
		code.raw(opI32Const)
		code.signed(int64(int32(g.integer())))
	case i64:
		code.raw(opI64Const)
		code.signed(g.integer())
	case f32:
		code.raw(opF32Const)
		code.bytes = binary.LittleEndian.AppendUint32(code.bytes, math.Float32bits(float32(g.float())))
	case f64:
		code.raw(opF64Const)
		code.bytes = binary.LittleEndian.AppendUint64(code.bytes, math.Float64bits(g.float()))
	case v128:
		code.raw(prefixVector, opV128Const)
		code.bytes = binary.LittleEndian.AppendUint64(code.bytes, uint64(g.integer()))
		code.bytes = binary.LittleEndian.AppendUint64(code.bytes, math.Float64bits(g.float()))
	case funcref:
		if g.src.oneIn(2) {
			code.raw(opRefFunc)
			code.u32(pick(g.src, g.declared))
			return
		}
		code.raw(opRefNull, byte(t))
	case externref:
		code.raw(opRefNull, byte(t))
	}
}

// canonical replaces a NaN on top of the stack by the canonical one.
func (b *body) canonical(nan open) {
	var t valueType
	switch nan {
	case closed:
		return
	case openF32:
		t = f32
	case openF64:
		t = f64
	case openF32x4, openF64x2:
		t = v128
	}
	x := b.scratchLocal(t, 0)
	b.indexed(opLocalTee, x)
	b.canonicalNaN(nan)
	b.indexed(opLocalGet, x)
	b.indexed(opLocalGet, x)
	switch nan { // x == x holds for everything but a NaN
	case openF32:
		b.code.raw(opF32Eq, opSelect)
	case openF64:
		b.code.raw(opF64Eq, opSelect)
	case openF32x4:
		b.code.raw(prefixVector, opF32x4Eq, prefixVector, opV128Bitwise)
	case openF64x2:
		b.code.raw(prefixVector, opF64x2Eq, prefixVector, opV128Bitwise)
	}
}

func (b *body) canonicalNaN(nan open) {
	const nan32, nan64 = 0x7fc00000, 0x7ff8000000000000
	code := &b.code
	switch nan {
	case openF32:
		b.op(opF32Const)
		code.bytes = binary.LittleEndian.AppendUint32(code.bytes, nan32)
	case openF64:
		b.op(opF64Const)
		code.bytes = binary.LittleEndian.AppendUint64(code.bytes, nan64)
	case openF32x4:
		code.raw(prefixVector, opV128Const)
		for range 4 {
			code.bytes = binary.LittleEndian.AppendUint32(code.bytes, nan32)
		}
	case openF64x2:
		code.raw(prefixVector, opV128Const)
		for range 2 {
			code.bytes = binary.LittleEndian.AppendUint64(code.bytes, nan64)
		}
	}
}
