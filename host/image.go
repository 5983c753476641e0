package host

import (
	"sync"

	"github.com/seed47132306/terrarium/host/internal/memory"
)

// A startImage is a snapshot of an instance after the start function and
// _initialize of its module. All other instances start from it: their memory
// shares its pages until they write to them, and no guest code runs before
// creature_init. An instance cannot tell whether it started from an image.
//
// That holds because the host gives a guest the same results in these
// functions in every instance (ABI-P9), because no image is made of an
// instance that used anything else or reached a limit, and because an instance
// that would have reached a limit does not use an image. The cost of the
// functions is charged as if they had run.
//
// The first suitable instance becomes the image. It is released with the last
// reference to the code, or with the host.
type startImage struct {
	memory  *memory.Image
	globals []uint64 // as in static.globals

	fuel      int64 // used
	calls     int64 // hostcalls
	stack     int64 // the limit that was enough
	monotonic int64 // the clock
}

// imageFrom is the threshold above which an image is worth two of the
// process's some 65,000 mappings for each instance: this much fuel saved in
// the functions that need not run, or as many bytes of data that need not be
// copied.
const imageFrom = 1 << 16

// maxImage is the largest memory of an image, in bytes. An image lives as long
// as its code, even if there is no instance.
const maxImage = 64 << 20

// imageSlot holds the image of a module.
type imageSlot struct {
	mu    sync.Mutex
	image *startImage // never changes once set
	never bool        // there is no image and there will be none
}

// close releases the image and prevents another from being made.
func (s *imageSlot) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.image != nil {
		s.image.memory.Close()
	}
	s.image, s.never = nil, true
}

// fitting returns the image if instances with these limits may start from it.
func (s *imageSlot) fitting(b *bounds) *startImage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.image; m != nil && m.memory.Size() <= uint64(b.memory) && m.fuel <= b.fuel &&
		m.calls <= b.calls && m.stack <= b.stack {
		return m
	}
	return nil
}

// keep makes an image of an instance in which start and _initialize have just
// succeeded, if an image is possible and there is none yet.
func (s *imageSlot) keep(i *Instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &i.call
	switch {
	case s.image != nil || s.never:
		return
	case c.memory.Refused || c.text != "" || c.count > c.bounds.calls || c.charged() > c.budget.Limit:
		return // with other limits the functions may have behaved differently
	case c.personal || len(c.memory.Bytes) > maxImage || !i.compiled.worthImage(c):
		s.never = true
		return
	}
	memory, err := memory.NewImage(c.memory.Pool, c.memory.Bytes)
	if err != nil {
		return // a later instance may succeed
	}
	s.image = &startImage{
		memory: memory, fuel: c.charged(), calls: c.count, stack: c.bounds.stack, monotonic: c.wasi.monotonic,
	}
	for _, g := range i.compiled.static.globals {
		s.image.globals = append(s.image.globals, i.guest.counter(g.export).Get())
	}
	c.memory.Adopt(memory)
}

// worthImage reports whether starting from an image saves more than it costs.
func (c *compiled) worthImage(after *call) bool {
	return after.charged() >= c.host.imageFrom || c.static.bytes >= c.host.imageFrom
}

// resume restores the rest of the image's state in an instance whose memory
// already shows the image.
func (i *Instance) resume(m *startImage) {
	for n, g := range i.compiled.static.globals {
		i.guest.counter(g.export).Set(m.globals[n])
	}
	c := &i.call
	c.charge(m.fuel)
	c.count, c.wasi.monotonic = m.calls, m.monotonic
}
