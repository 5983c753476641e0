package connector

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Clock tells connectors the time. Its methods may be called from any goroutine.
type Clock interface {
	Now() time.Time
	// Until waits for a time. It returns the cause of ctx if that ends first. If it notices that
	// the clock was set back meanwhile, it returns early, without an error.
	Until(ctx context.Context, at time.Time) error
}

// Timed marks connectors that work only at certain times of the clock, such as schedules.
// With a [Manual] clock, moving the time waits for them.
type Timed interface{ Timed() }

// Steps is the clock of an engine that uses the clock of the machine.
type Steps struct {
	Clock interface {
		Now() time.Time
		Timer(d time.Duration) (<-chan time.Time, func())
	}
}

// maxStep bounds one wait, so that a change of the clock, or a suspension of the machine,
// is noticed soon.
const maxStep = time.Minute

// Now implements [Clock].
func (s Steps) Now() time.Time { return s.Clock.Now() }

// Until implements [Clock].
func (s Steps) Until(ctx context.Context, at time.Time) error {
	for now := s.Clock.Now(); ; {
		wait := at.Sub(now)
		if wait <= 0 {
			return nil
		}
		fired, stop := s.Clock.Timer(min(wait, maxStep))
		select {
		case <-fired:
		case <-ctx.Done():
			stop()
			return context.Cause(ctx)
		}
		former := now
		// Without Round, times of the machine are compared by a clock that cannot be set.
		if now = s.Clock.Now(); now.Round(0).Before(former.Round(0)) {
			return nil
		}
	}
}

// Manual is the clock of connectors while the caller moves the time. It knows when each [Timed]
// connector waits for a time, so that the caller can move from one such time to the next.
type Manual struct {
	now func() time.Time

	mu      sync.Mutex
	changed *sync.Cond
	busy    int // Timed connectors that have begun and wait for no time
	waiting []*waiting
}

type waiting struct {
	since, at time.Time
	fired     chan struct{}
	timed     int // 1 for a Timed connector
}

// NewManual returns a clock that shows the time of now.
func NewManual(now func() time.Time) *Manual {
	m := &Manual{now: now}
	m.changed = sync.NewCond(&m.mu)
	return m
}

// Now implements [Clock].
func (m *Manual) Now() time.Time { return m.now() }

// Begin notes that a [Timed] connector starts, and End that it has ended.
func (m *Manual) Begin() { m.add(1) }

// End is the other half of Begin.
func (m *Manual) End() { m.add(-1) }

func (m *Manual) add(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy += n
	m.changed.Broadcast()
}

// Until implements [Clock].
func (m *Manual) Until(ctx context.Context, at time.Time) error { return m.wait(ctx, at, 0) }

// TimedUntil is Until for a [Timed] connector that has begun.
func (m *Manual) TimedUntil(ctx context.Context, at time.Time) error { return m.wait(ctx, at, 1) }

func (m *Manual) wait(ctx context.Context, at time.Time, timed int) error {
	w := &waiting{at: at, fired: make(chan struct{}), timed: timed}
	m.mu.Lock()
	w.since = m.now()
	if !at.After(w.since) {
		m.mu.Unlock()
		return nil
	}
	m.waiting = append(m.waiting, w)
	m.busy -= timed
	m.changed.Broadcast()
	m.mu.Unlock()
	select {
	case <-w.fired: // which counts as busy again
		return nil
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.Index(m.waiting, w); i >= 0 {
		m.waiting = slices.Delete(m.waiting, i, i+1)
		m.busy += timed
	}
	return context.Cause(ctx)
}

// Next returns the earliest time that a connector waits for. It first waits until all
// [Timed] connectors wait for a time, but no longer than bound in real time. A nil Manual
// has no such time.
func (m *Manual) Next(bound time.Duration) (at time.Time, ok bool) {
	if m == nil {
		return at, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settle(bound)
	for _, w := range m.waiting {
		if !ok || w.at.Before(at) {
			at, ok = w.at, true
		}
	}
	return at, ok
}

// Fire lets the connectors whose time has come continue, and those that began to wait at a later
// time, before the clock was set back. Then it waits as Next does.
func (m *Manual) Fire(bound time.Duration) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting = slices.DeleteFunc(m.waiting, func(w *waiting) bool {
		now := m.now()
		due := !w.at.After(now) || now.Before(w.since)
		if due {
			m.busy += w.timed
			close(w.fired)
		}
		return due
	})
	m.settle(bound)
}

// settle waits until no connector is busy, or until the bound has passed. It releases mu
// meanwhile, as [sync.Cond.Wait] does.
func (m *Manual) settle(bound time.Duration) {
	if m.busy == 0 {
		return
	}
	late := false
	timer := time.AfterFunc(bound, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		late = true
		m.changed.Broadcast()
	})
	defer timer.Stop()
	for m.busy > 0 && !late {
		m.changed.Wait()
	}
}
