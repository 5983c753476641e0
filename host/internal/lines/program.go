package lines

import (
	"encoding/binary"
	"path"
)

// cursor reads numbers. Beyond the end it returns zeroes, and failed is set.
type cursor struct {
	data   []byte
	failed bool
}

func (c *cursor) bytes(n uint64) []byte {
	if n > uint64(len(c.data)) {
		c.data, c.failed = nil, true
		return nil
	}
	b := c.data[:n]
	c.data = c.data[n:]
	return b
}

func (c *cursor) u8() byte {
	if b := c.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u16() uint16 {
	if b := c.bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) u32() uint64 {
	if b := c.bytes(4); b != nil {
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return 0
}

func (c *cursor) uleb() (n uint64) {
	for shift := uint(0); ; shift += 7 {
		b := c.u8()
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n
		}
	}
}

func (c *cursor) sleb() (n int64) {
	for shift := uint(0); ; {
		b := c.u8()
		n |= int64(b&0x7f) << shift
		if shift += 7; b < 0x80 {
			if b&0x40 != 0 && shift < 64 {
				n |= -1 << shift
			}
			return n
		}
	}
}

// name returns the string up to the next zero byte, cut at maxString.
func (c *cursor) name() string {
	for i, b := range c.data {
		if b == 0 {
			text := string(c.data[:min(i, maxString)])
			c.data = c.data[i+1:]
			return text
		}
	}
	c.data, c.failed = nil, true
	return ""
}

// table is the line table of a unit.
type table struct {
	sections Sections
	version  uint16
	dir      string // of the compilation

	minInstruction uint64
	lineBase       int64
	lineRange      uint64
	opcodeBase     byte
	lengths        []byte

	names   []byte // the lists of directories and files
	program []byte
}

// tableAt reads the header of a table. Only tables of 32 bits are known:
// compilers write the others beyond 4 GiB.
func (s Sections) tableAt(offset uint64, dir string) (t table, ok bool) {
	c := cursor{data: s["line"]}
	c.bytes(offset)
	c.data = c.bytes(c.u32())
	t = table{sections: s, dir: dir, version: c.u16()}
	if t.version < 2 || t.version > 5 {
		return t, false
	}
	if t.version == 5 {
		c.u16() // sizes of an address and of a segment selector
	}
	header := cursor{data: c.bytes(c.u32())}
	t.program = c.data
	t.minInstruction = uint64(header.u8())
	if t.version >= 4 {
		header.u8() // operations of an instruction
	}
	header.u8() // whether rows are statements
	t.lineBase, t.lineRange, t.opcodeBase = int64(int8(header.u8())), uint64(header.u8()), header.u8()
	if t.opcodeBase == 0 || t.lineRange == 0 {
		return t, false
	}
	t.lengths = header.bytes(uint64(t.opcodeBase) - 1)
	t.names = header.data
	return t, !header.failed && !c.failed
}

// row is a position of the source, valid for the code from addr to the next
// row.
type row struct {
	addr, file, line, column uint64
	start                    uint64 // of the sequence, which is contiguous code
	end                      bool   // of the sequence; there is no position
}

// rows runs the program and visits the rows until visit returns false, or the
// time is up.
func (t *table) rows(l *limit, visit func(row) bool) {
	c := cursor{data: t.program}
	first := row{file: 1, line: 1}
	r, empty := first, true
	emit := func(end bool) bool {
		if empty {
			r.start, empty = r.addr, false
		}
		r.end = end
		return visit(r)
	}
	for len(c.data) > 0 && !c.failed && l.goOn() {
		op := c.u8()
		if op >= t.opcodeBase {
			step := uint64(op - t.opcodeBase)
			r.addr += step / t.lineRange * t.minInstruction
			r.line += uint64(t.lineBase + int64(step%t.lineRange))
			if !emit(false) {
				return
			}
			continue
		}
		switch op {
		case 0: // extended
			args := cursor{data: c.bytes(c.uleb())}
			switch args.u8() {
			case 1: // end of the sequence
				if !emit(true) {
					return
				}
				r, empty = first, true
			case 2: // address
				r.addr = 0
				for i, b := range args.data[:min(8, len(args.data))] {
					r.addr |= uint64(b) << (8 * i)
				}
			}
		case 1:
			if !emit(false) {
				return
			}
		case 2:
			r.addr += c.uleb() * t.minInstruction
		case 3:
			r.line += uint64(c.sleb())
		case 4:
			r.file = c.uleb()
		case 5:
			r.column = c.uleb()
		case 8:
			r.addr += uint64(255-t.opcodeBase) / t.lineRange * t.minInstruction
		case 9:
			r.addr += uint64(c.u16())
		default: // flags, and opcodes of later versions
			for range t.lengths[op-1] {
				c.uleb()
			}
		}
	}
}

// file returns the path of a file of the table, or "" if it has none of that
// number.
func (t *table) file(l *limit, number uint64) string {
	c := cursor{data: t.names}
	if t.version == 5 {
		dirs := c
		c.skipEntries(l)
		name, dir := c.entry(l, t.sections, number)
		in, _ := dirs.entry(l, t.sections, dir)
		return join(t.dir, in, name)
	}
	dirs := c
	for c.name() != "" && l.goOn() {
	}
	for i := uint64(1); !c.failed && l.goOn(); i++ {
		name := c.name()
		dir := c.uleb()
		c.uleb() // time
		c.uleb() // size
		switch {
		case name == "":
			return ""
		case i < number:
			continue
		}
		in := ""
		for ; dir > 0 && l.goOn(); dir-- {
			if in = dirs.name(); in == "" {
				break
			}
		}
		return join(t.dir, in, name)
	}
	return ""
}

func join(elements ...string) (out string) {
	for _, e := range elements {
		switch {
		case path.IsAbs(e) || out == "":
			out = e
		case e != "":
			out = path.Join(out, e)
		}
	}
	return path.Clean(out)
}
