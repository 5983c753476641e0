package lines

import "time"

// limit ends reading when its time is up. Looking at the clock costs more than
// a step, so it is done for one step of many.
type limit struct {
	end   time.Time
	steps uint
	over  bool
}

const stepsPerLook = 64

// goOn reports whether there is time for another step.
func (l *limit) goOn() bool {
	if l.steps++; l.steps%stepsPerLook == 0 && !l.over {
		l.over = time.Now().After(l.end)
	}
	return !l.over
}
