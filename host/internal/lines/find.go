package lines

import (
	"debug/dwarf"
	"errors"
	"fmt"
	"time"
)

// Frame is a place in the source.
type Frame struct {
	Function string // demangled, without parameters; may be empty
	File     string // without folders that it shares with the directory of the compilation
	Line     int    // 0 if it is unknown
	Column   int    // 0 if it is unknown
	// Foreign frames belong to a kit, or to a library or the runtime of the
	// language, rather than to the author of the guest.
	Foreign bool
}

// A Place is code to look for.
type Place struct {
	Offset uint64 // in the code section
	// Before means that the place is before the code, for example at the head of a
	// loop. It gets the first line that starts at the offset or after it.
	Before bool
}

var errLate = errors.New("reading the debugging information takes too long")

// Find returns the frames of each place. Calls that a compiler has inlined are frames
// too, so a place may have several, the innermost first. A place has none if the
// sections say nothing about it. If they are damaged, or if reading them takes longer
// than atMost, there is an error as well.
func (s Sections) Find(places []Place, atMost time.Duration) (frames [][]Frame, err error) {
	frames = make([][]Frame, len(places))
	defer func() {
		if fault := recover(); fault != nil { // a defect of debug/dwarf
			err = fmt.Errorf("reading the debugging information failed: %v", fault)
		}
	}()
	f := finder{sections: s.owned(), limit: &limit{end: time.Now().Add(atMost)}, places: make([]place, len(places))}
	for i := range places {
		f.places[i].Place = places[i]
	}
	err = f.read()
	if f.limit.over {
		err = errLate
	}
	for i := range f.places {
		frames[i] = f.frames(&f.places[i])
	}
	return frames, err
}

// finder looks for places.
type finder struct {
	sections Sections
	limit    *limit
	data     *dwarf.Data
	places   []place
}

// place is an offset of code and what is known about it.
type place struct {
	Place
	scopes []*dwarf.Entry // the function, then the inlined calls from the outermost inwards
	low    uint64         // the start of the function
	table  *table
	dir    string // of the compilation
	row    row
}

func (f *finder) read() error {
	units, err := f.sections.units(f.limit)
	if err != nil {
		return err
	}
	if f.data, err = f.sections.data(); err != nil {
		return err
	}
	r := f.data.Reader()
	for _, u := range units {
		if !f.limit.look() {
			return errLate
		}
		if err := f.unit(r, u); err != nil {
			return err
		}
	}
	return nil
}

// unit reads a unit if one of the places is in it.
func (f *finder) unit(r *dwarf.Reader, u unit) error {
	r.Seek(u.first)
	entry, err := r.Next()
	if err != nil || entry == nil || entry.Tag != dwarf.TagCompileUnit {
		return err
	}
	wanted, err := f.within(entry)
	if err != nil || len(wanted) == 0 {
		return err
	}
	dir, _ := entry.Val(dwarf.AttrCompDir).(string)
	if at, ok := entry.Val(dwarf.AttrStmtList).(int64); ok {
		if t, ok := f.sections.tableAt(uint64(at), dir); ok {
			f.rows(&t, wanted, dir)
		}
	}
	for _, p := range wanted {
		if p.Before && p.row.addr > p.Offset {
			p.Offset = p.row.addr
		}
	}
	for f.limit.goOn() {
		entry, err := r.Next()
		if err != nil || entry == nil || entry.Offset >= u.end {
			return err
		}
		if entry.Tag == dwarf.TagSubprogram || entry.Tag == dwarf.TagInlinedSubroutine {
			if err := f.scope(entry, wanted); err != nil {
				return err
			}
		}
	}
	return nil
}

// within returns the places in the code of an entry. An entry without a range
// has no code.
func (f *finder) within(entry *dwarf.Entry) ([]*place, error) {
	ranges, err := f.data.Ranges(entry)
	if err != nil {
		return nil, err
	}
	var found []*place
	for i := range f.places {
		if _, ok := covers(ranges, f.places[i].Offset); ok {
			found = append(found, &f.places[i])
		}
	}
	return found, nil
}

