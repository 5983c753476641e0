package host

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero/experimental"
)

// memoryPool is where the linear memories of a host come from. All methods may
// be called from any goroutine.
type memoryPool struct {
	slabs                  // how regions are reserved on this platform
	committed atomic.Int64 // bytes that guests have, touched or not
	inHeap    atomic.Int64 // those of them that lie in the Go heap
	cleaning  sync.WaitGroup
}

// cleanAside is from how many bytes on a memory is given back by a goroutine of
// its own: the system takes a millisecond or two for what a large one may have
// touched, and whoever closes an instance has others to run.
const cleanAside = 4 << 20

// giveBack takes back a region of which the first used bytes may have been
// written.
func (p *memoryPool) giveBack(r region, used uint64) {
	if used < cleanAside {
		p.release(r, used)
		return
	}
	p.cleaning.Go(func() { p.release(r, used) })
}

// close gives back what no memory has. All instances have been closed.
func (p *memoryPool) close() {
	p.cleaning.Wait()
	p.slabs.close()
}

func newMemoryPool() *memoryPool { return &memoryPool{} }

// bytes are what all guests have at the moment, touched or not.
func (p *memoryPool) bytes() int64 { return p.committed.Load() }

// linearMemory is the memory of one instance, and the allocator that hands it
// to wazero. It holds the limit memory: a guest that asks for more gets -1 from
// memory.grow.
//
// With a pool it is a range of addresses that reaches up to the limit and whose
// pages the operating system provides when they are touched, so that it grows
// without being copied and costs what it uses. Without one, or where the system
// refuses the range, it is a slice of the Go heap.
type linearMemory struct {
	limit uint64       // bytes
	pool  *memoryPool  // nil for the Go heap
	image *memoryImage // what the memory begins with; nil for zeroes

	refused bool   // the guest asked for more than the limit
	bytes   []byte // what the guest has
	region  region // where bytes lie; the zero region for the Go heap
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

// Reallocate implements experimental.LinearMemory. The first call reserves; it
// answers at least the size of the image, which wazero takes for the size of
// the memory.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > m.limit || size > math.MaxInt {
		m.refused = true
		return nil
	}
	size = max(size, uint64(len(m.bytes)))
	before := len(m.bytes)
	switch {
	case m.bytes == nil:
		if !m.begin(size) {
			return nil
		}
	case m.region.mapped():
		m.extend(size)
	default:
		m.growHeap(size)
	}
	m.count(len(m.bytes) - before)
	return m.bytes
}

// show lets the memory begin with an image, before wazero asks for it. It answers
// false when the system has no room for that; the memory is then as it was.
func (m *linearMemory) show(image *memoryImage) bool {
	m.image = image
	if m.Reallocate(image.size()) == nil {
		m.image = nil
		return false
	}
	return true
}

// adopt shows the image that has just been made of this memory in place of it,
// so that this instance shares the pages as well.
func (m *linearMemory) adopt(image *memoryImage) {
	if m.region.mapped() && m.region.adopt(image) {
		m.image = image
	}
}

// begin finds room for the memory and puts the image into it.
func (m *linearMemory) begin(size uint64) bool {
	if m.image != nil {
		size = max(size, m.image.size())
	}
	if size > m.limit {
		return false
	}
	if m.pool != nil {
		if r, ok := m.pool.reserve(m.limit, m.image); ok {
			m.region = r
			m.extend(size)
			return true
		}
	}
	m.growHeap(size)
	if m.image != nil && !m.image.copyTo(m.bytes) {
		m.bytes = nil
		return false
	}
	return true
}

// extend lets the guest see more of the region. The slice ends where the memory
// does, so that nothing can be appended into the rest.
func (m *linearMemory) extend(size uint64) {
	m.bytes = m.region.base[:size:size]
}

func (m *linearMemory) count(delta int) {
	if m.pool != nil {
		m.pool.committed.Add(int64(delta))
		if !m.region.mapped() {
			m.pool.inHeap.Add(int64(delta))
		}
	}
}

// growHeap doubles, up to the limit, so that a guest which grows page by page
// is not copied every time. The first size is exact, since most creatures never
// grow. Beyond the length a slice is still zero: memory never shrinks.
func (m *linearMemory) growHeap(size uint64) {
	switch {
	case size <= uint64(cap(m.bytes)) && m.bytes != nil:
		m.bytes = m.bytes[:size]
	case m.bytes == nil:
		m.bytes = make([]byte, size)
	default:
		grown := make([]byte, size, max(size, min(2*uint64(len(m.bytes)), m.limit)))
		copy(grown, m.bytes)
		m.bytes = grown
	}
}

// Free implements experimental.LinearMemory and does nothing. wazero calls it
// when it closes an instance, also together with a runtime whose guests have
// not returned yet. Pages must not vanish under a running guest, so they are
// given back by release, when the owner of the instance knows that it has ended.
func (m *linearMemory) Free() {}

// release gives the memory back. The instance must not run again, and nobody
// may use a view of its memory any more. Calling it twice is harmless.
func (m *linearMemory) release() {
	m.count(-len(m.bytes))
	if m.region.mapped() {
		m.pool.giveBack(m.region, uint64(len(m.bytes)))
	}
	m.region, m.bytes, m.image = region{}, nil, nil
}
