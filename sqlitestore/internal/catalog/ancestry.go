package catalog

import (
	"context"
	"database/sql/driver"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// Which sessions need which files. A complete session has its whole history in its own
// file. An incomplete one needs the files of its parents and, if these are not complete
// either, of their parents. If a cut has ended a session and no other session needs it,
// all its events are in files of its descendants, and its own file can be removed.

// Needed are the sessions whose files have what the given one lacks: its parents, and the
// ancestors behind parents that are not complete themselves.
func (k *Catalog) Needed(ctx context.Context, session journal.SessionID) ([]Entry, error) {
	return k.selectEntries(ctx, `WHERE s.session IN (
		WITH RECURSIVE need (session) AS (
			SELECT p.parent FROM store c JOIN parent p ON p.child = c.session WHERE c.session = ? AND NOT c.complete
			UNION
			SELECT p.parent FROM need n JOIN store c ON c.session = n.session AND NOT c.complete JOIN parent p ON p.child = c.session
		) SELECT session FROM need) ORDER BY s.no`, string(session))
}

// ancestry is a query for a session, given as ?1, and all its ancestors.
const ancestry = `WITH RECURSIVE line (session) AS (
	SELECT ?1 UNION SELECT p.parent FROM line l JOIN parent p ON p.child = l.session) SELECT session FROM line`

// Line lists the ancestors of a session, and the session itself.
func (k *Catalog) Line(ctx context.Context, session journal.SessionID) ([]Entry, error) {
	return k.selectEntries(ctx, "WHERE s.session IN ("+ancestry+") ORDER BY s.no", string(session))
}

// Inherited are the origins of a session's ancestors, with the highest number
// of each, and of the session itself if it has ended.
func (k *Catalog) Inherited(ctx context.Context, session journal.SessionID) (map[journal.Origin]uint64, error) {
	out := map[journal.Origin]uint64{}
	err := k.query(ctx, "SELECT uuid, max(highest) FROM origin WHERE session IN ("+ancestry+") AND highest > 0 GROUP BY uuid", []driver.Value{string(session)},
		func(v []driver.Value) error {
			return storefile.TakeHighest(v, out)
		})
	return out, err
}

// Ancestors are the parents of all sessions, and the origins under which ended sessions
// wrote. For queries about every session it is cheaper than asking the catalogue.
type Ancestors struct {
	parents map[journal.SessionID][]journal.SessionID
	wrote   map[journal.SessionID]map[journal.Origin]uint64
}

// Ancestors reads them for all sessions.
func (k *Catalog) Ancestors(ctx context.Context) (*Ancestors, error) {
	a := &Ancestors{map[journal.SessionID][]journal.SessionID{}, map[journal.SessionID]map[journal.Origin]uint64{}}
	err := k.query(ctx, "SELECT child, parent FROM parent", nil, func(v []driver.Value) error {
		var child, parent string
		err := sqlite.TakeRow(v, &child, &parent)
		a.parents[journal.SessionID(child)] = append(a.parents[journal.SessionID(child)], journal.SessionID(parent))
		return err
	})
	if err != nil {
		return nil, err
	}
	return a, k.query(ctx, "SELECT session, uuid, highest FROM origin WHERE highest > 0", nil, func(v []driver.Value) error {
		var session string
		if err := sqlite.TakeRow(v[:1], &session); err != nil {
			return err
		}
		wrote := a.wrote[journal.SessionID(session)]
		if wrote == nil {
			wrote = map[journal.Origin]uint64{}
			a.wrote[journal.SessionID(session)] = wrote
		}
		return storefile.TakeHighest(v[1:], wrote)
	})
}

// Inherited is [Catalog.Inherited].
func (a *Ancestors) Inherited(session journal.SessionID) map[journal.Origin]uint64 {
	out, seen := map[journal.Origin]uint64{}, map[journal.SessionID]bool{session: true}
	for queue := []journal.SessionID{session}; len(queue) > 0; queue = queue[1:] {
		for origin, highest := range a.wrote[queue[0]] {
			out[origin] = max(out[origin], highest)
		}
		for _, p := range a.parents[queue[0]] {
			if !seen[p] {
				seen[p] = true
				queue = append(queue, p)
			}
		}
	}
	return out
}

// WroteAs are the origins under which an ended session has written.
func (k *Catalog) WroteAs(ctx context.Context, session journal.SessionID) (map[journal.Origin]uint64, error) {
	out := map[journal.Origin]uint64{}
	err := k.query(ctx, "SELECT uuid, highest FROM origin WHERE session = ?", []driver.Value{string(session)}, func(v []driver.Value) error {
		return storefile.TakeHighest(v, out)
	})
	return out, err
}

// Successor is a session whose file, or family of files, holds everything of another session
// whose file has been removed. found is false when there is none.
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

// Unneeded lists the sessions whose files can be removed.
func (k *Catalog) Unneeded(ctx context.Context) ([]Entry, error) {
	return k.selectEntries(ctx, `WHERE s.file IS NOT NULL AND s.ended_by IS NOT NULL
		AND EXISTS (SELECT 1 FROM parent p WHERE p.parent = s.session)
		AND EXISTS (SELECT 1 FROM origin o WHERE o.session = s.session)
		AND s.session NOT IN (
			WITH RECURSIVE need (session) AS (
				SELECT p.parent FROM store c JOIN parent p ON p.child = c.session WHERE NOT c.complete AND c.ended_by IS NULL
				UNION
				SELECT p.parent FROM need n JOIN store c ON c.session = n.session AND NOT c.complete JOIN parent p ON p.child = c.session
			) SELECT session FROM need) ORDER BY s.no`)
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
