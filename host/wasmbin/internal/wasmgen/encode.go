package wasmgen

import "encoding/binary"

// buffer is a piece of a binary module.
type buffer struct {
	bytes []byte
	// wide writes unsigned integers in five bytes, like linkers that leave
	// room for a relocation. Both forms are valid.
	wide bool
}

func (b *buffer) raw(p ...byte) {
	b.bytes = append(b.bytes, p...)
}

func (b *buffer) u32(v uint32) {
	if !b.wide {
		b.bytes = binary.AppendUvarint(b.bytes, uint64(v))
		return
	}
	for range 4 {
		b.raw(byte(v)&0x7f | 0x80)
		v >>= 7
	}
	b.raw(byte(v))
}

// signed writes the LEB128 form of a signed integer of any width.
func (b *buffer) signed(v int64) {
	for v < -64 || v > 63 {
		b.raw(byte(v)&0x7f | 0x80)
		v >>= 7
	}
	b.raw(byte(v) & 0x7f)
}

func (b *buffer) name(s string) {
	b.u32(uint32(len(s)))
	b.raw([]byte(s)...)
}

func (b *buffer) types(list []valueType) {
	b.u32(uint32(len(list)))
	for _, t := range list {
		b.raw(byte(t))
	}
}

// sized appends a piece preceded by its length.
func (b *buffer) sized(p []byte) {
	b.u32(uint32(len(p)))
	b.raw(p...)
}

// section appends a section with its id and length.
func (b *buffer) section(id byte, content []byte) {
	b.raw(id)
	b.sized(content)
}

// limits writes the bounds of a memory or table; most < 0 is no upper bound.
func (b *buffer) limits(least, most int) {
	if most < 0 {
		b.raw(0)
		b.u32(uint32(least))
		return
	}
	b.raw(1)
	b.u32(uint32(least))
	b.u32(uint32(most))
}
