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
	archive
	visitor *sqlite.Visitor
}

// OpenReadOnly opens a session directory for reading. It returns the code not_found when
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
			Remedy: "name the directory that was given to --session", IDs: map[string]string{"path": dir},
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
	return newView(k, visitor), nil
}

func newView(k *catalog.Catalog, visitor *sqlite.Visitor) *View {
	return &View{
		archive: archive{
			catalog: &sessions{Catalog: k, read: func(ctx context.Context, path string) (*sqlite.Conn, error) {
				return openCurrent(ctx, visitor, storefile.Schema, path)
			}},
			inUse: func(journal.SessionID) *Store { return nil },
			flush: func(context.Context, journal.SessionID) error { return nil },
		},
		visitor: visitor,
	}
}

// Close ends reading.
func (v *View) Close() error {
	err := v.catalog.Close()
	v.visitor.Leave()
	return storageError("close", v.catalog.Path(), err)
}

// Saved returns the graph of a session as its store records it. For an ended session it is
// the graph at the end, as long as its file exists.
func (v *View) Saved(ctx context.Context, session journal.SessionID) (g journal.SavedGraph, err error) {
	err = v.catalog.withRows(ctx, "read", session, func(e catalog.Entry, f *family) (err error) {
		g, err = f.saved(ctx, e)
		return err
	})
	return g, err
}

// State returns the state of a creature of a session.
func (v *View) State(ctx context.Context, session journal.SessionID, creature journal.CreatureID) (state map[string][]byte, err error) {
	err = v.catalog.withRows(ctx, "read", session, func(_ catalog.Entry, f *family) (err error) {
		state, err = f.own.state(ctx, creature)
		return err
	})
	return state, err
}

// owned opens a file of a directory that this process owns, for reading. The connection is
// writable, although it does not write, so that it removes its auxiliary files.
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

// openCurrent opens a file for reading, and refuses one that does not have the newest
// version.
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

// inspect completes the catalogue's description of sessions from their own files.
// Sessions whose files cannot be read are listed nevertheless. The files of ended sessions
// are not opened if the catalogue describes them.
func (k *sessions) inspect(ctx context.Context, entries []catalog.Entry) ([]journal.SessionInfo, error) {
	described, err := k.Described(ctx)
	if err != nil {
		return nil, storageError("sessions", k.Path(), err)
	}
	out := make([]journal.SessionInfo, len(entries))
	var all *catalog.Ancestors // read when the first session needs them
	for i, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out[i] = e.SessionInfo
		var own map[journal.Origin]int64
		if events, known := described[e.Session]; known && e.File != "" && !e.Live {
			out[i].Events, out[i].Bytes = events, sqlite.DiskSize(e.Path)
		} else if e.File != "" {
			own = k.describe(ctx, e, &out[i])
		}
		if out[i].Events < 0 { // its file may have been replaced or removed since the catalogue was read
			if now, err := k.Entry(ctx, "sessions", e.Session); err == nil && now.File != e.File {
				e, out[i] = now, now.SessionInfo
				if e.File != "" {
					own = k.describe(ctx, e, &out[i])
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
		if own == nil && !e.Live { // the events in its file are among these
			if n := all.Total(e.Session); n > 0 {
				out[i].Events = n
			}
			continue
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

// describe completes info from the file of a session, and returns how many events of each
// origin the file has.
func (k *sessions) describe(ctx context.Context, e catalog.Entry, info *journal.SessionInfo) map[journal.Origin]int64 {
	f, err := k.openMember(ctx, e)
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

// authored returns the origins under which a session has written: from the catalogue for
// an ended session, otherwise from its file.
func (k *sessions) authored(ctx context.Context, e catalog.Entry, f *family) (map[journal.Origin]uint64, error) {
	own, err := k.WroteAs(ctx, e.Session)
	if err != nil || len(own) > 0 || f.own == nil {
		return own, err
	}
	return f.own.authored(ctx)
}

// withRows opens the file of a session to read its live rows.
func (k *sessions) withRows(ctx context.Context, op string, session journal.SessionID, look func(e catalog.Entry, f *family) error) error {
	return k.withFamily(ctx, op, session, func(e catalog.Entry, f *family) error {
		if f.own == nil {
			return k.rowsGone(ctx, op, e)
		}
		return look(e, f)
	})
}

// rowsGone is the error if only the history of a session is left.
func (k *sessions) rowsGone(ctx context.Context, op string, e catalog.Entry) error {
	successor, _, err := k.Successor(ctx, e.Session)
	if err != nil {
		return err
	}
	return &abi.Error{
		Code:    abi.NotFound,
		Op:      op,
		Message: fmt.Sprintf("session %s was cut: other sessions have taken over its live rows, and only its history is left", e.Session),
		Remedy:  fmt.Sprintf("read one of its successors, such as %s", successor.Session),
		IDs:     map[string]string{"session": string(e.Session), "successor": string(successor.Session)},
	}
}
