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
	if l.steps++; l.steps%stepsPerLook == 0 {
		return l.look()
	}
	return !l.over
}

// look is goOn for a step that may take long.
func (l *limit) look() bool {
	l.over = l.over || time.Now().After(l.end)
	return !l.over
}
