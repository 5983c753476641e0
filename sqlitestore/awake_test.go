package sqlitestore

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite3"
)

// drowsy opens a directory with two stores. Only one of them may stay awake. It calls opened
// for every connection that writes to a store.
func drowsy(t *testing.T, first time.Duration, opened func() error) (d *Directory, both [2]*Store, slept chan *Store) {
	t.Helper()
	d, err := Open(t.Context(), t.TempDir(), Options{naps: naps{most: 1, first: first}, hooks: failpoint.Hooks{
		Unsynced: true, Opened: func(string, func(string) error) error { return opened() },
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	slept = make(chan *Store, 1000)
	d.awake.slept = func(s *Store) { slept <- s }
	for i := range both {
		both[i] = createStore(t, d)
	}
	d.spares.rest(t)
	return d, both, slept
}

// historyOfAll reads the whole history of a store.
func historyOfAll(t *testing.T, s *Store) ([]journal.Event, error) {
	t.Helper()
	return s.History(t.Context(), journal.HistoryQuery{Limit: 1 << 20})
}

// appendMore writes some more events to a store, and returns how many it has.
func appendMore(t *testing.T, s *Store) int {
	t.Helper()
	before := s.highest.Load()
	logged(s, before+1, before+3)
	if err := s.Wait(t.Context(), before+3); err != nil {
		t.Fatal(err)
	}
	return int(before + 3)
}

// TestSleep writes to two stores in turn, so that the other one falls asleep each time. Both
// are read. In the end, the store that is asleep is cut.
func TestSleep(t *testing.T) {
	d, both, slept := drowsy(t, 1, func() error { return nil })
	asleep := <-slept
	other := both[0]
	if other == asleep {
		other = both[1]
	}
	for range 5 {
		appendMore(t, asleep)
		asleep, other = other, asleep
		if s := <-slept; s != asleep {
			t.Fatalf("%s is asleep, although it was used last", s.path())
		}
		if !missing(asleep.path() + logSuffix) {
			t.Error("a store that is asleep has a log")
		}
		for _, s := range both {
			events, err := historyOfAll(t, s)
			wantSeqs(t, events, err, int(s.highest.Load()))
		}
	}
	path := asleep.path()
	child := cutAgain(t, d, asleep, 100)
	settle(t, d)
	events, err := historyOfAll(t, child)
	if err != nil || len(events) < 3 {
		t.Errorf("the child has %d events, want at least 3: %v", len(events), err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, child.path(), other.path()} {
		if !missing(path) {
			wantIntact(t, path)
		}
	}
}

// TestStoresInUseStayAwake writes to two stores in turn, although only one may stay awake. Each
// has been asleep once, and now stays awake for an hour.
func TestStoresInUseStayAwake(t *testing.T) {
	var opened atomic.Int64
	_, both, slept := drowsy(t, time.Hour, func() error { opened.Add(1); return nil })
	appendMore(t, <-slept)
	appendMore(t, <-slept)
	before := opened.Load()
	for range 20 {
		for _, s := range both {
			appendMore(t, s)
		}
	}
	if more := opened.Load() - before; more != 0 || len(slept) != 0 {
		t.Errorf("%d connections were opened, and %d stores fell asleep, want none", more, len(slept))
	}
}

// TestWakingUpFails has a store that is asleep and whose file cannot be opened for a while. The
// store reports that, and later writes what was appended.
func TestWakingUpFails(t *testing.T) {
	var failing atomic.Bool
	broken := errors.New("it cannot be opened")
	_, _, slept := drowsy(t, 1, func() error {
		if failing.Load() {
			return broken
		}
		return nil
	})
	s := <-slept
	failed := make(chan struct{}, 1)
	s.Notify(func() {
		if s.Err() != nil {
			nudge(failed)
		}
	})
	failing.Store(true)
	logged(s, 1, 3)
	<-failed
	if err := s.Wait(t.Context(), 3); !errors.Is(err, broken) {
		t.Errorf("a caller that waits meanwhile gets %v, want that the file cannot be opened", err)
	}
	failing.Store(false)
	events, err := historyOfAll(t, s)
	for errors.Is(err, broken) { // until the next try
		events, err = historyOfAll(t, s)
	}
	wantSeqs(t, events, err, 3)
}

// TestTooManyFiles has more stores than the process may have files open. Stores that are not
// written to fall asleep for those that are, although they may stay awake for an hour. When
// nothing can be opened, the caller hears why.
func TestTooManyFiles(t *testing.T) {
	for name, reason := range map[string]error{
		"as the system says": &fs.PathError{Op: "open", Path: "a store", Err: syscall.EMFILE},
		"as SQLite says":     sqlite3.Error{Code: sqlite3.ErrCantOpen, SystemErrno: syscall.EMFILE},
		// SQLite tries again to open a log that it cannot make, and says how that has failed.
		"as SQLite says of a file that it can only read": sqlite3.Error{Code: sqlite3.ErrReadonly, ExtendedCode: sqlite3.ErrNoExtended(sqlite3.ErrReadonly)},
		"as SQLite says of a log":                        sqlite3.Error{Code: sqlite3.ErrCantOpen, SystemErrno: syscall.ENOENT},
	} {
		t.Run(name, func(t *testing.T) {
			const most = 3
			var armed, full atomic.Bool
			var open atomic.Int64
			var last atomic.Pointer[Store] // to fall asleep
			d, err := Open(t.Context(), t.TempDir(), Options{naps: naps{most: 100, first: time.Hour}, hooks: failpoint.Hooks{
				Unsynced: true,
				Opened: func(string, func(string) error) error {
					switch {
					case !armed.Load():
						return nil
					case full.Load():
						return reason
					case open.Add(1) > most:
						open.Add(-1)
						return reason
					}
					return nil
				},
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}()
			d.awake.slept = func(s *Store) { open.Add(-1); last.Store(s) }
			d.spares.rest(t)
			armed.Store(true)
			var stores [5 * most]*Store
			for i := range stores {
				stores[i] = createStore(t, d)
			}
			for range 2 {
				for _, s := range stores {
					appendMore(t, s)
				}
			}
			s := last.Load()
			full.Store(true)
			logged(s, 7, 7)
			if err := s.Wait(t.Context(), 7); err == nil || !strings.Contains(err.Error(), "ulimit -n") {
				t.Errorf("the caller gets %v", err)
			}
			full.Store(false)
			events, err := historyOfAll(t, stores[0])
			wantSeqs(t, events, err, int(stores[0].highest.Load()))
		})
	}
}

// A store that a cut has parked, and that continues, can fall asleep for others.
func TestAParkedStoreSleepsLater(t *testing.T) {
	d, both, slept := drowsy(t, time.Hour, func() error { return nil })
	for _, s := range both { // now they are awake for an hour
		appendMore(t, s)
	}
	for len(slept) > 0 {
		<-slept
	}
	s := both[0]
	if err := s.park(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.makeRoom() // it gets tired while it is parked
	s.queue.resume()
	for asleep := range slept {
		if asleep == s {
			break
		}
	}
	appendMore(t, s)
	events, err := historyOfAll(t, s)
	wantSeqs(t, events, err, int(s.highest.Load()))
}

// A store that cannot fall asleep now stays in the list, and does so later.
func TestAMarkedStoreSleepsLater(t *testing.T) {
	d, both, slept := drowsy(t, time.Hour, func() error { return nil })
	s := both[0]
	appendMore(t, s)
	for len(slept) > 0 {
		<-slept
	}
	if err := s.park(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.w.marked = true
	s.queue.resume()
	d.makeRoom()
	if err := s.park(t.Context()); err != nil { // it has looked at its queue
		t.Fatal(err)
	}
	s.w.marked = false
	s.queue.resume()
	for asleep := (*Store)(nil); asleep != s; {
		d.makeRoom()
		for len(slept) > 0 && asleep != s {
			asleep = <-slept
		}
	}
}

// A file that is missing is not one too many.
func TestAMissingFileMakesNoRoom(t *testing.T) {
	d, both, _ := drowsy(t, time.Hour, func() error { return nil })
	session, path := both[0].info.Session, both[0].path()
	if err := both[0].Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Open(t.Context(), session); err == nil || strings.Contains(err.Error(), "ulimit") {
		t.Errorf("a missing file is opened: %v", err)
	}
	if d.short.lasts() {
		t.Error("room was made for more files")
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
}

// While open files are short, no spare files are kept; afterwards they are, as before.
func TestShortageEnds(t *testing.T) {
	d, _, _ := drowsy(t, time.Hour, func() error { return nil })
	d.makeRoom()
	if d.spares.refill() || len(d.spares.ready) > 0 {
		t.Errorf("%d files are kept while open files are short", len(d.spares.ready))
	}
	past := time.Now().Add(-2 * shortageTime)
	d.short.at.Store(&past)
	for d.spares.refill() {
	}
	if len(d.spares.ready) != fewestSpares {
		t.Errorf("%d files are kept after the shortage, want %d", len(d.spares.ready), fewestSpares)
	}
}

// wantIntact lets SQLite check a file.
func wantIntact(t *testing.T, path string) {
	t.Helper()
	c, err := sqlite.Open(path, sqlite.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Integer("SELECT count(*) FROM event"); err != nil {
		t.Error(err)
	}
	if n, _, err := c.Integer("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"); err != nil || n != 0 {
		t.Errorf("%s: %d complaints: %v", path, n, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
