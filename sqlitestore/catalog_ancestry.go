package sqlitestore

import (
	"context"
	"database/sql/driver"

	"github.com/seed47132306/terrarium/engine/journal"
)

// Who needs whom. A session that is complete has its whole history in its file.
// One that is not needs the files of its parents and, as far as those are not
// complete either, of theirs. A session that a cut has ended and that nobody
// needs has all its events in files of its descendants, and its own file can go.

// needed are the sessions whose files have what the given one lacks: its
// parents, and theirs behind those that are not complete themselves.
func (k *catalog) needed(ctx context.Context, session journal.SessionID) ([]entry, error) {
	return k.selectEntries(ctx, `WHERE s.session IN (
		WITH RECURSIVE need (session) AS (
			SELECT p.parent FROM store c JOIN parent p ON p.child = c.session WHERE c.session = ? AND NOT c.complete
			UNION
			SELECT p.parent FROM need n JOIN store c ON c.session = n.session AND NOT c.complete JOIN parent p ON p.child = c.session
		) SELECT session FROM need) ORDER BY s.no`, string(session))
}

// ancestry is a query of a session and all its ancestors, given as ?1.
const ancestry = `WITH RECURSIVE line (session) AS (
	SELECT ?1 UNION SELECT p.parent FROM line l JOIN parent p ON p.child = l.session) SELECT session FROM line`

// line lists the ancestors of a session, and the session itself.
func (k *catalog) line(ctx context.Context, session journal.SessionID) ([]entry, error) {
	return k.selectEntries(ctx, "WHERE s.session IN ("+ancestry+") ORDER BY s.no", string(session))
}

// inherited are the origins of a session's ancestors, with the highest number
// of each, and of the session itself if it has ended.
func (k *catalog) inherited(ctx context.Context, session journal.SessionID) (map[journal.Origin]uint64, error) {
	out := map[journal.Origin]uint64{}
	err := k.query(ctx, "SELECT uuid, max(highest) FROM origin WHERE session IN ("+ancestry+") AND highest > 0 GROUP BY uuid", []driver.Value{string(session)},
		func(v []driver.Value) error {
			return takeHighest(v, out)
		})
	return out, err
}

// takeHighest notes the highest number of an origin that a row has.
func takeHighest(v []driver.Value, out map[journal.Origin]uint64) error {
	var origin journal.Origin
	var highest uint64
	if err := takeRow(v, &origin, &highest); err != nil {
		return err
	}
	out[origin] = highest
	return nil
}

// wroteAs are the origins under which an ended session has written.
func (k *catalog) wroteAs(ctx context.Context, session journal.SessionID) (map[journal.Origin]uint64, error) {
	out := map[journal.Origin]uint64{}
	err := k.query(ctx, "SELECT uuid, highest FROM origin WHERE session = ?", []driver.Value{string(session)}, func(v []driver.Value) error {
		return takeHighest(v, out)
	})
	return out, err
}

// heir is a session whose file, or family of files, holds everything that
// another one had whose file has been removed. found is false when there is none.
func (k *catalog) heir(ctx context.Context, session journal.SessionID) (heir entry, found bool, err error) {
	entries, err := k.selectEntries(ctx, `WHERE s.file IS NOT NULL AND s.session IN (
		WITH RECURSIVE issue (session) AS (
			SELECT ? UNION SELECT p.child FROM issue i JOIN parent p ON p.parent = i.session
		) SELECT session FROM issue) ORDER BY s.live DESC, s.complete DESC, s.no LIMIT 1`, string(session))
	if err != nil || len(entries) == 0 {
		return entry{}, false, err
	}
	return entries[0], true, nil
}

// incomplete lists the sessions that are to get their history: those that are
// not complete and have not been ended by a cut. What a cut has ended lives on in
// its children.
func (k *catalog) incomplete(ctx context.Context) ([]entry, error) {
	return k.selectEntries(ctx, "WHERE NOT s.complete AND s.ended_by IS NULL ORDER BY s.no")
}

// unneeded lists the sessions whose files can be removed.
func (k *catalog) unneeded(ctx context.Context) ([]entry, error) {
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

// hydration is the making of a session's whole file.
type hydration struct {
	file    string // in stores/
	session journal.SessionID
	base    string // in stores/; "" for none
	copied  int64  // bytes of base; -1: all
	begun   bool   // by an earlier attempt
}

const allCopied = -1

// hydrations lists the files that are being made.
func (k *catalog) hydrations(ctx context.Context) (out []hydration, err error) {
	err = k.query(ctx, "SELECT file, session, base, copied FROM hydration ORDER BY file", nil, func(v []driver.Value) error {
		y := hydration{begun: true}
		var session string
		err := takeRow(v, &y.file, &session, &y.base, &y.copied)
		if err == nil {
			err = k.storeName("hydration, column file", y.file)
		}
		if err == nil && y.base != "" {
			err = k.storeName("hydration, column base", y.base)
		}
		if err == nil && y.copied < allCopied {
			err = &cellError{"hydration of " + y.file + ": a negative number of bytes has been copied"}
		}
		y.session = journal.SessionID(session)
		out = append(out, y)
		return err
	})
	return out, err
}

// note writes down how far the making of a file has come.
func (k *catalog) note(h hooks, y hydration) error {
	return k.commit(h, stepNote, func() error {
		return k.c.exec("INSERT OR REPLACE INTO hydration (file, session, base, copied) VALUES (?, ?, ?, ?)", y.file, string(y.session), y.base, y.copied)
	}, "SELECT 1 FROM hydration WHERE file = ? AND session = ? AND copied = ?", y.file, string(y.session), y.copied)
}

// completed gives a session its whole file, within a transaction.
func (k *catalog) completed(y hydration) error {
	for _, query := range []string{
		"INSERT OR IGNORE INTO leftover (file) SELECT file FROM store WHERE session = ?1 AND file <> ?2",
		"UPDATE store SET file = ?2, complete = 1 WHERE session = ?1",
		"DELETE FROM hydration WHERE session = ?1 AND file = ?2",
	} {
		if err := k.c.exec(query, string(y.session), y.file); err != nil {
			return err
		}
	}
	return nil
}

// leftovers lists files that are to be removed.
func (k *catalog) leftovers(ctx context.Context) (files []string, err error) {
	err = k.query(ctx, "SELECT file FROM leftover ORDER BY file", nil, func(v []driver.Value) error {
		var file string
		err := takeRow(v, &file)
		if err == nil {
			err = k.storeName("leftover", file)
		}
		files = append(files, file)
		return err
	})
	if err != nil {
		return nil, err
	}
	return files, nil
}
