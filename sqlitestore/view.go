package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mattn/go-sqlite3"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
)

// View reads a session directory that belongs to somebody else, who may be
// writing to it meanwhile, or that lies on a medium which cannot be written to.
// It takes no lock. It sees what had been written when a method was called.
//
// Its methods are called by one goroutine at a time.
type View struct {
	catalog *catalog
}

// OpenReadOnly opens a session directory for reading. It answers the code
// not_found when there is none.
func OpenReadOnly(_ context.Context, dir string) (*View, error) {
	if err := checkSQLite(); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, storageError("open", dir, err)
	}
	path := filepath.Join(dir, catalogName)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, &abi.Error{
			Code: abi.NotFound, Op: "open", Message: dir + " is not a session directory: it has no " + catalogName,
			Remedy: "name the directory that --session was given", IDs: map[string]string{"path": dir},
		}
	}
	mode, err := readingMode(path)
	if err == nil {
		err = catalogSchema.requireCurrent(path, mode)
	}
	if err != nil {
		return nil, storageError("open", path, err)
	}
	k, err := openCatalog(path, mode)
	if err != nil {
		return nil, storageError("open", path, err)
	}
	return &View{catalog: k}, nil
}

// Close ends reading.
func (v *View) Close() error { return storageError("close", v.catalog.path, v.catalog.close()) }

// Sessions lists every session of the directory, eldest first.
func (v *View) Sessions(ctx context.Context) ([]engine.SessionInfo, error) {
	return listSessions(ctx, v.catalog, readable)
}

// Lineage returns the ancestors of a session, itself first, then generation by
// generation back to the roots.
func (v *View) Lineage(ctx context.Context, session engine.SessionID) ([]engine.SessionInfo, error) {
	return lineage(ctx, v.catalog, session, readable)
}

// History lists events of a session, live or ended; see [Store.History].
func (v *View) History(ctx context.Context, session engine.SessionID, q engine.HistoryQuery) ([]engine.Event, error) {
	return readHistory(ctx, v.catalog, session, q, readable)
}

// Saved answers the graph of a session as its store remembers it. For one that
// has ended that is how it was then.
func (v *View) Saved(ctx context.Context, session engine.SessionID) (engine.SavedGraph, error) {
	e, err := v.catalog.entry("read", session)
	if err != nil {
		return engine.SavedGraph{}, err
	}
	mode, err := readable(ctx, e.Path)
	if err != nil {
		return engine.SavedGraph{}, storageError("read", e.Path, err)
	}
	g, err := savedGraph(ctx, e, mode)
	return g, storageError("read", e.Path, err)
}

// State returns what a creature of a session holds in its state.
func (v *View) State(ctx context.Context, session engine.SessionID, creature engine.CreatureID) (state map[string][]byte, err error) {
	err = v.read(ctx, session, func(r *reader) (err error) {
		state, err = r.state(ctx, creature)
		return err
	})
	return state, err
}

// DeadLetters returns dead letters of a session; see [Store.DeadLetters].
func (v *View) DeadLetters(ctx context.Context, session engine.SessionID, creature engine.CreatureID, after engine.EventID, limit int) (letters []engine.DeadLetterRow, err error) {
	err = v.read(ctx, session, func(r *reader) (err error) {
		letters, err = r.letters(ctx, creature, after, limit)
		return err
	})
	return letters, err
}

// read opens the file of a session for one look.
func (v *View) read(ctx context.Context, session engine.SessionID, look func(r *reader) error) error {
	e, err := v.catalog.entry("read", session)
	if err != nil {
		return err
	}
	mode, err := readable(ctx, e.Path)
	if err != nil {
		return storageError("read", e.Path, err)
	}
	r, err := openReader(e.Path, mode)
	if err != nil {
		return storageError("read", e.Path, err)
	}
	return storageError("read", e.Path, errors.Join(look(r), r.close()))
}

// Sessions lists every session of the directory, eldest first.
func (d *Directory) Sessions(ctx context.Context) ([]engine.SessionInfo, error) {
	return listSessions(ctx, d.catalog, owned)
}

// Lineage returns the ancestors of a session, itself first, then generation by
// generation back to the roots.
func (d *Directory) Lineage(ctx context.Context, session engine.SessionID) ([]engine.SessionInfo, error) {
	return lineage(ctx, d.catalog, session, owned)
}

// History lists events of a session, live or ended; see [Store.History].
func (d *Directory) History(ctx context.Context, session engine.SessionID, q engine.HistoryQuery) ([]engine.Event, error) {
	if s := d.opened(session); s != nil {
		return s.History(ctx, q)
	}
	return readHistory(ctx, d.catalog, session, q, owned)
}

// Verify checks a session, live or ended: the file itself, and that its log has
// every event once and every channel in order. It reads the whole file. Damage
// that SQLite finds is part of the report; the code storage means that the file
// could not be read at all.
func (d *Directory) Verify(ctx context.Context, session engine.SessionID) (engine.VerifyReport, error) {
	if s := d.opened(session); s != nil {
		e, err := d.catalog.entry("verify", session)
		if err != nil {
			return engine.VerifyReport{}, err
		}
		return s.verify(ctx, e)
	}
	return verifySession(ctx, d.catalog, session, owned)
}

