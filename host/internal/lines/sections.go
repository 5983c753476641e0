package lines

import (
	"bytes"
	"strings"

	"github.com/seed47132306/terrarium/host/wasmbin"
)

// Sections holds the DWARF sections of a module, by their names without the
// prefix. They may have any content.
type Sections map[string][]byte

const prefix = ".debug_"

// IsDebug reports whether a custom section has debug information.
func IsDebug(name string) bool { return strings.HasPrefix(name, prefix) }

// Of returns the sections of a module as views of its bytes, or nil if they do
// not tell lines.
func Of(m *wasmbin.Module) Sections {
	s := Sections{}
	for i := range m.Customs {
		if name, ok := strings.CutPrefix(m.Customs[i].Name, prefix); ok && s[name] == nil {
			s[name] = m.Customs[i].Bytes
		}
	}
	for _, needed := range []string{"abbrev", "info", "line"} {
		if len(s[needed]) == 0 {
			return nil
		}
	}
	return s
}

// maxString is the longest string of a string section that is kept whole, in
// bytes: many attributes may refer to the same one, and each is copied.
const maxString = 4 << 10

// owned returns copies of the string sections in which no string is longer than
// maxString.
func (s Sections) owned() Sections {
	out := Sections{}
	for name, b := range s {
		if name == "str" || name == "line_str" {
			b = bytes.Clone(b)
			for at := 0; at < len(b); {
				end := bytes.IndexByte(b[at:], 0)
				if end < 0 {
					end = len(b) - at
				}
				for cut := maxString; cut < end; cut += maxString + 1 {
					b[at+cut] = 0
				}
				at += end + 1
			}
		}
		out[name] = b
	}
	return out
}

// text returns the string at an offset of a section.
func (s Sections) text(section string, offset uint64) string {
	b := s[section]
	if offset >= uint64(len(b)) {
		return ""
	}
	b = b[offset:]
	if end := bytes.IndexByte(b[:min(len(b), maxString)], 0); end >= 0 {
		return string(b[:end])
	}
	return ""
}
