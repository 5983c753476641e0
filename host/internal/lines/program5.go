package lines

// Version 5 of DWARF describes the form of the entries in the lists of
// directories and files.

// Codes of the content of entries, and of the forms of their values.
const (
	contentPath = 1
	contentDir  = 2

	formData2   = 0x05
	formData4   = 0x06
	formData8   = 0x07
	formString  = 0x08
	formBlock   = 0x09
	formData1   = 0x0b
	formStrp    = 0x0e
	formUdata   = 0x0f
	formData16  = 0x1e
	formLineStr = 0x1f
)

type field struct{ content, form uint64 }

// list reads the head of a list.
func (c *cursor) list() (fields []field, entries uint64) {
	for range c.u8() {
		fields = append(fields, field{c.uleb(), c.uleb()})
	}
	entries = c.uleb()
	if entries > uint64(len(c.data)) || len(fields) == 0 { // an entry has a byte at least
		entries = 0
	}
	return fields, entries
}

// skipEntries skips a list.
func (c *cursor) skipEntries(l *limit) {
	fields, entries := c.list()
	for range entries {
		if c.failed || !l.goOn() {
			return
		}
		c.fields(nil, fields)
	}
}

// entry reads a list up to the entry of that number, and returns its path and
// the number of its directory.
func (c *cursor) entry(l *limit, s Sections, number uint64) (name string, dir uint64) {
	fields, entries := c.list()
	if number >= entries {
		return "", 0
	}
	for range number {
		if c.failed || !l.goOn() {
			return "", 0
		}
		c.fields(nil, fields)
	}
	return c.fields(s, fields)
}

// fields reads one entry. Strings are looked up only if there are sections.
func (c *cursor) fields(s Sections, fields []field) (name string, dir uint64) {
	for _, f := range fields {
		text, number, known := c.value(s, f.form)
		if !known {
			c.data, c.failed = nil, true
		}
		switch f.content {
		case contentPath:
			name = text
		case contentDir:
			dir = number
		}
	}
	return name, dir
}

func (c *cursor) value(s Sections, form uint64) (text string, number uint64, known bool) {
	switch form {
	case formString:
		return c.name(), 0, true
	case formStrp:
		return s.text("str", c.u32()), 0, true
	case formLineStr:
		return s.text("line_str", c.u32()), 0, true
	case formUdata:
		return "", c.uleb(), true
	case formData1:
		return "", uint64(c.u8()), true
	case formData2:
		return "", uint64(c.u16()), true
	case formData4:
		return "", c.u32(), true
	case formData8:
		c.bytes(8)
	case formData16:
		c.bytes(16)
	case formBlock:
		c.bytes(c.uleb())
	default:
		return "", 0, false
	}
	return "", 0, true
}
