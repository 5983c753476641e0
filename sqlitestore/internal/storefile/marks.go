package storefile

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// Keys of a file's table store that record what has happened to it. The catalogue decides;
// if it is lost, the marks decide.
const (
	// Unused, Incomplete, Retired and Moved are the marks.
	Unused     = "unused"     // not written to since it was made
	Incomplete = "incomplete" // has only what its session wrote
	Retired    = "retired"    // its session has ended without a cut
	Moved      = "moved"      // its session continues in the file that is named
	// Needs names the sessions whose files are needed beside an incomplete one; without it,
	// those of the parents are.
	Needs = "needs"
	// Siblings names all children of the cut that made the session, or all sessions
	// that were created with it.
	Siblings = "siblings"
	// Seal names the cut that is about to end the session. It is written after everything
	// else. Sealed says that the files of the session's parents have a seal.
	Seal   = "seal"
	Sealed = "sealed"
	// Ended names the sessions that were ended by the cut that made the session, if the file
	// also records what others wrote.
	Ended = "ended"

	// Home names the directory that the file was made in, as its catalogue does.
	Home = "home"

	// Pruned is the time before which history may have been pruned.
	Pruned = "pruned"
	// Based says that the changes of the session's rows are recorded.
	Based = "based"

	// Marks are the marks that hold until the session is written to.
	Marks = "('" + Unused + "', '" + Retired + "', '" + Moved + "')"
)

// Mark durably records what has happened to the file of a session without a writer. A
// file of another session in its place is left as it is.
func Mark(ctx context.Context, path string, session journal.SessionID, key, value string) error {
	if _, err := Schema.Age(ctx, path, sqlite.ReadOnly); err != nil {
		return err
	}
	c, err := sqlite.Open(path, sqlite.ReadWrite)
	if err != nil {
		return err
	}
	err = c.SetDurable(true)
	if err == nil {
		err = c.Exec(`INSERT OR REPLACE INTO store (key, value)
			SELECT ?, ? WHERE EXISTS (SELECT 1 FROM store WHERE key = 'session' AND value = ?)`, key, value, string(session))
	}
	return errors.Join(err, c.Close())
}

// WriteSeal records the cut for which the file is no longer written to.
func WriteSeal(c *sqlite.Conn, cut string) error {
	return c.Exec("INSERT OR REPLACE INTO store (key, value) VALUES (?, ?)", Seal, cut)
}

// NoteWrote writes what a session that has ended wrote under its own origins,
// within a transaction.
func NoteWrote(c *sqlite.Conn, session journal.SessionID, wrote map[journal.Origin]uint64) error {
	for origin, highest := range wrote {
		if err := c.Exec("INSERT OR REPLACE INTO wrote (session, uuid, highest) VALUES (?, ?, ?)", string(session), origin[:], int64(highest)); err != nil {
			return err
		}
	}
	return nil
}

// Says reports whether a file has a value under a key.
func Says(ctx context.Context, path, key, value string) bool {
	return answers(ctx, path, "SELECT 1 FROM store WHERE key = ? AND value = ?", key, value)
}

// IsUnused reports whether a file carries the mark with which every store is made. The
// first record after the catalogue has accepted the store removes the mark.
func IsUnused(ctx context.Context, path string) bool {
	return answers(ctx, path, "SELECT 1 FROM store WHERE key = ?", Unused)
}

// answers reports whether a file is a store and has a row that a query selects.
func answers(ctx context.Context, path, query string, args ...driver.Value) bool {
	c, _, err := Schema.Open(ctx, path, sqlite.ReadOnly)
	if err != nil {
		return false
	}
	_, found, err := c.Integer(query, args...)
	return errors.Join(err, c.Close()) == nil && found
}
