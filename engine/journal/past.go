package journal

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/seed47132306/terrarium/abi"
)

// Rewinder is implemented by a [Storage], and by other readers of a session directory,
// that know the graphs of earlier times.
type Rewinder interface {
	Chronicle
	// RowsAt returns the creatures, channels, edges and output wires of a session, live or
	// ended, as they were at a mark in what it wrote. For a mark before its first record,
	// it returns them as they were after that record. A record that the mark divides counts
	// as not written. The error is unsupported if the session does not record these rows:
	// an older program wrote it, or history has been pruned since. It may be called by any
	// goroutine.
	RowsAt(ctx context.Context, session SessionID, at Mark) (SavedGraph, error)
}

// PastSession is a session that was live at a cursor, and how much it had written.
type PastSession struct {
	SessionInfo
	At Mark
}

// LiveAt lists the sessions that were live at the cursor, oldest first. list is the
// catalogue of the directory, oldest first. A cursor of another directory is not_found.
//
// All sessions of a cut begin at once: if the cursor is in one of them, the others have
// begun as well.
func (c EventCursor) LiveAt(list []SessionInfo) ([]PastSession, error) {
	at, err := ParseCursor(c)
	if err != nil {
		return nil, err
	}
	through, err := at.through(list)
	if err != nil {
		return nil, err
	}
	marks, over := make([]*Mark, len(list)), map[SessionID]bool{}
	for i := range list {
		if mark, marked := at.Marks[list[i].Session]; marked && !mark.IsZero() {
			marks[i] = &mark
		} else if !marked && i <= through {
			marks[i] = &Mark{Since: math.MaxInt64}
		}
		if marks[i] != nil {
			for _, parent := range list[i].Parents {
				over[parent] = true
			}
		}
	}
	var live []PastSession
	for i := range list {
		if marks[i] == nil {
			for _, parent := range list[i].Parents {
				if over[parent] && list[i].MadeBy != CutFork {
					marks[i] = &Mark{}
				}
			}
		}
		if marks[i] != nil && !over[list[i].Session] {
			live = append(live, PastSession{list[i], *marks[i]})
		}
	}
	return live, nil
}

// GraphsAt returns the graphs of a directory as they were at a cursor, oldest first: those
// with members or channels, of sessions that only selects; nil selects all. The second
// result says which could not be determined.
func GraphsAt(ctx context.Context, from Rewinder, at EventCursor, only func(*SessionInfo) bool) (graphs []SavedGraph, problems []error, err error) {
	list, err := from.Catalogue(ctx)
	if err != nil {
		return nil, nil, err
	}
	live, err := at.LiveAt(list)
	if err != nil {
		return nil, nil, err
	}
	for i := range live {
		if only != nil && !only(&live[i].SessionInfo) {
			continue
		}
		g, err := from.RowsAt(ctx, live[i].Session, live[i].At)
		switch {
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case err != nil:
			problems = append(problems, err)
		case len(g.Creatures)+len(g.Channels) > 0:
			graphs = append(graphs, g)
		}
	}
	return graphs, problems, nil
}

// LineOf returns a session and its ancestors. list is the catalogue of the directory, oldest
// first.
func LineOf(list []SessionInfo, session SessionID) map[SessionID]bool {
	line := map[SessionID]bool{session: true}
	for i := range slices.Backward(list) { // children are younger than their parents
		if line[list[i].Session] {
			for _, parent := range list[i].Parents {
				line[parent] = true
			}
		}
	}
	return line
}

// ParseMoment reads a moment: a cursor, or a time in the form of RFC 3339, which
// stands for the cursor after everything that happened up to then. list is the catalogue
// of the directory, oldest first.
func ParseMoment(text string, list []SessionInfo) (EventCursor, error) {
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		first, last := time.Unix(0, 0), time.Unix(0, math.MaxInt64) // that nanoseconds can express
		switch {
		case at.Before(first):
			at = first
		case at.After(last):
			at = last
		}
		return CursorAt(list, at.UnixNano()), nil
	}
	if _, err := ParseCursor(EventCursor(text)); err != nil { // whose message would say less
		return "", &abi.Error{
			Code: abi.InvalidArgument, Op: "topology", Message: "this is neither a cursor of events nor a time",
			Remedy: "use the cursor of an event, or a time such as 2006-01-02T15:04:05Z",
		}
	}
	return EventCursor(text), nil
}
