package engine

import (
	"context"

	"github.com/seed47132306/terrarium/engine/journal"
)

// ForkAt is [Engine.Fork] of a session as it was at a cursor. It also returns the id
// of the last event in the fork. Events after the cursor are neither in the history of
// the fork nor in the state of its creatures. If the cursor is within a turn, the fork
// has nothing of that turn.
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
