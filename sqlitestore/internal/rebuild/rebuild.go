package rebuild

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/search"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// Report is what was found, and what was done with it.
type Report struct {
	// Sessions are all sessions of the new catalogue, oldest first, and Live those among
	// them that continue.
	Sessions, Live []journal.SessionID
	// Unreadable are files that could not be read, and are in no session's history.
	Unreadable []FileProblem
	// Aside are the paths of readable files that are not needed: copies of others. The
	// next opening of the directory sets them aside.
	Aside []string
	// Missing are sessions whose files are needed and missing, or have lost acknowledged
	// events. Their events cannot be read until the files are restored.
	Missing []journal.SessionID
	// Unknown are ended sessions whose events are no longer known: they are in the
	// histories of their descendants.
	Unknown []journal.SessionID
	// Kept is where the previous catalogue has been moved, or "".
	Kept string
}

// FileProblem is a file and what is wrong with it.
type FileProblem struct {
	Path string
	Err  error
}

// Remake makes the catalogue of a directory that no other process uses. It returns
// conflict if nothing is wrong with the existing one.
func Remake(ctx context.Context, dir string, h failpoint.Hooks) (report Report, err error) {
	path := filepath.Join(dir, catalog.Name)
	if err := refuseSoundCatalog(ctx, path); err != nil {
		return report, err
	}
	found, unreadable, err := readAll(ctx, dir)
	if err != nil {
		return report, catalog.Error("rebuild", dir, err)
	}
	b := judge(found).plan(unreadable)
	report = b.report(dir)
	// The progress of the index for searching refers to the previous catalogue, so the
	// index is made again. Any other file in its place is left alone.
	if index := filepath.Join(dir, search.Name); search.Refuse(index) == nil {
		if err := sqlite.Remove(failpoint.Hooks{}, index); err != nil {
			return report, catalog.Error("rebuild", dir, err)
		}
	}
	if report.Kept, err = b.install(path, h); err != nil {
		return report, catalog.Error("rebuild", path, err)
	}
	live, known := map[journal.SessionID]bool{}, map[journal.SessionID]bool{}
	for _, e := range b.entries {
		live[e.Session], known[e.Session] = e.Live, true
	}
	// Until the slots are free, the lost events prove the catalogue older, and Remake is
	// repeated.
	lost, err := catalog.KeepAcks(dir, live, known)
	for _, session := range lost {
		if !slices.Contains(report.Missing, session) {
			report.Missing = append(report.Missing, session)
		}
	}
	return report, catalog.Error("rebuild", filepath.Join(dir, catalog.AcknowledgedName), err)
}

// refuseSoundCatalog refuses to replace a catalogue that can be used.
func refuseSoundCatalog(ctx context.Context, path string) error {
	if files.Missing(path) {
		return nil
	}
	damage, err := inspectCatalog(ctx, path)
	switch {
	case abi.CodeOf(err) == abi.Unsupported:
		return err
	case err != nil && abi.CodeOf(err) != abi.Storage && !sqlite.Damaged(err):
		return catalog.Error("rebuild", path, err)
	case err != nil || damage:
		return nil
	}
	return &abi.Error{
		Code: abi.Conflict, Op: "rebuild", Message: fmt.Sprintf("%s exists, and nothing is wrong with it", path),
		Remedy: "use the directory as it is. If its catalogue is nevertheless the wrong one, move the catalogue and its -wal and -shm files away, and rebuild",
		IDs:    map[string]string{"path": path},
	}
}

// inspectCatalog reports whether a catalogue is damaged. An error says that it is not a
// catalogue at all, cannot be read, or is older than the stores.
func inspectCatalog(ctx context.Context, path string) (damage bool, err error) {
	visitor := sqlite.NewVisitor()
	defer visitor.Leave()
	c, _, err := visitor.Open(ctx, catalog.Schema, path)
	if err != nil {
		return false, err
	}
	k, err := catalog.Look(c)
	if err != nil {
		return false, err
	}
	sound, err := k.Sound(ctx)
	if err == nil {
		_, err = k.Entries(ctx)
	}
	if err == nil && sound {
		err = RefuseOlder(ctx, k) // of the code storage
	}
	return !sound, joinClose(err, k)
}

// joinClose closes a catalogue, and joins the earlier error and that of closing.
func joinClose(err error, k *catalog.Catalog) error { return errors.Join(err, k.Close()) }

func (b *rebuilt) report(dir string) (r Report) {
	for _, e := range b.entries {
		r.Sessions = append(r.Sessions, e.Session)
		if e.Live {
			r.Live = append(r.Live, e.Session)
		}
	}
	for _, file := range b.aside {
		r.Aside = append(r.Aside, pathOf(dir, file))
	}
	r.Unreadable, r.Missing, r.Unknown = b.unreadable, b.missing, b.unknown
	return r
}

// install writes the catalogue beside its place, moves the existing one away, and renames
// the new one, which is the moment at which it takes effect. If the process ends before
// that, there is the previous catalogue or none, and no data is lost: a directory without
// one is not opened, and Remake can be repeated.
func (b *rebuilt) install(path string, h failpoint.Hooks) (kept string, err error) {
	partial := path + files.PartialSuffix
	if err := sqlite.Remove(h, partial); err != nil { // of an attempt that was interrupted
		return "", err
	}
	if err = b.make(partial, h); err == nil {
		kept, err = sqlite.PutAside(path, h)
	}
	if err != nil {
		return "", errors.Join(err, sqlite.Remove(failpoint.Hooks{}, partial))
	}
	if err := h.SyncDirectory(filepath.Dir(path)); err != nil {
		return kept, err
	}
	if err := h.At(failpoint.Installing, path); err != nil {
		return kept, err
	}
	if err := h.RenameFile(partial, path); err != nil {
		return kept, err
	}
	if err := h.At(failpoint.Installed, path); err != nil {
		return kept, err
	}
	return kept, h.SyncDirectory(filepath.Dir(path))
}

// make makes a catalogue under a temporary name, durably.
func (b *rebuilt) make(partial string, h failpoint.Hooks) error {
	content, err := catalog.Schema.Template()
	if err != nil {
		return err
	}
	if err := files.WriteFile(partial, content); err != nil {
		return err
	}
	if err := h.At(failpoint.Remaking, partial); err != nil {
		return err
	}
	if err := errors.Join(b.write(partial, h), h.SyncFile(partial)); err != nil {
		return err
	}
	return h.At(failpoint.Remade, partial)
}
