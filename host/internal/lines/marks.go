package lines

import (
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/host/wasmbin"
)

// Marks returns sections that make wazero write the offset in the code with each
// frame of a stack trace. wazero keeps offsets only for a module with DWARF, and
// writes each offset beside the line that it finds. According to these sections,
// all code is one line of one file.
func Marks() []wasmbin.Custom {
	const first, last = 1, 0xffff_fff0 // the code; neither end is a tombstone, which marks removed code
	address := func(a uint32) []byte { return []byte{byte(a), byte(a >> 8), byte(a >> 16), byte(a >> 24)} }
	sized := func(b []byte) []byte { return append(address(uint32(len(b))), b...) }

	// A unit with low_pc, high_pc and stmt_list.
	abbrev := []byte{1, 0x11, 0, 0x11, 1, 0x12, 1, 0x10, 6, 0, 0, 0}
	unit := []byte{4, 0, 0, 0, 0, 0, 4, 1} // version, abbreviations, size of an address; the entry
	unit = append(append(append(unit, address(first)...), address(last)...), address(0)...)

	// Instructions of one byte; no special opcodes; no directories; the file.
	header := []byte{1, 1, 1, 1, 1, 0, 'w', 0, 0, 0, 0, 0}
	const setAddress, copyRow, endSequence = 2, 1, 1
	program := append([]byte{0, 5, setAddress}, address(first)...)
	program = append(program, copyRow)
	program = append(append(program, 0, 5, setAddress), address(last)...)
	program = append(program, 0, 1, endSequence)
	table := append([]byte{2, 0}, sized(header)...)
	table = append(table, program...)

	var out []wasmbin.Custom
	for _, c := range []struct {
		name string
		b    []byte
	}{{"abbrev", abbrev}, {"info", sized(unit)}, {"line", sized(table)}} {
		out = append(out, wasmbin.Custom{Name: prefix + c.name, Bytes: c.b, After: wasmbin.SectionData})
	}
	return out
}

// Offset returns the offset in a line of wazero's stack trace that follows the
// line of a frame, in a module with Marks: "\t\t0x4a: w:1".
func Offset(line string) (offset uint64, ok bool) {
	number, found := strings.CutPrefix(line, "\t\t0x")
	if !found {
		return 0, false
	}
	number, _, found = strings.Cut(number, ":")
	offset, err := strconv.ParseUint(number, 16, 64)
	return offset, found && err == nil
}
