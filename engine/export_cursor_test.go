package engine

import "github.com/seed47132306/terrarium/engine/journal"

// MakeCursor returns the cursor of a position.
func MakeCursor(through journal.SessionID, marks map[journal.SessionID]journal.Mark) journal.EventCursor {
	p := journal.Position{Through: through, Marks: marks}
	return p.Cursor()
}

// RemakeCursor reads a cursor and writes it again.
func RemakeCursor(c journal.EventCursor) (journal.EventCursor, error) {
	p, err := journal.ParseCursor(c)
	return p.Cursor(), err
}
