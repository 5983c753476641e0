package sqlitestore

import (
	"context"
	"errors"
	"path/filepath"
)

// Upgrade brings a session directory that an older version has left up to date, as
// opening it for writing does: for those who are going to write to it, but want to
// look at it with a [View] first. The originals are kept. A directory whose
// catalogue and live stores are up to date is only read, and may be in use.
func Upgrade(ctx context.Context, dir string) error {
	old, err := outdated(ctx, dir)
	if err != nil || !old {
		return err
	}
	d, err := Open(ctx, dir, Options{})
	if err != nil {
		return err
	}
	_, err = d.Sessions(ctx) // which looks into every file
	return errors.Join(err, d.Close())
}

// outdated reports whether the catalogue or a live store is older than what a
// reader can read. What cannot be read at all is left for the reader to tell.
func outdated(ctx context.Context, dir string) (old bool, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return false, storageError("open", dir, err)
	}
	visitor := newVisitor()
	defer visitor.leave()
	older := func(s *schema, path string) bool {
		mode, err := visitor.visit(path)
		if err != nil {
			return false
		}
		version, err := s.age(path, mode)
		return err == nil && version < s.version
	}
	v, err := OpenReadOnly(ctx, dir)
	if err != nil {
		return older(catalogSchema, filepath.Join(dir, catalogName)), nil
	}
	list, err := v.Catalogue(ctx)
	for i := range list {
		old = old || list[i].Live && older(storeSchema, list[i].Path)
	}
	return old, errors.Join(err, v.Close())
}
