package meter

import "github.com/seed47132306/terrarium/host/wasmbin"

// The cost of instructions, in units of fuel. A unit is about one simple
// machine instruction. Instructions that wazero compiles to many machine
// instructions cost more.
const (
	costCall     = 6  // a call of a function of the module, without operands
	costIndirect = 10 // the same through a table
	costTable    = 4  // an access to a table, and a jump table
	costDivide   = 12
	costRoot     = 16 // square roots
	costDrop     = 4  // data.drop and elem.drop
	costVector   = 3
	costLanes    = 12 // vector instructions that become a dozen machine instructions
	// Instructions that leave the compiled code, run Go code and return.
	costGo = 300
)

// The cost of bulk instructions.
const (
	costCopy      = 12   // the minimum cost of a copy
	costFill      = 40   // the same for a fill, which wazero runs as doubling copies
	costPage      = 4096 // a page added by memory.grow: the system clears it on first use
	costElement   = 8    // an element added by table.grow
	costFillChunk = 160  // a fill of chunkBytes, in addition to its bytes
)

// plainCosts has the one-byte instructions that do not cost 1.
var plainCosts = map[wasmbin.Opcode]uint16{
	// These only shape the code.
	wasmbin.OpNop: 0, wasmbin.OpBlock: 0, wasmbin.OpLoop: 0, wasmbin.OpElse: 0, wasmbin.OpEnd: 0,
	wasmbin.OpUnreachable: 0, wasmbin.OpDrop: 0,

	wasmbin.OpBrTable: costTable, wasmbin.OpCall: costCall, wasmbin.OpCallIndirect: costIndirect,
	wasmbin.OpTableGet: costTable, wasmbin.OpTableSet: costTable,
	wasmbin.OpMemorySize: 2, wasmbin.OpMemoryGrow: costGo,

	wasmbin.OpI32DivS: costDivide, wasmbin.OpI32DivU: costDivide, wasmbin.OpI32RemS: costDivide, wasmbin.OpI32RemU: costDivide,
	wasmbin.OpI64DivS: costDivide, wasmbin.OpI64DivU: costDivide, wasmbin.OpI64RemS: costDivide, wasmbin.OpI64RemU: costDivide,
	wasmbin.OpF32Div: costDivide, wasmbin.OpF64Div: costDivide, wasmbin.OpF32Sqrt: costRoot, wasmbin.OpF64Sqrt: costRoot,
	wasmbin.OpF32Min: 4, wasmbin.OpF32Max: 4, wasmbin.OpF64Min: 4, wasmbin.OpF64Max: 4,
	wasmbin.OpF32Ceil: 3, wasmbin.OpF32Floor: 3, wasmbin.OpF32Trunc: 3, wasmbin.OpF32Nearest: 3, wasmbin.OpF32Copysign: 3,
	wasmbin.OpF64Ceil: 3, wasmbin.OpF64Floor: 3, wasmbin.OpF64Trunc: 3, wasmbin.OpF64Nearest: 3, wasmbin.OpF64Copysign: 3,
	wasmbin.OpI32TruncF32S: 6, wasmbin.OpI32TruncF32U: 6, wasmbin.OpI32TruncF64S: 6, wasmbin.OpI32TruncF64U: 6,
	wasmbin.OpI64TruncF32S: 6, wasmbin.OpI64TruncF32U: 6, wasmbin.OpI64TruncF64S: 6, wasmbin.OpI64TruncF64U: 6,
	wasmbin.OpF32ConvertI64U: 4, wasmbin.OpF64ConvertI64U: 4,
}

// vectorCosts has the vector instructions that do not cost costVector.
var vectorCosts = map[wasmbin.Opcode]uint16{
	wasmbin.OpI8x16Shl: costLanes, wasmbin.OpI8x16ShrS: costLanes, wasmbin.OpI8x16ShrU: costLanes, wasmbin.OpI64x2ShrS: costLanes,
	wasmbin.OpI64x2Mul: costLanes, wasmbin.OpI8x16Popcnt: costLanes, wasmbin.OpI8x16Shuffle: costLanes, wasmbin.OpI8x16Swizzle: costLanes,
	wasmbin.OpF32x4Min: costLanes, wasmbin.OpF32x4Max: costLanes, wasmbin.OpF64x2Min: costLanes, wasmbin.OpF64x2Max: costLanes,
	wasmbin.OpF32x4Div: costDivide, wasmbin.OpF64x2Div: 2 * costDivide, wasmbin.OpF32x4Sqrt: costRoot, wasmbin.OpF64x2Sqrt: 2 * costRoot,
	wasmbin.OpI32x4TruncSatF32x4S: costLanes, wasmbin.OpI32x4TruncSatF32x4U: 2 * costLanes,
	wasmbin.OpI32x4TruncSatF64x2SZero: costLanes, wasmbin.OpI32x4TruncSatF64x2UZero: costLanes,
	wasmbin.OpF32x4ConvertI32x4U: costLanes, wasmbin.OpF64x2ConvertLowI32x4U: costLanes,
}

// costs has the cost of every instruction by its prefix and its last byte.
var costs = func() (table struct{ plain, misc, vector [256]uint16 }) {
	for i := range table.plain {
		table.plain[i] = 1
		table.misc[i] = 6 // the saturating truncations
		table.vector[i] = costVector
	}
	for op := wasmbin.OpI32Load; op <= wasmbin.OpI64Store32; op++ {
		table.plain[op] = 2 // with its bounds check
	}
	for op, c := range plainCosts {
		table.plain[op] = c
	}
	for op, c := range vectorCosts {
		table.vector[op&0xff] = c
	}
	for op, c := range map[wasmbin.Opcode]uint16{
		wasmbin.OpMemoryInit: costCopy, wasmbin.OpMemoryCopy: costCopy, wasmbin.OpMemoryFill: costFill,
		wasmbin.OpTableInit: costCopy, wasmbin.OpTableCopy: costCopy, wasmbin.OpTableFill: costCopy,
		wasmbin.OpTableGrow: costGo, wasmbin.OpTableSize: 2, wasmbin.OpDataDrop: costDrop, wasmbin.OpElemDrop: costDrop,
	} {
		table.misc[op&0xff] = c
	}
	return table
}()

// costOf returns the fixed cost of an instruction, without the part that
// depends on its operands and position.
func costOf(op wasmbin.Opcode) int64 {
	switch op >> 8 {
	case 0:
		return int64(costs.plain[op])
	case 0xfc:
		return int64(costs.misc[op&0xff])
	}
	return int64(costs.vector[op&0xff])
}

// bytesPerUnit is how many moved bytes cost a unit.
const (
	bytesPerUnit    = 1 << bytesPerUnitLog
	bytesPerUnitLog = 3
)

// copyCost returns the cost of n bytes, without the instruction.
func copyCost(n int64) int64 { return n / bytesPerUnit }

// The first few operands of a branch or a call, and the first few locals that
// have to be merged where branches meet, are part of the cost of the
// instruction. The others cost a unit each.
const (
	freeOperands = 4
	freeLocals   = 8
)

func beyond(n, free int) int64 { return int64(max(0, n-free)) }
