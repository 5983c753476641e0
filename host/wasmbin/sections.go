package wasmbin

// Section is the place of one section in the bytes of a module.
type Section struct {
	ID     SectionID
	Name   string // of a custom section; otherwise that of the specification
	Offset int    // of its content
	Bytes  int    // of its content, without the id and the size before it
}

// Sections lists the sections of a module in their order, at most the given number
// of them. It looks at nothing else, so it also lists those of an invalid module, up
// to the first section that is cut off or has an unknown id.
func Sections(wasm []byte, most int) []Section {
	limits := DefaultLimits()
	d := &decoder{reader: reader{data: wasm, end: len(wasm), limits: &limits}}
	d.preamble()
	var out []Section
	for d.left() > 0 && len(out) < most {
		s := Section{ID: SectionID(d.byte())}
		size := d.u32()
		if d.err != nil || s.ID > SectionDataCount || int64(size) > int64(d.left()) {
			break
		}
		s.Name, s.Offset, s.Bytes = s.ID.String(), d.pos, int(size)
		if s.ID == SectionCustom {
			content := reader{data: wasm, pos: d.pos, end: d.pos + s.Bytes, limits: &limits}
			s.Name = content.name()
		}
		d.pos += s.Bytes
		out = append(out, s)
	}
	return out
}
