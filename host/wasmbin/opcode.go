package wasmbin

import "fmt"

// Opcode is an instruction: its byte, or for the instructions after a prefix
// 0xfc00 or 0xfd00 plus the number after the prefix.
type Opcode uint16

// The prefixes of instructions of more than one byte.
const (
	prefixMisc   = 0xfc
	prefixVector = 0xfd
)

// Imm says which immediates an instruction has.
type Imm byte

// The kinds of immediates, and which fields of [Instr] hold them.
const (
	ImmNone         Imm = iota
	ImmBlock            // Block
	ImmLabel            // Index: the depth
	ImmLabels           // Raw: the depths of br_table, see Labels; Index: the default's depth; Count: the others
	ImmFunc             // Index
	ImmTypeTable        // Index: the type; Index2: the table
	ImmTypes            // Type: the type of a select
	ImmLocal            // Index
	ImmGlobal           // Index
	ImmTable            // Index
	ImmTableTable       // Index: the destination; Index2: the source
	ImmElem             // Index
	ImmElemTable        // Index: the segment; Index2: the table
	ImmData             // Index
	ImmDataMemory       // Index: the segment; the memory is 0
	ImmMemory           // the memory is 0
	ImmMemoryMemory     // the memories are 0
	ImmMemArg           // Align, Offset
	ImmMemArgLane       // Align, Offset, Lane
	ImmLane             // Lane
	ImmShuffle          // Raw: 16 lanes
	ImmI32              // Value: sign-extended
	ImmI64              // Value
	ImmF32              // Value: the bits
	ImmF64              // Value: the bits
	ImmV128             // Raw: 16 bytes
	ImmRefType          // Type
)

// opInfo describes an instruction. Types are written i, I, f, F and V for i32,
// i64, f32, f64 and v128, the deepest operand first.
type opInfo struct {
	name    string
	pops    string
	pushes  string
	imm     Imm
	align   byte // the largest exponent of a memory argument's alignment
	lanes   byte // how many lanes a lane index can name
	special bool // the types depend on the context
}

var noOp opInfo

// info describes o; its name is empty if there is no such instruction.
func (o Opcode) info() *opInfo {
	i := int(o & 0xff)
	switch {
	case o>>8 == 0 && i < len(plainOps):
		return &plainOps[i]
	case o>>8 == prefixMisc && i < len(miscOps):
		return &miscOps[i]
	case o>>8 == prefixVector:
		return &vectorOps[i]
	}
	return &noOp
}

// Valid reports whether o is an instruction of Wasm 2.0.
func (o Opcode) Valid() bool { return o.info().name != "" }

// Imm says which immediates the instruction has.
func (o Opcode) Imm() Imm { return o.info().imm }

// String returns the keyword of the text format.
func (o Opcode) String() string {
	if name := o.info().name; name != "" {
		return name
	}
	return fmt.Sprintf("%#x", uint16(o))
}

// Append appends the encoding of the opcode, without immediates.
func (o Opcode) Append(dst []byte) []byte {
	if o < 0x100 {
		return append(dst, byte(o))
	}
	return AppendU32(append(dst, byte(o>>8)), uint32(o&0xff))
}

// Operands returns the types of the operands that the instruction takes and
// leaves, the deepest first: i, I, f, F and V stand for i32, i64, f32, f64 and
// v128. ok is false if they depend on the context.
func (o Opcode) Operands() (pops, pushes string, ok bool) {
	info := o.info()
	return info.pops, info.pushes, !info.special
}
