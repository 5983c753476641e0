package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
)

// volatileParent stands in a lineage for a graph that had no store.
const volatileParent = "volatile"

// catalogTries is how often a catalogue whose commit failed is asked what
// became of it.
const catalogTries = 5

// catalog decides which stores are live. It is used by one goroutine at a time.
type catalog struct {
	path string
	c    *conn
}

// entry is a session as the catalogue knows it.
type entry struct {
	engine.SessionInfo
	born uint64
	cut  string // that made it, or ""
}

func openCatalog(path string, mode fileMode) (*catalog, error) {
	k := &catalog{path: path}
	var err error
	if k.c, err = openConn(path, mode); err != nil {
		return nil, err
	}
	// A cut is only as durable as the catalogue, so it is always safe against
	// power loss.
	if err := k.c.exec("PRAGMA synchronous = FULL"); err != nil {
		return nil, errors.Join(err, k.c.close())
	}
	return k, nil
}

func (k *catalog) close() error {
	if k.c == nil {
		return nil
	}
	return k.c.close()
}

// ready opens the catalogue again if that failed when it was last tried.
func (k *catalog) ready() error {
	if k.c != nil {
		return nil
	}
	fresh, err := openCatalog(k.path, readWrite)
	if err == nil {
		k.c = fresh.c
	}
	return err
}

// entries lists sessions, eldest first.
func (k *catalog) entries() ([]entry, error) {
	if err := k.ready(); err != nil {
		return nil, err
	}
	parents := map[engine.SessionID][]engine.SessionID{}
	err := k.c.query("SELECT child, parent FROM parent ORDER BY child, ordinal", nil, func(v []driver.Value) error {
		child := engine.SessionID(v[0].(string))
		parents[child] = append(parents[child], engine.SessionID(v[1].(string)))
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []entry
	err = k.c.query(`SELECT session, graph, born, durability, live, complete, created, merged_at, split_at, coalesce(cut, '')
		FROM store ORDER BY no`, nil, func(v []driver.Value) error {
		durability, ok := engine.ParseDurability(v[3].(string))
		if !ok {
			return fmt.Errorf("session %s has the unknown durability %q", v[0], v[3])
		}
		session := engine.SessionID(v[0].(string))
		out = append(out, entry{
			SessionInfo: engine.SessionInfo{
				Session: session, Graph: engine.GraphID(v[1].(string)), Path: k.storePath(session),
				Live: v[4].(int64) != 0, Complete: v[5].(int64) != 0, Durability: durability,
				Created: v[6].(int64), MergedAt: v[7].(int64), SplitAt: v[8].(int64),
				Parents: parents[session], Events: -1,
			},
			born: uint64(v[2].(int64)), cut: v[9].(string),
		})
		return nil
	})
	return out, err
}

func (k *catalog) entry(op string, session engine.SessionID) (entry, error) {
	entries, err := k.entries()
	if err != nil {
		return entry{}, storageError(op, k.path, err)
	}
	for _, e := range entries {
		if e.Session == session {
			return e, nil
		}
	}
	return entry{}, noSession(op, string(session))
}

func (k *catalog) storePath(session engine.SessionID) string {
	return filepath.Join(filepath.Dir(k.path), storesName, string(session)+storeSuffix)
}

// add inserts a session, within a transaction.
func (k *catalog) add(e entry) error {
	if err := k.c.exec(`INSERT INTO store (session, graph, born, durability, live, complete, created, merged_at, split_at, cut)
		VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?)`, string(e.Session), string(e.Graph), int64(e.born), e.Durability.String(), e.Complete,
		e.Created, e.MergedAt, e.SplitAt, text(e.cut)); err != nil {
		return err
	}
	for i, p := range e.Parents {
		if err := k.c.exec("INSERT INTO parent (child, ordinal, parent) VALUES (?, ?, ?)", string(e.Session), int64(i), string(p)); err != nil {
			return err
		}
	}
	return nil
}

// freeze ends live sessions, within a transaction.
func (k *catalog) freeze(sessions []engine.SessionID, cut string) error {
	for _, s := range sessions {
		if err := k.c.exec("UPDATE store SET live = 0, ended_by = ? WHERE session = ?", text(cut), string(s)); err != nil {
			return err
		}
	}
	return nil
}

// errUnknown is in the chain of an error after which nobody knows whether the
// catalogue was changed. The files concerned must then be left alone: the next
// start finds out.
var errUnknown = errors.New("the outcome is unknown")

// commit runs change in a transaction. When that fails it is unknown what
// reached the disk; then landed, a query that answers a row if the change was
// made, decides whether commit succeeded.
func (k *catalog) commit(h hooks, change func() error, landed string, args ...driver.Value) error {
	if err := k.ready(); err != nil {
		return err
	}
	err := k.c.transact(func() error {
		if err := change(); err != nil {
			return err
		}
		if h.committing != nil {
			return h.committing(k.path)
		}
		return nil
	})
	if err == nil && h.committed != nil {
		err = h.committed(k.path)
	}
	if err == nil {
		return nil
	}
	found, lookErr := backoff.Retry(context.Background(), func() (bool, error) {
		return k.look(landed, args)
	}, backoff.WithMaxTries(catalogTries), backoff.WithMaxElapsedTime(time.Second))
	switch {
	case lookErr != nil:
		return &abi.Error{
			Code:    abi.Storage,
			Op:      "commit",
			Message: k.path + ": it is unknown whether the change was made",
			Remedy:  "close the directory and open it again, when the disk works",
			IDs:     map[string]string{"path": k.path},
			Err:     errors.Join(errUnknown, err, lookErr),
		}
	case found:
		return nil
	}
	return err
}

// look asks the file itself, through a new connection. What it finds may not
// have reached the disk, and is made to.
func (k *catalog) look(landed string, args []driver.Value) (bool, error) {
	_ = k.close() // given up, whatever it says
	k.c = nil
	if err := k.ready(); err != nil {
		return false, err
	}
	_, found, err := k.c.integer(landed, args...)
	if err == nil && found {
		err = k.c.sync(catalogSchema)
	}
	return found, err
}

// createCatalog makes the catalogue of a new directory. It appears under its
// name when it is whole and durable.
func createCatalog(path string, h hooks) error {
	content, err := catalogSchema.template()
	if err != nil {
		return err
	}
	if err := writeWhole(path, content); err != nil {
		return err
	}
	return h.syncDirectory(filepath.Dir(path))
}

// writeWhole writes a file that is either there in full, or not at all.
func writeWhole(path string, content []byte) error {
	partial := path + partialSuffix
	f, err := os.OpenFile(partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(partial))
	}
	return os.Rename(partial, path)
}

// diskSize is the size of a database with what belongs to it.
func diskSize(path string) (n int64) {
	for _, suffix := range databaseSuffixes {
		if info, err := os.Stat(path + suffix); err == nil {
			n += info.Size()
		}
	}
	return n
}

// removeDatabase removes a database with what belongs to it.
func removeDatabase(path string) error {
	var errs []error
	for _, suffix := range databaseSuffixes {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
