package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// RebuildReport says what [Rebuild] has found.
type RebuildReport struct {
	// Sessions are all that the new catalogue has, eldest first, and Live those
	// among them that go on.
	Sessions, Live []journal.SessionID
	// Unreadable are files that could not be read, and are in nobody's history.
	Unreadable []FileProblem
	// Aside are the paths of files that can be read and are not needed: copies of
	// others. The next opening of the directory sets them aside.
	Aside []string
	// Missing are sessions whose files are needed and not there, or have lost what was
	// acknowledged. What they wrote cannot be read until the files are put back.
	Missing []journal.SessionID
	// Unknown are ended sessions of whom nobody knows any more what they wrote: it
	// is in the histories of those that came out of them.
	Unknown []journal.SessionID
	// Kept is where the catalogue before has been moved, or "".
	Kept string
}

// FileProblem is a file and what is wrong with it.
type FileProblem struct {
	Path string
	Err  error
}

// unknownOrigin stands in the catalogue for the origins of an ended session that
// nobody knows.
var unknownOrigin journal.Origin

// Rebuild makes the catalogue of a session directory again from what the stores
// say of themselves, when it is lost or damaged. The stores are left as they are,
// and what there is of a catalogue is kept beside the new one. It answers the code
// not_found for a directory without stores, unavailable while a process has it
// open, and conflict when nothing is wrong with the catalogue.
//
// The metadata of sessions whose files had been removed is lost: it was in the
// catalogue only.
func Rebuild(ctx context.Context, dir string) (RebuildReport, error) {
	return rebuild(ctx, dir, hooks{})
}

func rebuild(ctx context.Context, dir string, h hooks) (report RebuildReport, err error) {
	if err := checkSQLite(); err != nil {
		return report, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return report, storageError("rebuild", dir, err)
	}
	if n, err := countStores(dir); err != nil || n == 0 {
		return report, errors.Join(err, nothingToRebuild(dir))
	}
	lock, err := lockDirectory(dir)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, storageError("rebuild", lock.Path(), lock.Close())) }()
	return remake(ctx, dir, h)
}

// remake is rebuild in a directory that this process has to itself.
func remake(ctx context.Context, dir string, h hooks) (report RebuildReport, err error) {
	path := filepath.Join(dir, catalogName)
	if err := refuseSoundCatalog(ctx, path); err != nil {
		return report, err
	}
	found, unreadable, err := readRemains(ctx, dir)
	if err != nil {
		return report, storageError("rebuild", dir, err)
	}
	b := judge(found).plan(unreadable)
	report = b.report(dir)
	// How far the index for searching has come is told in the words of the catalogue
	// before. It is made again. What is no index is left alone.
	if index := filepath.Join(dir, searchName); refuseDirectory(index) == nil {
		if err := (hooks{}).removeDatabase(index); err != nil {
			return report, storageError("rebuild", dir, err)
		}
	}
	if report.Kept, err = b.install(path, h); err != nil {
		return report, storageError("rebuild", path, err)
	}
	live, known := map[journal.SessionID]bool{}, map[journal.SessionID]bool{}
	for _, e := range b.entries {
		live[e.Session], known[e.Session] = e.Live, true
	}
	// Until that is done, what is lost proves the catalogue older, and this is done again.
	lost, err := keepAcks(dir, live, known)
	for _, session := range lost {
		if !slices.Contains(report.Missing, session) {
			report.Missing = append(report.Missing, session)
		}
	}
	return report, storageError("rebuild", filepath.Join(dir, ackName), err)
}

func nothingToRebuild(dir string) error {
	return &abi.Error{
		Code: abi.NotFound, Op: "rebuild", Message: dir + " has no session stores", Remedy: "name the directory that --session was given",
		IDs: map[string]string{"path": dir},
	}
}

// refuseSoundCatalog stops before a catalogue is replaced that can be used.
func refuseSoundCatalog(ctx context.Context, path string) error {
	if missing(path) {
		return nil
	}
	damage, err := inspectCatalog(ctx, path)
	switch {
	case abi.CodeOf(err) == abi.Unsupported:
		return err
	case err != nil && abi.CodeOf(err) != abi.Storage && !damaged(err):
		return storageError("rebuild", path, err)
	case err != nil || damage:
		return nil
	}
	return &abi.Error{
		Code: abi.Conflict, Op: "rebuild", Message: fmt.Sprintf("%s is there, and nothing is wrong with it", path),
		Remedy: "use the directory as it is. If it is the wrong one all the same, move it and its -wal and -shm files away, and rebuild it then",
		IDs:    map[string]string{"path": path},
	}
}

