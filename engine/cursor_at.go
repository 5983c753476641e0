package engine

import "slices"

// CursorAt is the cursor behind everything that happened up to a time, in
// nanoseconds since 1970. sessions are those of the directory, eldest first.
func CursorAt(sessions []SessionInfo, at int64) EventCursor {
	p := positionAt(sessions, at, at)
	return p.cursor()
}

// CursorBehind is a cursor behind an event that a session wrote, and behind all
// that happened before it. sessions are those of the directory, eldest first. What
// others logged in the very same nanosecond comes, perhaps again, behind it.
func CursorBehind(sessions []SessionInfo, session SessionID, ev *Event) EventCursor {
	p := positionAt(sessions, ev.Time, ev.Time-1)
	if _, begun := p.marks[session]; begun {
		p.marks[session] = Mark{Event: ev.ID, Since: ev.Time - 1}
	}
	return p.cursor()
}

// positionAt marks every session that had begun at a time and not ended, behind
// what it had written up to since.
func positionAt(sessions []SessionInfo, at, since int64) position {
	p := position{marks: map[SessionID]Mark{}}
	over := map[SessionID]bool{}
	for _, i := range slices.Backward(sessions) {
		begun := i.Created <= at
		if p.through == "" && begun {
			p.through = i.Session
		}
		if p.through != "" && !over[i.Session] {
			p.marks[i.Session] = Mark{Since: since}
		}
		if begun { // whatever ended its parents was before
			for _, parent := range i.Parents {
				over[parent] = true
			}
		}
	}
	return p
}
