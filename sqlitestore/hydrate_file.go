package sqlitestore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"github.com/cenkalti/backoff/v5"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// errCutAgain says that a session was cut before it had its history. The unfinished file
// serves one of its children.
var errCutAgain = errors.New("the session has been cut again")

// hydrate gives one session its whole file.
func (h *hydrator) hydrate(ctx context.Context, e catalog.Entry) error {
	sources, err := h.d.catalog.Needed(ctx, e.Session)
	if err != nil {
		return err
	}
	for _, p := range sources {
		if err := h.d.bringUpToDate(ctx, p.Path); err != nil {
			return storageError("hydrate", p.Path, err)
		}
	}
	since, err := h.keptSince(ctx, e, sources)
	if err != nil {
		return err
	}
	y, err := h.begin(ctx, e, sources, since > 0)
	if err != nil {
		return err
	}
	path, err := h.d.catalog.FilePath(y.File)
	if err != nil {
		return err
	}
	if err := storefile.Schema.Renew(ctx, path); err != nil { // an older program may have begun it
		return storageError("hydrate", path, err)
	}
	return storageError("hydrate", path, h.build(ctx, path, since, e, sources, y))
}

// build writes the history of a session to a file, which may have been begun earlier, and
// makes that file the session's. It omits events older than since.
func (h *hydrator) build(ctx context.Context, path string, since int64, e catalog.Entry, sources []catalog.Entry, y catalog.Hydration) error {
	b, err := openBuilder(path, h.d.options.hooks, &h.d.crossing)
	if err != nil {
		return err
	}
	var lent *loan
	for {
		b.since, b.pruned = since, since
		if err = h.gather(ctx, b, e, sources, y.Begun); err == nil {
			lent, err = h.move(ctx, b, e, y)
		}
		var more keepMore
		if !errors.As(err, &more) {
			break
		}
		since = int64(more)
	}
	if err == nil {
		// Both files name the session now, until the first has been removed. If the catalogue
		// is lost, the mark shows Rebuild which one continues; without the mark, Rebuild takes
		// the one that has more.
		_ = storefile.Mark(context.WithoutCancel(ctx), e.Path, y.Session, storefile.Moved, y.File)
	}
	return errors.Join(err, b.close(), lent.finish())
}

// keptSince returns the time from which the session's file is to have its history; 0: all
// of it.
func (h *hydrator) keptSince(ctx context.Context, e catalog.Entry, sources []catalog.Entry) (int64, error) {
	s := h.d.opened(e.Session)
	if s == nil {
		return 0, nil
	}
	size := sqlite.DiskSize(e.Path)
	for _, p := range sources {
		size += sqlite.DiskSize(p.Path)
	}
	return s.since(ctx, h.bound(ctx, size), size)
}

// begin copies the largest of the files, or continues where an earlier attempt was
// interrupted.
func (h *hydrator) begin(ctx context.Context, e catalog.Entry, sources []catalog.Entry, pruned bool) (catalog.Hydration, error) {
	y, err := h.choose(ctx, e, sources, pruned)
	if err != nil {
		return y, err
	}
	path, err := h.d.catalog.FilePath(y.File)
	if err != nil {
		return y, err
	}
	if y.Copied == catalog.AllCopied {
		return y, nil
	}
	if y.Base == "" {
		content, err := storefile.Schema.Template()
		if err == nil {
			err = h.d.options.hooks.WriteWhole(path, content)
		}
		if err != nil {
			return y, storageError("hydrate", path, err)
		}
	} else if err := h.copyBase(ctx, &y, path); err != nil {
		return y, storageError("hydrate", path, err)
	}
	if err := h.d.options.hooks.SyncDirectory(filepath.Dir(path)); err != nil {
		return y, storageError("hydrate", path, err)
	}
	if err := h.d.options.hooks.At(failpoint.Copied, path); err != nil {
		return y, storageError("hydrate", path, err)
	}
	y.Copied = catalog.AllCopied
	return y, h.d.catalog.Note(y)
}

