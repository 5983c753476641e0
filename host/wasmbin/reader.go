package wasmbin

import (
	"fmt"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
)

// reader reads the sections of a module within bounds. It keeps the first
// error; after that it returns zeroes and has no bytes left, so that loops
// end.
type reader struct {
	data   []byte // the complete module
	pos    int
	end    int // reading stops here
	limits *Limits
	err    *abi.Error
}

func (r *reader) left() int { return r.end - r.pos }

func (r *reader) here() place { return place{offset: r.pos, function: noFunction} }

func (r *reader) refuse(err *abi.Error) {
	if r.err == nil {
		r.err = err
	}
	r.pos = r.end
}

// malformed, unsupported, tooLarge and fail refuse the module. Only the first error is made,
// because a loop over what a module claims to have may meet millions of them before it ends.
func (r *reader) malformed(at place, format string, args ...any) {
	if r.err == nil {
		r.refuse(malformed(at, fmt.Sprintf(format, args...)))
	}
}

func (r *reader) unsupported(at place, feature string) {
	if r.err == nil {
		r.refuse(unsupported(at, feature))
	}
}

func (r *reader) tooLarge(at place, limit, what string, found, most uint64) {
	if r.err == nil {
		r.refuse(tooLarge(at, limit, what, found, most))
	}
}

func (r *reader) fail(format string, args ...any) { r.malformed(r.here(), format, args...) }

func (r *reader) byte() byte {
	if r.left() < 1 {
		r.fail("it ends too early")
		return 0
	}
	r.pos++
	return r.data[r.pos-1]
}

func (r *reader) u32() uint32 {
	if r.left() > 0 && r.data[r.pos] < 0x80 {
		r.pos++
		return uint32(r.data[r.pos-1])
	}
	v, n := loadU32(r.data[r.pos:r.end])
	if n == 0 {
		r.fail("a number is cut off or too large")
		return 0
	}
	r.pos += n
	return v
}

// bytes returns the next n bytes, as a view of the module.
func (r *reader) bytes(n uint32) []byte {
	if int64(n) > int64(r.left()) {
		r.fail("%d bytes should follow, but only %d are left", n, r.left())
		return nil
	}
	b := r.data[r.pos : r.pos+int(n) : r.pos+int(n)]
	r.pos += int(n)
	return b
}

// nameBytes reads a name as a view of the module.
func (r *reader) nameBytes() []byte {
	at := r.here()
	n := r.u32()
	if r.err == nil && int64(n) > int64(r.limits.NameBytes) && int64(n) <= int64(r.left()) {
		r.tooLarge(at, "NameBytes", "bytes in a name", uint64(n), uint64(r.limits.NameBytes))
	}
	b := r.bytes(n)
	if !utf8.Valid(b) {
		r.fail("a name is not UTF-8")
		return nil
	}
	return b
}

func (r *reader) name() string { return string(r.nameBytes()) }

// count reads how many entries follow. Every entry has at least size bytes, so
// an impossible count is refused before anything is allocated.
func (r *reader) count(what string, size int) int {
	n := r.u32()
	if int64(n)*int64(size) > int64(r.left()) {
		r.fail("the number of %s is %d, but only %d bytes are left", what, n, r.left())
		return 0
	}
	return int(n)
}

// limited is count with a limit; base entries are already used.
func (r *reader) limited(limit, what string, size, base, most int) int {
	at := r.here()
	n := r.count(what, size)
	if r.err == nil && base+n > most {
		r.tooLarge(at, limit, what, uint64(base+n), uint64(most))
		return 0
	}
	return n
}

func (r *reader) valueType() ValueType {
	at := r.here()
	b := r.byte()
	t := ValueType(b)
	if r.err == nil && !t.valid() {
		if feature := featureOfType(b); feature != "" {
			r.unsupported(at, feature)
		} else {
			r.malformed(at, "a value has the unknown type %#x", b)
		}
	}
	return t
}

func (r *reader) refType() ValueType {
	at := r.here()
	t := r.valueType()
	if r.err == nil && !t.IsRef() {
		r.malformed(at, "the elements of a table must be references, but have the type %s", t)
	}
	return t
}

// The flags before the sizes of a table or memory.
const (
	rangeHasMax   = 1
	rangeShared   = 2
	range64       = 4
	rangePageSize = 8
)

func (r *reader) sizes() Range {
	at := r.here()
	flags := r.byte()
	if r.err == nil && flags > rangeHasMax {
		switch {
		case flags&range64 != 0 && flags < 16:
			r.unsupported(at, feature64)
		case flags&rangePageSize != 0 && flags < 16:
			r.unsupported(at, featurePageSizes)
		case flags&rangeShared != 0 && flags < 16:
			r.unsupported(at, featureThreads)
		default:
			r.malformed(at, "the size of a table or memory has unknown flags")
		}
	}
	s := Range{Min: r.u32(), HasMax: flags&rangeHasMax != 0}
	if s.HasMax {
		s.Max = r.u32()
	}
	return s
}

func (r *reader) globalType() GlobalType {
	g := GlobalType{Type: r.valueType()}
	at := r.here()
	switch mutable := r.byte(); {
	case mutable > 1 && mutable < 4:
		r.unsupported(at, featureThreads)
	case mutable > 1:
		r.malformed(at, "a global has an unknown mutability")
	default:
		g.Mutable = mutable == 1
	}
	return g
}

// constExpr reads a constant expression, its end included.
func (r *reader) constExpr() ConstExpr {
	at := r.here()
	it := NewInstrs(r.data[r.pos:r.end])
	if !it.Next() {
		if it.fault == nil {
			r.fail("it ends too early")
		} else if r.err == nil {
			r.refuse(it.fault.error(at))
		}
		return ConstExpr{}
	}
	e := ConstExpr{Op: it.Op}
	switch it.Op {
	case OpI32Const, OpI64Const, OpF32Const, OpF64Const:
		e.Lo = it.Value
	case OpV128Const:
		e.Lo, e.Hi = le64(it.Raw), le64(it.Raw[8:])
	case OpRefNull:
		e.Type = it.Type
	case OpRefFunc, OpGlobalGet:
		e.Index = it.Index
	case OpEnd:
		r.malformed(at, "a constant expression is empty")
	default:
		r.malformed(at, "%s is not allowed in a constant expression", it.Op)
	}
	if r.err == nil {
		r.pos += it.End
		r.constEnd()
	}
	return e
}

// constEnd reads the end of a constant expression. Anything else can be valid
// only in later versions.
func (r *reader) constEnd() {
	at := r.here()
	op := r.byte()
	if r.err == nil && Opcode(op) != OpEnd {
		r.unsupported(at, featureExtended)
	}
}
