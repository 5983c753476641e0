package memory

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero/experimental"
)

// Pool is where the linear memories of a host come from. All methods may
// be called from any goroutine.
type Pool struct {
	slabs                  // how regions are reserved on this platform
	committed atomic.Int64 // bytes that guests have, touched or not
	InHeap    atomic.Int64 // those of them that lie in the Go heap
	cleaning  sync.WaitGroup
}

// cleanAside is from how many bytes on a memory is given back by a goroutine of
// its own: the system takes a millisecond or two for what a large one may have
// touched, and whoever closes an instance has others to run.
const cleanAside = 4 << 20

// giveBack takes back a region of which the first used bytes may have been
// written.
func (p *Pool) giveBack(r region, used uint64) {
	if used < cleanAside {
		p.release(r, used)
		return
	}
	p.cleaning.Go(func() { p.release(r, used) })
}

// Close gives back what no memory has. All instances have been closed.
func (p *Pool) Close() {
	p.cleaning.Wait()
	p.slabs.close()
}

func NewPool() *Pool { return &Pool{} }

// bytes are what all guests have at the moment, touched or not.
func (p *Pool) bytes() int64 { return p.committed.Load() }

// Linear is the memory of one instance, and the allocator that hands it
// to wazero. It holds the limit memory: a guest that asks for more gets -1 from
// memory.grow.
//
// With a pool it is a range of addresses that reaches up to the limit and whose
// pages the operating system provides when they are touched, so that it grows
// without being copied and costs what it uses. Without one, or where the system
// refuses the range, it is a slice of the Go heap.
type Linear struct {
	Limit uint64 // bytes
	Pool  *Pool  // nil for the Go heap
	Image *Image // what the memory begins with; nil for zeroes

	Refused bool   // the guest asked for more than the limit
	Bytes   []byte // what the guest has
	Region  region // where bytes lie; the zero region for the Go heap
}

var (
	_ experimental.MemoryAllocator = (*Linear)(nil)
	_ experimental.LinearMemory    = (*Linear)(nil)
)

// Allocate implements experimental.MemoryAllocator. A module has one memory.
func (m *Linear) Allocate(_, maximum uint64) experimental.LinearMemory {
	m.Limit = min(m.Limit, maximum)
	return m
}

// Reallocate implements experimental.LinearMemory. The first call reserves; it
// answers at least the size of the image, which wazero takes for the size of
// the memory.
func (m *Linear) Reallocate(size uint64) []byte {
	if size > m.Limit || size > math.MaxInt {
		m.Refused = true
		return nil
	}
	size = max(size, uint64(len(m.Bytes)))
	before := len(m.Bytes)
	switch {
	case m.Bytes == nil:
		if !m.begin(size) {
			return nil
		}
	case m.Region.Mapped():
		m.extend(size)
	default:
		m.growHeap(size)
	}
	m.count(len(m.Bytes) - before)
	return m.Bytes
}

// Show lets the memory begin with an image, before wazero asks for it. It answers
// false when the system has no room for that; the memory is then as it was.
func (m *Linear) Show(image *Image) bool {
	m.Image = image
	if m.Reallocate(image.Size()) == nil {
		m.Image = nil
		return false
	}
	return true
}

// Adopt shows the image that has just been made of this memory in place of it,
// so that this instance shares the pages as well.
func (m *Linear) Adopt(image *Image) {
	if m.Region.Mapped() && m.Region.adopt(image) {
		m.Image = image
	}
}

// begin finds room for the memory and puts the image into it.
func (m *Linear) begin(size uint64) bool {
	if m.Image != nil {
		size = max(size, m.Image.Size())
	}
	if size > m.Limit {
		return false
	}
	if m.Pool != nil {
		if r, ok := m.Pool.reserve(m.Limit, m.Image); ok {
			m.Region = r
			m.extend(size)
			return true
		}
	}
	m.growHeap(size)
	if m.Image != nil && !m.Image.copyTo(m.Bytes) {
		m.Bytes = nil
		return false
	}
	return true
}

// extend lets the guest see more of the region. The slice ends where the memory
// does, so that nothing can be appended into the rest.
func (m *Linear) extend(size uint64) {
	m.Bytes = m.Region.base[:size:size]
}

func (m *Linear) count(delta int) {
	if m.Pool != nil {
		m.Pool.committed.Add(int64(delta))
		if !m.Region.Mapped() {
			m.Pool.InHeap.Add(int64(delta))
		}
	}
}

// growHeap doubles, up to the limit, so that a guest which grows page by page
// is not copied every time. The first size is exact, since most creatures never
// grow. Beyond the length a slice is still zero: memory never shrinks.
func (m *Linear) growHeap(size uint64) {
	switch {
	case size <= uint64(cap(m.Bytes)) && m.Bytes != nil:
		m.Bytes = m.Bytes[:size]
	case m.Bytes == nil:
		m.Bytes = make([]byte, size)
	default:
		grown := make([]byte, size, max(size, min(2*uint64(len(m.Bytes)), m.Limit)))
		copy(grown, m.Bytes)
		m.Bytes = grown
	}
}

// Free implements experimental.LinearMemory and does nothing. wazero calls it
// when it closes an instance, also together with a runtime whose guests have
// not returned yet. Pages must not vanish under a running guest, so they are
// given back by release, when the owner of the instance knows that it has ended.
func (m *Linear) Free() {}

// Release gives the memory back. The instance must not run again, and nobody
// may use a view of its memory any more. Calling it twice is harmless.
func (m *Linear) Release() {
	m.count(-len(m.Bytes))
	if m.Region.Mapped() {
		m.Pool.giveBack(m.Region, uint64(len(m.Bytes)))
	}
	m.Region, m.Bytes, m.Image = region{}, nil, nil
}
