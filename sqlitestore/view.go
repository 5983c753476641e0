package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/rebuild"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// View reads a session directory that another process owns and may be writing to, or that
// lies on a read-only medium. It takes no lock. It sees what had been written when a
// method was called, and leaves nothing behind when it is closed.
//
// Its methods are called by one goroutine at a time.
type View struct {
	catalog *sessions
	visitor *sqlite.Visitor
}

// OpenReadOnly opens a session directory for reading. It answers the code not_found when
// there is none, and storage when the catalogue is damaged or older than the stores; then
// [Rebuild] makes a new one.
func OpenReadOnly(ctx context.Context, dir string) (*View, error) {
	if err := sqlite.CheckVersion(); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, storageError("open", dir, err)
	}
	path := filepath.Join(dir, catalog.Name)
	if missing(path) {
		if err := refuseLostCatalog(dir); err != nil {
			return nil, err
		}
		return nil, &abi.Error{
			Code: abi.NotFound, Op: "open", Message: dir + " is not a session directory: it has no " + catalog.Name,
			Remedy: "name the directory that --session was given", IDs: map[string]string{"path": dir},
		}
	}
	visitor := sqlite.NewVisitor()
	var k *catalog.Catalog
	c, err := openCurrent(ctx, visitor, catalog.Schema, path)
	if err == nil {
		k, err = catalog.Look(c)
	}
	if err == nil {
		if err = rebuild.RefuseOlderToReaders(ctx, k); err != nil {
			err = errors.Join(err, k.Close())
		}
	}
	if err != nil {
		visitor.Leave()
		return nil, storageError("open", path, err)
	}
	return &View{catalog: &sessions{Catalog: k}, visitor: visitor}, nil
}

// Close ends reading.
func (v *View) Close() error {
	err := v.catalog.Close()
	v.visitor.Leave()
	return storageError("close", v.catalog.Path(), err)
}

// Sessions lists every session of the directory, eldest first.
func (v *View) Sessions(ctx context.Context) ([]journal.SessionInfo, error) {
	return listSessions(ctx, v.catalog, v.readable)
}

// Catalogue lists every session of the directory, eldest first, without reading their
// files; see [journal.Chronicle].
func (v *View) Catalogue(ctx context.Context) ([]journal.SessionInfo, error) {
	return v.catalog.list(ctx)
}

// Catalogue lists every session of the directory, eldest first, without reading their
// files; see [journal.Chronicle].
func (d *Directory) Catalogue(ctx context.Context) ([]journal.SessionInfo, error) {
	return d.catalog.list(ctx)
}

func (k *sessions) list(ctx context.Context) ([]journal.SessionInfo, error) {
	entries, err := k.Entries(ctx)
	if err != nil {
		return nil, storageError("sessions", k.Path(), err)
	}
	out := make([]journal.SessionInfo, len(entries))
	for i := range entries {
		out[i] = entries[i].SessionInfo
	}
	return out, nil
}

// Lineage returns the ancestors of a session, itself first, then generation by
// generation back to the roots.
func (v *View) Lineage(ctx context.Context, session journal.SessionID) ([]journal.SessionInfo, error) {
	return lineage(ctx, v.catalog, session, v.readable)
}

// History lists events of a session, live or ended; see [Store.History].
func (v *View) History(ctx context.Context, session journal.SessionID, q journal.HistoryQuery) ([]journal.Event, error) {
	return readHistory(ctx, v.catalog, session, q, v.readable)
}

// Messages returns messages of a channel with a number above after and up to until, as
// far as the history of a session has them; see [Store.Messages].
func (v *View) Messages(ctx context.Context, session journal.SessionID, channel journal.ChannelID, after, until uint64, limit int, bytes int64) (events []journal.Event, err error) {
	err = v.catalog.withFamily(ctx, "read", session, v.readable, func(_ catalog.Entry, f *family) (err error) {
		events, err = f.messages(ctx, channel, after, until, limit, bytes)
		return err
	})
	return events, err
}

// Saved returns the graph of a session as its store has it. For an ended session it is
// the graph at the end, as long as its file exists.
func (v *View) Saved(ctx context.Context, session journal.SessionID) (g journal.SavedGraph, err error) {
	err = v.catalog.withRows(ctx, "read", session, v.readable, func(e catalog.Entry, f *family) (err error) {
		g, err = f.saved(ctx, e)
		return err
	})
	return g, err
}

