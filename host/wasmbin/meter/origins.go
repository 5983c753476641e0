package meter

import (
	"slices"
	"sort"

	"github.com/seed47132306/terrarium/host/wasmbin"
)

// Origins maps the code of an instrumented module to the instructions of the guest from
// which it comes. Offsets count from the start of the content of the code section, as in
// debugging information.
type Origins struct {
	guest  []int      // the start of each body of the guest
	bodies []int      // the start of each body of the instrumented module
	ranges [][]origin // of the bodies that come from the guest
}

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

// Trace does the same as [Instrument] to a module that has just been read, and
// also returns the origins of its code. A module that is instrumented once can
// be traced much later, so that nothing has to be kept for it.
func Trace(m *wasmbin.Module, infos []wasmbin.FuncInfo) (*Meta, *Origins, error) {
	o := &Origins{ranges: make([][]origin, 0, len(m.Code))}
	for i := range m.Code {
		o.guest = append(o.guest, m.Code[i].Offset-m.CodeOffset)
	}
	meta, err := instrument(m, infos, false, o)
	if err != nil {
		return nil, nil, err
	}
	o.bodies = m.CodeOffsets()
	return meta, o, nil
}

func (o *Origins) begin() { o.ranges = append(o.ranges, nil) }

func (o *Origins) add(at, from int, kind originKind) {
	body := &o.ranges[len(o.ranges)-1]
	*body = append(*body, origin{uint32(at), uint32(from), kind})
}

// Of returns the offset of the guest's instruction from which the code at an
// offset comes. before is true for code that runs before that instruction, for
// it and for others. ok is false for code that belongs to no instruction.
func (o *Origins) Of(offset int) (from int, before, ok bool) {
	function, exact := slices.BinarySearch(o.bodies, offset)
	if !exact {
		function--
	}
	if function < 0 || function >= len(o.ranges) {
		return 0, false, false
	}
	ranges, at := o.ranges[function], offset-o.bodies[function]
	i := sort.Search(len(ranges), func(i int) bool { return int(ranges[i].at) > at }) - 1
	if i < 0 {
		return 0, false, false
	}
	from = o.guest[function] + int(ranges[i].from)
	if ranges[i].kind == copied {
		from += at - int(ranges[i].at)
	}
	return from, ranges[i].kind == inserted, true
}
