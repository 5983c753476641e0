package compilecost

import "github.com/seed47132306/terrarium/host/wasmbin"

// A price is what compiling one instruction takes, measured with wazero 1.12 on
// amd64 for each opcode by itself: bytes that are allocated until its function is
// done, and bytes of machine code.
//
// Time follows from both: over all opcodes and on a busy machine it is 0.8 to 1.8
// nanoseconds for each byte allocated. It is not in the table, because it is
// another at every measurement.
type price struct{ bytes, code int32 }

const (
	nsPerByte     = 1.7  // that is allocated
	nsPerCode     = 20   // for each byte of machine code
	nsPerFunction = 5000 // however little is in it

	// Each target of a br_table gets a block of its own, whether or not others go
	// to the same place.
	bytesPerTarget = 2500
)

// inTerms reports whether what an opcode takes is counted by the terms alone: it
// makes blocks, which cost by what is live between them.
func inTerms(op wasmbin.Opcode) bool {
	switch op {
	case wasmbin.OpBlock, wasmbin.OpLoop, wasmbin.OpIf, wasmbin.OpElse, wasmbin.OpEnd, wasmbin.OpBr, wasmbin.OpBrIf, wasmbin.OpBrTable,
		wasmbin.OpReturn, wasmbin.OpUnreachable:
		return true
	}
	return false
}

// table has the prices by prefix and last byte, for there are many instructions.
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