// State returns the state of a creature of a session.
func (v *View) State(ctx context.Context, session journal.SessionID, creature journal.CreatureID) (state map[string][]byte, err error) {
	err = v.catalog.withRows(ctx, "read", session, v.readable, func(_ catalog.Entry, f *family) (err error) {
		state, err = f.own.state(ctx, creature)
		return err
	})
	return state, err
}

// DeadLetters returns dead letters of a session; see [Store.DeadLetters].
func (v *View) DeadLetters(ctx context.Context, session journal.SessionID, creature journal.CreatureID, after journal.EventID, limit int) (letters []journal.DeadLetterRow, err error) {
	err = v.catalog.withRows(ctx, "read", session, v.readable, func(_ catalog.Entry, f *family) (err error) {
		letters, err = f.own.letters(ctx, creature, after, limit)
		return err
	})
	return letters, err
}

// Sessions lists every session of the directory, eldest first.
func (d *Directory) Sessions(ctx context.Context) ([]journal.SessionInfo, error) {
	return listSessions(ctx, d.catalog, d.owned)
}

// Lineage returns the ancestors of a session, itself first, then generation by
// generation back to the roots.
func (d *Directory) Lineage(ctx context.Context, session journal.SessionID) ([]journal.SessionInfo, error) {
	return lineage(ctx, d.catalog, session, d.owned)
}

// History lists events of a session, live or ended; see [Store.History].
func (d *Directory) History(ctx context.Context, session journal.SessionID, q journal.HistoryQuery) ([]journal.Event, error) {
	if s := d.opened(session); s != nil {
		return s.History(ctx, q)
	}
	return readHistory(ctx, d.catalog, session, q, d.owned)
}

// Verify checks a session, live or ended: the file itself, and that its log has
// every event once and every channel in order. It reads the whole file. Damage
// that SQLite finds is part of the report; the code storage means that the file
// could not be read at all.
func (d *Directory) Verify(ctx context.Context, session journal.SessionID) (journal.VerifyReport, error) {
	if s := d.opened(session); s != nil {
		if err := s.flush(ctx); err != nil {
			return journal.VerifyReport{}, err
		}
	}
	return verifySession(ctx, d.catalog, session, d.owned)
}

// Verify checks a session, live or ended; see [Directory.Verify].
func (v *View) Verify(ctx context.Context, session journal.SessionID) (journal.VerifyReport, error) {
	return verifySession(ctx, v.catalog, session, v.readable)
}

// access opens a store to be read, if it is one of ours and up to date.
type access func(ctx context.Context, path string) (*sqlite.Conn, error)

// owned reads a file of a directory that this process owns. The connection is writable,
// although it does not write, so that it removes its auxiliary files.
func (d *Directory) owned(ctx context.Context, path string) (*sqlite.Conn, error) {
	if err := d.bringUpToDate(ctx, path); err != nil {
		return nil, err
	}
	return sqlite.Open(path, sqlite.ReadWrite)
}

// bringUpToDate upgrades a file of an older version. No other process changes the version
// of a file meanwhile, so each is checked once.
func (d *Directory) bringUpToDate(ctx context.Context, path string) error {
	if _, known := d.current.Load(path); known && !missing(path) {
		return nil
	}
	err := storefile.Schema.Upgrade(ctx, path, d.options.hooks)
	if err == nil {
		d.current.Store(path, true)
	}
	return err
}

// readable reads a file of another process's directory.
func (v *View) readable(ctx context.Context, path string) (*sqlite.Conn, error) {
	return openCurrent(ctx, v.visitor, storefile.Schema, path)
}

