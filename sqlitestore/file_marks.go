package sqlitestore

import (
	"context"
	"errors"

	"github.com/seed47132306/terrarium/engine/journal"
)

// Keys of a file's table store that say what has become of it. The catalogue
// decides; the marks are what is left to decide when it is lost.
const (
	markUnused     = "unused"     // not written to since it was made
	markIncomplete = "incomplete" // has only what its session wrote
	markRetired    = "retired"    // its session has ended without a cut
	markMoved      = "moved"      // its session goes on in the file that is named
	// keySiblings names all children of the cut that made the session, or all sessions
	// that were created with it.
	keySiblings = "siblings"
	// keySeal names the cut that is about to end the session. It is written behind
	// everything else. keySealed says that the parents of the session have it.
	keySeal   = "seal"
	keySealed = "sealed"

	// keyHome names the directory that the file was made in: see [catalog.home].
	keyHome = "home"

	// marks are those that hold until the session is written to.
	marks = "('" + markUnused + "', '" + markRetired + "', '" + markMoved + "')"
)

// unmark removes them, within a transaction.
func (w *writer) unmark() error { return w.c.exec("DELETE FROM store WHERE key IN " + marks) }

// mark writes durably into the file of a session that nobody is writing to what
// has become of it. A file of something else in its place is left as it is.
func mark(ctx context.Context, path string, session journal.SessionID, key, value string) error {
	if _, err := storeSchema.age(ctx, path, readOnly); err != nil {
		return err
	}
	c, err := openConn(path, readWrite)
	if err != nil {
		return err
	}
	err = c.tempo(true)
	if err == nil {
		err = c.exec(`INSERT OR REPLACE INTO store (key, value)
			SELECT ?, ? WHERE EXISTS (SELECT 1 FROM store WHERE key = 'session' AND value = ?)`, key, value, string(session))
	}
	return errors.Join(err, c.close())
}

// seal writes for which cut nothing is written to the file from now on.
func (c *conn) seal(cut string) error {
	return c.exec("INSERT OR REPLACE INTO store (key, value) VALUES (?, ?)", keySeal, cut)
}

// noteWrote writes what a session that has ended wrote under its own origins,
// within a transaction.
func (c *conn) noteWrote(session journal.SessionID, wrote map[journal.Origin]uint64) error {
	for origin, highest := range wrote {
		if err := c.exec("INSERT OR REPLACE INTO wrote (session, uuid, highest) VALUES (?, ?, ?)", string(session), origin[:], int64(highest)); err != nil {
			return err
		}
	}
	return nil
}
