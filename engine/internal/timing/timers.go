// Package timing calls functions when it is time, and measures rates.
//
// A timer is set until its function is called or it is stopped, and never is again. It is
// taken out of the heap before its function is called, so stopping it from then on changes
// nothing. What is due at the same time is called in no certain order.
package timing

import (
	"container/heap"
	"sync"
	"time"
)

// clock is an [engine.Clock].
type clock interface {
	Now() time.Time
	Timer(d time.Duration) (c <-chan time.Time, stop func())
}

// Real is the clock of the machine.
type Real struct{}

// Now is the time.
func (Real) Now() time.Time { return time.Now() }

// Timer returns a channel on which the time is sent once after d, and a function that
// gives the timer up.
func (Real) Timer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// Timers calls functions at certain times, one after the other, from one
// goroutine.
type Timers struct {
	clock clock
	mu    sync.Mutex
	heap  timerHeap
	news  chan struct{} // holds a token when there is an earlier timer
	done  chan struct{} // closed by Close
}

// Timer is one function to be called.
type Timer struct {
	at    time.Time
	f     func()
	index int // in the heap; -1 when it is not in it any more
}

// Call calls the function of a timer that [Timers.Due] has taken out.
func (x *Timer) Call() { x.f() }

// New returns timers of which none is set.
func New(clock clock) *Timers {
	return &Timers{clock: clock, news: make(chan struct{}, 1), done: make(chan struct{})}
}

// After has f called in d; see [Timers.At].
func (t *Timers) After(d time.Duration, f func()) *Timer { return t.At(t.clock.Now().Add(d), f) }

// At has f called at a time, unless the timer is stopped or the timers are
// closed before. f must not block.
func (t *Timers) At(at time.Time, f func()) *Timer {
	x := &Timer{at: at, f: f}
	t.mu.Lock()
	heap.Push(&t.heap, x)
	first := x.index == 0
	t.mu.Unlock()
	if first {
		select {
		case t.news <- struct{}{}:
		default:
		}
	}
	return x
}

// Stop gives a timer up, if there is one. Its function may be running already.
func (t *Timers) Stop(x *Timer) {
	if x == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if x.index >= 0 {
		heap.Remove(&t.heap, x.index)
	}
}

// Run calls what is due until Close is called.
func (t *Timers) Run() {
	for {
		due, wait := t.Due()
		for _, x := range due {
			x.Call()
		}
		if !t.sleep(wait) {
			return
		}
	}
}

// sleep waits for the next timer or for news. It reports false once the timers
// are closed.
func (t *Timers) sleep(wait time.Duration) bool {
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

// Due takes out what is due, and says how long it is until the next; zero when
// there is none.
func (t *Timers) Due() (due []*Timer, wait time.Duration) {
	now := t.clock.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.heap) > 0 {
		if wait = t.heap[0].at.Sub(now); wait > 0 {
			return due, wait
		}
		due = append(due, heap.Pop(&t.heap).(*Timer))
	}
	return due, 0
}

// Close ends Run, and nothing is called any more. It is called once.
func (t *Timers) Close() { close(t.done) }

type timerHeap []*Timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	t := x.(*Timer)
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
