package lines

import (
	"bytes"
	"encoding/binary"
	"maps"
	"runtime"
	"strings"
	"testing"
	"time"
)

func le32(n int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }

func sized(b []byte) []byte { return append(le32(len(b)), b...) }

// unit4 is a unit of version 4 with a table of abbreviations and entries.
func unit4(table int, entries ...byte) []byte {
	return sized(append(append([]byte{4, 0}, le32(table)...), append([]byte{4}, entries...)...))
}

func with(change func(s Sections)) func(Sections) Sections {
	return func(s Sections) Sections {
		s = maps.Clone(s)
		change(s)
		return s
	}
}

// hostile makes sections on which a reader may spend any time or memory.
var hostile = []struct {
	what    string
	change  func(Sections) Sections
	unusual bool // they are refused as a whole
}{
	{"a million units", with(func(s Sections) { s["info"] = bytes.Repeat(unit4(0, 0), 1<<20) }), true},
	{"units of no size", with(func(s Sections) { s["info"] = make([]byte, 16<<20) }), true},
	{"a unit that says it is larger than the section", with(func(s Sections) { s["info"] = append(le32(0x7fffffff), s["info"][4:]...) }), true},
	{"a unit of 64 bits", with(func(s Sections) { s["info"] = append(bytes.Repeat([]byte{255}, 12), s["info"]...) }), true},
	{"each unit has the rest of one table", with(func(s Sections) {
		s["abbrev"] = append(bytes.Repeat([]byte{1, 0x2e, 1, 0, 0}, 100_000), 0)
		s["info"] = nil
		for i := range 60_000 {
			s["info"] = append(s["info"], unit4(5*i, 0)...)
		}
	}), true},
	{"an abbreviation with a million attributes", with(func(s Sections) {
		s["abbrev"] = append(append([]byte{1, 0x11, 1}, bytes.Repeat([]byte{3, 0x0e}, 1<<20)...), 0, 0, 0)
		s["info"] = unit4(0, 1)
	}), true},
	{"a table without an end", with(func(s Sections) { s["abbrev"] = bytes.Repeat([]byte{0x80}, 1<<20) }), true},
	{"entries nest a million times", with(func(s Sections) {
		s["abbrev"] = []byte{1, 0x11, 1, 0x11, 1, 0x12, 6, 0, 0, 2, 0x2e, 1, 0, 0, 0}
		s["info"] = unit4(0, append([]byte{1, 1, 0, 0, 0, 255, 255, 0, 0}, bytes.Repeat([]byte{2}, 1<<20)...)...)
	}), false},
	{"the origin of an inlined call is itself", with(func(s Sections) {
		s["abbrev"] = []byte{1, 0x11, 1, 0x11, 1, 0x12, 6, 0, 0, 2, 0x2e, 1, 0x11, 1, 0x12, 6, 0x31, 0x13, 0, 0, 0}
		s["info"] = unit4(0, 1, 1, 0, 0, 0, 255, 255, 0, 0, 2, 1, 0, 0, 0, 255, 255, 0, 0, 20, 0, 0, 0)
	}), false},
	{"a string of megabytes that is used a million times", with(func(s Sections) {
		s["str"] = append(bytes.Repeat([]byte{'x'}, 8<<20), 0)
		s["abbrev"] = []byte{1, 0x11, 1, 0x11, 1, 0x12, 6, 0, 0, 2, 0x2e, 0, 3, 0x0e, 0, 0, 0}
		s["info"] = unit4(0, append([]byte{1, 1, 0, 0, 0, 255, 255, 0, 0}, bytes.Repeat([]byte{2, 0, 0, 0, 0}, 1<<20)...)...)
	}), false},
	{"every entry has all ranges", with(func(s Sections) {
		s["ranges"] = bytes.Repeat([]byte{1, 0, 0, 0, 2, 0, 0, 0}, 1<<19)
		s["abbrev"] = []byte{1, 0x11, 1, 0x11, 1, 0x12, 6, 0, 0, 2, 0x2e, 0, 0x55, 0x17, 0, 0, 0}
		s["info"] = unit4(0, append([]byte{1, 1, 0, 0, 0, 255, 255, 0, 0}, bytes.Repeat([]byte{2, 0, 0, 0, 0}, 1<<20)...)...)
	}), false},
	{"a line table with endless lists", with(func(s Sections) {
		header := []byte{1, 1, 1, 0xfb, 14, 1, 1, 1, 0x08, 255, 255, 255, 255, 255, 255, 255, 255, 127}
		s["line"] = sized(append([]byte{5, 0, 4, 0}, sized(header)...))
	}), false},
	{"a line table with entries of no size", with(func(s Sections) {
		header := []byte{1, 1, 1, 0xfb, 14, 1, 0, 255, 255, 255, 255, 127, 0, 255, 255, 255, 255, 127}
		s["line"] = sized(append([]byte{5, 0, 4, 0}, sized(header)...))
	}), false},
	{"a line table with a million rows", with(func(s Sections) {
		s["line"] = sized(append(append([]byte{4, 0}, sized([]byte{1, 1, 1, 0xfb, 14, 2, 0, 0, 0})...), bytes.Repeat([]byte{1, 200}, 8<<20)...))
	}), false},
	{"a line table with a million files", with(func(s Sections) {
		header := append([]byte{1, 1, 1, 0xfb, 14, 2, 0, 0}, bytes.Repeat([]byte{'f', 0, 0, 0, 0}, 1<<20)...)
		s["line"] = sized(append(append([]byte{4, 0}, sized(append(header, 0))...), 0, 5, 2, 1, 0, 0, 0, 4, 255, 255, 63, 1, 0, 5, 2, 0, 255, 0, 0, 0, 1, 1))
	}), false},
	{"a line table that says it is longer", with(func(s Sections) { s["line"] = append(le32(0x7fffffff), s["line"][4:]...) }), false},
	{"no line table", with(func(s Sections) { s["line"] = []byte{0} }), false},
	{"a version of the future", with(func(s Sections) {
		s["info"] = append(bytes.Clone(s["info"][:4]), append([]byte{9, 0}, s["info"][6:]...)...)
	}), false},
}

