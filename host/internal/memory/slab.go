//go:build linux && (amd64 || arm64)

package memory

import (
	"math/bits"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Addresses are reserved in slabs that hold many regions of one size, for two
// reasons: a process may have only some 65,000 mappings, and reusing a region
// takes no system call.
const (
	slabBytes     = 4 << 30     // addresses of one slab, unless a single region is larger
	slabRegions   = 256         // the most regions of one slab
	smallestClass = 64 << 10    // a Wasm page
	largestRegion = 1 << 32     // everything a 32-bit memory can address
	regionClasses = 1 + 32 - 16 // powers of two from the one to the other
)

// slabs allocates regions of addresses for linear memories.
type slabs struct {
	mu      sync.Mutex
	closed  bool
	classes [regionClasses]regionClass
}

// A regionClass holds the slabs whose regions have one size.
type regionClass struct {
	open  []*slab // slabs with a free region; the last is used first
	empty int     // open slabs with no region in use; at most one is kept
}

// A slab is one mapping, cut into regions of equal size.
type slab struct {
	mapping []byte
	class   int
	free    []int // indexes of the unused regions; their bytes are all zero
	used    int
	at      int // index in regionClass.open, or -1
}

// A region is the part of a slab used by one memory: zeroes, or an image and
// then zeroes.
type region struct {
	base  []byte
	slab  *slab
	index int
	image *Image // mapped at the start; nil for none
}

func (r *region) Mapped() bool { return r.slab != nil }

// adopt maps an image over the part of the region that it was copied from.
func (r *region) adopt(image *Image) bool {
	if !image.mapOver(r.base) {
		return false
	}
	r.image = image
	return true
}

// classOf returns the class of the smallest region that holds size bytes.
func classOf(size uint64) int {
	return bits.Len64((max(size, smallestClass) - 1) / smallestClass)
}

func classBytes(class int) uint64 { return smallestClass << class }

// reserve returns a region of at least size bytes that begins with the image,
// which may be nil. It returns false if the system has no room for it.
func (p *slabs) reserve(size uint64, image *Image) (region, bool) {
	if size > largestRegion {
		return region{}, false
	}
	class := classOf(size)
	if image != nil {
		if r, ok := image.takeIdle(class); ok {
			return r, true
		}
	}
	r, ok := p.take(class)
	if !ok || image == nil {
		return r, ok
	}
	if !r.adopt(image) {
		p.putBack(r)
		return region{}, false
	}
	return r, true
}

// release takes back a region whose first used bytes may have been written.
func (p *slabs) release(r region, used uint64) {
	image := r.image
	switch {
	case image != nil && discard(r.base[:used]) && image.keepIdle(r):
		return
	case image != nil && !unmapImage(r.base, image.Size()):
		return // the mapping is now unknown, so these addresses are never reused
	case !discard(r.base[:used]):
		clear(r.base[:used])
	}
	r.image = nil
	p.putBack(r)
}

func (p *slabs) take(class int) (region, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &p.classes[class]
	if p.closed || (len(c.open) == 0 && !c.addSlab(class)) {
		return region{}, false
	}
	s := c.open[len(c.open)-1]
	if s.used == 0 {
		c.empty--
	}
	s.used++
	index := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	if len(s.free) == 0 {
		c.shut(s)
	}
	return s.region(index), true
}

func (p *slabs) putBack(r region) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, c := r.slab, &p.classes[r.slab.class]
	s.free = append(s.free, r.index)
	s.used--
	if s.at < 0 {
		s.at = len(c.open)
		c.open = append(c.open, s)
	}
	if s.used > 0 {
		return
	}
	if c.empty > 0 || p.closed {
		c.shut(s)
		s.unmap()
		return
	}
	c.empty++
}

// close releases all addresses that no memory uses; the others follow when
// their memories are released.
func (p *slabs) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for i := range p.classes {
		c := &p.classes[i]
		for n := len(c.open) - 1; n >= 0; n-- {
			if s := c.open[n]; s.used == 0 {
				c.shut(s)
				s.unmap()
			}
		}
		c.empty = 0
	}
}

// addSlab maps another slab, a smaller one if the system has no room for a full
// one.
func (c *regionClass) addSlab(class int) bool {
	size := classBytes(class)
	for count := min(max(1, slabBytes/size), slabRegions); count > 0; count /= 2 {
		mapping, err := mapAnonymous(nil, uintptr(count*size))
		if err != nil {
			continue
		}
		s := &slab{mapping: mapping, class: class, at: len(c.open)}
		for index := int(count) - 1; index >= 0; index-- {
			s.free = append(s.free, index) // so that the lowest addresses are used first
		}
		c.open = append(c.open, s)
		c.empty++
		return true
	}
	return false
}

// shut removes a slab from the list of those with a free region.
func (c *regionClass) shut(s *slab) {
	last := c.open[len(c.open)-1]
	c.open[s.at], last.at = last, s.at
	c.open = c.open[:len(c.open)-1]
	s.at = -1
}

func (s *slab) region(index int) region {
	size := classBytes(s.class)
	from := uint64(index) * size
	return region{base: s.mapping[from : from+size : from+size], slab: s, index: index}
}

func (s *slab) unmap() {
	// It fails only for arguments that are not a mapping.
	_ = unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(s.mapping)), uintptr(len(s.mapping)))
	s.mapping = nil
}

// mapAnonymous maps zeroes, over an existing mapping unless that is nil. No
// memory is committed for them, and huge pages are disabled: with huge pages,
// the first byte that a creature writes would cost two megabytes.
func mapAnonymous(over []byte, length uintptr) ([]byte, error) {
	at, flags := unsafe.Pointer(nil), unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE
	if over != nil {
		at, flags = unsafe.Pointer(unsafe.SliceData(over)), flags|unix.MAP_FIXED
	}
	p, err := unix.MmapPtr(-1, 0, at, length, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return nil, err
	}
	b := unsafe.Slice((*byte)(p), length)
	_ = unix.Madvise(b, unix.MADV_NOHUGEPAGE) // fails on kernels without huge pages
	return b, nil
}

// discard returns the pages of b to the system. Their content is then again
// that of the mapping: zero, or the image.
func discard(b []byte) bool {
	return len(b) == 0 || unix.Madvise(b, unix.MADV_DONTNEED) == nil
}
