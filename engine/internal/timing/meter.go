package timing

import (
	"math"
	"time"
)

// Meter measures a rate. It records the time at which the counted items would
// have been used up at the allowed rate.
type Meter struct{ until int64 }

// Count counts n items; rate items are allowed per second.
func (m *Meter) Count(now, n, rate int64) {
	m.until = max(m.until, now) + int64(float64(n)/float64(max(rate, 1))*float64(time.Second))
}

// Wait returns how long to wait until the rate is within the limit; grace is
// the allowed burst, as a duration.
func (m *Meter) Wait(now int64, grace time.Duration) time.Duration {
	return max(0, time.Duration(m.until-now)-grace)
}

// After returns a time that is d nanoseconds after another, or the latest time there is.
func After(at, d int64) int64 {
	if d > math.MaxInt64-max(at, 0) {
		return math.MaxInt64
	}
	return at + d
}

// NextDue returns the first time after due, by whole periods, that is later than now.
func NextDue(due, period, now int64) int64 {
	missed := max(0, now-due) / period
	return After(due+missed*period, period)
}
