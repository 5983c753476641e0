package memory

import (
	"encoding/binary"
	"math"
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero/experimental"
)

// Pool provides the linear memories of a host. All methods may be called from
// any goroutine.
type Pool struct {
	slabs                  // how regions are reserved on this platform
	committed atomic.Int64 // bytes of all guest memories, touched or not
	InHeap    atomic.Int64 // the part in the Go heap
	cleaning  sync.WaitGroup
}

// cleanAside is the size in bytes from which a memory is released by its own
// goroutine: the system takes a millisecond or two for the pages that a large
// memory may have touched, and the goroutine that closes an instance has
// others to run.
const cleanAside = 4 << 20

// giveBack releases a region whose first used bytes may have been written.
func (p *Pool) giveBack(r region, used uint64) {
	if used < cleanAside {
		p.release(r, used)
		return
	}
	p.cleaning.Go(func() { p.release(r, used) })
}

// Close releases everything that no memory uses. All instances must have been
// closed.
func (p *Pool) Close() {
	p.cleaning.Wait()
	p.slabs.close()
}

func NewPool() *Pool { return &Pool{} }

// bytes returns the current size of all guest memories, touched or not.
func (p *Pool) bytes() int64 { return p.committed.Load() }

// Linear is the memory of one instance, for hostcalls and for the engine that runs the
// guest; it is also the allocator that passes it to wazero. It enforces the limit memory: beyond it memory.grow returns -1.
//
// With a pool it is a range of addresses up to the limit, whose pages the
// operating system provides when they are touched. So it grows without being
// copied and costs only the pages used. Without a pool, or if the system
// refuses the range, it is a slice of the Go heap, or a large mapping.
type Linear struct {
	Limit uint64 // bytes
	Pool  *Pool  // nil for the Go heap
	Image *Image // the initial content; nil for zeroes

	Refused bool   // the guest tried to exceed the limit, or NoRoom
	NoRoom  bool   // the system had too few addresses
	Bytes   []byte // the guest's memory
	mapping []byte // holds Bytes if it is large; nil elsewhere
	Region  region // holds Bytes; the zero region for the Go heap
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

// Reallocate implements experimental.LinearMemory. The first call reserves the
// range; it returns at least the size of the image, which wazero takes as the
// size of the memory.
func (m *Linear) Reallocate(size uint64) []byte {
	if size > m.Limit || size > math.MaxInt {
		m.Refused, m.NoRoom = true, size <= m.Limit
		return nil
	}
	size = max(size, uint64(len(m.Bytes)))
	before, inHeap := len(m.Bytes), m.inHeap()
	switch {
	case m.Bytes == nil:
		if !m.begin(size) {
			return nil
		}
	case m.Region.Mapped():
		m.extend(size)
	case !m.growHeap(size):
		return nil
	}
	m.count(len(m.Bytes)-before, m.inHeap()-inHeap)
	return m.Bytes
}

// Show maps an image as the initial content, before wazero allocates the
// memory. It returns false if the system has no room; the memory is then
// unchanged.
func (m *Linear) Show(image *Image) bool {
	m.Image = image
	if m.Reallocate(image.Size()) == nil {
		m.Image = nil
		return false
	}
	return true
}

// Adopt replaces the memory with the image just made from it, so that this
// instance shares the pages too.
func (m *Linear) Adopt(image *Image) {
	if m.Region.Mapped() && m.Region.adopt(image) {
		m.Image = image
	}
}

// begin reserves room for the memory and puts the image into it.
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
	if !m.growHeap(size) {
		return false
	}
	if m.Image != nil && !m.Image.copyTo(m.Bytes) {
		m.drop()
		m.Bytes = nil
		return false
	}
	return true
}

// extend makes more of the region visible to the guest. The slice's capacity
// ends with the memory, so that nothing can be appended into the rest.
func (m *Linear) extend(size uint64) {
	m.Bytes = m.Region.base[:size:size]
}

// Size returns the size of the memory in bytes, which is below 4 GiB.
func (m *Linear) Size() uint32 { return uint32(len(m.Bytes)) }

// Read returns a view of n bytes at ptr; ok is false if they are not all in the memory.
func (m *Linear) Read(ptr, n uint32) (b []byte, ok bool) {
	end := uint64(ptr) + uint64(n)
	if end > uint64(len(m.Bytes)) {
		return nil, false
	}
	return m.Bytes[ptr:end:end], true
}

// ReadUint32Le returns the number at ptr; ok is false if it is not in the memory.
func (m *Linear) ReadUint32Le(ptr uint32) (v uint32, ok bool) {
	b, ok := m.Read(ptr, 4)
	if !ok {
		return 0, false
	}
	return binary.LittleEndian.Uint32(b), true
}

// WriteUint32Le puts a number at ptr; ok is false if it does not fit there.
func (m *Linear) WriteUint32Le(ptr, v uint32) (ok bool) {
	b, ok := m.Read(ptr, 4)
	if ok {
		binary.LittleEndian.PutUint32(b, v)
	}
	return ok
}

// WriteUint64Le puts a number at ptr; ok is false if it does not fit there.
func (m *Linear) WriteUint64Le(ptr uint32, v uint64) (ok bool) {
	b, ok := m.Read(ptr, 8)
	if ok {
		binary.LittleEndian.PutUint64(b, v)
	}
	return ok
}

// inHeap returns how much of the memory is in the Go heap.
func (m *Linear) inHeap() int {
	if m.Region.Mapped() || m.mapping != nil {
		return 0
	}
	return len(m.Bytes)
}

func (m *Linear) count(bytes, inHeap int) {
	if m.Pool != nil {
		m.Pool.committed.Add(int64(bytes))
		m.Pool.InHeap.Add(int64(inHeap))
	}
}

// growHeap doubles, up to the limit, so that a guest that grows page by page
// is not copied every time. The first size is exact, since most creatures
// never grow. Beyond the length a slice is still zero: memory never shrinks.
// It returns false if there are not enough addresses; the memory is then unchanged.
func (m *Linear) growHeap(size uint64) bool {
	if m.Bytes != nil && size <= uint64(cap(m.Bytes)) {
		m.Bytes = m.Bytes[:size]
		return true
	}
	room := size
	if m.Bytes != nil {
		room = max(size, min(2*uint64(len(m.Bytes)), m.Limit))
	}
	var grown, mapping []byte
	if room < largeBytes {
		grown = make([]byte, size, room)
	} else if mapping = mapLarge(room); mapping == nil && room > size {
		mapping = mapLarge(size)
	}
	if grown == nil {
		if mapping == nil {
			m.Refused, m.NoRoom = true, true
			return false
		}
		grown = mapping[:size]
	}
	copy(grown, m.Bytes)
	m.drop()
	m.Bytes, m.mapping = grown, mapping
	return true
}

// drop unmaps a large memory.
func (m *Linear) drop() {
	if m.mapping != nil {
		unmapLarge(m.mapping)
		m.mapping = nil
	}
}

// Free implements experimental.LinearMemory and does nothing. wazero calls it
// when it closes an instance, also together with a runtime whose guests have
// not returned yet. Pages must not be unmapped under a running guest, so
// Release frees them, when the owner of the instance knows that the guest has
// ended.
func (m *Linear) Free() {}

// Release frees the memory. The instance must not run again, and views of its
// memory become invalid. Calling Release twice is harmless.
func (m *Linear) Release() {
	m.count(-len(m.Bytes), -m.inHeap())
	if m.Region.Mapped() {
		m.Pool.giveBack(m.Region, uint64(len(m.Bytes)))
	}
	m.drop()
	m.Region, m.Bytes, m.Image = region{}, nil, nil
}
