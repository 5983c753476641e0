package sqlitestore

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
	"go.uber.org/goleak"
)

// breakable is a directory in which one step of the work in the background fails as long as the
// directory is broken.
type breakable struct {
	t      *testing.T
	d      *Directory
	broken atomic.Bool
	failed atomic.Int32
}

func newBreakable(t *testing.T, dir string, point failpoint.Point) *breakable {
	t.Helper()
	b := &breakable{t: t}
	b.broken.Store(true)
	options := smallChunks(func(p failpoint.Point, _ string) error {
		if p != point || !b.broken.Load() {
			return nil
		}
		b.failed.Add(1)
		return errDisk
	})
	var err error
	if b.d, err = Open(t.Context(), dir, options); err != nil {
		t.Fatal(err)
	}
	return b
}

// halves splits a new store with a number of events.
func (b *breakable) halves(events uint64) (parent *Store, children []*Store) {
	b.t.Helper()
	parent = createStore(b.t, b.d)
	parent.Append(whole(parent.origin, 0, int(events), 100))
	made, err := b.d.Cut(b.t.Context(), splitOf(parent))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, s := range made {
		children = append(children, s.(*Store))
	}
	return parent, children
}

// goesOn appends to the stores, and checks that their history is complete.
func (b *breakable) goesOn(stores []*Store, from, to uint64, inherited int) {
	b.t.Helper()
	for _, s := range stores {
		s.Append(whole(s.origin, from-1, int(to-from+1), 100))
		if err := s.Wait(b.t.Context(), to); err != nil {
			b.t.Errorf("Wait: %v", err)
		}
		events, err := s.History(b.t.Context(), journal.HistoryQuery{Limit: 1 << 30})
		if err != nil || len(events) != inherited+int(to) {
			b.t.Errorf("%d events, want %d; %v", len(events), inherited+int(to), err)
		}
	}
}

// settled checks that nothing is left to be done, and that nothing is wrong.
func (b *breakable) settled(stores []*Store) {
	b.t.Helper()
	if err := b.d.Settle(b.t.Context()); err != nil {
		b.t.Errorf("Settle: %v", err)
	}
	if problems := b.d.Problems(); len(problems) > 0 {
		b.t.Errorf("Problems: %v", problems)
	}
	for _, s := range stores {
		report, err := b.d.Verify(b.t.Context(), s.info.Session)
		if n := len(report.Missing) + len(report.Damage) + len(report.IncompleteFrom); n > 0 || err != nil || !s.Info().Complete {
			b.t.Errorf("Verify: %+v, %v", report, err)
		}
	}
}