// TestHostile checks that each of the cases ends, in little more than the time
// that it is given, and takes memory in proportion to its size.
func TestHostile(t *testing.T) {
	good := Of(read(t, "fault"))
	places := []Place{{Offset: 20}, {Offset: 100, Before: true}, {Offset: 1 << 40}}
	for _, c := range hostile {
		t.Run(c.what, func(t *testing.T) {
			s := c.change(good)
			size := 0
			for _, b := range s {
				size += len(b)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			frames, err := s.Find(places, 100*time.Millisecond)
			runtime.ReadMemStats(&after)
			if len(frames) != len(places) || c.unusual && err != errUnusual {
				t.Errorf("%d frames, %v", len(frames), err)
			}
			if kept := int(after.HeapAlloc) - int(before.HeapAlloc); kept > 64<<20+16*size {
				t.Errorf("it takes %d bytes, for sections of %d", kept, size)
			}
			bounded(t, frames)
		})
	}
}

// bounded checks what messages are made of.
func bounded(t *testing.T, frames [][]Frame) {
	t.Helper()
	for _, at := range frames {
		if len(at) > maxInlined {
			t.Errorf("a place has %d frames", len(at))
		}
		for _, f := range at {
			if len(f.File) > maxPath+len("…") || len(f.Function) > 1<<12 || f.Line < 0 || f.Column < 0 {
				t.Errorf("a frame is %.100q %.100q %d:%d", f.Function, f.File, f.Line, f.Column)
			}
		}
	}
}

// TestLateIsTold checks that a place found before the time is up is kept.
func TestLateIsTold(t *testing.T) {
	s := with(func(s Sections) {
		s["info"] = append(bytes.Clone(s["info"]), bytes.Repeat(unit4(0, 0), 1000)...)
	})(Of(read(t, "fault")))
	if _, err := s.Find([]Place{{Offset: 20}}, -time.Second); err != errLate {
		t.Errorf("the error is %v", err)
	}
}

func FuzzFind(f *testing.F) {
	names := []string{"abbrev", "info", "line", "str", "ranges", "rnglists", "line_str", "str_offsets", "addr"}
	add := func(s Sections) {
		var parts [9][]byte
		for i, name := range names {
			parts[i] = s[name]
		}
		f.Add(parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], parts[6], parts[7], parts[8], uint64(100))
	}
	for _, name := range modules {
		add(Of(read(f, name)))
	}
	for _, c := range hostile {
		s := c.change(Of(read(f, "fault")))
		size := 0
		for _, b := range s {
			size += len(b)
		}
		if size < 1<<16 {
			add(s)
		}
	}
	f.Fuzz(func(t *testing.T, abbrev, info, line, str, ranges, rnglists, lineStr, strOffsets, addr []byte, offset uint64) {
		s := Sections{}
		for i, b := range [][]byte{abbrev, info, line, str, ranges, rnglists, lineStr, strOffsets, addr} {
			if len(b) > 0 {
				s[names[i]] = b
			}
		}
		frames, err := s.Find([]Place{{Offset: offset}, {Offset: offset + 40, Before: true}}, 50*time.Millisecond)
		if err != nil && strings.Contains(err.Error(), "failed: runtime error") {
			t.Logf("debug/dwarf: %v", err)
		}
		bounded(t, frames)
	})
}