// covers returns the start of the range that contains the offset. A range from 0
// belongs to a function that the linker left out: the first function starts later.
func covers(ranges [][2]uint64, offset uint64) (low uint64, ok bool) {
	for _, r := range ranges {
		if r[0] != 0 && r[0] <= offset && offset < r[1] {
			return r[0], true
		}
	}
	return 0, false
}

// scope adds a function or an inlined call to the places that it covers.
func (f *finder) scope(entry *dwarf.Entry, wanted []*place) error {
	if !f.limit.look() {
		return errLate
	}
	ranges, err := f.data.Ranges(entry)
	if err != nil {
		return err
	}
	for _, p := range wanted {
		low, ok := covers(ranges, p.Offset)
		switch {
		case !ok:
		case entry.Tag == dwarf.TagSubprogram && low >= p.low:
			p.scopes, p.low = []*dwarf.Entry{entry}, low
		case entry.Tag == dwarf.TagInlinedSubroutine && len(p.scopes) > 0 && len(p.scopes) < maxInlined:
			p.scopes = append(p.scopes, entry)
		}
	}
	return nil
}

// maxInlined is the most inlined calls shown of one place.
const maxInlined = 64

// rows finds the rows of the places in a table.
func (f *finder) rows(t *table, wanted []*place, dir string) {
	var before, named row // the last row, and the last one of its sequence with a line
	t.rows(f.limit, func(r row) bool {
		if before.start == r.start && before.start != 0 && !before.end {
			for _, p := range wanted {
				switch {
				case before.addr <= p.Offset && p.Offset < r.addr:
					p.table, p.dir, p.row = t, dir, named
				case p.Before && p.table == t && p.row.start == r.start && p.row.addr < p.Offset && r.line != 0 && !r.end:
					p.row = r
				}
			}
		}
		if before = r; r.line != 0 || named.start != r.start {
			named = r // code without a line of its own gets the line of the code before it
		}
		return true
	})
}

// frames returns the frames of a place.
func (f *finder) frames(p *place) []Frame {
	if p.table == nil && len(p.scopes) == 0 {
		return nil
	}
	out := []Frame{f.frame(p, p.row.file, p.row.line, p.row.column)}
	for i := len(p.scopes) - 1; i >= 0; i-- {
		out[len(out)-1].Function = f.name(p.scopes[i])
		if i > 0 {
			number := func(a dwarf.Attr) uint64 {
				n, _ := p.scopes[i].Val(a).(int64)
				return uint64(n)
			}
			out = append(out, f.frame(p, number(dwarf.AttrCallFile), number(dwarf.AttrCallLine), number(dwarf.AttrCallColumn)))
		}
	}
	for i := range out {
		out[i].Foreign = foreign(out[i].Function, out[i].File)
		out[i].File = shorten(out[i].File, p.dir)
	}
	return out
}

func (f *finder) frame(p *place, file, line, column uint64) Frame {
	const most = 1 << 30
	if p.table == nil || line == 0 || line > most {
		return Frame{}
	}
	if column > most {
		column = 0
	}
	return Frame{File: p.table.file(f.limit, file), Line: int(line), Column: int(column)}
}

// name returns the name of the function of an entry. An inlined call refers to
// the function, and its definition may refer to a declaration.
func (f *finder) name(entry *dwarf.Entry) string {
	const mipsLinkageName = dwarf.Attr(0x2007)
	r := f.data.Reader()
	for range 4 {
		for _, a := range []dwarf.Attr{dwarf.AttrLinkageName, mipsLinkageName, dwarf.AttrName} {
			if name, ok := entry.Val(a).(string); ok && name != "" {
				return Demangled(name)
			}
		}
		next, ok := entry.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			next, ok = entry.Val(dwarf.AttrSpecification).(dwarf.Offset)
		}
		if !ok || !f.limit.goOn() {
			return ""
		}
		r.Seek(next)
		var err error
		if entry, err = r.Next(); err != nil || entry == nil {
			return ""
		}
	}
	return ""
}