// copyBase copies the file that y begins with.
func (h *hydrator) copyBase(ctx context.Context, y *catalog.Hydration, path string) error {
	hooks := h.d.options.hooks
	from, err := h.d.catalog.FilePath(y.Base)
	if err != nil {
		return err
	}
	info, err := files.Stat(from)
	if err != nil {
		return err
	}
	if size := info.Size(); y.Copied > size {
		return sqlite.Malformed("%d bytes of %s have been copied, and it has %d", y.Copied, from, size)
	}
	rest, err := sqlite.AtRest(from)
	if err == nil && !rest {
		err = fmt.Errorf("%s is being read by another process", from)
	}
	if err != nil {
		return err
	}
	// Only an upgrade writes to the base, but there may have been one since.
	if y.Copied > 0 {
		same, err := sameHeader(from, path)
		if err != nil {
			return err
		}
		if !same {
			y.Copied = 0
		}
	}
	noted := y.Copied
	return copyFile(ctx, hooks, from, path, y.Copied, func(copied int64) error {
		h.d.crossing.giveWay()
		if err := hooks.At(failpoint.Copying, path); err != nil || copied-noted < noteEvery*bytesAtOnce(hooks) {
			return err
		}
		// If the file vanished in a power failure, what is recorded as copied would be a hole
		// in the next one.
		if err := hooks.SyncDirectory(filepath.Dir(path)); err != nil {
			return err
		}
		y.Copied, noted = copied, copied
		return h.d.catalog.Note(*y)
	})
}

// sameHeader reports whether two databases have the same header, with the version of the
// layout and a count of the changes (https://sqlite.org/fileformat2.html).
func sameHeader(a, b string) (bool, error) {
	const header = 100
	first, err := files.ReadFile(a, header)
	if err != nil {
		return false, err
	}
	second, err := files.ReadFile(b, header)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return bytes.Equal(first, second), err
}

// noteEvery is how many chunks may be copied again after a crash.
const noteEvery = 8

// choose decides what a session's whole file begins with: the result of an interrupted
// attempt, an attempt for an ancestor that has been cut since, or a copy of the largest
// file. If some of the history is pruned, nothing is copied as it is.
func (h *hydrator) choose(ctx context.Context, e catalog.Entry, sources []catalog.Entry, pruned bool) (catalog.Hydration, error) {
	begun, err := h.d.catalog.Hydrations(ctx)
	if err != nil {
		return catalog.Hydration{}, err
	}
	for _, y := range begun {
		if y.Session == e.Session {
			return y, nil
		}
	}
	y := catalog.Hydration{Session: e.Session, File: h.d.catalog.NextFile(e)}
	if pruned {
		return y, h.d.catalog.Note(y)
	}
	if err := h.d.room(e, sources); err != nil {
		return y, err
	}
	for _, b := range begun {
		if b.Copied == catalog.AllCopied && slices.ContainsFunc(sources, func(p catalog.Entry) bool { return p.Session == b.Session }) {
			b.Session = e.Session
			return b, h.d.catalog.Note(b)
		}
	}
	if len(sources) > 0 {
		y.Base = slices.MaxFunc(sources, func(a, b catalog.Entry) int { return cmp.Compare(sqlite.DiskSize(a.Path), sqlite.DiskSize(b.Path)) }).File
	}
	return y, h.d.catalog.Note(y)
}

// tailRounds is how often the new events of the session are copied before its writer is
// stopped for the rest.
const tailRounds = 3

// gather copies everything to the file but the last events that the session writes. Only a
// file begun by an earlier attempt can have more than the sources.
func (h *hydrator) gather(ctx context.Context, b *builder, e catalog.Entry, sources []catalog.Entry, begun bool) error {
	if err := b.strip(); err != nil {
		return err
	}
	if begun {
		if err := b.trim(append(slices.Clone(sources), e)); err != nil {
			return err
		}
	}
	for _, p := range sources {
		if err := b.unite(ctx, heldBy(p), sqlite.ReadOnly); err != nil {
			return err
		}
	}
	for _, p := range sources {
		if err := b.hasAllOf(heldBy(p), sqlite.ReadOnly); err != nil {
			return err
		}
	}
	for range tailRounds {
		if err := b.unite(ctx, heldBy(e), sqlite.ReadOnly); err != nil {
			return err
		}
	}
	if err := b.c.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil { // so that little is left to be synced while the writer is parked
		return err
	}
	return b.hooks.At(failpoint.TailFollowed, b.w.path)
}

