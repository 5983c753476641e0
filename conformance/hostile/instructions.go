package hostile

import (
	"bytes"
	"slices"
)

// code is a sequence of instructions.
type code []byte

// Instructions that open and close blocks. opEnd also ends bodies and constant
// expressions.
const (
	opBlock = 0x02
	opLoop  = 0x03
	opIf    = 0x04
	opEnd   = 0x0b
)

// blockVoid is the type of a block without parameters and results.
const blockVoid = 0x40

// Instructions without immediates.
var (
	unreachable = code{0x00}
	ret         = code{0x0f}
	drop        = code{0x1a}
	i32eqz      = code{0x45}
	i32ne       = code{0x47}
	i32ltS      = code{0x48}
	i32gtS      = code{0x4a}
	i32geS      = code{0x4e}
	i32add      = code{0x6a}
	i32sub      = code{0x6b}
	i32and      = code{0x71}
	i64add      = code{0x7c}
	memorySize  = code{0x3f, 0}
	memoryGrow  = code{0x40, 0}
	memoryCopy  = code{0xfc, 10, 0, 0}
	memoryFill  = code{0xfc, 11, 0}
)

// seq concatenates instructions.
func seq(parts ...code) code { return slices.Concat(parts...) }

// repeat repeats instructions n times.
func repeat(n int, parts ...code) code { return bytes.Repeat(seq(parts...), n) }

func i32(n int32) code { return append(code{0x41}, signed(int64(n))...) }
func i64(n int64) code { return append(code{0x42}, signed(n)...) }

// signed encodes a signed LEB128 number.
func signed(n int64) []byte {
	var out []byte
	for {
		b := byte(n & 0x7f)
		n >>= 7
		if n == 0 && b&0x40 == 0 || n == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}

func localGet(i uint32) code  { return append(code{0x20}, u32(i)...) }
func localSet(i uint32) code  { return append(code{0x21}, u32(i)...) }
func localTee(i uint32) code  { return append(code{0x22}, u32(i)...) }
func call(f uint32) code      { return append(code{0x10}, u32(f)...) }
func br(depth uint32) code    { return append(code{0x0c}, u32(depth)...) }
func brIf(depth uint32) code  { return append(code{0x0d}, u32(depth)...) }
func refFunc(f uint32) code   { return append(code{0xd2}, u32(f)...) }
func tableGrow(t uint32) code { return append(code{0xfc, 15}, u32(t)...) }
func tableFill(t uint32) code { return append(code{0xfc, 17}, u32(t)...) }

func tableCopy(to, from uint32) code { return append(code{0xfc, 14}, append(u32(to), u32(from)...)...) }

func tableInit(segment, t uint32) code {
	return append(code{0xfc, 12}, append(u32(segment), u32(t)...)...)
}

func memoryInit(segment uint32) code { return append(append(code{0xfc, 8}, u32(segment)...), 0) }

func callIndirect(typ, table uint32) code {
	return append(code{0x11}, append(u32(typ), u32(table)...)...)
}

// i32Store stores at an address without an offset.
func i32Store() code { return code{0x36, 2, 0} }

// brTable jumps to the target that an i32 selects.
func brTable(targets []uint32, otherwise uint32) code {
	c := append(code{0x0e}, u32(uint32(len(targets)))...)
	for _, t := range targets {
		c = append(c, u32(t)...)
	}
	return append(c, u32(otherwise)...)
}

func block(body ...code) code { return enclose(opBlock, body) }
func loop(body ...code) code  { return enclose(opLoop, body) }
func when(body ...code) code  { return enclose(opIf, body) } // without else

func enclose(op byte, body []code) code {
	return slices.Concat(code{op, blockVoid}, seq(body...), code{opEnd})
}

// nested encloses body in n blocks.
func nested(n int, body ...code) code {
	return slices.Concat(bytes.Repeat(code{opBlock, blockVoid}, n), seq(body...), bytes.Repeat(code{opEnd}, n))
}

// forever repeats body without end.
func forever(body ...code) code { return loop(seq(body...), br(0)) }

// untilRefused repeats body, which leaves the i32 result of a hostcall, until
// the result is negative, and returns it: the turn fails with the code of the
// refusal. The local holds the result.
func untilRefused(answer uint32, body ...code) code {
	return seq(
		loop(seq(body...), localTee(answer), i32(0), i32geS, brIf(0)),
		localGet(answer), ret,
	)
}
