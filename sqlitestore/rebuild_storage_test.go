package sqlitestore_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/storetest"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore"
	"github.com/seed47132306/terrarium/sqlitestore/internal/losevfs"
)

// TestStorageRebuilt runs the test suite of a storage on one that loses its catalogue between
// any two processes, and rebuilds it from the stores. make test runs every second check,
// because few of them depend on the catalogue.
func TestStorageRebuilt(t *testing.T) {
	seeded.Long(t)
	rebuilt := 0
	open := func(t *testing.T, dir string) journal.Storage {
		t.Cleanup(losevfs.Mount(dir, 0).Unmount)
		catalog := filepath.Join(dir, "catalog.db")
		if err := os.Remove(catalog); err == nil {
			if err := os.Remove(catalog + "-wal"); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
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
		return pruning{d}
	}
	for i, c := range storetest.Checks() {
		if seeded.Part(i, 5) {
			t.Run(c.Name, func(t *testing.T) {
				c.Run(t, func(_ storetest.T, dir string) journal.Storage { return open(t, dir) })
			})
		}
	}
	if rebuilt == 0 {
		t.Error("no catalogue was rebuilt")
	}
}
