package wasmgen

// Opcodes whose types depend on the context, and those that the generated code
// uses itself.
const (
	opUnreachable  = 0x00
	opNop          = 0x01
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opDrop         = 0x1a
	opSelect       = 0x1b
	opSelectTyped  = 0x1c
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opTableGet     = 0x25
	opTableSet     = 0x26
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opI32Eqz       = 0x45
	opF32Eq        = 0x5b
	opF64Eq        = 0x61
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32And       = 0x71
	opI32Or        = 0x72
	opI64And       = 0x83
	opI64Or        = 0x84
	opI32LtU       = 0x49
	opI32Shl       = 0x74
	opConvertF32   = 0xb3 // f32.convert_i32_u
	opConvertF64   = 0xba // f64.convert_i64_u
	opBitsF32      = 0xbc // i32.reinterpret_f32
	opBitsF64      = 0xbd // i64.reinterpret_f64
	opRefNull      = 0xd0
	opRefIsNull    = 0xd1
	opRefFunc      = 0xd2

	prefixBulk   = 0xfc
	opMemoryInit = 8
	opDataDrop   = 9
	opMemoryCopy = 10
	opMemoryFill = 11
	opTableInit  = 12
	opElemDrop   = 13
	opTableCopy  = 14
	opTableGrow  = 15
	opTableSize  = 16
	opTableFill  = 17

	prefixVector  = 0xfd
	opV128Const   = 12
	opF32x4Eq     = 0x41
	opF64x2Eq     = 0x47
	opV128Bitwise = 0x52 // v128.bitselect

	noResult = 0x40 // the block type without parameters and results
)
