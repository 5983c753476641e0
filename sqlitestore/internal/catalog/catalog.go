package catalog

import (
	"context"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// Name is the name of the file of a session directory that contains the catalogue.
const Name = "catalog.db"

//go:embed *.sql
var migrations embed.FS

// Schema is the layout of that file.
var Schema = sqlite.NewSchema("a session catalogue", 0x54455243, 5, migrations, nil)

// KindFork is the kind of the cut that made a fork: one child, in a directory of its own,
// and a parent that continues in another.
const KindFork = journal.CutFork

// Catalog is the catalogue of one session directory. Its methods may be called by any
// goroutine.
type Catalog struct {
	path  string
	hooks failpoint.Hooks
	wrote func() // called when the log has grown; may be nil

	mu         sync.Mutex // guards what follows
	connection connection
}

// connection is the one connection to the file.
type connection struct {
	*sqlite.Conn // nil after a failure; see ready
}

// Entry is a session as the catalogue knows it.
type Entry struct {
	journal.SessionInfo
	Born uint64          // of its graph
	Cut  string          // that made it, or ""
	Kind journal.CutKind // of that cut
	File string          // in stores/; "" when it has been removed
	// Needs are the sessions whose files a new incomplete session needs directly, beside its
	// own. It also needs the files that these sessions need. Only new entries have Needs:
	// see [Catalog.Needs].
	Needs []journal.SessionID
}

// Description is what the file of an ended session records about the session, which never
// changes.
type Description struct {
	Meta   string // as JSON
	Events int64  // that the file has
}

// Descriptions are those of several sessions.
type Descriptions map[journal.SessionID]Description

// Look makes a catalogue that is only read. It takes over the connection.
func Look(c *sqlite.Conn) (*Catalog, error) {
	if err := setUp(c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &Catalog{path: c.Path, connection: connection{c}}, nil
}

func setUp(c *sqlite.Conn) error {
	// Commits are made durable separately, without delaying others; see [Catalog.commit].
	// The log is emptied in the background.
	return errors.Join(c.SetDurable(false), c.Exec(fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", sqlite.CheckpointPages)))
}

// OnWrite sets the function that is called when the log of the file has grown.
func (k *Catalog) OnWrite(f func()) { k.wrote = f }

// Path returns the path of the catalogue.
func (k *Catalog) Path() string { return k.path }

// Dir returns the session directory of the catalogue.
func (k *Catalog) Dir() string { return filepath.Dir(k.path) }

// Close closes the catalogue.
func (k *Catalog) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.connection.Conn == nil {
		return nil
	}
	return k.connection.Close()
}

// Make makes the catalogue of a new directory. It gets its name when it is complete and
// durable.
func Make(path string, h failpoint.Hooks) error {
	content, err := Schema.Template()
	if err != nil {
		return err
	}
	if err := h.WriteWhole(path, content); err != nil {
		return err
	}
	return h.SyncDirectory(filepath.Dir(path))
}

// Sound reports whether SQLite finds the file undamaged.
func (k *Catalog) Sound(ctx context.Context) (sound bool, err error) {
	err = k.query(ctx, "PRAGMA integrity_check(1)", nil, func(v []driver.Value) error {
		sound = sqlite.TextIn(v[0]) == "ok"
		return nil
	})
	return sound, err
}

// UnknownOrigin replaces, in the catalogue, the origins of an ended session that are not
// known.
var UnknownOrigin journal.Origin

// LacksAuthors reports whether the catalogue no longer knows which events a session or
// one of its ancestors wrote.
func (k *Catalog) LacksAuthors(ctx context.Context, session journal.SessionID) (bool, error) {
	_, unknown, err := k.integer(ctx, "SELECT 1 FROM origin WHERE uuid = ?2 AND session IN ("+ancestry+")", string(session), UnknownOrigin[:])
	return unknown, err
}
