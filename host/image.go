package host

import (
	"sync"

	"github.com/seed47132306/terrarium/host/internal/memory"
	"github.com/tetratelabs/wazero/api"
)

// A startImage is an instance as the start function and _initialize of its
// module have left it, for all other instances to begin with: their memory shows
// the same pages until they write to them, and nothing of the guest runs before
// creature_init. An instance cannot tell how it began.
//
// That holds because in these functions a guest gets the same of the host
// whoever it becomes (ABI-P9), because no image is made of an instance that asked
// for anything else or came upon a limit, and because none is used by an instance
// that would have come upon one. What they cost is charged as if they had run.
//
// The first instance that can be an image becomes one. It is given back with the
// last reference to the code, or with the host.
type startImage struct {
	memory  *memory.Image
	globals []uint64 // as in static.globals

	fuel      int64 // used
	calls     int64 // hostcalls
	stack     int64 // the limit that was enough
	monotonic int64 // the clock
}

// imageFrom is from how much on an image is worth two of the process's some
// 65,000 mappings for each instance: this much fuel in the functions that need
// not run, or as many bytes of data that need not be copied.
const imageFrom = 1 << 16

// maxImage is the largest memory that an image is made of, in bytes. An image
// stays as long as its code, also when there is no instance.
const maxImage = 64 << 20

// imageSlot is where a module keeps its image.
type imageSlot struct {
	mu    sync.Mutex
	image *startImage // fixed once it is there
	never bool        // there is none, and will not be
}

// close gives back the image and keeps another from being made.
func (s *imageSlot) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.image != nil {
		s.image.memory.Close()
	}
	s.image, s.never = nil, true
}

// fitting returns the image if instances with these limits may begin with it.
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
// succeeded, if there can be one and there is none yet.
func (s *imageSlot) keep(i *Instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &i.call
	switch {
	case s.image != nil || s.never:
		return
	case c.memory.Refused || c.text != "" || c.count > c.bounds.calls || c.charged() > c.budget.Limit:
		return // with other limits it may have gone on differently
	case c.personal || len(c.memory.Bytes) > maxImage || !i.compiled.worthImage(c):
		s.never = true
		return
	}
	memory, err := memory.NewImage(c.memory.Pool, c.memory.Bytes)
	if err != nil {
		return // the next instance may have more luck
	}
	s.image = &startImage{
		memory: memory, fuel: c.charged(), calls: c.count, stack: c.bounds.stack, monotonic: c.wasi.monotonic,
	}
	for _, g := range i.compiled.static.globals {
		s.image.globals = append(s.image.globals, i.module.ExportedGlobal(g.export).Get())
	}
	c.memory.Adopt(memory)
}

// worthImage reports whether beginning with an image saves more than it costs.
func (c *compiled) worthImage(after *call) bool {
	return after.charged() >= c.host.imageFrom || c.static.bytes >= c.host.imageFrom
}

// resume makes an instance, whose memory shows the image, what the instance was
// of which it was made.
func (i *Instance) resume(m *startImage) {
	for n, g := range i.compiled.static.globals {
		i.module.ExportedGlobal(g.export).(api.MutableGlobal).Set(m.globals[n])
	}
	c := &i.call
	c.charge(m.fuel)
	c.count, c.wasi.monotonic = m.calls, m.monotonic
}
