package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite3"
)

// CheckpointPages is the size of a write-ahead log, in pages, at which SQLite itself
// checkpoints within a commit. This is a safety net: the directory's checkpoints begin
// long before.
const CheckpointPages = 16_384

// IdleConnections is how many connections a pool keeps: one costs descriptors and memory,
// and there may be many stores.
const IdleConnections = 1

// Pool makes a pool of connections for reading, whose first connection is this one, since
// opening a connection reads the whole schema of the file. As long as that connection is
// open, the file can be read even after it has been removed.
func (c *Conn) Pool(ctx context.Context, connections int) (*sql.DB, error) {
	// SQLite opens the write-ahead log by name on the first read. If the log had been
	// removed by then, its content would be missing without an error.
	if _, _, err := c.IntegerWithin(ctx, "PRAGMA user_version"); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	k := &connector{path: c.Path, mode: c.Mode}
	k.first.Store(c)
	db := k.pool(connections)
	owned, err := db.Conn(ctx) // from now on it is closed with the pool
	if err == nil {
		err = owned.Close()
	}
	if err != nil {
		err = errors.Join(err, db.Close())
		if c := k.first.Swap(nil); c != nil {
			err = errors.Join(err, c.Close())
		}
		return nil, err
	}
	return db, nil
}

// OpenPool opens such a pool. Its first connection is made on the first read.
func OpenPool(path string, mode Mode, connections int) *sql.DB {
	return (&connector{path: path, mode: mode}).pool(connections)
}

// connector opens the connections of a pool, which cannot write.
type connector struct {
	path  string
	mode  Mode
	first atomic.Pointer[Conn] // one that is open already
}

func (k *connector) pool(connections int) *sql.DB {
	db := sql.OpenDB(k)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(IdleConnections)
	db.SetConnMaxIdleTime(time.Minute)
	return db
}

var _ driver.Connector = (*connector)(nil)

// Connect opens a connection for a pool.
func (k *connector) Connect(context.Context) (driver.Conn, error) {
	c := k.first.Swap(nil)
	if c == nil {
		var err error
		if c, err = Open(k.path, k.mode); err != nil {
			return nil, err
		}
	}
	if err := c.Exec("PRAGMA query_only = ON"); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c.raw, nil
}

// Driver returns the driver of the connections.
func (k *connector) Driver() driver.Driver { return &sqlite3.Driver{} }
