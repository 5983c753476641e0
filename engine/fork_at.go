package engine

import (
	"context"

	"github.com/seed47132306/terrarium/engine/journal"
)

// ForkAt is [Engine.Fork] of a session as it was at a cursor, and answers also the
// last event that the fork has. What comes behind the cursor is in neither the
// history of the fork nor what its creatures hold, and a turn of which the cursor
// has only a part has not happened.
func (e *Engine) ForkAt(ctx context.Context, graphOrSession string, at journal.EventCursor, dir string) (journal.SessionID, journal.EventID, error) {
	session, x, err := e.exporter("fork", graphOrSession)
	if err != nil {
		return "", journal.EventID{}, err
	}
	list, err := journal.ChronicleOf(e.core.storage.Storage).Catalogue(ctx)
	if err != nil {
		return "", journal.EventID{}, err
	}
	mark, err := at.In(list, session)
	if err != nil {
		return "", journal.EventID{}, err
	}
	return x.ForkAt(ctx, session, mark, dir)
}
