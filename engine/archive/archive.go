// Package archive reads what an engine has logged: it lists the sessions of a session
// directory, reads their events, and copies sessions. From the engine it needs only the
// session of each running graph.
package archive

import (
	"context"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Archive reads the sessions of an engine, live and ended. Its methods take the id of a
// session, or the id of a graph, whose session they then use. They may be called by several
// goroutines at a time.
type Archive struct {
	storage journal.Storage  // nil: there is no session directory
	exports journal.Exporter // the storage, if it can export; else nil
	live    Live
}

// Live returns the session of a graph, and its store if the graph is running. A name that is
// not the id of a graph is used as the id of a session. For a running graph without a store,
// Live returns the code unavailable.
type Live func(name string) (journal.SessionID, journal.Store, error)

// New returns the archive of a storage, which may be nil.
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

// GraphsAt returns the graphs of the session directory as they were at a moment, which is a
// cursor or a time; see [journal.ParseMoment] and [journal.GraphsAt]. With a graph or
// session, these are only the graphs that have become that one.
func (a *Archive) GraphsAt(ctx context.Context, moment, graphOrSession string) (graphs []journal.SavedGraph, problems []error, err error) {
	past, ok := a.storage.(journal.Rewinder)
	if !ok {
		return nil, nil, &abi.Error{
			Code: abi.Unsupported, Op: "topology", Message: "this engine does not keep earlier states of its graphs", Remedy: "use a session directory",
		}
	}
	var only func(*journal.SessionInfo) bool
	list, err := past.Catalogue(ctx)
	if err != nil {
		return nil, nil, err
	}
	if graphOrSession != "" {
		session, _, err := a.live(graphOrSession)
		if err != nil {
			return nil, nil, err
		}
		line := journal.LineOf(list, session)
		only = func(i *journal.SessionInfo) bool { return line[i.Session] }
	}
	at, err := journal.ParseMoment(moment, list)
	if err != nil {
		return nil, nil, err
	}
	return journal.GraphsAt(ctx, past, at, only)
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
// and then its ancestors, generation by generation.
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
// event once, and that every channel is in order. It checks only data on disk, not events
// that are still in memory.
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

// Export writes a session, or a graph's session, to a new file that needs no other files.
// The file is a snapshot of what had been logged at the time of the call.
func (a *Archive) Export(ctx context.Context, graphOrSession, path string) error {
	session, x, err := a.exporter("export", graphOrSession)
	if err != nil {
		return err
	}
	return x.Export(ctx, session, path)
}

// Fork makes a new session directory with one live session, and returns its id. The new
// session has the history of the given session, or of a graph's session, and the state of
// its creatures, and continues independently. Creatures keep their ids, so open the fork in
// another engine.
func (a *Archive) Fork(ctx context.Context, graphOrSession, dir string) (journal.SessionID, error) {
	session, x, err := a.exporter("fork", graphOrSession)
	if err != nil {
		return "", err
	}
	return x.Fork(ctx, session, dir)
}

// ForkAt is like [Archive.Fork], but forks the session as it was at a cursor. It also returns
// the id of the last event in the fork. Events after the cursor have no effect on the history
// of the fork or on the state of its creatures. If the cursor is within a turn, the fork has
// no part of that turn.
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
