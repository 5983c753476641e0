package sqlitestore

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// release discards the files of ended sessions whose events are all in files of their
// descendants. A file is removed from the catalogue before it is deleted. A file that
// cannot be read is kept, and the others are discarded nevertheless.
func (h *hydrator) release(ctx context.Context) error {
	d := h.d
	if d.loose.stuck() || d.makeFirm() != nil {
		return nil // a cut may still have to be undone; the reason is one of the directory's problems
	}
	entries, err := d.catalog.Unneeded(ctx)
	if err != nil || len(entries) == 0 {
		return err
	}
	described, err := d.catalog.Described(ctx)
	if err != nil {
		return storageError("release", d.catalog.Path(), err)
	}
	gone := map[journal.SessionID]string{} // with the metadata of each
	var unread []error
	for _, e := range entries {
		d.crossing.giveWay()
		if d.keeper.holds(e.Session) {
			continue // it is still being closed
		}
		meta, err := d.metaOf(ctx, e, described)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			unread = append(unread, storageError("release", e.Path, err))
			continue
		}
		gone[e.Session] = meta
	}
	if len(gone) == 0 {
		return errors.Join(unread...)
	}
	// A concurrent cut does not need these files either, because its parents did not. So
	// cuts need not wait while this is made durable.
	err = d.catalog.Release(d.changing, gone)
	return errors.Join(append(unread, storageError("release", d.catalog.Path(), err))...)
}

// metaOf returns the metadata of an ended session. It is read from the session's file
// unless the catalogue describes the session.
func (d *Directory) metaOf(ctx context.Context, e catalog.Entry, described map[journal.SessionID]int64) (string, error) {
	if _, known := described[e.Session]; known {
		return textOf(e.Meta)
	}
	of, err := d.look(ctx, e)
	return of.Meta, err
}

// discard removes the files that are no longer needed when the directory is closed. The
// next start removes what remains.
func (h *hydrator) discard(ctx context.Context) {
	_, _ = h.release(ctx), h.sweep(ctx)
}

// look reads the description of an ended session from its file.
func (d *Directory) look(ctx context.Context, e catalog.Entry) (of catalog.Description, err error) {
	r, err := d.catalog.openMember(ctx, e)
	if err != nil {
		return of, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	return r.describe(ctx)
}

func (r *reader) describe(ctx context.Context) (of catalog.Description, err error) {
	meta, err := r.meta(ctx)
	if err != nil {
		return of, err
	}
	if of.Meta, err = textOf(meta); err != nil {
		return of, err
	}
	of.Events, err = (&family{own: r}).count(ctx)
	return of, err
}

// textOf returns the metadata of a session in the form in which the catalogue stores it.
func textOf(meta map[string]string) (string, error) {
	if meta == nil {
		meta = map[string]string{}
	}
	content, err := json.Marshal(meta)
	return string(content), err
}

// describedAtOnce is how many sessions are described in one transaction.
const describedAtOnce = 64

// describe records in the catalogue the descriptions of ended sessions that it lacks, so
// that listing the sessions does not open each file. A file that cannot be read is
// skipped; readers report it.
func (h *hydrator) describe(ctx context.Context) error {
	d := h.d
	entries, err := d.catalog.Undescribed(ctx)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(entries, describedAtOnce) {
		found := catalog.Descriptions{}
		for _, e := range some {
			d.crossing.giveWay()
			if d.keeper.holds(e.Session) || !storefile.Schema.IsCurrent(e.Path) {
				continue // the end of its log may not be in the file yet; a file of an older version is upgraded when it is read
			}
			of, err := d.look(ctx, e)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err == nil {
				found[e.Session] = of
			}
		}
		if err := d.catalog.Describe(found); err != nil {
			return storageError("describe", d.catalog.Path(), err)
		}
	}
	return nil
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
	// A deleted file that reappeared after the catalogue has dropped it would belong to no
	// session.
	if err := h.d.options.hooks.SyncDirectory(filepath.Join(h.d.dir, files.Stores)); err != nil {
		return storageError("sweep", h.d.dir, err)
	}
	err = h.d.catalog.Sweep(left)
	return storageError("sweep", h.d.catalog.Path(), err)
}
