package sqlitestore

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// release discards the files of ended sessions whose events are all in files of their
// descendants. A file is removed from the catalogue before it is deleted.
func (h *hydrator) release(ctx context.Context) error {
	d := h.d
	entries, err := d.catalog.Unneeded(ctx)
	if err != nil || len(entries) == 0 {
		return err
	}
	gone := map[journal.SessionID]string{} // with the metadata of each
	for _, e := range entries {
		d.crossing.giveWay()
		if d.keeper.holds(e.Session) {
			continue // it is still being closed
		}
		if gone[e.Session], err = d.metaOf(ctx, e); err != nil {
			return storageError("release", e.Path, err)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	// A concurrent cut does not need these files either, because its parents did not. So
	// cuts need not wait while this is made durable.
	if err := d.makeFirm(); err != nil {
		return err
	}
	err = d.catalog.Release(d.changing, gone)
	return storageError("release", d.catalog.Path(), err)
}

// metaOf reads the metadata of a session, which its file will not keep.
func (d *Directory) metaOf(ctx context.Context, e catalog.Entry) (text string, err error) {
	r, err := d.catalog.openMember(ctx, e)
	if err != nil {
		return "", err
	}
	meta, err := r.meta(ctx)
	if err = errors.Join(err, r.close()); err != nil {
		return "", err
	}
	content, err := json.Marshal(meta)
	return string(content), err
}

// sweep deletes files that are no longer needed.
func (h *hydrator) sweep(ctx context.Context) error {
	left, err := h.d.catalog.Leftovers(ctx)
	if err != nil || len(left) == 0 {
		return err
	}
	for _, file := range left {
		h.d.crossing.giveWay()
		path, err := h.d.catalog.FilePath(file)
		if err != nil {
			return err
		}
		if err := sqlite.Remove(h.d.options.hooks, path); err != nil {
			return storageError("sweep", path, err)
		}
		h.d.current.Delete(path)
	}
	// A deleted file that reappeared after the catalogue has dropped it would be a
	// stranger.
	if err := h.d.options.hooks.SyncDirectory(filepath.Join(h.d.dir, files.Stores)); err != nil {
		return storageError("sweep", h.d.dir, err)
	}
	err = h.d.catalog.Sweep(left)
	return storageError("sweep", h.d.catalog.Path(), err)
}
