// Package archive reads what an engine has logged: the sessions of a session directory,
// their events, and copies of them. It needs nothing of the engine but which session a
// running graph has.
package archive

import (
	"context"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Archive is the sessions of an engine, live and ended. Its methods take the id of a
// session, or that of a graph whose session they then use, and may be called by several
// goroutines at a time.
type Archive struct {
	storage journal.Storage  // nil: there is no session directory
	exports journal.Exporter // the storage, if it can export; else nil
	live    Live
}

// Live finds the session of a graph, live or saved, and its store if the graph runs. A
// name that is no graph's id is taken for that of a session. A running graph without a
// store is the error unavailable.
type Live func(name string) (journal.SessionID, journal.Store, error)

// New makes the archive of a storage, which may be nil.
func New(storage journal.Storage, live Live) *Archive {
	a := &Archive{storage: storage, live: live}
	a.exports, _ = storage.(journal.Exporter)
	return a
}

// History returns events of a graph or session, live or ended, in an order that respects
// causality.
func (a *Archive) History(ctx context.Context, graphOrSession string, q journal.HistoryQuery) ([]journal.Event, error) {
	session, store, err := a.live(graphOrSession)
	if err != nil {
		return nil, err
	}
	if store != nil {
		return store.History(ctx, q)
	}
	if a.storage == nil {
		return nil, errtext.Gone("session", graphOrSession)
	}
	return a.storage.History(ctx, session, q)
}

// Sessions lists the sessions of the session directory, oldest first. Without a session
// directory the list is empty.
func (a *Archive) Sessions(ctx context.Context) ([]journal.SessionInfo, error) {
	if a.storage == nil {
		return nil, nil
	}
	return a.storage.Sessions(ctx)
}

// Lineage returns the lineage of a session or of a graph's session: the session itself,
// then its ancestors generation by generation.
func (a *Archive) Lineage(ctx context.Context, graphOrSession string) ([]journal.SessionInfo, error) {
	session, _, err := a.live(graphOrSession)
	if err != nil {
		return nil, err
	}
	if a.storage == nil {
		return nil, errtext.Gone("session", graphOrSession)
	}
	return a.storage.Lineage(ctx, session)
}

// Verify checks a session, or a graph's session: the file itself, that its log has every
// event once, and that every channel is in order. It does not look at what is still in
// memory, only at what is on disk.
func (a *Archive) Verify(ctx context.Context, graphOrSession string) (journal.VerifyReport, error) {
	session, _, err := a.live(graphOrSession)
	if err != nil {
		return journal.VerifyReport{}, err
	}
	if a.storage == nil {
		return journal.VerifyReport{}, errtext.Gone("session", graphOrSession)
	}
	return a.storage.Verify(ctx, session)
}

// Export writes a session, or a graph's session, to a new self-contained file: a snapshot
// of what had been logged at the time of the call.
func (a *Archive) Export(ctx context.Context, graphOrSession, path string) error {
	session, x, err := a.exporter("export", graphOrSession)
	if err != nil {
		return err
	}
	return x.Export(ctx, session, path)
}

// Fork makes a new session directory with one live session, which has the history of a
// session or of a graph's session and the state of its creatures, and continues
// independently. It returns the id of the new session. Creatures keep their ids, so the
// fork is for another engine.
func (a *Archive) Fork(ctx context.Context, graphOrSession, dir string) (journal.SessionID, error) {
	session, x, err := a.exporter("fork", graphOrSession)
	if err != nil {
		return "", err
	}
	return x.Fork(ctx, session, dir)
}

// ForkAt is [Archive.Fork] of a session as it was at a cursor. It also returns the id
// of the last event in the fork. Events after the cursor are neither in the history of
// the fork nor in the state of its creatures. If the cursor is within a turn, the fork
// has nothing of that turn.
func (a *Archive) ForkAt(ctx context.Context, graphOrSession string, at journal.EventCursor, dir string) (journal.SessionID, journal.EventID, error) {
	session, x, err := a.exporter("fork", graphOrSession)
	if err != nil {
		return "", journal.EventID{}, err
	}
	list, err := journal.ChronicleOf(a.storage).Catalogue(ctx)
	if err != nil {
		return "", journal.EventID{}, err
	}
	mark, err := at.In(list, session)
	if err != nil {
		return "", journal.EventID{}, err
	}
	return x.ForkAt(ctx, session, mark, dir)
}

func (a *Archive) exporter(op, graphOrSession string) (journal.SessionID, journal.Exporter, error) {
	session, _, err := a.live(graphOrSession)
	if err != nil {
		return "", nil, err
	}
	if a.storage == nil {
		return "", nil, errtext.Gone("session", graphOrSession)
	}
	if a.exports == nil {
		return "", nil, &abi.Error{
			Code: abi.Unsupported, Op: op, Message: "the sessions of this engine are not files",
			Remedy: "use a session directory", IDs: map[string]string{"session": string(session)},
		}
	}
	return session, a.exports, nil
}
