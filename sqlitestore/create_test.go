package sqlitestore

import (
	"path/filepath"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// createdPair makes two stores at once, with a first record each.
func createdPair(t *testing.T, d *Directory) (a, b *Store) {
	t.Helper()
	spec := journal.StoreSpec{Graph: "g", Durability: journal.Full, First: func(o journal.Origin) *journal.Record { return whole(o, 0, 2, 10) }}
	stores, err := d.Create(t.Context(), spec, spec)
	if err != nil {
		t.Fatal(err)
	}
	return stores[0].(*Store), stores[1].(*Store)
}

// unuse marks a file as unused, as it is right after it was made and before its writer has
// begun.
const unuse = "INSERT OR REPLACE INTO store (key, value) VALUES ('" + storefile.Unused + "', '1')"

// TestRebuildCreated loses the catalogue after stores were created to which only their first
// records were written.
func TestRebuildCreated(t *testing.T) {
	for name, test := range map[string]struct {
		use  func(t *testing.T, d *Directory, a *Store) // runs before the directory is closed
		lose bool                                       // lose the file of the second store, as if it had not been made yet
		want int                                        // live sessions
	}{
		"unused": {want: 2},
		"the first is gone": {want: 3, use: func(t *testing.T, d *Directory, a *Store) {
			for _, s := range splitStore(t, d, a) {
				logged(s, s.Durable()+1, s.Durable()+1)
			}
			if err := d.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}},
		"half made": {lose: true, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := mustOpen(t, t.TempDir())
			a, b := createdPair(t, d)
			if test.use != nil {
				test.use(t, d, a)
			}
			dir := duplicate(t, d.dir)
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			second := filepath.Join(dir, files.Stores, filepath.Base(b.path()))
			execute(t, second, unuse)
			if test.use == nil {
				execute(t, filepath.Join(dir, files.Stores, filepath.Base(a.path())), unuse)
			}
			if test.lose {
				if err := sqlite.Remove(failpoint.Hooks{}, second); err != nil {
					t.Fatal(err)
				}
			}
			loseCatalog(t, dir)
			if _, err := Rebuild(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
			d = mustOpen(t, dir)
			graphs, problems, err := d.Saved(t.Context())
			if err != nil || len(graphs) != test.want || len(problems) > 0 {
				t.Errorf("%d live sessions, problems %v, %v; want %d", len(graphs), problems, err, test.want)
			}
			for _, g := range graphs {
				events, err := d.History(t.Context(), g.Session, journal.HistoryQuery{})
				if err != nil || len(events) < 2 {
					t.Errorf("%s has %d events, %v", g.Session, len(events), err)
				}
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
