package journal

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
)

// CursorAt returns the cursor after everything that happened up to a time, in
// nanoseconds since 1970. sessions are all sessions of the directory, oldest first.
func CursorAt(sessions []SessionInfo, at int64) EventCursor {
	p := positionAt(sessions, at, at)
	return p.Cursor()
}

// CursorBehind returns a cursor after an event that a session wrote, and after everything
// that happened before the event. sessions are all sessions of the directory, oldest first.
// Events that other sessions logged in the same nanosecond come after the cursor, perhaps a
// second time.
func CursorBehind(sessions []SessionInfo, session SessionID, ev *Event) EventCursor {
	p := positionAt(sessions, ev.Time, ev.Time-1)
	if _, begun := p.Marks[session]; begun {
		p.Marks[session] = Mark{Event: ev.ID, Since: ev.Time - 1}
	}
	return p.Cursor()
}

// positionAt marks every session that existed at a time, after what it had written up to
// since.
func positionAt(sessions []SessionInfo, at, since int64) Position {
	p := Position{Marks: map[SessionID]Mark{}}
	over := map[SessionID]bool{}
	for _, i := range slices.Backward(sessions) {
		begun := i.Created <= at
		if p.Through == "" && begun {
			p.Through = i.Session
		}
		if p.Through != "" && !over[i.Session] {
			p.Marks[i.Session] = Mark{Since: since}
		}
		if begun { // its parents had ended before
			for _, parent := range i.Parents {
				over[parent] = true
			}
		}
	}
	return p
}

// In returns the place of the cursor in the events that a session wrote. list is the
// catalogue of the directory, oldest first. The code of the error is not_found for a cursor
// of another directory, and invalid_argument for a cursor from before the session.
func (c EventCursor) In(list []SessionInfo, session SessionID) (Mark, error) {
	at, err := ParseCursor(c)
	if err != nil {
		return Mark{}, err
	}
	through, err := at.through(list)
	if err != nil {
		return Mark{}, err
	}
	own := slices.IndexFunc(list, func(i SessionInfo) bool { return i.Session == session })
	if own < 0 {
		return Mark{}, errtext.Gone("session", string(session))
	}
	mark, marked := at.Marks[session]
	switch {
	case marked && !mark.IsZero():
		return mark, nil
	case !marked && own <= through:
		return Mark{Since: math.MaxInt64}, nil
	}
	return Mark{}, beforeSession(&list[own])
}

// through returns the place in the catalogue of the youngest session that the position
// covers, or -1. A position of another directory is not_found.
func (p *Position) through(list []SessionInfo) (int, error) {
	age := make(map[SessionID]int, len(list))
	for i := range list {
		age[list[i].Session] = i
	}
	for marked := range p.Marks {
		if _, known := age[marked]; !known {
			return 0, foreignCursor("fork")
		}
	}
	if p.Through == "" {
		return -1, nil
	}
	through, known := age[p.Through]
	if !known {
		return 0, foreignCursor("fork")
	}
	return through, nil
}

// foreignCursor refuses a cursor that names unknown sessions.
func foreignCursor(op string) *abi.Error {
	return &abi.Error{
		Code: abi.NotFound, Op: op, Message: "the cursor belongs to another session directory",
		Remedy: "use the cursor of an event in this one, or begin with " + string(FromStart),
	}
}

// beforeSession refuses a cursor that is before the beginning of a session.
func beforeSession(info *SessionInfo) *abi.Error {
	err := &abi.Error{
		Code: abi.InvalidArgument, Op: "fork", Message: fmt.Sprintf("session %s had not begun yet at the cursor", info.Session),
		Remedy: "take a later cursor", IDs: map[string]string{"session": string(info.Session)},
	}
	var parents []string
	for _, p := range slices.Sorted(slices.Values(info.Parents)) {
		parents = append(parents, string(p))
	}
	if len(parents) > 0 {
		err.Remedy += ", or fork a session that it came from: " + strings.Join(parents, " or ")
	}
	return err
}
