// Package timing calls functions at set times, and measures rates.
//
// A timer is set until its function is called or it is stopped, and is never
// set again. It is removed from the heap before its function is called;
// stopping it afterwards has no effect. Timers due at the same time are called
// in no particular order.
package timing

import (
	"container/heap"
	"sync"
	"time"
)

// Clock tells the time and waits. Its methods may be called from any goroutine.
type Clock interface {
	Now() time.Time
	// Timer returns a channel on which the time is sent once after d, and a
	// function that stops the timer.
	Timer(d time.Duration) (c <-chan time.Time, stop func())
}

// Real is the clock of the machine.
type Real struct{}

// Now is the time.
func (Real) Now() time.Time { return time.Now() }

// Since is how much time has passed since a reading.
func (Real) Since(reading time.Time) time.Duration { return time.Since(reading) }

// Timer returns a channel on which the time is sent once after d, and a
// function that stops the timer.
func (Real) Timer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// Timers calls functions at certain times, one after the other.
type Timers struct {
	clock Clock
	mu    sync.Mutex
	heap  timerHeap
	news  chan struct{} // holds a token when there is an earlier timer
	done  chan struct{} // closed by Close

	calling sync.Mutex // held while due functions are called
	called  uint64     // how many functions have been called; guarded by calling
}

// Timer is one function to be called.
type Timer struct {
	at    time.Time
	f     func()
	index int  // in the heap; -1 once removed
	pause bool // see AfterPause
}

// Call calls the function of a timer that [Timers.Due] has taken out.
func (x *Timer) Call() { x.f() }

// New returns Timers without any timer set.
func New(clock Clock) *Timers {
	return &Timers{clock: clock, news: make(chan struct{}, 1), done: make(chan struct{})}
}

// After calls f after d; see [Timers.At].
func (t *Timers) After(d time.Duration, f func()) *Timer { return t.At(t.clock.Now().Add(d), f) }

// AfterPause is After for the end of a pause in work that is under way, which
// [Timers.NextPause] finds.
func (t *Timers) AfterPause(d time.Duration, f func()) *Timer {
	return t.add(&Timer{at: t.clock.Now().Add(d), f: f, pause: true})
}

// Next returns when the next timer is due.
func (t *Timers) Next() (at time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.heap) == 0 {
		return at, false
	}
	return t.heap[0].at, true
}

// NextPause returns when the next pause ends.
func (t *Timers) NextPause() (at time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range t.heap {
		if x.pause && (!ok || x.at.Before(at)) {
			at, ok = x.at, true
		}
	}
	return at, ok
}

// At calls f at a time, unless the timer is stopped or the timers are closed
// before. f must not block.
func (t *Timers) At(at time.Time, f func()) *Timer { return t.add(&Timer{at: at, f: f}) }

func (t *Timers) add(x *Timer) *Timer {
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

// Stop stops a timer; x may be nil. The timer's function may already be
// running.
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

// Run calls due functions until Close is called.
func (t *Timers) Run() {
	for {
		wait, _ := t.CallDue()
		if !t.sleep(wait) {
			return
		}
	}
}

// CallDue calls the functions that are due, unless Close has been called. It returns the
// time until the next one, zero if there is none, and how many functions have been called
// since New. When it returns, no function that was due when it was called is still waiting
// or running.
func (t *Timers) CallDue() (wait time.Duration, called uint64) {
	t.calling.Lock()
	defer t.calling.Unlock()
	if t.closed() {
		return 0, t.called
	}
	due, wait := t.Due()
	for _, x := range due {
		if t.closed() {
			return 0, t.called
		}
		t.called++
		x.Call()
	}
	return wait, t.called
}

func (t *Timers) closed() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
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

// Due removes and returns the due timers, and the time until the next one;
// zero if there is none.
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

// Close ends Run, and waits for a function that is being called. No function is called
// afterwards. Close must be called only once, and not by such a function.
func (t *Timers) Close() {
	close(t.done)
	t.calling.Lock()
	defer t.calling.Unlock()
}

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
