package meter

import (
	"sort"

	"github.com/seed47132306/terrarium/host/wasmbin"
)

// Origins tells for each instruction of an instrumented module from which
// instruction of the guest it comes.
type Origins struct{ bodies [][]origin }

// origin is the start of a range of code.
type origin struct {
	at, from uint32 // offsets in the new body and in the guest's
	kind     originKind
}

type originKind uint8

const (
	copied   originKind = iota // the same bytes as in the guest
	replaced                   // stands for one instruction
	inserted                   // pays for the instruction that follows, and for others
)

// Trace does the same as [Instrument], and also returns the origins of the new
// code: a module instrumented once is traced again when one of its traps is to
// be explained, so that nothing has to be kept for it.
func Trace(m *wasmbin.Module, infos []wasmbin.FuncInfo) (*Meta, *Origins, error) {
	o := &Origins{bodies: make([][]origin, 0, len(m.Code))}
	meta, err := instrument(m, infos, false, o)
	if err != nil {
		return nil, nil, err
	}
	return meta, o, nil
}

func (o *Origins) begin() { o.bodies = append(o.bodies, nil) }

func (o *Origins) add(at, from int, kind originKind) {
	body := &o.bodies[len(o.bodies)-1]
	*body = append(*body, origin{uint32(at), uint32(from), kind})
}

// Of returns the offset in the body of one of the guest's functions from which
// the code at an offset in its new body comes. before is true for code that is
// inserted before that instruction. function counts the functions that are not
// imported; ok is false for a function that metering added.
func (o *Origins) Of(function, offset int) (from int, before, ok bool) {
	if function < 0 || function >= len(o.bodies) || offset < 0 {
		return 0, false, false
	}
	body := o.bodies[function]
	i := sort.Search(len(body), func(i int) bool { return int(body[i].at) > offset }) - 1
	if i < 0 {
		return 0, false, false
	}
	from = int(body[i].from)
	if body[i].kind == copied {
		from += offset - int(body[i].at)
	}
	return from, body[i].kind == inserted, true
}
