package host

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium/abi"
)

// handleRest is the minimum time that an instance keeps its handle without a
// turn; the maximum is twice as long.
const handleRest = time.Second

// keptAfterStart is how many handles there may be before an instance drops its handle right after
// the start of its creature. Large recipes start thousands of creatures within a second, most of
// which then wait for something to do.
const keptAfterStart = 1000

// A handle is the function creature_handle of an instance, ready to be called.
// It includes the stack of the call, 12 KB in all: more than the rest of a
// small creature. So it is made when a turn begins without it, which takes two
// microseconds, and dropped when the instance has had no turn for a while.
type handle struct {
	function atomic.Pointer[function]
	ran      atomic.Bool // since the last sweep
	place    int         // in handles.kept, from 1 on; 0 for none; guarded by handles.mu
}

// handles tracks which instances have a handle. While there are any, a
// goroutine sweeps them.
type handles struct {
	mu       sync.Mutex
	kept     []*Instance
	sweeping bool // the goroutine runs
	closed   bool

	rest   time.Duration // between two sweeps
	quit   chan struct{}
	sweeps sync.WaitGroup
}

func newHandles() *handles { return &handles{rest: handleRest, quit: make(chan struct{})} }

// handleOf returns the function creature_handle of an instance that is not
// closed, for a delivery of the given kind. It takes no lock if the instance has its handle.
func (h *handles) handleOf(i *Instance, kind abi.Kind) function {
	if !i.handle.ran.Load() {
		i.handle.ran.Store(true)
	}
	if f := i.handle.function.Load(); f != nil {
		return *f
	}
	f := i.guest.function(abi.ExportHandle)
	h.mu.Lock()
	defer h.mu.Unlock()
	if kind == abi.KindStart && len(h.kept) >= keptAfterStart {
		return f
	}
	i.handle.function.Store(&f)
	h.kept = append(h.kept, i)
	i.handle.place = len(h.kept)
	if !h.sweeping && !h.closed {
		h.sweeping = true
		h.sweeps.Go(h.run)
	}
	return f
}

// drop takes the handle from an instance. A running call is not disturbed.
// Calling drop twice is harmless.
func (h *handles) drop(i *Instance) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i.handle.place > 0 {
		h.remove(i)
	}
}

func (h *handles) remove(i *Instance) {
	end := len(h.kept)
	last := h.kept[end-1]
	h.kept[i.handle.place-1], last.handle.place = last, i.handle.place
	h.kept[end-1], i.handle.place = nil, 0
	h.kept = h.kept[:end-1]
	i.handle.function.Store(nil)
}

// run sweeps until no instance has a handle.
func (h *handles) run() {
	tick := time.NewTicker(h.rest)
	defer tick.Stop()
	for {
		select {
		case <-h.quit:
			return
		case <-tick.C:
			if h.sweep() {
				return
			}
		}
	}
}

// sweep drops the handles of instances that have not run since the last sweep.
// It reports whether no handle is left.
func (h *handles) sweep() (last bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n := len(h.kept) - 1; n >= 0; n-- { // backwards, because remove fills the gap from the end
		if i := h.kept[n]; !i.handle.ran.Swap(false) {
			h.remove(i)
		}
	}
	if len(h.kept) == 0 {
		h.kept, h.sweeping = nil, false
	}
	return !h.sweeping
}

// close ends the sweeping and waits for it.
func (h *handles) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	close(h.quit)
	h.sweeps.Wait()
}
