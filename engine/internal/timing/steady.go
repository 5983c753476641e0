package timing

import (
	"sync"
	"sync/atomic"
	"time"
)

// latest is the last time that a Steady believes. Behind it there is room for more events,
// each a nanosecond later than the one before, than a log can have.
var latest = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()

// Steady tells the time of a clock that may be set while it is in use, without ever going
// back: while the clock is behind a time that callers have got, time passes from there on as
// fast as it really does. So a timer is never later than requested, however the clock is
// set, and events stay in order.
type Steady struct {
	clock clock

	readings atomic.Uint64 // that have been used; guarded by mu, and read without it

	mu   sync.Mutex
	read time.Time // the last reading of the clock that was used
	told int64     // the last time told, nanoseconds since 1970
}

// NewSteady returns a clock that begins at the time of another one.
func NewSteady(of clock) *Steady { return &Steady{clock: of, read: of.Now()} }

// Now is the time. It has no monotonic part.
func (s *Steady) Now() time.Time { return time.Unix(0, s.Nanoseconds()) }

// Nanoseconds is the time since 1970.
func (s *Steady) Nanoseconds() int64 {
	before := s.readings.Load()
	now := s.clock.Now() // the code of another package, so without the lock
	s.mu.Lock()
	defer s.mu.Unlock()
	// If the readings have a monotonic part, their difference is the time that has passed.
	passed := now.Sub(s.read)
	if passed <= 0 && s.readings.Load() != before {
		return s.told // another caller has read the clock later
	}
	s.readings.Add(1)
	s.read = now
	if passed > 0 {
		s.told = believable(s.told, After(s.told, int64(passed)))
	}
	if year := now.Year(); 1970 <= year && year < 2200 { // nanoseconds cannot express any year
		s.told = believable(s.told, now.UnixNano())
	}
	return s.told
}

// believable is the later of two times, unless that is nonsense.
func believable(told, at int64) int64 {
	if at > latest {
		return told
	}
	return max(told, at)
}

// Begin makes the clock tell no time before at.
func (s *Steady) Begin(at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = believable(s.told, at)
}

// Given is the time of the clock itself.
func (s *Steady) Given() time.Time { return s.clock.Now() }

// Timer is that of the clock.
func (s *Steady) Timer(d time.Duration) (<-chan time.Time, func()) { return s.clock.Timer(d) }
