package catalog

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// Which sessions need which files. A complete session has its whole history in its own
// file. An incomplete one needs the files of its parents and, if these are not complete
// either, those that they need. It does not need the file of a parent whose events were
// copied to its own file when it was made, but only what that parent needs. If a cut has
// ended a session and no other session needs it, all its events are in files of its
// descendants, and its own file can be removed.

// Needed returns the sessions whose files have what the file of the given one lacks.
func (k *Catalog) Needed(ctx context.Context, session journal.SessionID) ([]Entry, error) {
	return k.selectEntries(ctx, `WHERE s.session IN (
		WITH RECURSIVE behind (session) AS (
			SELECT n.needed FROM store c JOIN need n ON n.session = c.session WHERE c.session = ? AND NOT c.complete
			UNION
			SELECT n.needed FROM behind b JOIN store c ON c.session = b.session AND NOT c.complete JOIN need n ON n.session = c.session
		) SELECT session FROM behind) ORDER BY s.no`, string(session))
}

// Needs returns the sessions whose files a session needs directly; see [Entry].
func (k *Catalog) Needs(ctx context.Context, session journal.SessionID) (needs []journal.SessionID, err error) {
	err = k.query(ctx, "SELECT needed FROM need WHERE session = ? ORDER BY needed", []driver.Value{string(session)}, func(v []driver.Value) error {
		var needed string
		err := sqlite.TakeRow(v, &needed)
		needs = append(needs, journal.SessionID(needed))
		return err
	})
	return needs, err
}

// ancestry is a query for a session, given as ?1, and all its ancestors.
const ancestry = `WITH RECURSIVE line (session) AS (
	SELECT ?1 UNION SELECT p.parent FROM line l JOIN parent p ON p.child = l.session) SELECT session FROM line`

// Line lists the ancestors of a session, and the session itself.
func (k *Catalog) Line(ctx context.Context, session journal.SessionID) ([]Entry, error) {
	return k.selectEntries(ctx, "WHERE s.session IN ("+ancestry+") ORDER BY s.no", string(session))
}

// Inherited returns the origins of a session's ancestors, and of the session itself if it
// has ended, with the highest number of each.
func (k *Catalog) Inherited(ctx context.Context, session journal.SessionID) (map[journal.Origin]uint64, error) {
	out := map[journal.Origin]uint64{}
	err := k.query(ctx, "SELECT uuid, max(highest) FROM origin WHERE session IN ("+ancestry+") AND highest > 0 GROUP BY uuid", []driver.Value{string(session)},
		func(v []driver.Value) error {
			return storefile.TakeHighest(v, out)
		})
	return out, err
}

// WroteAs returns the origins under which an ended session has written.
func (k *Catalog) WroteAs(ctx context.Context, session journal.SessionID) (map[journal.Origin]uint64, error) {
	out := map[journal.Origin]uint64{}
	err := k.query(ctx, "SELECT uuid, highest FROM origin WHERE session = ?", []driver.Value{string(session)}, func(v []driver.Value) error {
		return storefile.TakeHighest(v, out)
	})
	return out, err
}

// Successor returns a session whose file, or family of files, holds everything of another
// session whose file has been removed. found is false when there is none.
func (k *Catalog) Successor(ctx context.Context, session journal.SessionID) (successor Entry, found bool, err error) {
	entries, err := k.selectEntries(ctx, `WHERE s.file IS NOT NULL AND s.session IN (
		WITH RECURSIVE issue (session) AS (
			SELECT ? UNION SELECT p.child FROM issue i JOIN parent p ON p.parent = i.session
		) SELECT session FROM issue) ORDER BY s.live DESC, s.complete DESC, s.no LIMIT 1`, string(session))
	if err != nil || len(entries) == 0 {
		return Entry{}, false, err
	}
	return entries[0], true, nil
}

// Incomplete lists the sessions that are to get their history: those that are not
// complete and that no cut has ended. The history of a session that a cut has ended is in
// its children.
func (k *Catalog) Incomplete(ctx context.Context) ([]Entry, error) {
	return k.selectEntries(ctx, "WHERE NOT s.complete AND s.ended_by IS NULL ORDER BY s.no")
}

// Remains counts the ended sessions with a file that the background can remove once their
// descendants have what is in it. A session that no descendant names keeps its file.
func (k *Catalog) Remains(ctx context.Context) (n int, err error) {
	err = k.query(ctx, "SELECT count(*) FROM store WHERE file IS NOT NULL AND ended_by IS NOT NULL AND EXISTS (SELECT 1 FROM parent p WHERE p.parent = store.session)", nil, func(v []driver.Value) error {
		count, ok := v[0].(int64)
		if !ok {
			return fmt.Errorf("a count is a %T", v[0])
		}
		n = int(count)
		return nil
	})
	return n, err
}

// Unneeded lists the sessions whose files can be removed. The cuts that ended them are
// durable. Unneeded lists none while an incomplete session names no file that it needs:
// what such a session needs has been lost from the catalogue.
func (k *Catalog) Unneeded(ctx context.Context) ([]Entry, error) {
	return k.selectEntries(ctx, `WHERE s.file IS NOT NULL AND s.ended_by IS NOT NULL
		AND EXISTS (SELECT 1 FROM cut c WHERE c.id = s.ended_by AND c.firm)
		AND EXISTS (SELECT 1 FROM parent p WHERE p.parent = s.session)
		AND EXISTS (SELECT 1 FROM origin o WHERE o.session = s.session)
		AND NOT EXISTS (SELECT 1 FROM store c WHERE NOT c.complete AND c.ended_by IS NULL AND NOT EXISTS (SELECT 1 FROM need n WHERE n.session = c.session))
		AND s.session NOT IN (
			WITH RECURSIVE behind (session) AS (
				SELECT n.needed FROM store c JOIN need n ON n.session = c.session WHERE NOT c.complete AND c.ended_by IS NULL
				UNION
				SELECT n.needed FROM behind b JOIN store c ON c.session = b.session AND NOT c.complete JOIN need n ON n.session = c.session
			) SELECT session FROM behind) ORDER BY s.no`)
}

// Hydration is a file that will become a session's whole file.
type Hydration struct {
	File    string // in stores/
	Session journal.SessionID
	Base    string // in stores/; "" for none
	Copied  int64  // bytes of base; -1: all
	Begun   bool   // by an earlier attempt
}

// AllCopied is the progress when all of a base has been copied.
const AllCopied = -1
