package host

import "github.com/tetratelabs/wazero/experimental"

// linearMemory is the memory of one instance, and the allocator that hands it
// to wazero. It holds the limit memory: a guest that asks for more gets -1 from
// memory.grow.
type linearMemory struct {
	limit uint64 // bytes
	bytes []byte
}

var (
	_ experimental.MemoryAllocator = (*linearMemory)(nil)
	_ experimental.LinearMemory    = (*linearMemory)(nil)
)

// Allocate implements experimental.MemoryAllocator. A module has one memory.
func (m *linearMemory) Allocate(_, maximum uint64) experimental.LinearMemory {
	m.limit = min(m.limit, maximum)
	return m
}

// Reallocate implements experimental.LinearMemory. It starts with exactly what
// the module declares, since most creatures never grow, and then reserves a
// quarter ahead, so that a guest which grows page by page is not copied every
// time. Doubling would cost a growing guest up to twice its memory.
func (m *linearMemory) Reallocate(size uint64) []byte {
	switch {
	case size > m.limit:
		return nil
	case size <= uint64(cap(m.bytes)):
		m.bytes = m.bytes[:size] // never shrinks, so what is beyond is still zero
	case m.bytes == nil:
		m.bytes = make([]byte, size)
	default:
		grown := make([]byte, size, min(size+size/4, m.limit))
		copy(grown, m.bytes)
		m.bytes = grown
	}
	return m.bytes
}

// Free implements experimental.LinearMemory.
func (m *linearMemory) Free() { m.bytes = nil }
