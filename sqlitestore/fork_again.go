package sqlitestore

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// IsForkedTo reports whether a directory has a fork of a session as it is now. If so, the
// fork can be used instead of making another.
func (v *View) IsForkedTo(ctx context.Context, session journal.SessionID, dir string) (is bool, err error) {
	if missing(filepath.Join(dir, catalog.Name)) {
		return false, nil
	}
	to, err := OpenReadOnly(ctx, dir)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	entries, err := to.catalog.Entries(ctx)
	if err != nil {
		return false, storageError("fork", to.catalog.Path(), err)
	}
	parents := []journal.SessionID{session}
	if !slices.ContainsFunc(entries, func(e catalog.Entry) bool { return e.MadeBy == catalog.KindFork && slices.Equal(e.Parents, parents) }) {
		return false, nil
	}
	then, err := to.catalog.WroteAs(ctx, session)
	if err != nil {
		return false, storageError("fork", to.catalog.Path(), err)
	}
	err = v.catalog.withRows(ctx, "fork", session, func(_ catalog.Entry, f *family) error {
		now, err := f.own.wrote(ctx)
		is = maps.Equal(now, then)
		return err
	})
	return is, err
}

// wrote returns what the session of a file has written under its own origins.
func (r *reader) wrote(ctx context.Context) (map[journal.Origin]uint64, error) {
	c, err := sqlite.Open(r.path, r.mode)
	if err != nil {
		return nil, err
	}
	wrote, err := storefile.OwnHighest(ctx, c)
	return wrote, errors.Join(err, c.Close())
}
