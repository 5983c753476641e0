package sqlitestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/search"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// indexedDirectory is a directory with a number of events, each with the word "frog",
// and an index that only the test extends.
func indexedDirectory(t *testing.T, o Options, events uint64) (*Directory, *Store) {
	t.Helper()
	o.SearchIndex = true
	d, err := Open(t.Context(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	s := createStore(t, d)
	croak(t, s, 1, events)
	return d, s
}

func croak(t *testing.T, s *Store, from, to uint64) {
	t.Helper()
	for seq := from; seq <= to; seq++ {
		s.Append(&journal.Record{Events: []journal.Event{{
			ID: journal.EventID{Origin: s.Origin(), Seq: seq}, Time: int64(seq), Kind: journal.EventChannelMessage, Channel: "h", Seq: seq, Payload: []byte("a frog"),
		}}})
	}
	if err := s.Wait(t.Context(), to); err != nil {
		t.Fatal(err)
	}
}

// wantFound checks how many events with frogs are found, and that each is found once.
func wantFound(t *testing.T, d searching, n int) {
	t.Helper()
	r, err := d.Search(t.Context(), SearchQuery{Text: "frog", Limit: search.MostFound})
	if err != nil || len(r.Found) != n {
		t.Fatalf("found %d events; want %d: %v", len(r.Found), n, err)
	}
	seen := map[journal.EventID]bool{}
	for _, f := range r.Found {
		if seen[f.ID] {
			t.Errorf("%s is found twice", f.ID)
		}
		seen[f.ID] = true
	}
}

// wantPlaces checks how many events the index has.
func wantPlaces(t *testing.T, d *Directory, want int) {
	t.Helper()
	if got := column(t, d.indexer.path, "SELECT CAST(next - 1 AS TEXT) FROM progress"); len(got) != 1 || got[0] != fmt.Sprint(want) {
		t.Errorf("the index has %v places; want %d", got, want)
	}
}

// TestIndexStopsAnywhere ends the indexing in the middle of a transaction. Nothing of that
// transaction is in the index, and when it is repeated, everything is there once.
func TestIndexStopsAnywhere(t *testing.T) {
	d, _ := indexedDirectory(t, Options{}, 700)
	stopped := func() (stopped bool) {
		defer func() { stopped = recover() != nil }()
		_ = search.Extend(t.Context(), d.indexer.path, d, search.Everything, search.Pacing{Rest: func() {}, GiveWay: func() { panic("killed") }})
		return false
	}
	if !stopped() {
		t.Fatal("the indexing was not stopped")
	}
	wantFound(t, d, 700)
	wantFound(t, d, 700)
	wantPlaces(t, d, 700)
}

// TestDamagedIndex proves that a damaged index is set aside and rebuilt, and that searches find
// the same meanwhile.
func TestDamagedIndex(t *testing.T) {
	d, _ := indexedDirectory(t, Options{}, 50)
	if err := d.indexer.round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := sqlite.Remove(failpoint.Hooks{}, d.indexer.path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.indexer.path, make([]byte, 10_000), 0o644); err != nil {
		t.Fatal(err)
	}
	wantFound(t, d, 50)
	err := d.indexer.round(t.Context())
	wantError(t, "a damaged index", err, abi.Storage, "was damaged", search.Name+files.OrphanSuffix)
	if len(d.Problems()) != 1 {
		t.Errorf("the problems are %v, want one", d.Problems())
	}
	if err := d.indexer.round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if missing(filepath.Join(d.dir, search.Name+files.OrphanSuffix)) {
		t.Error("the damaged index was not kept")
	}
	wantFound(t, d, 50)
}

// TestAnOlderIndexIsReplaced has an index of an older version, which found less.
func TestAnOlderIndexIsReplaced(t *testing.T) {
	d, _ := indexedDirectory(t, Options{}, 50)
	if err := d.indexer.round(t.Context()); err != nil {
		t.Fatal(err)
	}
	execute(t, d.indexer.path, "DELETE FROM run; PRAGMA user_version = 2")
	wantFound(t, d, 50)
	if err := d.indexer.round(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantPlaces(t, d, 50)
}

// TestTheIndexOfAnotherDirectory searches a directory with the index of another one, read-only.
// Everything is found once, and the result says what is wrong.
func TestTheIndexOfAnotherDirectory(t *testing.T) {
	other, _ := indexedDirectory(t, Options{}, 30)
	if err := other.indexer.round(t.Context()); err != nil {
		t.Fatal(err)
	}
	d, _ := indexedDirectory(t, Options{}, 50)
	d.indexer.close()
	c, err := sqlite.Open(other.indexer.path, sqlite.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.CopyTo(t.Context(), d.indexer.path), c.Close()); err != nil {
		t.Fatal(err)
	}
	v := mustView(t, d.dir)
	wantFound(t, v, 50)
	r, err := v.Search(t.Context(), SearchQuery{Text: "frog"})
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, "searching", r.Problem, abi.Storage, d.indexer.path+" is the index of another session directory")
	if err := d.indexer.round(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantFound(t, d, 50)
}

// TestADirectoryIsNoIndex has a directory in the place of the index, empty or not. Searches are
// slower, but find everything. The caller gets the reason and a remedy, and the directory is
// not removed.
func TestADirectoryIsNoIndex(t *testing.T) {
	d, _ := indexedDirectory(t, Options{}, 50)
	d.indexer.close()
	if err := os.RemoveAll(d.indexer.path); err != nil {
		t.Fatal(err)
	}
	for _, inside := range []string{"", "notes"} {
		path := filepath.Join(d.indexer.path, inside)
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		wantFound(t, d, 50)
		for _, from := range []searching{d, mustView(t, d.dir)} {
			r, err := from.Search(t.Context(), SearchQuery{Text: "frog"})
			if err != nil {
				t.Fatal(err)
			}
			wantError(t, "searching", r.Problem, abi.Storage, d.indexer.path+" is a directory")
			if remedyOf(r.Problem) == "" {
				t.Error("the error has no remedy")
			}
		}
		wantError(t, "indexing", d.indexer.round(t.Context()), abi.Storage, "is a directory")
		if len(d.Problems()) != 1 {
			t.Errorf("the problems are %v, want one", d.Problems())
		}
		if missing(path) {
			t.Errorf("%s was removed", path)
		}
	}
	lost := duplicate(t, d.dir)
	loseCatalog(t, lost)
	if _, err := Rebuild(t.Context(), lost); err != nil || missing(filepath.Join(lost, search.Name, "notes")) {
		t.Errorf("Rebuild: %v", err)
	}
}

// TestIndexShrinks rebuilds an index when most of its events have been pruned. Pruned events
// are not found, even before that.
func TestIndexShrinks(t *testing.T) {
	d, s := indexedDirectory(t, Options{}, 5120)
	if err := d.indexer.round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Prune(t.Context(), s.info.Session, Retention{Events: 100}); err != nil {
		t.Fatal(err)
	}
	wantFound(t, d, 100)
	if err := d.indexer.round(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantPlaces(t, d, 100)
	wantFound(t, d, 100)
}

// TestIndexKeepsToTheBudget proves that an index is not extended when it takes more than half
// of the budget.
func TestIndexKeepsToTheBudget(t *testing.T) {
	d, _ := indexedDirectory(t, Options{}, 500)
	if err := d.indexer.round(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.indexer.close()
	d.options.MaxDiskBytes = 2*d.indexSize() - 2
	wantError(t, "a large index", d.indexer.round(t.Context()), abi.LimitExceeded, search.Name)
	wantFound(t, d, 500)
}
