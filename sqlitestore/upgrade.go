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

// Upgrade brings a session directory of an older version up to date, as opening it for
// writing does. It is for programs that are going to write to the directory, but want to
// read it with a [View] first. The originals are kept. A directory whose catalogue and
// live stores are up to date may be in use, or be on a read-only medium: then it is only
// read, and older stores of ended sessions, left by an interrupted upgrade, are upgraded
// another time.
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
	_, err = d.Sessions(ctx) // which opens every file that the catalogue does not describe
	return errors.Join(err, d.Close())
}

// outdated reports whether the catalogue or a live store, and whether the store of an
// ended session, is older than a reader can read. Errors are left for the reader to
// report.
func outdated(ctx context.Context, dir string) (live, ended bool, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return false, false, storageError("open", dir, err)
	}
	visitor := sqlite.NewVisitor()
	defer visitor.Leave()
	older := func(s *sqlite.Schema, path string) bool {
		if s.IsCurrent(path) {
			return false
		}
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
