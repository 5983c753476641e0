package sqlitestore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite3"
	"go.uber.org/goleak"
)

var errDisk = sqlite3.Error{Code: sqlite3.ErrIoErr, ExtendedCode: sqlite3.ErrIoErrFsync}

// faults breaks the disk on demand.
type faults struct {
	before, after atomic.Int32 // how many more commits of stores fail; negative: all
	catalogBefore atomic.Bool
	catalogAfter  atomic.Bool
	full          atomic.Bool
}

func (f *faults) hooks() failpoint.Hooks {
	take := func(n *atomic.Int32) error {
		if v := n.Load(); v == 0 || v > 0 && !n.CompareAndSwap(v, v-1) {
			return nil
		}
		return errDisk
	}
	return failpoint.Hooks{
		Opened: func(_ string, execute func(string) error) error {
			if f.full.Load() {
				return execute("PRAGMA max_page_count = 1")
			}
			return nil
		},
		Reached: func(p failpoint.Point, path string) error {
			switch {
			case p == failpoint.Appending:
				return take(&f.before)
			case p == failpoint.Appended:
				return take(&f.after)
			case p == failpoint.Cutting && f.catalogBefore.Load(), p == failpoint.Cut && f.catalogAfter.Load():
				return errDisk
			}
			return nil
		},
	}
}

func openFaulty(t *testing.T, f *faults, options Options) *Directory {
	t.Helper()
	options.hooks = f.hooks()
	d, err := Open(t.Context(), t.TempDir(), options)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func createStore(t *testing.T, d *Directory) *Store {
	t.Helper()
	stores, err := d.Create(t.Context(), journal.StoreSpec{Graph: "g", Durability: journal.Normal})
	if err != nil {
		t.Fatal(err)
	}
	return stores[0].(*Store)
}

// logged appends records of one event each, whose numbers go from the first to the last given.
func logged(s *Store, from, to uint64) {
	for seq := from; seq <= to; seq++ {
		s.Append(&journal.Record{
			Events:  []journal.Event{{ID: journal.EventID{Origin: s.Origin(), Seq: seq}, Time: int64(seq), Kind: journal.EventLog, Payload: make([]byte, 1000)}},
			Cursors: []journal.CursorRow{{Reader: "a", Channel: "c", Seq: seq}},
		})
	}
}

// wantSeqs checks that the session has the events 1 to n of one origin, each
// once.
func wantSeqs(t *testing.T, events []journal.Event, err error, n int) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if len(events) != n {
		t.Fatalf("%d events, want %d", len(events), n)
	}
	for i, e := range events {
		if e.ID.Seq != uint64(i+1) {
			t.Fatalf("event %d has the number %d", i+1, e.ID.Seq)
		}
	}
}

// failing waits until writing fails, and checks how that is reported.
func failing(t *testing.T, s *Store, seq uint64, text string) {
	t.Helper()
	err := s.Wait(t.Context(), seq)
	if abi.CodeOf(err) != abi.Storage || !strings.Contains(err.Error(), s.path()) || !strings.Contains(err.Error(), text) {
		t.Errorf("Wait: %v; want the code storage, the path and %q", err, text)
	}
	if abi.CodeOf(s.Err()) != abi.Storage {
		t.Errorf("Err: %v, want the code storage", s.Err())
	}
}

// recovered waits until writing succeeds, which the backoff delays.
func recovered(t *testing.T, s *Store, seq uint64) {
	t.Helper()
	risen := make(chan struct{}, 1)
	s.Notify(func() { nudge(risen) })
	for s.Durable() < seq || s.Err() != nil { // a new store has to write without events, too
		<-risen
	}
	if err := s.Wait(t.Context(), seq); err != nil {
		t.Errorf("Wait: %v", err)
	}
	if s.Err() != nil {
		t.Errorf("Err: %v", s.Err())
	}
}

