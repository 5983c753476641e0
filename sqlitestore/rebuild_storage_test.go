package sqlitestore_test

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/storetest"
	"github.com/seed47132306/terrarium/sqlitestore"
	"github.com/seed47132306/terrarium/sqlitestore/internal/losevfs"
)

// TestStorageRebuilt passes the tests of a storage with one that loses its
// catalogue between any two processes, and gets it again from the stores.
func TestStorageRebuilt(t *testing.T) {
	fewer(t)
	rebuilt := 0
	storetest.Run(t, func(t *testing.T, dir string) journal.Storage {
		t.Cleanup(losevfs.Mount(dir, 0).Unmount)
		if err := os.Remove(filepath.Join(dir, "catalog.db")); err == nil {
			report, err := sqlitestore.Rebuild(t.Context(), dir)
			if err != nil || len(report.Unreadable)+len(report.Aside)+len(report.Missing)+len(report.Unknown) > 0 || report.Kept != "" {
				t.Fatalf("Rebuild: %+v, %v", report, err)
			}
			rebuilt++
		} else if !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		d, err := sqlitestore.Open(t.Context(), dir, sqlitestore.WithoutSyncs)
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
	if rebuilt == 0 {
		t.Error("no catalogue was ever made again")
	}
}

// fewer has a test draw a few programs only: each takes many times as long as
// without losing a catalogue.
func fewer(t *testing.T) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	before := checks.Value.String()
	if err := checks.Value.Set("4"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := checks.Value.Set(before); err != nil {
			t.Error(err)
		}
	})
}
