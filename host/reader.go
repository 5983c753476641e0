package host

import (
	"fmt"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
)

// reader reads the Wasm binary format within bounds. It keeps the first error;
// from then on it answers zeroes and has nothing left, so loops end.
type reader struct {
	data []byte // all of the module
	pos  int
	end  int // reading stops here
	err  error
}

func (r *reader) left() int { return r.end - r.pos }

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = malformed(r.pos, fmt.Sprintf(format, args...))
	}
	r.pos = r.end
}

func malformed(pos int, message string) *abi.Error {
	return &abi.Error{Code: abi.InvalidArgument, Message: fmt.Sprintf("the module is damaged at byte %#x: %s", pos, message),
		Remedy: "build or copy it again"}
}

func (r *reader) byte() byte {
	if r.left() < 1 {
		r.fail("it ends too early")
		return 0
	}
	b := r.data[r.pos]
	r.pos++
	return b
}

// u32 reads an unsigned LEB128 number of at most 32 bits.
func (r *reader) u32() uint32 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		v |= uint64(b&0x7f) << shift
		if b&0x80 == 0 {
			if v > 1<<32-1 {
				break
			}
			return uint32(v)
		}
	}
	r.fail("a number is too large")
	return 0
}

// bytes returns the next n bytes, as a view of the module.
func (r *reader) bytes(n uint32) []byte {
	if int64(n) > int64(r.left()) {
		r.fail("%d bytes are announced, %d are left", n, r.left())
		return nil
	}
	b := r.data[r.pos : r.pos+int(n) : r.pos+int(n)]
	r.pos += int(n)
	return b
}

func (r *reader) name() string {
	b := r.bytes(r.u32())
	if !utf8.Valid(b) {
		r.fail("a name is not UTF-8")
		return ""
	}
	return string(b)
}

// count reads how many entries follow. Every entry has a byte at least, so what
// cannot be there is refused before anything is made for it.
func (r *reader) count(what string, most int) int {
	n := r.u32()
	if int64(n) > int64(r.left()) {
		r.fail("%d %s are announced in %d bytes", n, what, r.left())
		return 0
	}
	if int(n) > most {
		r.err = &abi.Error{Code: abi.TooLarge, Message: fmt.Sprintf("the module has %d %s; at most %d are allowed", n, what, most),
			Remedy: "build a smaller module"}
		r.pos = r.end
		return 0
	}
	return int(n)
}

// limits reads the limits of a memory or table, in its own units.
func (r *reader) limits(what string) limits {
	flags := r.byte()
	if flags > 1 {
		if r.err == nil {
			r.err = &abi.Error{Code: abi.Unsupported, Message: "the module has a shared or 64-bit " + what,
				Remedy: "build it without threads, for wasm32"}
		}
		r.pos = r.end
		return limits{}
	}
	l := limits{min: r.u32(), bounded: flags == 1}
	if l.bounded {
		l.max = r.u32()
	}
	return l
}
