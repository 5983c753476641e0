package host

import (
	"encoding/binary"
	"slices"
)

// capTables returns the module with a maximum declared on each of its tables,
// such that all together they cannot grow beyond ceiling elements, or beyond
// what they start with if that is more. wazero has no other way to stop
// table.grow. A module without tables is returned as it is.
func capTables(wasm []byte, s *shape, ceiling int64) []byte {
	if len(s.tables) == 0 {
		return wasm
	}
	room := max(0, ceiling-s.tableElements()) / int64(len(s.tables))
	body := binary.AppendUvarint(nil, uint64(len(s.tables)))
	for _, t := range s.tables {
		most := uint64(t.min) + uint64(room)
		if t.bounded {
			most = min(most, uint64(t.max))
		}
		const bounded = 1
		body = append(body, t.element, bounded)
		body = binary.AppendUvarint(body, uint64(t.min))
		body = binary.AppendUvarint(body, min(most, 1<<32-1))
	}
	header := binary.AppendUvarint([]byte{sectionTable}, uint64(len(body)))
	return slices.Concat(wasm[:s.tableAt], header, body, wasm[s.tableEnd:])
}
