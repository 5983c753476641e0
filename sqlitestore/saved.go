package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/rebuild"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// Saved lists the live stores. The problems include files that have been set aside
// because the catalogue does not know them. A store that cannot be read is left as it is,
// and is one of the problems.
func (d *Directory) Saved(ctx context.Context) (graphs []journal.SavedGraph, problems []error, err error) {
	problems = slices.Clone(d.problems)
	entries, err := d.catalog.Entries(ctx)
	if err != nil {
		return nil, nil, storageError("open", d.catalog.Path(), err)
	}
	for _, e := range entries {
		if !e.Live {
			continue
		}
		g, lost, err := d.saved(ctx, e)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil {
			problems = append(problems, unreadable(&e.SessionInfo, err))
			continue
		}
		graphs = append(graphs, g)
		if lost != nil {
			problems = append(problems, lost)
		}
	}
	return graphs, problems, nil
}

// unreadable is the error for a live store that cannot be read; see
// [journal.UnreadableID].
func unreadable(info *journal.SessionInfo, err error) error {
	err = storageError("open", info.Path, err)
	var typed *abi.Error
	if errors.As(err, &typed) {
		return typed.With(journal.UnreadableID, string(info.Session))
	}
	return err
}

// saved reads the live rows of one session, and what it has lost of the acknowledged
// events.
func (d *Directory) saved(ctx context.Context, e catalog.Entry) (g journal.SavedGraph, lost, err error) {
	for try := 1; ; try++ {
		f, err := d.catalog.openFamily(ctx, e, false)
		if err == nil {
			g, err = f.saved(ctx, e)
			if err == nil {
				lost, err = d.lostEnd(ctx, e, f)
			}
			err = errors.Join(f.vanished(err), f.close())
		}
		if err == nil || try == readTries || !errors.Is(err, errMoved) && !d.catalog.moved(ctx, e) {
			return g, lost, err
		}
		if e, err = d.catalog.Entry(ctx, "open", e.Session); err != nil { // it has another file now
			return g, nil, err
		}
	}
}

// saved reads the live rows in the session's own file.
func (f *family) saved(ctx context.Context, e catalog.Entry) (g journal.SavedGraph, err error) {
	if err := f.own.belongs(ctx, e); err != nil {
		return g, err
	}
	g = journal.SavedGraph{Session: e.Session, Graph: e.Graph, Born: e.Born, Durability: e.Durability, Path: e.Path}
	if err := f.own.liveRows(ctx, &g); err != nil {
		return g, err
	}
	if len(f.missing) > 0 { // a cut is later than everything before it
		g.LastTime = max(e.MergedAt, e.SplitAt)
	}
	v, err := f.look(ctx)
	if err != nil {
		return g, err
	}
	defer func() { err = errors.Join(err, v.end()) }()
	spans, err := v.spans(ctx)
	for _, s := range spans {
		g.LastTime = max(g.LastTime, s.to)
	}
	return g, err
}

// belongs checks that a file is the store that the catalogue takes it for. Every store
// records its session before the catalogue names the file. A store without that record
// has lost its write-ahead log, without which a file from before a crash is empty; a
// store that names another session was put in the place of the right one.
func (r *reader) belongs(ctx context.Context, e catalog.Entry) error {
	var session string
	err := sqlite.Each(ctx, r.db, func(scan func(...any) error) error { return scan(&session) }, "SELECT value FROM store WHERE key = 'session'")
	if err != nil || session == string(e.Session) {
		return err
	}
	damage := &abi.Error{
		Code:    abi.Storage,
		Op:      "open",
		Message: fmt.Sprintf("%s is the store of the session %s, not of %s", e.Path, session, e.Session),
		Remedy:  "put the right file back; this one has been left as it is",
		IDs:     map[string]string{"path": e.Path},
	}
	if session == "" {
		damage.Message = fmt.Sprintf("%s has nothing of its session in it: its write-ahead log, %s-wal, is missing or damaged", e.Path, filepath.Base(e.Path))
		damage.Remedy = "restore both files; the store has been left as it is"
	}
	return damage
}

// tidy handles files that the catalogue does not know: leftovers of cuts and creations
// that did not happen.
func (d *Directory) tidy(ctx context.Context) error {
	known, err := d.catalog.Files(ctx)
	if err != nil {
		return storageError("open", d.catalog.Path(), err)
	}
	dir := filepath.Join(d.dir, files.Stores)
	left, err := rebuild.LeftOut(ctx, d.catalog.Catalog)
	if err != nil {
		return storageError("open", d.catalog.Path(), err)
	}
	found, err := files.ReadStores(d.dir)
	if err != nil {
		return err
	}
	for _, f := range found {
		path := filepath.Join(dir, f.Name())
		switch {
		case known[path]:
		case left[path] != nil:
			d.problems, d.leftOut = append(d.problems, left[path]), append(d.leftOut, path)
		case strings.HasSuffix(path, files.StoreSuffix+files.PartialSuffix):
			err = files.Remove(path)
		case strings.HasSuffix(path, files.StoreSuffix):
			err = d.tidyStore(ctx, path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tidyStore deletes a file that was never used and sets aside any other.
func (d *Directory) tidyStore(ctx context.Context, path string) error {
	if storefile.IsUnused(ctx, path) {
		return sqlite.Remove(d.options.hooks, path)
	}
	if err := ctx.Err(); err != nil {
		return err // it could not be read
	}
	if err := setStoreAside(path); err != nil {
		return err
	}
	d.problems = append(d.problems, &abi.Error{
		Code:    abi.Storage,
		Op:      "open",
		Message: fmt.Sprintf("%s is not in the catalogue; it has been set aside as %s", path, filepath.Base(path)+files.OrphanSuffix),
		Remedy:  "the sessions of the catalogue are complete without it; keep it in case something is missing",
		IDs:     map[string]string{"path": path + files.OrphanSuffix},
	})
	return nil
}

// setStoreAside renames a file, with the files that belong to it, to a name that no store
// has.
func setStoreAside(path string) error {
	for _, suffix := range sqlite.Suffixes {
		err := files.Rename(path+suffix, path+files.OrphanSuffix+suffix)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// globEscape escapes the special characters of a pattern.
func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// setLeftAside renames the files that were left out, when work in the directory
// continues. Until then every start reports them.
func (d *Directory) setLeftAside() error {
	for len(d.leftOut) > 0 {
		if err := setStoreAside(d.leftOut[0]); err != nil {
			return storageError("open", d.leftOut[0], err)
		}
		d.leftOut = d.leftOut[1:]
	}
	return nil
}
