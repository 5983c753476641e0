package timing

import "time"

// Meter measures a rate. It says until when what was counted would have taken, had it
// come at that rate.
type Meter struct{ until int64 }

// Count counts n of something of which so many are allowed in a second.
func (m *Meter) Count(now, n, rate int64) {
	m.until = max(m.until, now) + int64(float64(n)/float64(max(rate, 1))*float64(time.Second))
}

// Wait is how long it takes until no more has come than is allowed; grace is how much
// may come at once.
func (m *Meter) Wait(now int64, grace time.Duration) time.Duration {
	return max(0, time.Duration(m.until-now)-grace)
}
