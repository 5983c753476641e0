package hostile

import (
	"bytes"
	"encoding/binary"

	"github.com/seed47132306/terrarium/abi"
)

// debugInfo returns modules whose debugging information attacks the search for
// the lines of a trap, which the guest is not charged for.
func debugInfo() []Module {
	trapped := once(abi.ExportHandle, abi.Trapped, "unreachable")
	root := []byte{1, 1, 0, 0, 0, 0xff, 0xff, 0, 0} // an entry for all code
	const rootForm = "\x01\x11\x01\x11\x01\x12\x06\x00\x00"
	form := func(more string) []byte { return append([]byte(rootForm), more+"\x00"...) }
	return []Module{
		{
			Name: "debug-units", Attacks: "the lines of a trap: debugging information with 500,000 units",
			Build: trapsWith([]byte{0}, bytes.Repeat(debugUnit(0, []byte{0}), 500_000), nil),
			Ends:  trapped,
		},
		{
			Name: "debug-tables", Attacks: "the same: 60,000 units, each of which has to read the rest of a long table",
			Build: func() []byte {
				var units []byte
				for i := range uint32(60_000) {
					units = append(units, debugUnit(5*i, []byte{0})...)
				}
				return trapsWith(append(bytes.Repeat([]byte{1, 0x2e, 1, 0, 0}, 100_000), 0), units, nil)()
			},
			Ends: trapped,
		},
		{
			Name: "debug-nested", Attacks: "the stack of what reads debugging information: entries that nest a million times",
			Build: trapsWith(form("\x02\x2e\x01\x00\x00"), debugUnit(0, append(root, bytes.Repeat([]byte{2}, mebi)...)), nil),
			Ends:  trapped,
		},
		{
			Name: "debug-ranges", Attacks: "the lines of a trap: 500,000 functions, each of which consists of 500,000 pieces",
			Build: trapsWith(form("\x02\x2e\x00\x55\x17\x00\x00"), debugUnit(0, append(root, bytes.Repeat([]byte{2, 0, 0, 0, 0}, 500_000)...)),
				map[string][]byte{"ranges": bytes.Repeat([]byte{1, 0, 0, 0, 2, 0, 0, 0}, 500_000)}),
			Ends: trapped,
		},
		{
			Name: "debug-strings", Attacks: "memory for the lines of a trap: a million functions with the same name of 8 MiB",
			Build: trapsWith(form("\x02\x2e\x00\x03\x0e\x00\x00"), debugUnit(0, append(root, bytes.Repeat([]byte{2, 0, 0, 0, 0}, mebi)...)),
				map[string][]byte{"str": append(bytes.Repeat([]byte{'n'}, 8*mebi), 0)}),
			Ends: trapped,
		},
		{
			Name: "debug-files", Attacks: "the same: a line table that announces 2⁶² folders",
			Build: trapsWith(form(""), debugUnit(0, root), map[string][]byte{"line": announcesFolders()}),
			Ends:  trapped,
		},
	}
}

// announcesFolders is a line table of version 5 with a count that is a lie.
func announcesFolders() []byte {
	header := append([]byte{1, 1, 1, 0xfb, 14, 1, 1, 1, 8}, binary.AppendUvarint(nil, 1<<62)...)
	return debugSized(append([]byte{5, 0, 4, 0}, debugSized(header)...))
}

// trapsWith builds a creature that traps and has debugging information.
func trapsWith(abbreviations, units []byte, more map[string][]byte) func() []byte {
	return func() []byte {
		wasm := newCreature(1).finish(unreachable)
		sections := map[string][]byte{"abbrev": abbreviations, "info": units, "line": {0}}
		for name, content := range more {
			sections[name] = content
		}
		for _, name := range []string{"abbrev", "info", "line", "ranges", "str"} {
			if content, ok := sections[name]; ok {
				wasm = append(append(wasm, sectionCustom), vector(append(text(".debug_"+name), content...))...)
			}
		}
		return wasm
	}
}

// debugUnit is a unit of DWARF 4.
func debugUnit(abbreviations uint32, entries []byte) []byte {
	header := append(binary.LittleEndian.AppendUint32([]byte{4, 0}, abbreviations), 4)
	return debugSized(append(header, entries...))
}

func debugSized(b []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
}
