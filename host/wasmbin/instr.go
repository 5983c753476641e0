package wasmbin

import "iter"

// BlockType is the type of a block, loop or if: nothing, one result, or the
// index of a function type.
type BlockType uint32

// The block types that are not an index. BlockOf returns those with one
// result.
const (
	BlockEmpty     BlockType = 0xffff_ff40
	firstBlockByte           = 0xffff_ff00
)

// BlockOf returns the type of a block without parameters and with one result.
func BlockOf(t ValueType) BlockType { return firstBlockByte | BlockType(t) }

// Index returns the index of the function type, if b is one.
func (b BlockType) Index() (index uint32, ok bool) { return uint32(b), b < firstBlockByte }

// Result returns the type of the only result, if b has that form.
func (b BlockType) Result() (t ValueType, ok bool) {
	return ValueType(b), b >= firstBlockByte && b != BlockEmpty
}

// Append appends the encoding of b.
func (b BlockType) Append(dst []byte) []byte {
	if index, ok := b.Index(); ok {
		return AppendS64(dst, int64(index))
	}
	return append(dst, byte(b))
}

// Instr is a decoded instruction. Op, Start and End are always set; [Imm] says
// which of the other fields are. Unused fields keep their old values.
type Instr struct {
	// Start and End are the range of the instruction in its body.
	Start, End int
	Op         Opcode
	Type       ValueType
	Align      byte // the exponent: an alignment of 4 is 2
	Lane       byte
	Index      uint32
	Index2     uint32
	Count      uint32
	Offset     uint32
	Block      BlockType
	Value      uint64
	Raw        []byte // a view of the body
}

// Labels are the depths of a br_table in their order, the default last.
func (in *Instr) Labels() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for rest := in.Raw; len(rest) > 0; {
			v, n := loadU32(rest)
			if n == 0 || !yield(v) {
				return
			}
			rest = rest[n:]
		}
	}
}

// Instrs iterates over the instructions of a body without allocating:
//
//	it := wasmbin.NewInstrs(code.Body)
//	for it.Next() {
//		use(it.Instr)
//	}
//	err := it.Err()
//
// It checks how instructions are encoded, not whether they are valid; after
// [Module.Validate] it cannot fail. It stops at the end of the bytes;
// validation checks that the last instruction is the final end.
type Instrs struct {
	Instr // the current instruction
	body  []byte
	pos   int
	info  *opInfo // of the current instruction
	fault *fault
}

// NewInstrs returns an iterator over the instructions of a body.
func NewInstrs(body []byte) Instrs { return Instrs{body: body} }

// Err returns why the iteration ended early, or nil. The error is an
// *abi.Error.
func (it *Instrs) Err() error {
	if it.fault == nil {
		return nil
	}
	return it.fault.error(place{offset: it.fault.pos, function: noFunction, relative: true})
}

// Next decodes the next instruction. It returns false at the end and if the
// bytes are not an instruction.
func (it *Instrs) Next() bool {
	if it.pos >= len(it.body) || it.fault != nil {
		return false
	}
	it.Start = it.pos
	op := Opcode(it.body[it.pos])
	it.pos++
	var info *opInfo
	switch {
	case int(op) < len(plainOps):
		info = &plainOps[op]
	case op == prefixMisc:
		op = it.prefixed(op)
		info = op.info()
	case op == prefixVector:
		op = it.prefixed(op)
		info = op.info()
	default:
		info = &noOp
	}
	if info.name == "" {
		it.unknown(op)
		return false
	}
	it.Op, it.info = op, info
	if info.imm != ImmNone {
		it.immediates(info.imm)
	}
	it.End = it.pos
	return it.fault == nil
}

// prefixed reads the number after a prefix. Only its shortest form is
// accepted: in places wazero reads only one byte of it, so a longer form would
// have another meaning there.
func (it *Instrs) prefixed(prefix Opcode) Opcode {
	v, n := loadU32(it.body[it.pos:])
	switch {
	case n == 0:
		it.fail("the number of the instruction is cut off or too large")
		return prefix
	case n != sizeU32(v):
		it.fail("the number of the instruction is not in its shortest form")
		return prefix
	case v > 0xff:
		it.unsupported(featureOf(byte(prefix), v))
		return prefix
	}
	it.pos += n
	return prefix<<8 | Opcode(v)
}

func (it *Instrs) immediates(imm Imm) {
	switch imm {
	case ImmLocal, ImmLabel, ImmFunc, ImmGlobal, ImmTable, ImmElem, ImmData:
		it.Index = it.u32()
	case ImmMemArg:
		it.memArg()
	case ImmI32:
		it.Value = uint64(it.signed(32))
	case ImmI64:
		it.Value = uint64(it.signed(64))
	case ImmBlock:
		it.Block = it.blockType()
	case ImmTypeTable, ImmTableTable, ImmElemTable:
		it.Index = it.u32()
		it.Index2 = it.u32()
	case ImmDataMemory:
		it.Index = it.u32()
		it.zero()
	case ImmMemory:
		it.zero()
	case ImmMemoryMemory:
		it.zero()
		it.zero()
	case ImmLabels:
		it.labels()
	default:
		it.rareImmediates(imm)
	}
}

