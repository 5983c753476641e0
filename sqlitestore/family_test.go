package sqlitestore

import (
	"errors"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
)

// TestFilesThatVanish removes files of a family between looking them up and reading
// them, as the hydrator does: the session is then to be looked up again.
func TestFilesThatVanish(t *testing.T) {
	dir := t.TempDir()
	o := WithoutSyncs
	o.hooks.free = func() int64 { return 0 } // so that no history is copied
	d, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	stores := []journal.Store{createStore(t, d)}
	for range 2 {
		logged(stores[0].(*Store), 2, 3)
		if stores, err = d.Cut(t.Context(), splitOf(stores[0].(*Store))); err != nil {
			t.Fatal(err)
		}
	}
	child := stores[1].Info().Session
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}

	d = mustOpen(t, dir)
	e, err := d.catalog.entry(t.Context(), "read", child)
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.catalog.openFamily(t.Context(), e, d.owned)
	if err != nil || len(f.ancestors) != 2 {
		t.Fatalf("%d ancestors, %v; want 2", len(f.ancestors), err)
	}
	graphs, problems, err := d.Saved(t.Context())
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	for _, g := range graphs {
		if _, err := d.Open(t.Context(), g.Session); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, d)
	_, err = f.count(t.Context())
	if err == nil {
		t.Fatal("what has been removed is read")
	}
	if err := f.vanished(err); !errors.Is(err, errMoved) {
		t.Errorf("reading answers %v, want that the session is to be looked up again", err)
	}
	if err := f.vanished(nil); err != nil {
		t.Errorf("reading what was there answers %v", err)
	}
	if err := errors.Join(f.close(), d.Close()); err != nil {
		t.Fatal(err)
	}
}
