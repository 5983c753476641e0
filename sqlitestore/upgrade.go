package sqlitestore

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// Upgrade brings a session directory that an older version has left up to date, as
// opening it for writing does: for those who are going to write to it, but want to
// look at it with a [View] first. The originals are kept. A directory whose
// catalogue and live stores are up to date may be in use, or be on a medium that
// cannot be written to: then it is only read, and stores of ended sessions that are
// older, because somebody was interrupted here, are left for another time.
func Upgrade(ctx context.Context, dir string) error { return upgrade(ctx, dir, failpoint.Hooks{}) }

func upgrade(ctx context.Context, dir string, h failpoint.Hooks) error {
	live, ended, err := outdated(ctx, dir)
	if err != nil || !live && !ended {
		return err
	}
	d, err := Open(ctx, dir, Options{hooks: h})
	if err != nil {
		if !live && ctx.Err() == nil {
			return nil
		}
		return err
	}
	_, err = d.Sessions(ctx) // which looks into every file
	return errors.Join(err, d.Close())
}

// outdated reports whether the catalogue or a live store is older than what a reader
// can read, or that of an ended session. What cannot be read at all is left for the
// reader to tell.
func outdated(ctx context.Context, dir string) (live, ended bool, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return false, false, storageError("open", dir, err)
	}
	visitor := sqlite.NewVisitor()
	defer visitor.Leave()
	older := func(s *sqlite.Schema, path string) bool {
		c, version, err := visitor.Open(ctx, s, path)
		return err == nil && c.Close() == nil && version < s.Version
	}
	v, err := OpenReadOnly(ctx, dir)
	if err != nil {
		return older(catalog.Schema, filepath.Join(dir, catalog.Name)), false, nil
	}
	list, err := v.Catalogue(ctx)
	for i := range list {
		if list[i].Path != "" && older(storefile.Schema, list[i].Path) {
			live, ended = live || list[i].Live, ended || !list[i].Live
		}
	}
	return live, ended, errors.Join(err, v.Close())
}
