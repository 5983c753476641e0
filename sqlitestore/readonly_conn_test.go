package sqlitestore

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// TestReadingLeavesNothing reads a directory in every way that exists. Afterwards it has the
// same files as before.
func TestReadingLeavesNothing(t *testing.T) {
	d := heldBack(t) // its sessions are in several files
	parent := createStore(t, d)
	logged(parent, 1, 5)
	children := splitStore(t, d, parent)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	before := tree(t, d.dir)
	v, err := OpenReadOnly(t.Context(), d.dir)
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	for _, s := range []*Store{parent, children[0], children[1]} {
		session := s.info.Session
		_, historyErr := v.History(t.Context(), session, journal.HistoryQuery{})
		_, savedErr := v.Saved(t.Context(), session)
		_, lineErr := v.Lineage(t.Context(), session)
		report, verifyErr := v.Verify(t.Context(), session)
		_, forkErr := v.Fork(t.Context(), session, filepath.Join(out, string(session)))
		if err := errors.Join(historyErr, savedErr, lineErr, verifyErr, forkErr, v.Export(t.Context(), session, filepath.Join(out, string(session)+".db"))); err != nil || report.Events == 0 {
			t.Errorf("%d events, %v", report.Events, err)
		}
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, d.dir); !slices.Equal(after, before) {
		t.Errorf("the directory had\n%v, but has\n%v", before, after)
	}
	loseCatalog(t, d.dir)
	if _, err := Rebuild(t.Context(), d.dir); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, d.dir); !slices.Equal(after, before) {
		t.Errorf("before its catalogue was rebuilt, the directory had\n%v, but has\n%v", before, after)
	}
}

// TestReadingLeavesLogs reads a directory that a process was using when it was killed, and one
// that is in use. Their logs are not removed.
func TestReadingLeavesLogs(t *testing.T) {
	d := mustOpen(t, t.TempDir())
	s := createStore(t, d)
	logged(s, 1, 5)
	if err := s.Wait(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	killed := filepath.Join(t.TempDir(), "killed")
	if err := os.MkdirAll(filepath.Join(killed, files.Stores), 0o755); err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(files.Stores, filepath.Base(s.path()))
	for _, name := range []string{catalog.Name, catalog.Name + "-wal", store, store + "-wal"} { // other files are being made
		content, err := os.ReadFile(filepath.Join(d.dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(killed, name), content, 0o644)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{d.dir, killed} {
		log := filepath.Join(dir, files.Stores, filepath.Base(s.path())+"-wal")
		content, err := os.ReadFile(log)
		if err != nil || len(content) == 0 {
			t.Fatalf("a log of %d bytes, %v", len(content), err)
		}
		v := mustView(t, dir)
		if report, err := v.Verify(t.Context(), s.info.Session); err != nil || report.Events != 5 {
			t.Errorf("Verify: %+v, %v", report, err)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
		unchanged(t, log, content)
	}
	logged(s, 6, 9)
	if err := s.Wait(t.Context(), 9); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
