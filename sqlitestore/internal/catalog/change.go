package catalog

import (
	"context"
	"database/sql/driver"
	"maps"
	"slices"
	"sync"

	"github.com/google/uuid"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Changes of the catalogue. Each is one transaction, which is durable unless its comment
// says otherwise: see [Catalog.commit].

// Create adds new sessions.
func (k *Catalog) Create(entries []Entry) error {
	return k.commit(nil, stepCreate, func(t *Tx) error {
		for _, e := range entries {
			if err := t.Add(e); err != nil {
				return err
			}
		}
		return nil
	}, "SELECT 1 FROM store WHERE session = ?", string(entries[0].Session))
}

// Wrote are the origins under which sessions have written, with the highest number of
// each.
type Wrote map[journal.SessionID]map[journal.Origin]uint64

// Cut makes a cut, which need not be durable: it adds the children, ends the sessions in
// ended, and describes some of them. If ctx ends before the transaction has begun, nothing
// happens.
func (k *Catalog) Cut(ctx context.Context, id string, kind journal.CutKind, at int64, children []Entry, ended Wrote, described Descriptions) error {
	return k.commitWithin(ctx, stepCut, func(t *Tx) error {
		if err := t.c.Exec("INSERT INTO cut (id, kind, at, firm) VALUES (?, ?, ?, 0)", id, string(kind), at); err != nil {
			return err
		}
		for _, e := range children {
			if err := t.Add(e); err != nil {
				return err
			}
		}
		for _, session := range slices.Sorted(maps.Keys(ended)) {
			if err := t.End(session, id, ended[session]); err != nil {
				return err
			}
			if of, known := described[session]; known {
				if err := t.Describe(session, of); err != nil {
					return err
				}
			}
		}
		return nil
	}, "SELECT 1 FROM cut WHERE id = ?", id)
}

// Firm records that cuts are durable. The record itself need not be durable: no later
// change of the catalogue is present without it, and if it is lost, the next start
// determines it again.
func (k *Catalog) Firm(ids ...string) error {
	return k.commit(nil, stepFirm, func(t *Tx) error {
		for _, id := range ids {
			if err := t.c.Exec("UPDATE cut SET firm = 1 WHERE id = ?", id); err != nil {
				return err
			}
		}
		return nil
	}, "SELECT 1 FROM cut WHERE id = ? AND firm", ids[0])
}

// TakeBack undoes a cut: the sessions that it has ended are live again, and the files of
// its children are no longer needed.
func (k *Catalog) TakeBack(id string, children []Entry) error {
	return k.commit(nil, stepTakeBack, func(t *Tx) error {
		for _, e := range children {
			err := t.forgetFile(e.Session, "{}")
			if err == nil {
				err = t.each([]driver.Value{string(e.Session)}, "DELETE FROM parent WHERE child = ?", "DELETE FROM need WHERE session = ?", "DELETE FROM store WHERE session = ?")
			}
			if err != nil {
				return err
			}
		}
		return t.each([]driver.Value{id},
			"DELETE FROM origin WHERE session IN (SELECT session FROM store WHERE ended_by = ?1)",
			"UPDATE store SET live = 1, ended_by = NULL, meta = '{}', events = NULL WHERE ended_by = ?1",
			"DELETE FROM cut WHERE id = ?1")
	}, "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM cut WHERE id = ?)", id)
}

// Retire ends a session without a cut.
func (k *Catalog) Retire(session journal.SessionID, wrote map[journal.Origin]uint64) error {
	return k.commit(nil, stepRetire, func(t *Tx) error { return t.End(session, "", wrote) },
		"SELECT 1 FROM store WHERE session = ? AND live = 0", string(session))
}

// Note records the progress of a file that is being made.
func (k *Catalog) Note(y Hydration) error {
	return k.commit(nil, stepNote, func(t *Tx) error { return t.AddHydration(y) },
		"SELECT 1 FROM hydration WHERE file = ? AND session = ? AND copied = ?", y.File, string(y.Session), y.Copied)
}

// Complete gives a session its whole file. The lock, if there is one, is held only during
// the transaction.
func (k *Catalog) Complete(lock sync.Locker, y Hydration) error {
	session := string(y.Session)
	return k.commit(lock, stepComplete, func(t *Tx) error {
		return t.each([]driver.Value{session, y.File},
			"INSERT OR IGNORE INTO leftover (file) SELECT file FROM store WHERE session = ?1 AND file <> ?2",
			"UPDATE store SET file = ?2, complete = 1, events = NULL WHERE session = ?1",
			"DELETE FROM need WHERE session = ?1",
			"DELETE FROM hydration WHERE session = ?1 AND file = ?2")
	}, "SELECT 1 FROM store WHERE session = ? AND file = ?", session, y.File)
}

// Release removes the files of ended sessions from the catalogue, and keeps the metadata
// of each, which was in its file. Release takes the lock only for the transaction.
func (k *Catalog) Release(lock sync.Locker, gone map[journal.SessionID]string) error {
	sessions := slices.Sorted(maps.Keys(gone))
	return k.commit(lock, stepRelease, func(t *Tx) error {
		for _, session := range sessions {
			if err := t.forgetFile(session, gone[session]); err != nil {
				return err
			}
		}
		return nil
	}, "SELECT 1 FROM store WHERE session = ? AND file IS NULL", string(sessions[0]))
}

// forgetFile records that the file of a session, and one that was to become its whole
// file, are no longer needed.
func (t *Tx) forgetFile(session journal.SessionID, meta string) error {
	err := t.each([]driver.Value{string(session)},
		"INSERT OR IGNORE INTO leftover (file) SELECT file FROM store WHERE session = ?1 AND file IS NOT NULL",
		"INSERT OR IGNORE INTO leftover (file) SELECT file FROM hydration WHERE session = ?1",
		"DELETE FROM hydration WHERE session = ?1")
	if err != nil {
		return err
	}
	return t.c.Exec("UPDATE store SET file = NULL, meta = ?, events = NULL WHERE session = ?", meta, string(session))
}

// Sweep records that files have been deleted.
func (k *Catalog) Sweep(files []string) error {
	return k.commit(nil, stepSweep, func(t *Tx) error {
		for _, file := range files {
			if err := t.c.Exec("DELETE FROM leftover WHERE file = ?", file); err != nil {
				return err
			}
		}
		return nil
	}, "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM leftover WHERE file = ?)", files[0])
}

// NameHome is [Catalog.Home] of a directory that this process owns. It gives the
// directory a name if it has none. The name need not be durable: until it is, no store
// that records it is durable either.
func (k *Catalog) NameHome(ctx context.Context) (string, error) {
	name, err := k.Home(ctx)
	if err != nil || name != "" {
		return name, err
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return "", err
	}
	return id.String(), k.change(func(t *Tx) error { return t.SetHome(id.String()) })
}

// Mark records how far a session was acknowledged. A mark never moves back.
func (k *Catalog) Mark(session journal.SessionID, marks map[journal.Origin]Ack) error {
	return k.change(func(t *Tx) error {
		for origin, a := range marks {
			if err := t.c.Exec(`INSERT INTO mark (session, uuid, highest, chain) VALUES (?, ?, ?, ?)
				ON CONFLICT DO UPDATE SET highest = excluded.highest, chain = excluded.chain WHERE excluded.highest > highest`,
				string(session), origin[:], int64(a.Seq), int64(a.Chain)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Describe records the descriptions of ended sessions. They need not be durable: what is
// not described is read from the file.
func (k *Catalog) Describe(of Descriptions) error {
	if len(of) == 0 {
		return nil
	}
	return k.change(func(t *Tx) error {
		for _, session := range slices.Sorted(maps.Keys(of)) {
			if err := t.Describe(session, of[session]); err != nil {
				return err
			}
		}
		return nil
	})
}

// change makes a change that may be lost. The caller does not have to know whether it was
// lost.
func (k *Catalog) change(change func(t *Tx) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.connection.ready(k.path); err != nil {
		return err
	}
	return k.connection.Transact(func() error { return change(&Tx{k.connection.Conn}) })
}
