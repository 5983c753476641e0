package sqlitestore

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"

	"github.com/seed47132306/terrarium/engine/journal"
)

// release gives up the files of ended sessions whose events are all in files of
// their descendants. The catalogue forgets a file before it is removed.
func (h *hydrator) release(ctx context.Context) error {
	d := h.d
	entries, err := d.catalog.unneeded(ctx)
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
	// A cut meanwhile needs none of them either: its parents did not, so nobody has to
	// wait who cuts while this is made durable.
	if err := d.makeFirm(); err != nil {
		return err
	}
	var any journal.SessionID
	err = d.catalog.commitBriefly(d.changing, d.options.hooks, stepRelease, func() error {
		for session, meta := range gone {
			any = session
			if err := d.catalog.forgetFile(session, meta); err != nil {
				return err
			}
		}
		return nil
	}, "SELECT 1 FROM store WHERE session = ? AND file IS NULL", string(any))
	return storageError("release", d.catalog.path, err)
}

// metaOf reads the metadata of a session, which its file will not keep.
func (d *Directory) metaOf(ctx context.Context, e entry) (text string, err error) {
	r, err := openMember(ctx, e, d.owned)
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

// forgetFile notes that the file of a session, and one that was to become its
// whole file, are of no use any more, within a transaction.
func (k *catalog) forgetFile(session journal.SessionID, meta string) error {
	for _, query := range []string{
		"INSERT OR IGNORE INTO leftover (file) SELECT file FROM store WHERE session = ?1 AND file IS NOT NULL",
		"INSERT OR IGNORE INTO leftover (file) SELECT file FROM hydration WHERE session = ?1",
		"DELETE FROM hydration WHERE session = ?1",
	} {
		if err := k.c.exec(query, string(session)); err != nil {
			return err
		}
	}
	return k.c.exec("UPDATE store SET file = NULL, meta = ? WHERE session = ?", meta, string(session))
}

// sweep removes files that are of no use any more.
func (h *hydrator) sweep(ctx context.Context) error {
	files, err := h.d.catalog.leftovers(ctx)
	if err != nil || len(files) == 0 {
		return err
	}
	for _, file := range files {
		h.d.crossing.giveWay()
		path, err := h.d.catalog.filePath(file)
		if err != nil {
			return err
		}
		if err := h.d.options.hooks.removeDatabase(path); err != nil {
			return storageError("sweep", path, err)
		}
		h.d.current.Delete(path)
	}
	// A file that came back after the catalogue has forgotten it would be a stranger.
	if err := h.d.options.hooks.syncDirectory(filepath.Join(h.d.dir, storesName)); err != nil {
		return storageError("sweep", h.d.dir, err)
	}
	err = h.d.catalog.commit(h.d.options.hooks, stepSweep, func() error {
		for _, file := range files {
			if err := h.d.catalog.c.exec("DELETE FROM leftover WHERE file = ?", file); err != nil {
				return err
			}
		}
		return nil
	}, "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM leftover WHERE file = ?)", files[0])
	return storageError("sweep", h.d.catalog.path, err)
}
