package sqlitestore

import (
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"

	"context"
	"slices"
	"sync"
)

// shelf lends the files that a store is read from. They change when the store gets its
// whole history in one file. Its methods may be called by any goroutine.
type shelf struct {
	mu      sync.Mutex
	current *loan  // nil after close
	where   string // the store's own file is, or was
}

// loan is a family that may be in use.
type loan struct {
	*family
	users sync.WaitGroup
}

func newShelf(f *family) *shelf {
	return &shelf{current: &loan{family: f}, where: f.own.path}
}

// borrow returns the family to read. The caller calls users.Done afterwards.
func (s *shelf) borrow() (*loan, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return nil, false
	}
	s.current.users.Add(1)
	return s.current, true
}

// path returns where the store's own file is, or was when the store was closed.
func (s *shelf) path() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.where
}

// files returns the number of files that the store is read from.
func (s *shelf) files() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return 0
	}
	return 1 + len(s.current.ancestors)
}

// lends reports whether a loan is the current one.
func (s *shelf) lends(l *loan) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current == l
}

// exchange lends another family from now on, and returns the previous one.
func (s *shelf) exchange(f *family) *loan {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.current
	s.current = nil
	if f != nil {
		s.current, s.where = &loan{family: f}, f.own.path
	}
	return before
}

// rest closes the connections to the store's files that are not in use.
func (s *shelf) rest() {
	l, open := s.borrow()
	if !open {
		return
	}
	defer l.users.Done()
	for _, r := range l.members() {
		r.rest()
	}
}

// close closes the files, once they are no longer in use.
func (s *shelf) close() error { return s.exchange(nil).finish() }

// shareWith adds the files of the store's history to those of a child, except for the
// store's own file if the child does not need it. The child opens that file again: after
// the store is closed, only readers may have it open, because the last connection to be
// closed empties the write-ahead log.
func (s *shelf) shareWith(f *family, needs []journal.SessionID) error {
	l, open := s.borrow()
	if !open {
		return stopped("cut", s.path())
	}
	defer l.users.Done()
	if slices.Contains(needs, l.own.session) {
		f.ancestors = append(f.ancestors, ownReader(l.own.vouched))
	}
	known := make(map[string]bool, len(f.ancestors)+len(l.ancestors)) // there may be thousands
	for _, r := range f.ancestors {
		known[r.path] = true
	}
	for _, r := range l.ancestors {
		if !known[r.path] {
			f.ancestors, known[r.path] = append(f.ancestors, r.share()), true
		}
	}
	f.missing = append(f.missing, l.missing...)
	return nil
}

// finish waits until the family is no longer in use, and closes its files.
func (l *loan) finish() error {
	if l == nil {
		return nil
	}
	l.users.Wait()
	return l.family.close()
}

// read calls look with the store's files. If a file cannot be read, read opens the files
// again and calls look again. It waits for that until no store changes its files.
func (s *Store) read(ctx context.Context, op string, look func(f *family) error) error {
	return s.readAnd(ctx, op, s.owner.refresh, look)
}

// refresher opens the files of a store again, because stale cannot be read. There is one for
// callers that hold [Directory.changing], and one for all others.
type refresher func(ctx context.Context, s *Store, stale *loan) error

// readAnd is read with the refresher of the caller.
func (s *Store) readAnd(ctx context.Context, op string, refresh refresher, look func(f *family) error) error {
	for try := 1; ; try++ {
		l, open := s.shelf.borrow()
		if !open {
			return stopped(op, s.path())
		}
		err := withRoom(s.owner, l.paths, func() error { return look(l.family) })
		l.users.Done()
		if !sqlite.Failed(err) || try == readTries || s.complete.Load() || refresh(ctx, s, l) != nil {
			return storageError(op, s.path(), err)
		}
	}
}

// readAgain makes an open store read from the files that it needs now. These may be fewer
// than the files that it inherited from its parents. Only the hydrator calls readAgain, so
// no session gets another file meanwhile. Cuts do not have to wait for it.
func (d *Directory) readAgain(ctx context.Context, e catalog.Entry) error {
	s := d.opened(e.Session)
	if s == nil {
		return nil
	}
	l, open := s.shelf.borrow()
	if !open {
		return nil
	}
	defer l.users.Done()
	f, err := d.catalog.openFamily(ctx, e, false)
	if err != nil {
		return err
	}
	still := d.standStill()
	defer still.end()
	if s.complete.Load() || !s.shelf.lends(l) {
		return f.close()
	}
	d.keeper.giveBack(s.shelf.exchange(f))
	return nil
}

// refresh opens the files of an incomplete store again: some of them may have been
// removed, since an ancestor has their content now.
func (d *Directory) refresh(ctx context.Context, s *Store, stale *loan) error {
	still := d.standStill()
	defer still.end()
	return still.refresh(ctx, s, stale)
}

// standstill is a directory in which no other goroutine makes stores change their files. Its
// methods are those for a caller that already holds [Directory.changing].
type standstill struct{ d *Directory }

// standStill waits until no store changes its files. None does until the caller ends the
// standstill.
func (d *Directory) standStill() standstill {
	d.changing.Lock()
	return standstill{d}
}

func (x standstill) end() { x.d.changing.Unlock() }

// refresh is [Directory.refresh].
func (x standstill) refresh(ctx context.Context, s *Store, stale *loan) error {
	d := x.d
	e, err := d.catalog.Entry(ctx, "read", s.info.Session)
	if err != nil {
		return err
	}
	if s.complete.Load() || !s.shelf.lends(stale) {
		return nil // another reader has done so
	}
	f, err := d.catalog.openFamily(context.Background(), e, false)
	if err != nil {
		return err
	}
	d.keeper.giveBack(s.shelf.exchange(f))
	return nil
}
