package compilecost

import "github.com/seed47132306/terrarium/host/wasmbin"

// A price is the cost of compiling one instruction, measured with wazero 1.12
// on amd64 for each opcode separately: bytes allocated until its function is
// compiled, and bytes of machine code.
//
// Time follows from both: over all opcodes and on a busy machine it is 0.8 to
// 1.8 nanoseconds for each byte allocated. It is not in the table because it
// differs with every measurement.
type price struct{ bytes, code int32 }

const (
	nsPerByte     = 1.7  // for each byte allocated
	nsPerCode     = 20   // for each byte of machine code
	nsPerFunction = 5000 // for each function, even an empty one

	// Each target of a br_table gets its own block, even if several lead to
	// the same place.
	bytesPerTarget = 2500
)

// inTerms reports whether terms alone counts the cost of an opcode: it makes
// blocks, whose cost depends on the values live between them.
func inTerms(op wasmbin.Opcode) bool {
	switch op {
	case wasmbin.OpBlock, wasmbin.OpLoop, wasmbin.OpIf, wasmbin.OpElse, wasmbin.OpEnd, wasmbin.OpBr, wasmbin.OpBrIf, wasmbin.OpBrTable,
		wasmbin.OpReturn, wasmbin.OpUnreachable:
		return true
	}
	return false
}

// table has the prices by prefix and last byte of the opcode.
var table = func() (t [3][256]price) {
	for op, p := range prices {
		t[page(op)][op&0xff] = p
	}
	return t
}()

func page(op wasmbin.Opcode) int {
	switch op >> 8 {
	case 0xfc:
		return 1
	case 0xfd:
		return 2
	}
	return 0
}

func priceOf(op wasmbin.Opcode) price { return table[page(op)][op&0xff] }
