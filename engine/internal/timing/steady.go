package timing

import (
	"sync"
	"sync/atomic"
	"time"
)

// latest is the last time that a Steady believes. After it, there are enough nanoseconds
// for more events than a log can have, each one nanosecond later than the one before.
var latest = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()

// Steady tells the time of a clock that may be set while it is in use, but never goes
// back. While the clock is behind a time that a caller has got, Steady continues from
// that time, as fast as time really passes. So a timer never fires later than requested,
// however the clock is set, and events stay in order.
type Steady struct {
	clock  Clock
	manual bool

	readings atomic.Uint64 // that have been used; guarded by mu, and read without it

	mu   sync.Mutex
	read time.Time // the last reading of the clock that was used
	told int64     // the time told then, nanoseconds since 1970

	// since is how much time has passed since a reading, for a clock that has monotonic ones, or
	// nil. It takes half as long as a reading, which has two parts.
	since  func(time.Time) time.Duration
	recent atomic.Pointer[reading]
}

// reading is a reading of the clock, with the time that callers got for it.
type reading struct {
	at   time.Time
	told int64
}

// precision is how long the clock may have been set ahead before that is noticed.
const precision = time.Millisecond

// NewSteady returns a clock that begins at the time of another one. If that one is
// manual, every move ahead counts as time that passes.
func NewSteady(of Clock, manual bool) *Steady {
	s := &Steady{clock: of, manual: manual, read: of.Now()}
	if real, ok := of.(Real); ok {
		s.since = real.Since
	}
	return s
}

// leap is how far the clock must jump ahead, without proof that the time has passed, for
// the jump to count as a change of the clock.
const leap = time.Minute

// passed is how much time has passed between two readings. If both have a monotonic part, it
// is their difference. Otherwise the clock may have been set between them.
func (s *Steady) passed(from, to time.Time) time.Duration {
	d := to.Sub(from)
	if d >= leap && !s.manual && !(isMonotonic(from) && isMonotonic(to)) {
		return 0
	}
	return max(d, 0)
}

// isMonotonic reports whether a reading has a monotonic part, which Round removes.
func isMonotonic(reading time.Time) bool { return reading != reading.Round(0) }

// Now is the time. It has no monotonic part.
func (s *Steady) Now() time.Time { return time.Unix(0, s.Nanoseconds()) }

// Nanoseconds is the time since 1970.
func (s *Steady) Nanoseconds() int64 {
	if r := s.recent.Load(); r != nil {
		if d := s.since(r.at); 0 <= d && d < precision {
			return r.told + int64(d)
		}
	}
	before := s.readings.Load()
	now := s.clock.Now() // the code of another package, so without the lock
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.read) <= 0 && s.readings.Load() != before {
		return s.told // another caller has read the clock later
	}
	s.readings.Add(1)
	s.told = believable(s.told, After(s.told, int64(s.passed(s.read, now))))
	s.read = now
	if seconds := now.Unix(); 0 <= seconds && seconds < latest/int64(time.Second) { // nanoseconds cannot express any year
		s.told = believable(s.told, now.UnixNano())
	}
	s.remember()
	return s.told
}

// remember keeps the last reading for the calls that come soon.
func (s *Steady) remember() {
	if s.since != nil {
		s.recent.Store(&reading{s.read, s.told})
	}
}

// believable is the later of two times, unless that is nonsense.
func believable(told, at int64) int64 {
	if at > latest {
		return told
	}
	return max(told, at)
}

// Begin makes sure that the clock shows no time before at.
func (s *Steady) Begin(at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = believable(s.told, at)
	s.remember()
}

// Given is the time of the clock itself.
func (s *Steady) Given() time.Time { return s.clock.Now() }

// Timer is that of the clock.
func (s *Steady) Timer(d time.Duration) (<-chan time.Time, func()) { return s.clock.Timer(d) }
