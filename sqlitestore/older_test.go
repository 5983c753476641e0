package sqlitestore

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// TestReadersAtEveryStep opens a directory for reading at every step of its owner. Data that
// the catalogue does not know at such a moment does not prove that the catalogue is older.
func TestReadersAtEveryStep(t *testing.T) {
	seeded.Long(t)
	dir := t.TempDir()
	var mu sync.Mutex
	seen := map[failpoint.Point]bool{}
	look := func(p failpoint.Point, _ string) error {
		v, err := OpenReadOnly(t.Context(), dir)
		if err == nil {
			var problems []error
			_, problems, err = v.Live(t.Context())
			err = errors.Join(err, errors.Join(journal.Damaged(problems)...), v.Close())
		}
		mu.Lock()
		defer mu.Unlock()
		seen[p] = true
		if err != nil {
			t.Errorf("%v: %v", p, err)
		}
		return nil
	}
	if err := mustOpen(t, dir).Close(); err != nil { // this makes the catalogue
		t.Fatal(err)
	}
	d, err := Open(t.Context(), dir, Options{hooks: failpoint.Hooks{SmallEvents: -1, Reached: look}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		parent := createStore(t, d)
		logged(parent, 1, 10)
		for _, half := range splitStore(t, d, parent) {
			logged(half, 2, 6) // its first record has the event 1
			if err := errors.Join(half.Wait(t.Context(), 6), d.Settle(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Retire(t.Context(), d.openBySize()[0].info.Session); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(d.Settle(t.Context()), d.Close()); err != nil {
		t.Fatal(err)
	}
	for _, p := range []failpoint.Point{failpoint.SpareReady, failpoint.Filled, failpoint.Created, failpoint.Appended, failpoint.Cut, failpoint.Sealed, failpoint.Firm, failpoint.Retired, failpoint.Finished, failpoint.Completed, failpoint.Moved, failpoint.Released, failpoint.Removed, failpoint.Swept} {
		if !seen[p] {
			t.Errorf("%v was not reached", p)
		}
	}
}

// TestAForgottenSession empties the log of a store, and restores a catalogue from before the
// session. Only the file of acknowledgements knows that the session existed. Rebuild reports
// that it is lost, and the directory can be used again.
func TestAForgottenSession(t *testing.T) {
	d, s := acknowledgedEach(t, journal.Full, 5)
	session := s.Info().Session
	dir := killed(t, d)
	empty := t.TempDir()
	if err := mustOpen(t, empty).Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(empty, catalog.Name))
	if err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(dir, files.Stores, "*-wal"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("logs %v, %v", logs, err)
	}
	for _, path := range append(logs, filepath.Join(dir, catalog.Name+"-wal")) {
		if err := os.Truncate(path, 0); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, catalog.Name), before, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = OpenReadOnly(t.Context(), dir)
	wantError(t, "reading", err, abi.Storage, string(session), "session rebuild "+dir)
	_, err = Open(t.Context(), dir, Options{})
	wantError(t, "opening", err, abi.Storage, string(session), "session rebuild "+dir)
	report, err := Rebuild(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Live) == 0 && (len(report.Missing) != 1 || report.Missing[0] != session) {
		t.Errorf("the missing sessions are %v, want %s", report.Missing, session)
	}
	again, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}
