package wasmbin

// AppendU32 appends v as an unsigned LEB128 number in as few bytes as possible.
func AppendU32(dst []byte, v uint32) []byte {
	for v >= 0x80 {
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v))
}

// AppendS64 appends v as a signed LEB128 number in as few bytes as possible.
// It also encodes i32 constants, sign-extended.
func AppendS64(dst []byte, v int64) []byte {
	for {
		b := byte(v & 0x7f)
		v >>= 7
		if v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			return append(dst, b)
		}
		dst = append(dst, b|0x80)
	}
}

// sizeU32 returns how many bytes AppendU32 appends.
func sizeU32(v uint32) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// loadU32 reads an unsigned number of at most 32 bits. n is its length in
// bytes, or 0 if it is truncated or too large.
func loadU32(b []byte) (v uint32, n int) {
	for shift := uint(0); n < len(b) && n < 5; shift += 7 {
		c := b[n]
		n++
		if n == 5 && c > 0x0f {
			return 0, 0
		}
		v |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return v, n
		}
	}
	return 0, 0
}

// loadSigned reads a signed number of the given number of bits. n is its
// length in bytes, or 0 if it is truncated or too large.
func loadSigned(b []byte, bits uint) (v int64, n int) {
	most := int(bits+6) / 7
	for shift := uint(0); n < len(b) && n < most; shift += 7 {
		c := b[n]
		n++
		v |= int64(c&0x7f) << shift
		if c >= 0x80 {
			continue
		}
		if n < most {
			if c&0x40 != 0 {
				v |= -1 << (shift + 7)
			}
			return v, n
		}
		// Only some bits of the last byte belong to the number; the others
		// must repeat its sign.
		used := bits - 7*uint(most-1)
		rest := int8(c<<1) >> used
		if rest != 0 && rest != -1 {
			return 0, 0
		}
		return v << (64 - bits) >> (64 - bits), n
	}
	return 0, 0
}