// inspectCatalog reports whether a catalogue is damaged. An error says that it is
// not a catalogue at all, or cannot be read.
func inspectCatalog(ctx context.Context, path string) (damage bool, err error) {
	visitor := newVisitor()
	defer visitor.leave()
	mode, err := visitor.visit(ctx, path)
	if err != nil {
		return false, err
	}
	if _, err := catalogSchema.age(ctx, path, mode); err != nil {
		return false, err
	}
	k, err := openCatalog(path, mode)
	if err != nil {
		return false, err
	}
	sound := false
	err = k.query(ctx, "PRAGMA integrity_check(1)", nil, func(v []driver.Value) error {
		sound = textIn(v[0]) == "ok"
		return nil
	})
	if err == nil {
		_, err = k.entries(ctx)
	}
	if err == nil && sound {
		err = k.refuseOlder(ctx) // of the code storage
	}
	return !sound, joinClose(err, k)
}

// joinClose closes a catalogue, and answers an error before, or the one of that.
func joinClose(err error, k *catalog) error { return errors.Join(err, k.close()) }

func (b *rebuilt) report(dir string) (r RebuildReport) {
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

// install writes the catalogue beside its place, moves away what is there, and
// gives it its name, which is the moment from which it counts. If the process ends
// before that, there is the catalogue before or none, and no data is lost: a
// directory without one is not opened, and this can be done again.
func (b *rebuilt) install(path string, h hooks) (kept string, err error) {
	partial := path + partialSuffix
	if err := h.removeDatabase(partial); err != nil { // of an attempt that was interrupted
		return "", err
	}
	if err = b.make(partial, h); err == nil {
		kept, err = putAside(path, h)
	}
	if err != nil {
		return "", errors.Join(err, hooks{}.removeDatabase(partial))
	}
	if err := h.syncDirectory(filepath.Dir(path)); err != nil {
		return kept, err
	}
	if err := h.at(pointInstalling, path); err != nil {
		return kept, err
	}
	if err := h.renameFile(partial, path); err != nil {
		return kept, err
	}
	if err := h.at(pointInstalled, path); err != nil {
		return kept, err
	}
	return kept, h.syncDirectory(filepath.Dir(path))
}

// make makes a catalogue under a name that is not its own, and makes it durable.
func (b *rebuilt) make(partial string, h hooks) error {
	content, err := catalogSchema.template()
	if err != nil {
		return err
	}
	if err := files.WriteFile(partial, content); err != nil {
		return err
	}
	if err := h.at(pointRemaking, partial); err != nil {
		return err
	}
	if err := errors.Join(b.write(partial, h), h.syncFile(partial)); err != nil {
		return err
	}
	return h.at(pointRemade, partial)
}

// putAside gives a catalogue another name, under which there is nothing yet. The
// file goes first: without its log it must not be taken for a catalogue, and a log
// without its file is moved at the next attempt.
func putAside(path string, h hooks) (kept string, err error) {
	log := "-wal"
	if files.Size(path+log) > 0 || !missing(path) {
		aside := path + orphanSuffix
		for n := 2; !missing(aside) || !missing(aside+log); n++ {
			aside = fmt.Sprintf("%s%s.%d", path, orphanSuffix, n)
		}
		for _, suffix := range []string{"", log} {
			moved, err := h.giveName(path+suffix, aside+suffix)
			if err != nil {
				return "", err
			}
			if moved && kept == "" {
				kept = aside + suffix
			}
		}
	}
	return kept, h.removeDatabase(path) // an empty log, and the shared memory, which hold nothing
}

// giveName renames a file, and answers false when it is not there.
func (h hooks) giveName(from, to string) (bool, error) {
	if err := h.at(pointSettingAside, from); err != nil {
		return false, err
	}
	if err := files.Rename(from, to); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	return true, h.at(pointSetAside, to)
}

func missing(path string) bool { return files.Missing(path) }
