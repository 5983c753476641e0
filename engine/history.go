package engine

import (
	"context"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
)

// sessionOf finds a session by its id, or by the id of a graph, live or saved.
func (e *core) sessionOf(name string) (journal.SessionID, journal.Store, error) {
	l := e.rlock()
	defer l.runlock()
	if now, ok := l.topo.Current(journal.GraphID(name)); ok {
		g := l.graphs[now].enter()
		defer g.leave()
		if g.store == nil {
			return "", nil, &abi.Error{
				Code: abi.Unavailable, Message: "the graph " + name + " has no store, so it has no history",
				Remedy: "run it with durability normal or full", IDs: map[string]string{"graph": name},
			}
		}
		return g.store.Info().Session, g.store, nil
	}
	if d := l.saved[journal.GraphID(name)]; d != nil {
		return d.Session, nil, nil
	}
	return journal.SessionID(name), nil, nil
}

// History returns events of a graph or session, live or ended, in an order that respects
// causality.
func (e *Engine) History(ctx context.Context, graphOrSession string, q journal.HistoryQuery) ([]journal.Event, error) {
	session, store, err := e.core.sessionOf(graphOrSession)
	if err != nil {
		return nil, err
	}
	if store != nil {
		return store.History(ctx, q)
	}
	if e.core.storage == nil {
		return nil, errtext.Gone("session", graphOrSession)
	}
	return e.core.storage.History(ctx, session, q)
}

// Sessions lists the sessions of the session directory, oldest first. Without a session
// directory the list is empty.
func (e *Engine) Sessions(ctx context.Context) ([]journal.SessionInfo, error) {
	if e.core.storage == nil {
		return nil, nil
	}
	return e.core.storage.Sessions(ctx)
}

// Lineage returns the lineage of a session or of a graph's session: the session itself,
// then its ancestors generation by generation.
func (e *Engine) Lineage(ctx context.Context, graphOrSession string) ([]journal.SessionInfo, error) {
	session, _, err := e.core.sessionOf(graphOrSession)
	if err != nil {
		return nil, err
	}
	if e.core.storage == nil {
		return nil, errtext.Gone("session", graphOrSession)
	}
	return e.core.storage.Lineage(ctx, session)
}

// Verify checks a session, or a graph's session: the file itself, that its log has every
// event once, and that every channel is in order. It does not look at what is still in
// memory, only at what is on disk.
func (e *Engine) Verify(ctx context.Context, graphOrSession string) (journal.VerifyReport, error) {
	session, _, err := e.core.sessionOf(graphOrSession)
	if err != nil {
		return journal.VerifyReport{}, err
	}
	if e.core.storage == nil {
		return journal.VerifyReport{}, errtext.Gone("session", graphOrSession)
	}
	return e.core.storage.Verify(ctx, session)
}

// Export writes a session, or a graph's session, to a new self-contained file: a snapshot
// of what had been logged at the time of the call.
func (e *Engine) Export(ctx context.Context, graphOrSession, path string) error {
	session, x, err := e.exporter("export", graphOrSession)
	if err != nil {
		return err
	}
	return x.Export(ctx, session, path)
}

// Fork makes a new session directory with one live session, which has the history of a
// session or of a graph's session and the state of its creatures, and continues
// independently. It returns the id of the new session. Creatures keep their ids, so the
// fork is for another engine.
func (e *Engine) Fork(ctx context.Context, graphOrSession, dir string) (journal.SessionID, error) {
	session, x, err := e.exporter("fork", graphOrSession)
	if err != nil {
		return "", err
	}
	return x.Fork(ctx, session, dir)
}

func (e *Engine) exporter(op, graphOrSession string) (journal.SessionID, journal.Exporter, error) {
	session, _, err := e.core.sessionOf(graphOrSession)
	if err != nil {
		return "", nil, err
	}
	if e.core.storage == nil {
		return "", nil, errtext.Gone("session", graphOrSession)
	}
	if e.exports == nil {
		return "", nil, &abi.Error{
			Code: abi.Unsupported, Op: op, Message: "the sessions of this engine are not files",
			Remedy: "use a session directory", IDs: map[string]string{"session": string(session)},
		}
	}
	return session, e.exports, nil
}

// PolicyFailures returns the policies that have failed to decide since the engine
// started, by name: scripts that threw or took too long. A denial is not a failure, and
// failures that a policy is set to ignore are not counted. Each is an [abi.Error] with
// the ids policy, where (the place of the first failure) and failures (their number).
func (e *Engine) PolicyFailures() []error { return e.core.failed.List() }

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
