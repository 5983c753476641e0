package sqlitestore

import (
	"context"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/rebuild"
)

var (
	_ journal.Archive = (*View)(nil)
	_ journal.Archive = (*Directory)(nil)
)

// archive reads the sessions of a directory, live or ended. It is the part of [Directory]
// and [View] that does not depend on which process owns the directory.
type archive struct {
	catalog *sessions
	inUse   func(journal.SessionID) *Store // the open store of a session, or nil
	// flush waits until everything that was appended to a session can be read, and until
	// the cut that made the session is durable.
	flush func(context.Context, journal.SessionID) error
}

// Catalogue lists every session of the directory, oldest first, without reading their
// files; see [journal.Chronicle].
func (a *archive) Catalogue(ctx context.Context) ([]journal.SessionInfo, error) {
	entries, err := a.catalog.Entries(ctx)
	if err != nil {
		return nil, storageError("sessions", a.catalog.Path(), err)
	}
	out := make([]journal.SessionInfo, len(entries))
	for i := range entries {
		out[i] = entries[i].SessionInfo
	}
	return out, nil
}

// Sessions lists every session of the directory, oldest first.
func (a *archive) Sessions(ctx context.Context) ([]journal.SessionInfo, error) {
	entries, err := a.catalog.Entries(ctx)
	if err != nil {
		return nil, storageError("sessions", a.catalog.Path(), err)
	}
	return a.catalog.inspect(ctx, entries)
}

// Lineage returns a session and then its ancestors, generation by generation.
func (a *archive) Lineage(ctx context.Context, session journal.SessionID) ([]journal.SessionInfo, error) {
	entries, err := a.catalog.Entries(ctx)
	if err != nil {
		return nil, storageError("lineage", a.catalog.Path(), err)
	}
	known := map[journal.SessionID]catalog.Entry{}
	for _, e := range entries {
		known[e.Session] = e
	}
	if _, ok := known[session]; !ok {
		return nil, catalog.NoSession("lineage", string(session))
	}
	var line []catalog.Entry
	seen := map[journal.SessionID]bool{session: true}
	for queue := []journal.SessionID{session}; len(queue) > 0; queue = queue[1:] {
		e, ok := known[queue[0]]
		if !ok {
			continue // volatile: there was no store
		}
		line = append(line, e)
		for _, p := range e.Parents {
			if !seen[p] {
				seen[p] = true
				queue = append(queue, p)
			}
		}
	}
	return a.catalog.inspect(ctx, line)
}

// History lists events of a session, live or ended; see [Store.History].
func (a *archive) History(ctx context.Context, session journal.SessionID, q journal.HistoryQuery) (events []journal.Event, err error) {
	if s := a.inUse(session); s != nil {
		return s.History(ctx, q)
	}
	open := a.catalog.openFamily
	if q.Own {
		open = a.catalog.openOwn
	}
	err = a.catalog.withFiles(ctx, "history", session, open, func(e catalog.Entry, f *family) (err error) {
		var own map[journal.Origin]uint64
		if q.Own {
			if own, err = a.catalog.authored(ctx, e, f); err != nil {
				return err
			}
		}
		events, err = f.history(ctx, q, own)
		return err
	})
	return events, err
}

// Messages returns the messages of a channel that are in the history of a session, with
// numbers above after and up to until; see [Store.Messages].
func (a *archive) Messages(ctx context.Context, session journal.SessionID, channel journal.ChannelID, after, until uint64, limit int, bytes int64) (events []journal.Event, err error) {
	if s := a.inUse(session); s != nil {
		return s.Messages(ctx, channel, after, until, limit, bytes)
	}
	err = a.catalog.withFiles(ctx, "read", session, a.catalog.openFamily, func(_ catalog.Entry, f *family) (err error) {
		events, err = f.messages(ctx, channel, after, until, limit, bytes)
		return err
	})
	return events, err
}

// DeadLetters returns dead letters of a session; see [Store.DeadLetters].
func (a *archive) DeadLetters(ctx context.Context, session journal.SessionID, creature journal.CreatureID, after journal.EventID, limit int) (letters []journal.DeadLetterRow, err error) {
	if s := a.inUse(session); s != nil {
		return s.DeadLetters(ctx, creature, after, limit)
	}
	err = a.catalog.withRows(ctx, "read", session, func(_ catalog.Entry, f *family) (err error) {
		letters, err = f.own.letters(ctx, creature, after, limit)
		return err
	})
	return letters, err
}

// withSession calls look with the files of a session, which are open during the call.
func (a *archive) withSession(ctx context.Context, session journal.SessionID, look func(*family) error) error {
	if s := a.inUse(session); s != nil {
		return s.read(ctx, "search", look)
	}
	return a.catalog.withFamily(ctx, "search", session, func(_ catalog.Entry, f *family) error { return look(f) })
}

// Live lists the live sessions as their stores record them, oldest first. The second
// result names what is missing or cannot be read.
func (v *View) Live(ctx context.Context) (graphs []journal.SavedGraph, problems []error, err error) {
	list, err := v.Catalogue(ctx)
	if err != nil {
		return nil, nil, err
	}
	// The records are read before the logs, to which a process may be writing, so that no
	// record is newer than its log.
	acks, err := catalog.ReadAcks(v.catalog.Dir())
	if err != nil {
		return nil, nil, storageError("open", v.catalog.Path(), err)
	}
	left, err := rebuild.LeftOut(ctx, v.catalog.Catalog)
	if err != nil {
		return nil, nil, storageError("open", v.catalog.Path(), err)
	}
	for _, path := range slices.Sorted(maps.Keys(left)) {
		problems = append(problems, left[path])
	}
	for i := range list {
		if !list[i].Live {
			continue
		}
		g, lost, err := v.live(ctx, list[i].Session, acks)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil {
			problems = append(problems, unreadable(&list[i], err))
			continue
		}
		problems = append(problems, lost...)
		if len(g.Creatures) > 0 { // without members its graph has ended
			graphs = append(graphs, g)
		}
	}
	return graphs, problems, nil
}

// live reads a session, and returns an error for each missing ancestor and for a missing
// end of its log.
func (v *View) live(ctx context.Context, session journal.SessionID, acks map[journal.SessionID]catalog.Ack) (g journal.SavedGraph, lost []error, err error) {
	err = v.catalog.withRows(ctx, "read", session, func(e catalog.Entry, f *family) (err error) {
		lost = nil
		for _, ancestor := range f.missing {
			lost = append(lost, lostAncestor(e, ancestor))
		}
		if g, err = f.saved(ctx, e); err != nil {
			return err
		}
		if a, said := acks[session]; said {
			end, err := f.lostEnd(ctx, e, a)
			if end != nil {
				lost = append(lost, end)
			}
			return err
		}
		return nil
	})
	return g, lost, err
}