// openCurrent opens a file for reading that has the newest version.
func openCurrent(ctx context.Context, v *sqlite.Visitor, s *sqlite.Schema, path string) (*sqlite.Conn, error) {
	c, version, err := v.Open(ctx, s, path)
	if err != nil {
		return nil, err
	}
	if err := s.RequireCurrent(path, version); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func listSessions(ctx context.Context, k *sessions, how access) ([]journal.SessionInfo, error) {
	entries, err := k.Entries(ctx)
	if err != nil {
		return nil, storageError("sessions", k.Path(), err)
	}
	return k.inspect(ctx, entries, how)
}

// inspect completes the catalogue's description of sessions from their own files.
// Sessions whose files cannot be read are listed nevertheless.
func (k *sessions) inspect(ctx context.Context, entries []catalog.Entry, how access) ([]journal.SessionInfo, error) {
	out := make([]journal.SessionInfo, len(entries))
	var all *catalog.Ancestors // read when the first session needs them
	for i, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out[i] = e.SessionInfo
		var own map[journal.Origin]int64
		if e.File != "" {
			own = k.describe(ctx, e, how, &out[i])
		}
		if out[i].Events < 0 { // its file may have been replaced or removed since the catalogue was read
			if now, err := k.Entry(ctx, "sessions", e.Session); err == nil && now.File != e.File {
				e, out[i] = now, now.SessionInfo
				if e.File != "" {
					own = k.describe(ctx, e, how, &out[i])
				}
			}
		}
		if e.Complete && e.File != "" {
			continue
		}
		if all == nil {
			var err error
			if all, err = k.Ancestors(ctx); err != nil {
				return nil, storageError("sessions", k.Path(), err)
			}
		}
		before := all.Inherited(e.Session)
		if out[i].Events < 0 && (e.Live || len(before) == 0) {
			continue // it cannot be counted
		}
		// Events of an ended session may have been written by it or inherited.
		out[i].Events = max(out[i].Events, 0)
		for origin, n := range before {
			out[i].Events += max(int64(n)-own[origin], 0)
		}
	}
	return out, nil
}

// describe looks into the file of a session, and returns how many events of each origin
// it has.
func (k *sessions) describe(ctx context.Context, e catalog.Entry, how access, info *journal.SessionInfo) map[journal.Origin]int64 {
	f, err := openMember(ctx, e, how)
	if err != nil {
		return nil
	}
	own, err := (&family{own: f}).counts(ctx)
	if err == nil {
		info.Events = 0
		for _, n := range own {
			info.Events += n
		}
	}
	if meta, err := f.meta(ctx); err == nil {
		info.Meta = meta
	}
	info.Bytes = sqlite.DiskSize(f.path)
	_ = f.close() // it was only read
	return own
}

func lineage(ctx context.Context, k *sessions, session journal.SessionID, how access) ([]journal.SessionInfo, error) {
	entries, err := k.Entries(ctx)
	if err != nil {
		return nil, storageError("lineage", k.Path(), err)
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
	return k.inspect(ctx, line, how)
}

func readHistory(ctx context.Context, k *sessions, session journal.SessionID, q journal.HistoryQuery, how access) (events []journal.Event, err error) {
	err = k.withFamily(ctx, "history", session, how, func(e catalog.Entry, f *family) (err error) {
		var own map[journal.Origin]uint64
		if q.Own {
			if own, err = k.authored(ctx, e, f); err != nil {
				return err
			}
		}
		events, err = f.history(ctx, q, own)
		return err
	})
	return events, err
}

// authored are the origins under which a session has written: from the catalogue for an
// ended session, otherwise from its file.
func (k *sessions) authored(ctx context.Context, e catalog.Entry, f *family) (map[journal.Origin]uint64, error) {
	own, err := k.WroteAs(ctx, e.Session)
	if err != nil || len(own) > 0 || f.own == nil {
		return own, err
	}
	return f.own.authored(ctx)
}

// withRows opens the file of a session to read its live rows.
func (k *sessions) withRows(ctx context.Context, op string, session journal.SessionID, how access, look func(e catalog.Entry, f *family) error) error {
	return k.withFamily(ctx, op, session, how, func(e catalog.Entry, f *family) error {
		if f.own == nil {
			return k.rowsGone(ctx, op, e)
		}
		return look(e, f)
	})
}

// rowsGone says that only the history of a session is left.
func (k *sessions) rowsGone(ctx context.Context, op string, e catalog.Entry) error {
	heir, _, err := k.Heir(ctx, e.Session)
	if err != nil {
		return err
	}
	return &abi.Error{
		Code:    abi.NotFound,
		Op:      op,
		Message: fmt.Sprintf("session %s was cut: other sessions have taken over its live rows, and only its history is left", e.Session),
		Remedy:  fmt.Sprintf("read a session that came out of it, such as %s", heir.Session),
		IDs:     map[string]string{"session": string(e.Session), "heir": string(heir.Session)},
	}
}