// TestHydrationFails lets every step of the work in the background fail. Meanwhile the stores
// continue and can be read, and the directory reports the failure, unless the step had happened
// nevertheless. When the disk works again, the rest is done.
func TestHydrationFails(t *testing.T) {
	t.Parallel()
	// The catalogue is asked what became of a change. If a part of the work was done before it
	// failed, another attempt does the rest.
	overcome := []failpoint.Point{failpoint.Noted, failpoint.Completed, failpoint.Released, failpoint.Swept, failpoint.United, failpoint.Moved}
	for point := failpoint.Noting; point <= failpoint.Swept; point++ {
		if !seeded.Part(int(point), 3) {
			continue
		}
		t.Run(point.String(), func(t *testing.T) {
			b := newBreakable(t, t.TempDir(), point)
			_, stores := b.halves(200)
			b.goesOn(stores, 1, 10, 200)
			err := b.d.Settle(t.Context())
			if b.failed.Load() == 0 {
				t.Errorf("%s was not reached", point)
			}
			if problems := b.d.Problems(); !slices.Contains(overcome, point) && (abi.CodeOf(err) != abi.Storage || len(problems) == 0) {
				t.Errorf("Settle: %v, problems %v; want the code storage", err, problems)
			}
			b.goesOn(stores, 11, 20, 200)
			b.broken.Store(false)
			b.settled(stores)
			b.goesOn(stores, 21, 30, 200)
			if err := b.d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMovedFileCannotBeOpened lets a store get its whole file, which then cannot be opened. The
// store opens it when that is possible again, even if there is nothing to write, and can then
// be cut.
func TestMovedFileCannotBeOpened(t *testing.T) {
	for _, writes := range []bool{false, true} {
		t.Run(fmt.Sprint("writes=", writes), func(t *testing.T) {
			defer goleak.VerifyNone(t)
			var left atomic.Int32 // how many more times opening fails
			options := smallChunks(func(p failpoint.Point, _ string) error {
				if p == failpoint.Completed {
					left.Store(2)
				}
				return nil
			})
			options.hooks.Opened = func(path string, _ func(string) error) error {
				if isNumbered(path) && left.Add(-1) >= 0 {
					return errDisk
				}
				return nil
			}
			d, err := Open(t.Context(), t.TempDir(), options)
			if err != nil {
				t.Fatal(err)
			}
			parent := createStore(t, d)
			parent.Append(whole(parent.origin, 0, 50, 100))
			cut := splitOf(parent)
			cut.Kind, cut.Children = "merge", cut.Children[:1] // no other process opens such a file then
			children, err := d.Cut(t.Context(), cut)
			if err != nil {
				t.Fatal(err)
			}
			s := children[0].(*Store)
			if err := d.Settle(t.Context()); err != nil {
				t.Error(err)
			}
			if writes {
				s.Append(whole(s.origin, 0, 5, 100))
				recovered(t, s, 5)
				(&breakable{t: t, d: d}).goesOn([]*Store{s}, 6, 10, 50)
			}
			for left.Load() >= 0 { // a store that has nothing to write opens it, too
				runtime.Gosched()
			}
			recovered(t, s, s.Durable())
			if _, err := d.Cut(t.Context(), splitOf(s)); err != nil {
				t.Error(err)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMissingAncestor removes the file of an ancestor before its history has been copied.
// Everything else can be read and written, and the missing file is named. When the file is
// back, nothing is wrong.
func TestMissingAncestor(t *testing.T) {
	defer goleak.VerifyNone(t)
	b := newBreakable(t, t.TempDir(), failpoint.Noting)
	parent, stores := b.halves(50)
	path := parent.path()
	b.goesOn(stores, 1, 5, 50)
	if err := b.d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	b = newBreakable(t, b.d.dir, failpoint.Count)
	var open []*Store
	for _, s := range stores {
		again, err := b.d.Open(t.Context(), s.info.Session)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, again.(*Store))
	}
	b.goesOn(open, 1, 5, 5)
	if err := b.d.Settle(t.Context()); abi.CodeOf(err) != abi.Storage {
		t.Errorf("Settle: %v; want the code storage", err)
	}
	if text := fmt.Sprint(b.d.Problems()); !strings.Contains(text, string(parent.info.Session)) {
		t.Errorf("Problems: %s; want problems that name %s", text, parent.info.Session)
	}
	lost := journal.EventID{Origin: parent.Origin(), Seq: 1}.String() + " to " + journal.EventID{Origin: parent.Origin(), Seq: 50}.String()
	report, err := b.d.Verify(t.Context(), open[0].info.Session)
	if err != nil || strings.Join(report.Missing, "\n") != lost || len(report.Damage) != 1 {
		t.Errorf("Verify: %+v, %v; want %s to be missing", report, err, lost)
	}
	if text := fmt.Sprint(open[0].Missing()); !strings.Contains(text, string(parent.info.Session)) {
		t.Errorf("Missing: %s; want an error that names %s", text, parent.info.Session)
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	b.settled(open)
	if err := open[0].Missing(); err != nil {
		t.Errorf("Missing of a whole history: %v", err)
	}
	b.goesOn(open, 6, 10, 55)
	if err := b.d.Close(); err != nil {
		t.Error(err)
	}
}

// TestSettleAfterClose proves that Settle does not wait for work that will not be done.
func TestSettleAfterClose(t *testing.T) {
	d := mustOpen(t, t.TempDir())
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	wantError(t, "Settle after Close", d.Settle(t.Context()), abi.Stopped, d.dir)
}

// TestRemovalIsInterrupted removes a file that was never used, and interrupts that after each
// of the files that belong to it. The next start removes the rest.
func TestRemovalIsInterrupted(t *testing.T) {
	template, err := storefile.Schema.Template()
	if err != nil {
		t.Fatal(err)
	}
	for pass := 1; pass <= len(sqlite.Suffixes); pass++ {
		d := mustOpen(t, t.TempDir())
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		path, err := d.catalog.FilePath("unused" + files.StoreSuffix)
		if err != nil {
			t.Fatal(err)
		}
		for _, suffix := range sqlite.Suffixes {
			content := template
			if suffix != "" {
				content = nil
			}
			if err := os.WriteFile(path+suffix, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		left := pass
		_, err = Open(t.Context(), d.dir, smallChunks(func(p failpoint.Point, _ string) error {
			if p == failpoint.Removed {
				if left--; left == 0 {
					return errDisk
				}
			}
			return nil
		}))
		wantError(t, "Open", err, abi.Storage)
		if err := mustOpen(t, d.dir).Close(); err != nil {
			t.Fatal(err)
		}
		if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) > 0 {
			t.Errorf("after %d removals, %v are left over, %v", pass, files, err)
		}
	}
}

// isNumbered reports whether a file has replaced the one that its session began with.
func isNumbered(path string) bool { return strings.Count(filepath.Base(path), ".") == 2 }
