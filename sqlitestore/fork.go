package sqlitestore

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// Fork makes a new session directory with one live session, and returns the id of that
// session. The session has the history and the live rows of the given one, and continues
// independently. Creatures and channels keep their ids, so one engine must not load both.
// The lineage of the fork names the session and its ancestors. The directory must not
// exist, or must be empty: otherwise Fork returns already_exists. A session whose file has
// been removed cannot be forked.
func (a *archive) Fork(ctx context.Context, session journal.SessionID, dir string) (journal.SessionID, error) {
	if err := a.flush(ctx, session); err != nil {
		return "", err
	}
	k := a.catalog
	return k.fork(ctx, session, dir, func(e catalog.Entry, path string) error {
		if e.File == "" {
			return k.rowsGone(ctx, "fork", e)
		}
		return k.materialise(ctx, "fork", e.Session, path)
	})
}

// fork makes a directory whose only live session begins with what materialise
// writes to its file.
func (k *sessions) fork(ctx context.Context, session journal.SessionID, dir string, materialise func(e catalog.Entry, path string) error) (journal.SessionID, error) {
	to, err := k.destinationOf("fork", dir)
	if err == nil {
		err = to.clear(true)
	}
	if err != nil {
		return "", err
	}
	line, err := k.Line(ctx, session)
	if err != nil {
		return "", storageError("fork", k.Path(), err)
	}
	e, err := k.Entry(ctx, "fork", session)
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
func newFork(of catalog.Entry) (catalog.Entry, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return catalog.Entry{}, err
	}
	cut, err := uuid.NewV7()
	if err != nil {
		return catalog.Entry{}, err
	}
	fork := of
	fork.Session, fork.Parents = journal.SessionID(id.String()), []journal.SessionID{of.Session}
	fork.Live, fork.Complete = true, true
	fork.Created, fork.MergedAt, fork.SplitAt = max(time.Now().UnixNano(), of.Created), 0, 0
	fork.Cut, fork.Kind, fork.File = cut.String(), catalog.KindFork, id.String()+files.StoreSuffix
	return fork, nil
}

// plant makes the directory of a fork, which does not have its final name yet. In its
// catalogue the ancestors have ended, and the fork holds their history.
func (k *sessions) plant(ctx context.Context, dir string, e, fork catalog.Entry, line []catalog.Entry, materialise func(e catalog.Entry, path string) error) (err error) {
	if err := files.MakeStores(dir); err != nil {
		return err
	}
	path := filepath.Join(dir, files.Stores, fork.File)
	if err := errors.Join(materialise(e, path), k.hooks.At(failpoint.Planted, path)); err != nil {
		return err
	}
	wrote, err := rename(ctx, path, e.Session, fork)
	if err = errors.Join(err, k.hooks.At(failpoint.Grafted, path)); err != nil {
		return err
	}
	catalogPath := filepath.Join(dir, catalog.Name)
	if err := errors.Join(catalog.Make(catalogPath, k.hooks), k.hooks.At(failpoint.Catalogued, catalogPath)); err != nil {
		return err
	}
	origins, err := k.originsOf(ctx, line)
	if err != nil {
		return err
	}
	origins[e.Session] = wrote
	err = catalog.Fill(catalogPath, func(t *catalog.Tx) error {
		for _, of := range line {
			if err := errors.Join(t.AddAncestor(of), t.End(of.Session, "", origins[of.Session])); err != nil {
				return err
			}
		}
		return errors.Join(t.AddCut(fork.Cut, fork.Kind, fork.Created), t.Add(fork))
	})
	return errors.Join(err, k.hooks.SyncDirectory(filepath.Join(dir, files.Stores)), k.hooks.SyncDirectory(dir))
}

// rename assigns a file to another session, and returns what the previous session had
// written under its own origins.
func rename(ctx context.Context, path string, of journal.SessionID, fork catalog.Entry) (map[journal.Origin]uint64, error) {
	origin, err := newOrigin()
	if err != nil {
		return nil, err
	}
	w, err := openWriter(path, journal.Full, origin, failpoint.Hooks{})
	if err != nil {
		return nil, err
	}
	wrote, err := storefile.OwnHighest(ctx, w.c)
	if err == nil {
		err = w.c.Transact(func() error {
			if err := errors.Join(w.c.Exec("DELETE FROM own"), w.c.Exec("DELETE FROM store WHERE key IN (?, ?)", storefile.Based, storefile.Home), w.unmark(), storefile.NoteWrote(w.c, of, wrote)); err != nil {
				return err
			}
			return w.identify(fork, "")
		})
	}
	return wrote, errors.Join(err, w.close())
}

// originsOf returns the origins under which ended sessions have written.
func (k *sessions) originsOf(ctx context.Context, line []catalog.Entry) (catalog.Wrote, error) {
	out := catalog.Wrote{}
	for _, e := range line {
		origins, err := k.WroteAs(ctx, e.Session)
		if err != nil {
			return nil, err
		}
		out[e.Session] = origins
	}
	return out, nil
}
