package engine

import (
	"container/heap"
	"sync"
	"time"
)

// Clock tells the time and waits. Its methods may be called from any
// goroutine.
type Clock interface {
	Now() time.Time
	// Timer returns a channel on which the time is sent once after d, and a
	// function that gives the timer up.
	Timer(d time.Duration) (c <-chan time.Time, stop func())
}

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) Timer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// timers calls functions at certain times, one after the other, from one
// goroutine.
type timers struct {
	clock Clock
	mu    sync.Mutex
	heap  timerHeap
	news  chan struct{} // holds a token when there is an earlier timer
	done  chan struct{} // closed by close
}

// timer is one function to be called.
type timer struct {
	at    time.Time
	f     func()
	index int // in the heap; -1 when it is not in it any more
}

func newTimers(clock Clock) *timers {
	return &timers{clock: clock, news: make(chan struct{}, 1), done: make(chan struct{})}
}

// after has f called in d; see at.
func (t *timers) after(d time.Duration, f func()) *timer { return t.at(t.clock.Now().Add(d), f) }

// at has f called at a time, unless the timer is stopped or the timers are
// closed before. f must not block.
func (t *timers) at(at time.Time, f func()) *timer {
	x := &timer{at: at, f: f}
	t.mu.Lock()
	heap.Push(&t.heap, x)
	first := x.index == 0
	t.mu.Unlock()
	if first {
		token(t.news)
	}
	return x
}

// stop gives a timer up, if there is one. Its function may be running already.
func (t *timers) stop(x *timer) {
	if x == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if x.index >= 0 {
		heap.Remove(&t.heap, x.index)
	}
}

// run calls what is due until close is called.
func (t *timers) run() {
	for {
		due, wait := t.due()
		for _, x := range due {
			x.f()
		}
		if !t.sleep(wait) {
			return
		}
	}
}

// sleep waits for the next timer or for news. It reports false once the timers
// are closed.
func (t *timers) sleep(wait time.Duration) bool {
	var fire <-chan time.Time
	if wait > 0 {
		c, stop := t.clock.Timer(wait)
		defer stop()
		fire = c
	}
	select {
	case <-fire:
	case <-t.news:
	case <-t.done:
		return false
	}
	return true
}

// due takes out what is due, and says how long it is until the next; zero when
// there is none.
func (t *timers) due() (due []*timer, wait time.Duration) {
	now := t.clock.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.heap) > 0 {
		if wait = t.heap[0].at.Sub(now); wait > 0 {
			return due, wait
		}
		due = append(due, heap.Pop(&t.heap).(*timer))
	}
	return due, 0
}

func (t *timers) close() { close(t.done) }

type timerHeap []*timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}
func (h *timerHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	x.index = -1
	return x
}

// backOff keeps a creature from running for a while. The caller holds the mu
// of its graph, or the creature is scheduled and in the caller's hands.
func (e *Engine) backOff(c *creature, d time.Duration) {
	c.backingOff = true
	e.idle.add(1) // a pending retry is not idle
	e.timers.after(d, func() {
		g := c.home.lock()
		if g == nil {
			return // removal has counted it off
		}
		var w waker
		if c.backingOff {
			c.backingOff = false
			c.wake(&w)
			e.idle.add(-1)
		}
		g.mu.Unlock()
		w.flush(e)
	})
}
