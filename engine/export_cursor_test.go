package engine

// MakeCursor is the cursor of a position.
func MakeCursor(through SessionID, marks map[SessionID]Mark) EventCursor {
	p := position{through, marks}
	return p.cursor()
}

// RemakeCursor reads a cursor and writes it again.
func RemakeCursor(c EventCursor) (EventCursor, error) {
	p, err := parseCursor(c)
	return p.cursor(), err
}