func (it *Instrs) rareImmediates(imm Imm) {
	switch imm {
	case ImmF32:
		if b := it.take(4); b != nil {
			it.Value = uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24
		}
	case ImmF64:
		if b := it.take(8); b != nil {
			it.Value = le64(b)
		}
	case ImmV128, ImmShuffle:
		it.Raw = it.take(16)
	case ImmMemArgLane:
		it.memArg()
		it.Lane = it.byte()
	case ImmLane:
		it.Lane = it.byte()
	case ImmRefType:
		it.refType()
	case ImmTypes:
		it.selectType()
	}
}

func (it *Instrs) fail(message string) {
	if it.fault == nil {
		it.fault = &fault{pos: it.Start, message: message}
	}
	it.pos = len(it.body)
}

func (it *Instrs) unsupported(feature string) {
	if it.fault == nil {
		it.fault = &fault{pos: it.Start, feature: feature}
	}
	it.pos = len(it.body)
}

// unknown refuses an instruction that Wasm 2.0 does not have.
func (it *Instrs) unknown(op Opcode) {
	if it.fault != nil {
		return
	}
	prefix, number := byte(op), uint32(0)
	if op > 0xff {
		prefix, number = byte(op>>8), uint32(op&0xff)
	} else if v, n := loadU32(it.body[it.pos:]); n > 0 {
		number = v
	}
	if feature := featureOf(prefix, number); feature != "" {
		it.unsupported(feature)
		return
	}
	it.fail("there is no instruction " + op.String())
}

func (it *Instrs) take(n int) []byte {
	if len(it.body)-it.pos < n {
		it.fail("an instruction is cut off")
		return nil
	}
	b := it.body[it.pos : it.pos+n : it.pos+n]
	it.pos += n
	return b
}

func (it *Instrs) byte() byte {
	if it.pos >= len(it.body) {
		it.fail("an instruction is cut off")
		return 0
	}
	it.pos++
	return it.body[it.pos-1]
}

// zero reads the index of a memory, which Wasm 2.0 fixes.
func (it *Instrs) zero() {
	if it.byte() != 0 && it.fault == nil {
		it.unsupported(featureMultiMemory)
	}
}

func (it *Instrs) u32() uint32 {
	if it.pos < len(it.body) && it.body[it.pos] < 0x80 {
		it.pos++
		return uint32(it.body[it.pos-1])
	}
	v, n := loadU32(it.body[it.pos:])
	if n == 0 {
		it.fail("a number is cut off or too large")
		return 0
	}
	it.pos += n
	return v
}

func (it *Instrs) signed(bits uint) int64 {
	if it.pos < len(it.body) && it.body[it.pos] < 0x80 {
		it.pos++
		return int64(int8(it.body[it.pos-1]<<1) >> 1)
	}
	v, n := loadSigned(it.body[it.pos:], bits)
	if n == 0 {
		it.fail("a number is cut off or too large")
		return 0
	}
	it.pos += n
	return v
}

// The exponent of a memory argument shares its number with two flags of later
// versions.
const (
	memArgMemory = 0x40
	maxAlign     = 0x1f
)

func (it *Instrs) memArg() {
	align := it.u32()
	switch {
	case it.fault != nil:
		return
	case align&memArgMemory != 0 && align < 2*memArgMemory:
		it.unsupported(featureMultiMemory)
		return
	case align > maxAlign:
		it.fail("an alignment is too large")
		return
	}
	it.Align = byte(align)
	it.Offset = it.u32()
}

// blockType reads the type of a block. The forms that are not an index have one
// byte.
func (it *Instrs) blockType() BlockType {
	if it.pos >= len(it.body) {
		it.fail("an instruction is cut off")
		return 0
	}
	if b := it.body[it.pos]; b&0xc0 == 0x40 {
		it.pos++
		if b == 0x40 || ValueType(b).valid() {
			return firstBlockByte | BlockType(b)
		}
		it.badType(b)
		return 0
	}
	v := it.signed(33)
	if v < 0 || v >= firstBlockByte {
		it.fail("a block has an unknown type")
		return 0
	}
	return BlockType(v)
}

func (it *Instrs) badType(b byte) {
	if feature := featureOfType(b); feature != "" {
		it.unsupported(feature)
		return
	}
	it.fail("an instruction has an unknown type")
}

func (it *Instrs) labels() {
	it.Count = it.u32()
	if int64(it.Count) >= int64(len(it.body)-it.pos) {
		it.fail("a br_table is cut off")
		return
	}
	start := it.pos
	for range it.Count {
		it.u32()
	}
	it.Index = it.u32()
	it.Raw = it.body[start:it.pos:it.pos]
}

func (it *Instrs) refType() {
	b := it.byte()
	it.Type = ValueType(b)
	if it.fault == nil && !it.Type.IsRef() {
		if b < 0x40 || b >= 0x80 {
			it.unsupported(featureGC) // the index of a type
			return
		}
		it.badType(b)
	}
}

func (it *Instrs) selectType() {
	if it.byte() != 1 {
		it.fail("a select must state exactly one type")
		return
	}
	b := it.byte()
	it.Type = ValueType(b)
	if it.fault == nil && !it.Type.valid() {
		it.badType(b)
	}
}

func le64(b []byte) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}