// move makes the file the session's own, and makes its writer continue there. It returns
// the files that were read until then.
func (h *hydrator) move(ctx context.Context, b *builder, e catalog.Entry, y catalog.Hydration) (*loan, error) {
	if !e.Live { // it is no longer written to, and can no longer be cut
		if err := h.finish(ctx, b, e); err != nil {
			return nil, err
		}
		if err := h.d.makeFirm(); err != nil {
			return nil, err
		}
		return nil, h.commitMove(ctx, nil, y)
	}
	d := h.d
	path, err := d.catalog.FilePath(y.File)
	if err != nil {
		return nil, err
	}
	// The cut that made the session becomes durable here. If a later cut has ended the
	// session, there is nothing left to move.
	if err := d.makeFirm(); err != nil {
		return nil, err
	}
	still := d.standStill()
	defer still.end()
	now, err := d.catalog.Entry(ctx, "hydrate", e.Session)
	if err != nil {
		return nil, err
	}
	s := d.opened(e.Session)
	if !now.Live || s == nil {
		return nil, errCutAgain
	}
	if err := s.park(ctx); err != nil {
		return nil, err
	}
	defer s.queue.resume()
	if err := d.options.hooks.At(failpoint.Standing, e.Path); err != nil {
		return nil, err
	}
	if err := s.needsMore(ctx, still.refresh, b.since); err != nil {
		return nil, err
	}
	if err := h.finish(ctx, b, e); err != nil {
		return nil, err
	}
	if err := h.commitMove(ctx, s, y); err != nil {
		if errors.Is(err, catalog.ErrUnknown) {
			s.freeze() // either file may turn out to be the session's
		}
		return nil, err
	}
	lent := s.moveTo(vouched{path, y.Session})
	d.report(historyOf(e.Session), nil)
	return lent, d.options.hooks.At(failpoint.Moved, s.path())
}

// keepMore is the time from which history must be kept, because a reader has come that
// needs older messages than were needed when the copying began.
type keepMore int64

// Error implements error. A keepMore never leaves the package.
func (m keepMore) Error() string {
	return fmt.Sprintf("history from %d on has yet to be read", int64(m))
}

// needsMore returns keepMore if the store needs history older than since. Its writer is
// parked.
func (s *Store) needsMore(ctx context.Context, refresh refresher, since int64) error {
	if since == 0 {
		return nil
	}
	return s.readAnd(ctx, "hydrate", refresh, func(f *family) (err error) {
		v, err := f.look(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, v.end()) }()
		needed, err := v.neededFrom(ctx)
		if err == nil && needed < since {
			err = keepMore(needed)
		}
		return err
	})
}

// finish makes the file complete, and durable with its name. The session is not written
// to meanwhile.
func (h *hydrator) finish(ctx context.Context, b *builder, e catalog.Entry) error {
	if err := b.finish(ctx, heldBy(e), sqlite.ReadOnly); err != nil {
		return err
	}
	if err := b.hasAllOf(heldBy(e), sqlite.ReadOnly); err != nil {
		return err
	}
	inherited, err := h.d.catalog.Inherited(ctx, e.Session)
	if err == nil {
		err = b.lacks(inherited)
	}
	if err != nil {
		return err
	}
	return h.d.options.hooks.SyncDirectory(filepath.Join(h.d.dir, files.Stores))
}

// commitMove makes the file the session's in the catalogue. A session that is being
// written to cannot be left between two files, so commitMove reads the catalogue until the
// outcome is known. Callers that wait for the store receive the error meanwhile, as when
// writing fails. The caller keeps cuts out, unless the session has ended (s is nil): then
// cuts wait only for the transaction.
func (h *hydrator) commitMove(ctx context.Context, s *Store, y catalog.Hydration) error {
	k := h.d.catalog
	var lock sync.Locker
	if s == nil {
		lock = h.d.changing
	}
	err := k.Complete(lock, y)
	if !errors.Is(err, catalog.ErrUnknown) {
		return err
	}
	if s != nil {
		s.fail(err)
		defer s.goOn()
	}
	found, lookErr := backoff.Retry(ctx, func() (bool, error) {
		now, err := k.Entry(ctx, "hydrate", y.Session)
		return now.File == y.File, err
	}, backoff.WithMaxElapsedTime(0))
	switch {
	case lookErr != nil:
		return err
	case found:
		return nil
	}
	return fmt.Errorf("%s: the change was not made", k.Path()) // without ErrUnknown in its chain
}

// moveTo switches a parked store to another file. If it cannot be opened now, the next
// write tries again.
func (s *Store) moveTo(file vouched) *loan {
	before := s.path()
	s.wear.measure(before)
	s.w.path = file.path
	_ = s.reopen()
	s.complete.Store(true)
	s.pages.small.Store(s.w.small)
	s.pages.outgrown.Store(false)
	lent := s.shelf.exchange(&family{own: ownReader(file)})
	s.checkpoints.forget(before)
	s.syncs.forget(before)
	return lent
}

// lostAncestor is the error for a history that lacks a part.
func lostAncestor(e catalog.Entry, ancestor journal.SessionID) error {
	return &abi.Error{
		Code:    abi.Storage,
		Op:      "open",
		Message: fmt.Sprintf("the file of session %s is missing or damaged, and session %s does not have its history yet", ancestor, e.Session),
		Remedy:  "put the file back; until then that part of the history cannot be read, and verifying names its events",
		IDs:     map[string]string{"session": string(e.Session), "ancestor": string(ancestor)},
	}
}
