package catalog

import (
	"database/sql/driver"
	"errors"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// Tx makes changes to a catalogue within one transaction.
type Tx struct{ c *sqlite.Conn }

// Fill writes the content of a catalogue that is not in use yet.
func Fill(path string, fill func(t *Tx) error) error {
	c, err := sqlite.Open(path, sqlite.ReadWrite)
	if err != nil {
		return err
	}
	if err = setUp(c); err == nil {
		err = c.Transact(func() error { return fill(&Tx{c}) })
	}
	return errors.Join(err, c.Close())
}

// AddCut inserts a cut that is durable, unless it is present.
func (t *Tx) AddCut(id string, kind journal.CutKind, at int64) error {
	return t.c.Exec("INSERT OR IGNORE INTO cut (id, kind, at) VALUES (?, ?, ?)", id, string(kind), at)
}

// Add inserts a session.
func (t *Tx) Add(e Entry) error {
	if err := t.c.Exec(`INSERT INTO store (session, graph, born, durability, live, complete, created, merged_at, split_at, cut, file)
		VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?)`, string(e.Session), string(e.Graph), int64(e.Born), e.Durability.String(), e.Complete,
		e.Created, e.MergedAt, e.SplitAt, sqlite.OptionalText(e.Cut), sqlite.OptionalText(e.File)); err != nil {
		return err
	}
	for i, p := range e.Parents {
		if err := t.c.Exec("INSERT INTO parent (child, ordinal, parent) VALUES (?, ?, ?)", string(e.Session), int64(i), string(p)); err != nil {
			return err
		}
	}
	if e.Complete {
		return nil
	}
	for _, needed := range e.Needs {
		if err := t.c.Exec("INSERT OR IGNORE INTO need (session, needed) VALUES (?, ?)", string(e.Session), string(needed)); err != nil {
			return err
		}
	}
	return nil
}

// AddAncestor inserts a session that has ended elsewhere.
func (t *Tx) AddAncestor(e Entry) error {
	if e.Cut != "" {
		if err := t.AddCut(e.Cut, e.Kind, e.Created); err != nil {
			return err
		}
	}
	e.Complete, e.File = true, ""
	return t.Add(e)
}

// End ends a live session. wrote are the origins under
// which it has written, with the highest number of each.
func (t *Tx) End(session journal.SessionID, cut string, wrote map[journal.Origin]uint64) error {
	if err := t.c.Exec("UPDATE store SET live = 0, ended_by = ? WHERE session = ?", sqlite.OptionalText(cut), string(session)); err != nil {
		return err
	}
	if err := t.c.Exec("DELETE FROM mark WHERE session = ?", string(session)); err != nil {
		return err
	}
	for origin, highest := range wrote {
		if err := t.c.Exec("INSERT OR REPLACE INTO origin (session, uuid, highest) VALUES (?, ?, ?)", string(session), origin[:], int64(highest)); err != nil {
			return err
		}
	}
	return nil
}

// AddHydration inserts a file that is being made.
func (t *Tx) AddHydration(y Hydration) error {
	return t.c.Exec("INSERT OR REPLACE INTO hydration (file, session, base, copied) VALUES (?, ?, ?, ?)", y.File, string(y.Session), y.Base, y.Copied)
}

// AddLeftover inserts a file that is to be removed.
func (t *Tx) AddLeftover(file string) error {
	return t.c.Exec("INSERT INTO leftover (file) VALUES (?)", file)
}

// Describe records the description of an ended session.
func (t *Tx) Describe(session journal.SessionID, of Description) error {
	return t.c.Exec("UPDATE store SET meta = ?, events = ? WHERE session = ? AND live = 0 AND file IS NOT NULL", of.Meta, of.Events, string(session))
}

// SetHome gives the directory its name; see [Catalog.Home].
func (t *Tx) SetHome(name string) error {
	return t.c.Exec("INSERT INTO trait (key, value) VALUES (?, ?)", storefile.Home, name)
}

// each runs statements with the same arguments.
func (t *Tx) each(args []driver.Value, queries ...string) error {
	for _, query := range queries {
		if err := t.c.Exec(query, args...); err != nil {
			return err
		}
	}
	return nil
}
