package sqlitestore

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// Fork makes a new session directory whose only live session has the history and
// the live rows of the given one and goes on by itself; it answers its id. Creatures
// and channels keep their ids, so the two are not to be loaded by one engine. The
// lineage of the fork names the session and its ancestors. The directory must not
// exist, or be empty: otherwise it answers already_exists. A session whose file has
// been removed cannot be forked.
func (d *Directory) Fork(ctx context.Context, session journal.SessionID, dir string) (journal.SessionID, error) {
	if err := d.flush(ctx, session); err != nil {
		return "", err
	}
	return d.catalog.forkNow(ctx, session, dir, d.owned)
}

// Fork makes a new session directory; see [Directory.Fork].
func (v *View) Fork(ctx context.Context, session journal.SessionID, dir string) (journal.SessionID, error) {
	return v.catalog.forkNow(ctx, session, dir, v.readable)
}

// forkNow makes a fork of a session as it is.
func (k *catalog) forkNow(ctx context.Context, session journal.SessionID, dir string, how access) (journal.SessionID, error) {
	return k.fork(ctx, session, dir, func(e entry, path string) error {
		if e.file == "" {
			return k.rowsGone(ctx, "fork", e)
		}
		return k.materialise(ctx, "fork", e.Session, path, how)
	})
}

// fork makes a directory whose only live session begins with what materialise
// writes to its file.
func (k *catalog) fork(ctx context.Context, session journal.SessionID, dir string, materialise func(e entry, path string) error) (journal.SessionID, error) {
	to, err := k.destinationOf("fork", dir)
	if err == nil {
		err = to.clear(true)
	}
	if err != nil {
		return "", err
	}
	line, err := k.line(ctx, session)
	if err != nil {
		return "", storageError("fork", k.path, err)
	}
	e, err := k.entry(ctx, "fork", session)
	if err != nil {
		return "", err
	}
	fork, err := newFork(e)
	if err != nil {
		return "", err
	}
	if err := to.makeDirectory(func(dir string) error { return k.plant(ctx, dir, e, fork, line, materialise) }); err != nil {
		return "", err
	}
	return fork.Session, nil
}

// newFork describes the fork of a session.
func newFork(of entry) (entry, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return entry{}, err
	}
	cut, err := uuid.NewV7()
	if err != nil {
		return entry{}, err
	}
	fork := of
	fork.Session, fork.Parents = journal.SessionID(id.String()), []journal.SessionID{of.Session}
	fork.Live, fork.Complete = true, true
	fork.Created, fork.MergedAt, fork.SplitAt = time.Now().UnixNano(), 0, 0
	fork.cut, fork.kind, fork.file = cut.String(), kindFork, id.String()+storeSuffix
	return fork, nil
}

// plant makes the directory of a fork under a name that is not its own yet.
func (k *catalog) plant(ctx context.Context, dir string, e, fork entry, line []entry, materialise func(e entry, path string) error) (err error) {
	if err := files.MakeStores(dir); err != nil {
		return err
	}
	path := filepath.Join(dir, storesName, fork.file)
	if err := errors.Join(materialise(e, path), k.hooks.at(pointPlanted, path)); err != nil {
		return err
	}
	wrote, err := rename(ctx, path, e.Session, fork)
	if err = errors.Join(err, k.hooks.at(pointGrafted, path)); err != nil {
		return err
	}
	catalogPath := filepath.Join(dir, catalogName)
	if err := errors.Join(createCatalog(catalogPath, k.hooks), k.hooks.at(pointCatalogued, catalogPath)); err != nil {
		return err
	}
	fresh, err := openCatalog(catalogPath, readWrite)
	if err != nil {
		return err
	}
	err = k.copyLine(ctx, fresh, line, e.Session, wrote)
	if err == nil {
		err = fresh.c.transact(func() error {
			return errors.Join(fresh.addCut(fork.cut, fork.kind, fork.Created), fresh.add(fork))
		})
	}
	return errors.Join(err, fresh.close(), k.hooks.syncDirectory(filepath.Join(dir, storesName)), k.hooks.syncDirectory(dir))
}

// rename gives a file to another session, and answers what the one before had
// written under its own origins.
func rename(ctx context.Context, path string, of journal.SessionID, fork entry) (map[journal.Origin]uint64, error) {
	origin, err := newOrigin()
	if err != nil {
		return nil, err
	}
	w, err := openWriter(path, journal.Full, origin, hooks{})
	if err != nil {
		return nil, err
	}
	wrote, err := w.c.ownHighest(ctx)
	if err == nil {
		err = w.c.transact(func() error {
			if err := errors.Join(w.c.exec("DELETE FROM own"), w.c.exec("DELETE FROM store WHERE key IN (?, ?)", keyBased, keyHome), w.unmark(), w.c.noteWrote(of, wrote)); err != nil {
				return err
			}
			return w.identify(fork)
		})
	}
	return wrote, errors.Join(err, w.close())
}

// copyLine writes the ancestors of a fork into its catalogue, as sessions that
// have ended and whose history the fork holds.
func (k *catalog) copyLine(ctx context.Context, to *catalog, line []entry, forked journal.SessionID, wrote map[journal.Origin]uint64) error {
	return to.c.transact(func() error {
		for _, e := range line {
			if err := to.addAncestor(e); err != nil {
				return err
			}
			origins, err := k.wroteAs(ctx, e.Session)
			if err != nil {
				return err
			}
			if e.Session == forked {
				origins = wrote
			}
			if err := to.freeze(e.Session, "", origins); err != nil {
				return err
			}
		}
		return nil
	})
}

// addAncestor inserts a session that has ended elsewhere, within a transaction.
func (k *catalog) addAncestor(e entry) error {
	if e.cut != "" {
		if err := k.addCut(e.cut, e.kind, e.Created); err != nil {
			return err
		}
	}
	e.Complete, e.file = true, ""
	return k.add(e)
}
