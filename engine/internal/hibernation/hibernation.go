// Package hibernation decides when idle creatures hibernate: after a while, or sooner if the
// process has little memory left.
package hibernation

import (
	"cmp"
	"math"
	"runtime/metrics"
	"time"
)

// DefaultAfter is how long creatures are idle before they hibernate.
const DefaultAfter = 5 * time.Minute

const (
	// pressed is how often the memory of the process is measured, and how long creatures
	// are idle before they hibernate while there is little left.
	pressed = time.Second
	// roomPart is the divisor of the bound that yields the part that stays free.
	roomPart = 10
)

// Schedule says when to sweep. A sweep makes those creatures hibernate that have had no turn
// since the last one.
type Schedule struct {
	every time.Duration // between two ticks; 0: never
	ticks int           // between two sweeps if there is enough memory; 0: no sweep
	most  int64         // bytes that the process may use before memory is short; 0: any number
	used  func() int64

	since int // ticks since the last sweep
}

// New returns a schedule. Zero for after means [DefaultAfter], and negative means never.
// Zero for bound, in bytes of the process, means the memory limit of the Go runtime, if it
// has one, and negative means no bound.
func New(after time.Duration, bound int64) *Schedule {
	after = max(0, cmp.Or(after, DefaultAfter))
	if bound == 0 {
		if bound = goLimit(); bound == math.MaxInt64 {
			bound = -1
		}
	}
	s := &Schedule{every: after, used: Used}
	if bound > 0 {
		s.most = bound - bound/roomPart
		if s.every = pressed; after > 0 {
			s.every = min(after, pressed)
		}
	}
	if after > 0 {
		s.ticks = int(max(1, after/s.every))
	}
	return s
}

// Run calls sweep whenever it is time to, until quit is closed.
func (s *Schedule) Run(quit <-chan struct{}, sweep func()) {
	if s.every == 0 {
		return
	}
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		select {
		case <-quit:
			return
		case <-tick.C:
			if s.due() {
				sweep()
			}
		}
	}
}

// due counts a tick, and reports whether it is time to sweep.
func (s *Schedule) due() bool {
	s.since++
	if s.since != s.ticks && (s.most == 0 || s.used() <= s.most) {
		return false
	}
	s.since = 0
	return true
}

// Used returns how many bytes of memory the process uses: those that belong to it alone, if
// the system reports them. Otherwise it returns those of the Go runtime, which include the
// linear memories on systems other than Linux.
func Used() int64 {
	if n := private(); n > 0 {
		return n
	}
	return sample("/memory/classes/total:bytes") - sample("/memory/classes/heap/released:bytes")
}

// goLimit is the memory limit of the Go runtime, from GOMEMLIMIT or the program.
func goLimit() int64 { return sample("/gc/gomemlimit:bytes") }

func sample(name string) int64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}
