package sqlitestore

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// volatileParent stands in a lineage for a graph that had no store.
const volatileParent = "volatile"

// kindFork is the kind of the cut that made a fork: one child, in a directory of its
// own, and a parent that goes on in another.
const kindFork = "fork"

// catalog decides which stores are live, and which file holds what. Its methods
// may be called by any goroutine; what says that it is used within a transaction
// is called by [catalog.commit].
type catalog struct {
	path  string
	hooks hooks  // for what is made of a session elsewhere
	wrote func() // is told that the log has grown; may be nil

	mu sync.Mutex
	c  *conn // nil after it was given up; see ready
}

// entry is a session as the catalogue knows it.
type entry struct {
	journal.SessionInfo
	born uint64
	cut  string // that made it, or ""
	kind string // of that cut
	file string // in stores/; "" when it has been removed
	held vouched
	home string // the directory that a file is made in; only known then
}

// openCatalog opens a catalogue that is only looked at, or that nobody knows yet.
func openCatalog(path string, mode fileMode) (*catalog, error) {
	c, err := openCatalogFile(path, mode)
	if err != nil {
		return nil, err
	}
	return &catalog{path: path, c: c}, nil
}

func openCatalogFile(path string, mode fileMode) (*conn, error) {
	c, err := openConn(path, mode)
	if err != nil {
		return nil, err
	}
	// Who commits makes that durable, without holding up others; see [catalog.commit].
	// The log is emptied in the background.
	if err := errors.Join(c.tempo(false), c.exec(fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", checkpointPages))); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (k *catalog) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.c == nil {
		return nil
	}
	return k.c.close()
}

// query reads; see [conn.query].
func (k *catalog) query(ctx context.Context, query string, args []driver.Value, row func([]driver.Value) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.ready(); err != nil {
		return err
	}
	return k.c.queryWithin(ctx, query, args, row)
}

const entryFields = `s.session, s.graph, s.born, s.durability, s.live, s.complete, s.created, s.merged_at, s.split_at, coalesce(s.cut, ''),
	coalesce((SELECT kind FROM cut WHERE id = s.cut), ''), coalesce(s.file, ''), s.meta,
	(SELECT group_concat(parent, ' ') FROM (SELECT parent FROM parent p WHERE p.child = s.session ORDER BY p.ordinal))`

// selectEntries lists the entries that the end of a query chooses among the rows
// of store, named s.
func (k *catalog) selectEntries(ctx context.Context, rest string, args ...driver.Value) (out []entry, err error) {
	err = k.query(ctx, "SELECT "+entryFields+" FROM store s "+rest, args, func(v []driver.Value) error {
		e, err := k.scanEntry(v)
		out = append(out, e)
		return err
	})
	return out, err
}

func (k *catalog) scanEntry(v []driver.Value) (entry, error) {
	var session, graph, durability, meta string
	e := entry{SessionInfo: journal.SessionInfo{Events: -1}}
	if err := takeRow(v, &session, &graph, &e.born, &durability, &e.Live, &e.Complete, &e.Created, &e.MergedAt, &e.SplitAt, &e.cut, &e.kind, &e.file, &meta); err != nil {
		return entry{}, fmt.Errorf("session %v: %w", v[0], err)
	}
	if session == "" {
		return entry{}, &cellError{"a session has no id"}
	}
	if err := plainIDs(session); err != nil {
		return entry{}, err
	}
	e.Session, e.Graph = journal.SessionID(session), journal.GraphID(graph)
	var known bool
	if e.Durability, known = journal.ParseDurability(durability); !known {
		return entry{}, &cellError{fmt.Sprintf("session %s has the unknown durability %q", session, shorten(durability))}
	}
	if e.file != "" {
		if err := k.storeName(fmt.Sprintf("store (session %s)", session), e.file); err != nil {
			return entry{}, err
		}
		var err error
		if e.Path, err = k.filePath(e.file); err != nil {
			return entry{}, err
		}
		e.held = vouched{e.Path, e.Session}
	}
	if parents, _ := v[13].(string); parents != "" {
		for p := range strings.SplitSeq(parents, " ") {
			e.Parents = append(e.Parents, journal.SessionID(p))
		}
	}
	if e.cut == "" && len(e.Parents) > 0 { // forks had no cut, and were taken for splits
		e.kind, e.SplitAt = kindFork, 0
	}
	e.MadeBy = e.kind
	if err := json.Unmarshal([]byte(meta), &e.Meta); err != nil {
		return entry{}, &cellError{fmt.Sprintf("the metadata of session %s: %v", session, err)}
	}
	return e, nil
}

// entries lists sessions, eldest first.
func (k *catalog) entries(ctx context.Context) ([]entry, error) {
	return k.selectEntries(ctx, "ORDER BY s.no")
}

func (k *catalog) entry(ctx context.Context, op string, session journal.SessionID) (entry, error) {
	entries, err := k.selectEntries(ctx, "WHERE s.session = ?", string(session))
	if err != nil {
		return entry{}, storageError(op, k.path, err)
	}
	if len(entries) == 0 {
		return entry{}, noSession(op, string(session))
	}
	return entries[0], nil
}

// addCut inserts a cut that is durable, within a transaction, if it is not there.
func (k *catalog) addCut(id, kind string, at int64) error {
	return k.c.exec("INSERT OR IGNORE INTO cut (id, kind, at) VALUES (?, ?, ?)", id, kind, at)
}

// filePath is where a file of the directory stores is. Every path that is made of what
// a file says is made here, so that none leads elsewhere.
func (k *catalog) filePath(file string) (string, error) {
	name, err := nameOfStore(file)
	if err != nil {
		return "", storageError("open", k.path, err)
	}
	return files.InStores(filepath.Dir(k.path), name), nil
}

// add inserts a session, within a transaction.
func (k *catalog) add(e entry) error {
	if err := k.c.exec(`INSERT INTO store (session, graph, born, durability, live, complete, created, merged_at, split_at, cut, file)
		VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?)`, string(e.Session), string(e.Graph), int64(e.born), e.Durability.String(), e.Complete,
		e.Created, e.MergedAt, e.SplitAt, text(e.cut), text(e.file)); err != nil {
		return err
	}
	for i, p := range e.Parents {
		if err := k.c.exec("INSERT INTO parent (child, ordinal, parent) VALUES (?, ?, ?)", string(e.Session), int64(i), string(p)); err != nil {
			return err
		}
	}
	return nil
}

// freeze ends a live session, within a transaction. wrote are the origins under
// which it has written, with the highest number of each.
func (k *catalog) freeze(session journal.SessionID, cut string, wrote map[journal.Origin]uint64) error {
	if err := k.c.exec("UPDATE store SET live = 0, ended_by = ? WHERE session = ?", text(cut), string(session)); err != nil {
		return err
	}
	if err := k.c.exec("DELETE FROM mark WHERE session = ?", string(session)); err != nil {
		return err
	}
	for origin, highest := range wrote {
		if err := k.c.exec("INSERT OR REPLACE INTO origin (session, uuid, highest) VALUES (?, ?, ?)", string(session), origin[:], int64(highest)); err != nil {
			return err
		}
	}
	return nil
}

// createCatalog makes the catalogue of a new directory. It appears under its
// name when it is whole and durable.
func createCatalog(path string, h hooks) error {
	content, err := catalogSchema.template()
	if err != nil {
		return err
	}
	if err := h.writeWhole(path, content); err != nil {
		return err
	}
	return h.syncDirectory(filepath.Dir(path))
}

// writeWhole writes a file that is either there in full, or not at all.
func (h hooks) writeWhole(path string, content []byte) error {
	partial := path + partialSuffix
	f, err := files.OpenFile(partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, h.sync(f), f.Close()); err != nil {
		return errors.Join(err, files.Remove(partial))
	}
	return files.Rename(partial, path)
}

// diskSize is the size of a database with what belongs to it.
func diskSize(path string) (n int64) {
	for _, suffix := range databaseSuffixes {
		n += files.Size(path + suffix)
	}
	return n
}

// removeDatabase removes a database with what belongs to it. The database goes last:
// as long as it is there, it is known what is to be removed.
func (h hooks) removeDatabase(path string) error {
	for _, suffix := range slices.Backward(databaseSuffixes) {
		if err := h.at(pointRemoving, path+suffix); err != nil {
			return err
		}
		if err := files.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := h.at(pointRemoved, path+suffix); err != nil {
			return err
		}
	}
	return nil
}