func TestCommitFails(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, c := range []struct {
		name  string
		count func(*faults) *atomic.Int32
	}{
		{"NotWritten", func(f *faults) *atomic.Int32 { return &f.before }},
		{"WrittenAllTheSame", func(f *faults) *atomic.Int32 { return &f.after }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var f faults
			d := openFaulty(t, &f, Options{})
			s := createStore(t, d)
			logged(s, 1, 10)
			if err := s.Wait(t.Context(), 10); err != nil {
				t.Fatal(err)
			}
			notified := make(chan struct{}, 1)
			s.Notify(func() {
				if s.Err() != nil {
					nudge(notified)
				}
			})
			c.count(&f).Store(2)
			logged(s, 11, 11)
			<-notified
			logged(s, 12, 40)
			recovered(t, s, 40)
			events, err := s.History(t.Context(), journal.HistoryQuery{})
			wantSeqs(t, events, err, 40)
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestDiskFull fills a store up to its limit of pages. What was acknowledged remains, reads and
// Wait return the reason, and writing continues by itself.
func TestDiskFull(t *testing.T) {
	defer goleak.VerifyNone(t)
	var f faults
	d := openFaulty(t, &f, Options{MaxQueueBytes: 100_000})
	s := createStore(t, d)
	logged(s, 1, 100)
	if err := s.Wait(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	f.full.Store(true)
	f.before.Store(1) // the file is reopened, and is full then
	notified := make(chan struct{}, 1)
	s.Notify(func() { nudge(notified) })
	logged(s, 101, 300)
	for err := s.Err(); err == nil || !strings.Contains(err.Error(), "full"); err = s.Err() {
		<-notified
	}
	failing(t, s, 300, "full")
	if problems := d.Problems(); len(problems) != 1 || !strings.Contains(problems[0].Error(), "full") {
		t.Errorf("Problems: %v, want that the disk is full", problems)
	}
	if _, err := s.State(t.Context(), "a"); abi.CodeOf(err) != abi.Storage {
		t.Errorf("State, when not everything can be read: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Room(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Room with a full queue: %v", err)
	}
	room := make(chan error)
	go func() { room <- s.Room(context.Background()) }()
	f.full.Store(false)
	recovered(t, s, 300)
	if problems := d.Problems(); len(problems) > 0 {
		t.Errorf("Problems: %v, want none", problems)
	}
	if err := <-room; err != nil {
		t.Errorf("Room: %v", err)
	}
	events, err := s.History(t.Context(), journal.HistoryQuery{})
	wantSeqs(t, events, err, 300)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCloseGivesUp closes a store that cannot be written. Close returns an error, and
// everything that was acknowledged is kept.
func TestCloseGivesUp(t *testing.T) {
	defer goleak.VerifyNone(t)
	var f faults
	d := openFaulty(t, &f, Options{})
	s := createStore(t, d)
	logged(s, 1, 10)
	if err := s.Wait(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	f.before.Store(-1)
	logged(s, 11, 20)
	for range 2 {
		if err := s.Close(t.Context()); abi.CodeOf(err) != abi.Storage {
			t.Errorf("Close: %v, want the code storage", err)
		}
	}
	events, err := d.History(t.Context(), s.Info().Session, journal.HistoryQuery{})
	wantSeqs(t, events, err, 10)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func splitOf(s *Store) journal.Cut {
	child := journal.CutChild{StoreSpec: journal.StoreSpec{Graph: "half", Durability: journal.Normal}, Parents: []journal.SessionID{s.Info().Session}}
	return journal.Cut{Kind: "split", At: 1, Parents: []journal.Store{s}, Children: []journal.CutChild{child, child}}
}

func TestCutWhenTheCatalogueFails(t *testing.T) {
	defer goleak.VerifyNone(t)
	t.Run("NotWritten", func(t *testing.T) {
		var f faults
		d := openFaulty(t, &f, Options{})
		s := createStore(t, d)
		logged(s, 1, 10)
		f.catalogBefore.Store(true)
		if _, err := d.Cut(t.Context(), splitOf(s)); abi.CodeOf(err) != abi.Storage {
			t.Errorf("Cut: %v, want the code storage", err)
		}
		f.catalogBefore.Store(false)
		logged(s, 11, 20)
		if err := s.Wait(t.Context(), 20); err != nil {
			t.Errorf("the parent does not continue: %v", err)
		}
		if err := d.Close(); err != nil { // this removes files that were made in advance
			t.Fatal(err)
		}
		left, err := filepath.Glob(filepath.Join(d.dir, files.Stores, "*.db"))
		if err != nil || len(left) != 1 {
			t.Errorf("files are left over: %v; %v", left, err)
		}
	})
	t.Run("WrittenAllTheSame", func(t *testing.T) {
		var f faults
		d := openFaulty(t, &f, Options{})
		s := createStore(t, d)
		logged(s, 1, 10)
		f.catalogAfter.Store(true)
		children, err := d.Cut(t.Context(), splitOf(s))
		if err != nil || len(children) != 2 {
			t.Fatalf("Cut: %d children, %v", len(children), err)
		}
		for _, c := range children {
			events, err := c.History(t.Context(), journal.HistoryQuery{})
			wantSeqs(t, events, err, 10)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestCutWhileWritingFails cuts a store that has only the mark of its use to write. That fails,
// and the cut returns an error instead of waiting for the disk.
func TestCutWhileWritingFails(t *testing.T) {
	defer goleak.VerifyNone(t)
	var f faults
	d := openFaulty(t, &f, Options{})
	f.before.Store(-1)
	s := createStore(t, d)
	notified := make(chan struct{}, 1)
	s.Notify(func() { nudge(notified) })
	for range 2 { // the second time, the writer has failed already; the first time, perhaps not
		_, err := d.Cut(t.Context(), splitOf(s))
		wantError(t, "a cut while writing fails", err, abi.Storage, s.path())
		if s.Err() == nil {
			<-notified
		}
	}
	f.before.Store(0)
	for s.Err() != nil {
		<-notified
	}
	if _, err := d.Cut(t.Context(), splitOf(s)); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCutWithUnknownOutcome removes the catalogue right after it was written. The outcome is
// unknown, so neither side continues until the next start has found out.
func TestCutWithUnknownOutcome(t *testing.T) {
	defer goleak.VerifyNone(t)
	var away atomic.Bool
	d, err := Open(t.Context(), t.TempDir(), Options{hooks: failpoint.Hooks{Reached: func(p failpoint.Point, path string) error {
		if !away.Load() || p != failpoint.Cut {
			return nil
		}
		return errors.Join(errDisk, os.Rename(path, path+".away"))
	}}})
	if err != nil {
		t.Fatal(err)
	}
	s := createStore(t, d)
	logged(s, 1, 10)
	away.Store(true)
	path := d.catalog.Path()
	if _, err = d.Cut(t.Context(), splitOf(s)); !errors.Is(err, catalog.ErrUnknown) || abi.CodeOf(err) != abi.UnknownOutcome {
		t.Errorf("Cut: %v", err)
	}
	logged(s, 11, 20)
	if err := s.Wait(t.Context(), 20); abi.CodeOf(err) != abi.Stopped {
		t.Errorf("Wait on the parent: %v", err)
	}
	if _, err := d.Sessions(t.Context()); abi.CodeOf(err) != abi.Storage {
		t.Errorf("Sessions without a catalogue: %v", err)
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if d, err = Open(t.Context(), d.dir, Options{}); err != nil {
		t.Fatal(err)
	}
	graphs, problems, err := d.Saved(t.Context())
	if err != nil || len(problems) > 0 || len(graphs) != 2 {
		t.Fatalf("Saved: %+v, problems %v, %v", graphs, problems, err)
	}
	for _, g := range graphs {
		events, err := d.History(t.Context(), g.Session, journal.HistoryQuery{})
		wantSeqs(t, events, err, 10)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestUnwrittenCutIsForgotten ends a cut as a kill would, right before its transaction. The
// next start deletes the files of the children.
func TestUnwrittenCutIsForgotten(t *testing.T) {
	d, err := Open(t.Context(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := createStore(t, d)
	logged(s, 1, 10)
	if err := s.park(t.Context()); err != nil {
		t.Fatal(err)
	}
	children, err := d.makeChildren(t.Context(), "cut", splitOf(s), map[journal.SessionID]*Store{s.info.Session: s})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range children {
		if err := c.close(); err != nil {
			t.Fatal(err)
		}
	}
	s.queue.resume()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if d, err = Open(t.Context(), d.dir, Options{}); err != nil {
		t.Fatal(err)
	}
	graphs, problems, err := d.Saved(t.Context())
	if err != nil || len(problems) > 0 || len(graphs) != 1 || graphs[0].Session != s.info.Session {
		t.Errorf("Saved: %+v, problems %v, %v", graphs, problems, err)
	}
	left, err := filepath.Glob(filepath.Join(d.dir, files.Stores, "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("files are left over: %v; %v", left, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}
