package meter

import "github.com/seed47132306/terrarium/host/wasmbin"

// asm writes instructions.
type asm struct{ code []byte }

// op appends instructions without immediates.
func (a *asm) op(ops ...wasmbin.Opcode) {
	for _, op := range ops {
		a.code = op.Append(a.code)
	}
}

// index appends an instruction with one or more indices.
func (a *asm) index(op wasmbin.Opcode, indices ...uint32) {
	a.code = op.Append(a.code)
	for _, i := range indices {
		a.code = wasmbin.AppendU32(a.code, i)
	}
}

// number appends a constant, i32.const or i64.const.
func (a *asm) number(op wasmbin.Opcode, v int64) {
	a.code = wasmbin.AppendS64(op.Append(a.code), v)
}

// block appends the start of a block, loop or if.
func (a *asm) block(op wasmbin.Opcode, typ wasmbin.BlockType) {
	a.code = typ.Append(op.Append(a.code))
}

func (a *asm) raw(b []byte) { a.code = append(a.code, b...) }

func (a *asm) get(local uint32) { a.index(wasmbin.OpLocalGet, local) }
func (a *asm) set(local uint32) { a.index(wasmbin.OpLocalSet, local) }
