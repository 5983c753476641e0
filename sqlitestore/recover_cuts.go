package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"io/fs"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// decide deals with cuts that were not durable when the process before ended: if all
// of a cut is there, it is made durable; if the power has taken a part of it, it is
// taken back, with those that rest on it. After a process that was killed, all of it
// is there.
func (d *Directory) decide(ctx context.Context) error {
	cuts, err := d.catalog.loose(ctx)
	if err != nil {
		return err
	}
	var back []lostCut
	gone := map[journal.SessionID]bool{} // the children of these
	for _, id := range cuts {
		parents, children, err := d.catalog.partakers(ctx, id)
		if err != nil {
			return err
		}
		rests := slices.ContainsFunc(parents, func(e entry) bool { return gone[e.Session] })
		if !rests && (d.isWhole(ctx, id, parents, children) || !allThere(parents)) {
			if err := d.confirm(id, append(parents, children...)); err != nil {
				return err
			}
			continue
		}
		if err := ctx.Err(); err != nil {
			return err // a file that could not be read is not one that lacks something
		}
		back = append(back, lostCut{id, children})
		for _, e := range children {
			gone[e.Session] = true
		}
	}
	for _, c := range slices.Backward(back) { // so that none is left that rests on nothing
		if err := d.takeBack(c); err != nil {
			return err
		}
	}
	return nil
}

// lostCut is a cut of which a part is missing.
type lostCut struct {
	id       string
	children []entry
}

// isWhole reports whether everything is there that a cut wrote.
func (d *Directory) isWhole(ctx context.Context, id string, parents, children []entry) bool {
	lacks := func(key string) func(entry) bool {
		return func(e entry) bool { return !says(ctx, e, key, id) }
	}
	return !slices.ContainsFunc(parents, lacks(keySeal)) && !slices.ContainsFunc(children, lacks("cut"))
}

// says reports whether the file of a session has a value under a key.
func says(ctx context.Context, e entry, key, value string) bool {
	if _, err := storeSchema.age(ctx, e.Path, readOnly); err != nil {
		return false
	}
	c, err := openConn(e.Path, readOnly)
	if err != nil {
		return false
	}
	_, found, err := c.integer("SELECT 1 FROM store WHERE key = ? AND value = ?", key, value)
	return errors.Join(err, c.close()) == nil && found
}

// allThere reports whether no session's file is missing. Otherwise there is nothing
// to go back to.
func allThere(entries []entry) bool {
	return !slices.ContainsFunc(entries, func(e entry) bool {
		_, err := files.Stat(e.Path)
		return errors.Is(err, fs.ErrNotExist)
	})
}

// confirm makes a cut durable whose files nobody has open.
func (d *Directory) confirm(id string, partakers []entry) error {
	for _, e := range partakers {
		if !allThere([]entry{e}) {
			continue // somebody has taken it away, which is told where it is missed
		}
		c, err := openConn(e.Path, readWrite)
		if err != nil {
			return err
		}
		if err := errors.Join(c.sync(storeSchema), c.close()); err != nil {
			return err
		}
	}
	return d.catalog.commit(d.options.hooks, stepFirm, func() error { return d.catalog.firm(id) },
		"SELECT 1 FROM cut WHERE id = ? AND firm", id)
}

// takeBack undoes a cut in the catalogue: the parents are live again, and the files
// of the children are of no use any more.
func (d *Directory) takeBack(c lostCut) error {
	return d.catalog.commit(d.options.hooks, stepTakeBack, func() error {
		for _, e := range c.children {
			if err := d.catalog.forget(e); err != nil {
				return err
			}
		}
		for _, query := range []string{
			"DELETE FROM origin WHERE session IN (SELECT session FROM store WHERE ended_by = ?1)",
			"UPDATE store SET live = 1, ended_by = NULL WHERE ended_by = ?1",
			"DELETE FROM cut WHERE id = ?1",
		} {
			if err := d.catalog.c.exec(query, c.id); err != nil {
				return err
			}
		}
		return nil
	}, "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM cut WHERE id = ?)", c.id)
}

// forget removes a session that has not come to be, within a transaction.
func (k *catalog) forget(e entry) error {
	if err := k.forgetFile(e.Session, "{}"); err != nil {
		return err
	}
	for _, query := range []string{"DELETE FROM parent WHERE child = ?", "DELETE FROM store WHERE session = ?"} {
		if err := k.c.exec(query, string(e.Session)); err != nil {
			return err
		}
	}
	return nil
}

// loose are the cuts that may not be durable, the eldest first: their ids rise with
// time.
func (k *catalog) loose(ctx context.Context) (ids []string, err error) {
	err = k.query(ctx, "SELECT id FROM cut WHERE NOT firm ORDER BY id", nil, func(v []driver.Value) error {
		var id string
		err := takeRow(v, &id)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

// partakers are the sessions that a cut has ended and those that it has made.
func (k *catalog) partakers(ctx context.Context, cut string) (parents, children []entry, err error) {
	if parents, err = k.selectEntries(ctx, "WHERE s.ended_by = ?", cut); err != nil {
		return nil, nil, err
	}
	children, err = k.selectEntries(ctx, "WHERE s.cut = ?", cut)
	return parents, children, err
}
