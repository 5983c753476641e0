package wasmgen

// mode is when a segment is used.
type mode byte

const (
	passive mode = iota
	active
	declarative
)

// elementSegment is a list of references.
type elementSegment struct {
	t      valueType
	mode   mode
	table  int
	offset int
	funcs  []int // -1 is null
	exprs  bool  // written as expressions rather than as indices
	short  bool  // written in the form that leaves table and type out, if it can be
}

// dataSegment is a piece of memory.
type dataSegment struct {
	mode   mode
	offset int
	bytes  []byte
	long   bool // names its memory
}

func (g *generator) chooseElements() {
	if g.segment {
		s := elementSegment{t: funcref, mode: declarative, exprs: g.src.oneIn(2)}
		for _, f := range g.declared {
			s.funcs = append(s.funcs, int(f))
		}
		g.elements = append(g.elements, s)
	}
	for i := range g.tables {
		if g.tables[i].t == funcref && !g.src.oneIn(4) {
			g.elements = append(g.elements, g.filling(i))
		}
	}
	for range g.src.below(3) {
		g.elements = append(g.elements, g.element())
	}
}

// filling returns a segment that puts functions at the start of a table.
func (g *generator) filling(index int) elementSegment {
	s := elementSegment{t: funcref, mode: active, table: index, exprs: g.src.oneIn(4), short: g.src.oneIn(2)}
	n := g.tables[index].least
	if n >= large {
		n, s.exprs = pattern, true
	}
	for range n {
		f := g.anyFunction()
		if s.exprs && g.src.oneIn(3) {
			f = -1
		}
		s.funcs = append(s.funcs, f)
	}
	g.place(s)
	return s
}

// anyFunction picks a function, rarely a hidden one.
func (g *generator) anyFunction() int {
	if g.src.oneIn(64) {
		return g.src.below(len(g.funcs))
	}
	return g.src.below(g.visible())
}

func (g *generator) element() elementSegment {
	s := elementSegment{t: funcref, exprs: g.src.oneIn(2), short: g.src.oneIn(2)}
	if g.src.oneIn(4) {
		s.t, s.exprs = externref, true
	}
	for range g.src.below(8) {
		f := g.anyFunction()
		if s.t == externref || s.exprs && g.src.oneIn(3) {
			f = -1
		}
		s.funcs = append(s.funcs, f)
	}
	if g.src.oneIn(3) {
		if table, ok := g.tableOf(s.t); ok {
			s.mode, s.table = active, table
			s.offset = g.room(g.tables[table].least, len(s.funcs))
			g.place(s)
		}
	}
	return s
}

// room picks an offset at which n items fit into size, with few exceptions.
func (g *generator) room(size, n int) int {
	if n > size || g.src.oneIn(32) {
		return g.src.below(24)
	}
	return g.src.below(size - n + 1)
}

// place records the entries that an active segment leaves in its table.
func (g *generator) place(s elementSegment) {
	entries := g.tables[s.table].entries
	if s.t == funcref && s.offset+len(s.funcs) <= len(entries) {
		copy(entries[s.offset:], s.funcs)
	}
}

func (g *generator) chooseData() {
	for range g.src.below(5) {
		s := dataSegment{long: g.src.oneIn(4)}
		for range g.src.below(24) {
			s.bytes = append(s.bytes, g.src.next())
		}
		if g.memory.present && g.src.oneIn(2) {
			s.mode = active
			s.offset = g.room(g.memory.least<<16, len(s.bytes))
		}
		g.data = append(g.data, s)
	}
}

// write appends the segment in one of the eight forms of the standard: bit 0
// of the flags means not active, bit 1 an explicit table (or declarative), bit
// 2 expressions.
func (s elementSegment) write(out *buffer) {
	explicit := s.table != 0 || s.t != funcref || !s.short
	flags := uint32(0)
	switch {
	case s.mode == passive:
		flags = 1
	case s.mode == declarative:
		flags = 3
	case explicit:
		flags = 2
	}
	if s.exprs {
		flags |= 4
	}
	out.u32(flags)
	if s.mode == active {
		if explicit {
			out.u32(uint32(s.table))
		}
		offset(out, s.offset)
	}
	if flags&3 != 0 {
		if s.exprs {
			out.raw(byte(s.t))
		} else {
			out.raw(0) // the kind of functions
		}
	}
	s.writeItems(out)
}

func (s elementSegment) writeItems(out *buffer) {
	out.u32(uint32(len(s.funcs)))
	for _, f := range s.funcs {
		switch {
		case !s.exprs:
			out.u32(uint32(f))
		case f < 0:
			out.raw(opRefNull, byte(s.t), opEnd)
		default:
			out.raw(opRefFunc)
			out.u32(uint32(f))
			out.raw(opEnd)
		}
	}
}

func (s dataSegment) write(out *buffer) {
	switch {
	case s.mode == passive:
		out.u32(1)
	case s.long:
		out.u32(2)
		out.u32(0)
		offset(out, s.offset)
	default:
		out.u32(0)
		offset(out, s.offset)
	}
	out.sized(s.bytes)
}

func offset(out *buffer, at int) {
	out.raw(opI32Const)
	out.signed(int64(at))
	out.raw(opEnd)
}
