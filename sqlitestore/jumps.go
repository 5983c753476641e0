package sqlitestore

import "time"

const (
	// clockSet is how far a clock must deviate from the time that has passed to count as
	// set. Small corrections are made all the time.
	clockSet = time.Minute
	// clockProven is how long the clock must have run without being set before its time is
	// believed. A clock that was wrong is usually corrected within minutes.
	clockProven = time.Hour
)

// jumps detects that the clock has been set.
type jumps struct {
	read   bool
	wall   int64         // when it was last read
	passed time.Duration // the same by a clock that is never set
	set    bool
	at     time.Duration // when it was last set, by the latter clock
}

// calm reports whether the clock has not been set for a while. wall is the clock's time,
// and passed how much time has really passed since some fixed moment.
func (j *jumps) calm(wall int64, passed time.Duration) bool {
	if moved := time.Duration(wall-j.wall) - (passed - j.passed); j.read && (moved > clockSet || moved < -clockSet) {
		j.set, j.at = true, passed
	}
	j.read, j.wall, j.passed = true, wall, passed
	return !j.set || passed-j.at >= clockProven
}
