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
	news  chan struct{} // there is an earlier timer, or done is closed
	done  chan struct{}
}

type timer struct {
	at time.Time
	f  func()
}

func newTimers(clock Clock) *timers {
	return &timers{clock: clock, news: make(chan struct{}, 1), done: make(chan struct{})}
}

// after has f called in d, unless the timers are closed before. f must not
// block.
func (t *timers) after(d time.Duration, f func()) {
	at := t.clock.Now().Add(d)
	t.mu.Lock()
	heap.Push(&t.heap, timer{at, f})
	t.mu.Unlock()
	select {
	case t.news <- struct{}{}:
	default:
	}
}

// run calls what is due until close is called.
func (t *timers) run() {
	for {
		due, wait := t.due()
		for _, f := range due {
			f()
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
func (t *timers) due() (fs []func(), wait time.Duration) {
	now := t.clock.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.heap) > 0 {
		if wait = t.heap[0].at.Sub(now); wait > 0 {
			return fs, wait
		}
		fs = append(fs, heap.Pop(&t.heap).(timer).f)
	}
	return fs, 0
}

func (t *timers) close() { close(t.done) }

type timerHeap []timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h timerHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *timerHeap) Push(x any)        { *h = append(*h, x.(timer)) }
func (h *timerHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = timer{}
	*h = old[:len(old)-1]
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
		w.flush(e.queue)
	})
}
