package sqlitestore

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// decide handles cuts that were not durable when the previous process ended. A cut that
// is completely present is made durable. If a power failure has destroyed a part of the
// cut, it is undone, together with the cuts that depend on it. After a process that was
// killed, every cut is complete.
func (d *Directory) decide(ctx context.Context) error {
	cuts, err := d.catalog.Loose(ctx)
	if err != nil {
		return err
	}
	var back []lostCut
	gone := map[journal.SessionID]bool{} // the children of these
	for _, id := range cuts {
		parents, children, err := d.catalog.Partakers(ctx, id)
		if err != nil {
			return err
		}
		rests := slices.ContainsFunc(parents, func(e catalog.Entry) bool { return gone[e.Session] })
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
	for _, c := range slices.Backward(back) { // so that no cut is left that depends on an undone one
		if err := d.catalog.TakeBack(c.id, c.children); err != nil {
			return err
		}
	}
	return nil
}

// lostCut is a cut with a missing part.
type lostCut struct {
	id       string
	children []catalog.Entry
}

// isWhole reports whether everything that a cut wrote is present.
func (d *Directory) isWhole(ctx context.Context, id string, parents, children []catalog.Entry) bool {
	lacks := func(key string) func(catalog.Entry) bool {
		return func(e catalog.Entry) bool { return !storefile.Says(ctx, e.Path, key, id) }
	}
	return !slices.ContainsFunc(parents, lacks(storefile.Seal)) && !slices.ContainsFunc(children, lacks("cut"))
}

// allThere reports whether no session's file is missing. If a parent's file is, the cut
// cannot be undone.
func allThere(entries []catalog.Entry) bool {
	return !slices.ContainsFunc(entries, func(e catalog.Entry) bool {
		_, err := files.Stat(e.Path)
		return errors.Is(err, fs.ErrNotExist)
	})
}

// confirm makes a cut durable whose files are not open.
func (d *Directory) confirm(id string, partakers []catalog.Entry) error {
	for _, e := range partakers {
		if !allThere([]catalog.Entry{e}) {
			continue // it was removed from outside, which is reported when it is needed
		}
		c, err := sqlite.Open(e.Path, sqlite.ReadWrite)
		if err != nil {
			return err
		}
		if err := errors.Join(c.Sync(storefile.Schema), c.Close()); err != nil {
			return err
		}
	}
	return d.catalog.Firm(id)
}
