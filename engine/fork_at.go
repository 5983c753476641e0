package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// ForkAt is [Engine.Fork] of a session as it was at a cursor, and answers also the
// last event that the fork has. What comes behind the cursor is in neither the
// history of the fork nor what its creatures hold, and a turn of which the cursor
// has only a part has not happened.
func (e *Engine) ForkAt(ctx context.Context, graphOrSession string, at EventCursor, dir string) (SessionID, EventID, error) {
	session, x, err := e.exporter("fork", graphOrSession)
	if err != nil {
		return "", EventID{}, err
	}
	list, err := chronicle(e.storage.Storage).Catalogue(ctx)
	if err != nil {
		return "", EventID{}, err
	}
	mark, err := at.In(list, session)
	if err != nil {
		return "", EventID{}, err
	}
	return x.ForkAt(ctx, session, mark, dir)
}

// In is the place of the cursor in what a session wrote. list is the catalogue of
// the directory, eldest first. A cursor of another directory is not_found, and one
// from before the session is invalid_argument.
func (c EventCursor) In(list []SessionInfo, session SessionID) (Mark, error) {
	at, err := parseCursor(c)
	if err != nil {
		return Mark{}, err
	}
	age := map[SessionID]int{}
	for i := range list {
		age[list[i].Session] = i
	}
	through := -1
	if at.through != "" {
		var known bool
		if through, known = age[at.through]; !known {
			return Mark{}, foreignCursor("fork")
		}
	}
	for marked := range at.marks {
		if _, known := age[marked]; !known {
			return Mark{}, foreignCursor("fork")
		}
	}
	own, known := age[session]
	if !known {
		return Mark{}, gone("session", string(session))
	}
	mark, marked := at.marks[session]
	switch {
	case marked && !mark.IsZero():
		return mark, nil
	case !marked && own <= through:
		return Mark{Since: math.MaxInt64}, nil
	}
	return Mark{}, beforeSession(&list[own])
}

// foreignCursor refuses a cursor that names sessions which are not there.
func foreignCursor(op string) *abi.Error {
	return &abi.Error{
		Code: abi.NotFound, Op: op, Message: "the cursor is of another session directory",
		Remedy: "take it from an event of this one, or begin with " + string(FromStart),
	}
}

// beforeSession refuses a cursor that has nothing of a session.
func beforeSession(info *SessionInfo) *abi.Error {
	err := &abi.Error{
		Code: abi.InvalidArgument, Op: "fork", Message: fmt.Sprintf("at the cursor, session %s had not begun", info.Session),
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