// Verify checks a session, live or ended; see [Directory.Verify].
func (v *View) Verify(ctx context.Context, session engine.SessionID) (engine.VerifyReport, error) {
	return verifySession(ctx, v.catalog, session, readable)
}

// access checks that a store is one of ours and answers how to read it.
type access func(ctx context.Context, path string) (fileMode, error)

// owned reads a file of a directory that this process owns. A connection that
// may write, although it does not, cleans up behind itself.
func owned(ctx context.Context, path string) (fileMode, error) {
	return readWrite, storeSchema.upgrade(ctx, path)
}

// readable reads a file of somebody else's directory.
func readable(_ context.Context, path string) (fileMode, error) {
	mode, err := readingMode(path)
	if err != nil {
		return mode, err
	}
	return mode, storeSchema.requireCurrent(path, mode)
}

func listSessions(ctx context.Context, k *catalog, how access) ([]engine.SessionInfo, error) {
	entries, err := k.entries()
	if err != nil {
		return nil, storageError("sessions", k.path, err)
	}
	return inspect(ctx, entries, how)
}

// inspect looks into the files of sessions.
func inspect(ctx context.Context, entries []entry, how access) ([]engine.SessionInfo, error) {
	out := make([]engine.SessionInfo, len(entries))
	for i, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out[i] = e.SessionInfo
		mode, err := how(ctx, e.Path)
		if err != nil {
			continue // it is listed all the same, with what the catalogue knows
		}
		r, err := openReader(e.Path, mode)
		if err != nil {
			continue
		}
		out[i] = describe(ctx, e, r)
		if err := r.close(); err != nil {
			return nil, storageError("sessions", e.Path, err)
		}
	}
	return out, nil
}

func lineage(ctx context.Context, k *catalog, session engine.SessionID, how access) ([]engine.SessionInfo, error) {
	entries, err := k.entries()
	if err != nil {
		return nil, storageError("lineage", k.path, err)
	}
	known := map[engine.SessionID]entry{}
	for _, e := range entries {
		known[e.Session] = e
	}
	if _, ok := known[session]; !ok {
		return nil, noSession("lineage", string(session))
	}
	var line []entry
	seen := map[engine.SessionID]bool{session: true}
	for queue := []engine.SessionID{session}; len(queue) > 0; queue = queue[1:] {
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
	return inspect(ctx, line, how)
}

func readHistory(ctx context.Context, k *catalog, session engine.SessionID, q engine.HistoryQuery, how access) (events []engine.Event, err error) {
	e, err := k.entry("history", session)
	if err != nil {
		return nil, err
	}
	mode, err := how(ctx, e.Path)
	if err != nil {
		return nil, storageError("history", e.Path, err)
	}
	r, err := openReader(e.Path, mode)
	if err != nil {
		return nil, storageError("history", e.Path, err)
	}
	events, err = r.history(ctx, q)
	return events, storageError("history", e.Path, errors.Join(err, r.close()))
}

func verifySession(ctx context.Context, k *catalog, session engine.SessionID, how access) (report engine.VerifyReport, err error) {
	e, err := k.entry("verify", session)
	if err != nil {
		return report, err
	}
	mode, err := how(ctx, e.Path)
	if err != nil {
		return report, storageError("verify", e.Path, err)
	}
	r, err := openReader(e.Path, mode)
	if err != nil {
		return report, storageError("verify", e.Path, err)
	}
	if err = r.belongs(ctx, e); err == nil {
		report, err = r.verify(ctx, e)
	}
	return report, storageError("verify", e.Path, errors.Join(err, r.close()))
}

// readingMode finds out how a file can be read. SQLite needs to write a little
// even for that, unless it is told that nobody can write.
func readingMode(path string) (fileMode, error) {
	err := probe(path, readOnly)
	var se sqlite3.Error
	if !errors.As(err, &se) || se.Code != sqlite3.ErrCantOpen && se.Code != sqlite3.ErrReadonly {
		return readOnly, err
	}
	if _, statErr := os.Stat(path); statErr != nil {
		return readOnly, err
	}
	if log, statErr := os.Stat(path + "-wal"); statErr == nil && log.Size() > 0 {
		return readOnly, &abi.Error{
			Code:    abi.Storage,
			Op:      "open",
			Message: fmt.Sprintf("%s was not closed and lies on a medium that cannot be written to", path),
			Remedy:  "copy the directory to where it can be written to, and read the copy",
			IDs:     map[string]string{"path": path},
			Err:     err,
		}
	}
	return immutable, probe(path, immutable)
}

func probe(path string, mode fileMode) error {
	c, err := openConn(path, mode)
	if err != nil {
		return err
	}
	_, _, err = c.integer("SELECT count(*) FROM sqlite_schema")
	return errors.Join(err, c.close())
}
