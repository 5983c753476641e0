package sqlitestore

import (
	"errors"
	"maps"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
)

// TestFilesThatVanish removes files of a family between looking them up and reading them, as
// the hydrator does. The session must then be looked up again.
func TestFilesThatVanish(t *testing.T) {
	dir := t.TempDir()
	o := WithoutSyncs
	o.hooks.Free = func() int64 { return 0 } // so that no history is copied
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
	e, err := d.catalog.Entry(t.Context(), "read", child)
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.catalog.openFamily(t.Context(), e, false)
	if err != nil || len(f.ancestors) != 2 {
		t.Fatalf("%d ancestors, %v; want 2", len(f.ancestors), err)
	}
	before, err := f.count(t.Context())
	if err != nil || before == 0 {
		t.Fatal(before, err)
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
	// Files that were opened before can still be read.
	if after, err := f.count(t.Context()); err != nil || after != before {
		t.Errorf("%d events were read from files that were removed, %v; want %d", after, err, before)
	}
	busy, err := f.look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.count(t.Context()) // this opens new connections
	if err == nil {
		t.Fatal("a file that was removed was opened")
	}
	if err := busy.end(); err != nil {
		t.Error(err)
	}
	if err := f.vanished(err); !errors.Is(err, errMoved) {
		t.Errorf("reading returns %v, want that the session must be looked up again", err)
	}
	if err := f.vanished(nil); err != nil {
		t.Errorf("reading without an error returns %v", err)
	}
	if err := errors.Join(f.close(), d.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestAncestorsOfAll compares what sessions inherit according to the catalogue with what is
// found among the ancestors of all sessions.
func TestAncestorsOfAll(t *testing.T) {
	o := WithoutSyncs
	o.hooks.Free = func() int64 { return 0 } // so that no history is copied
	d, err := Open(t.Context(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	stores := []journal.Store{createStore(t, d), createStore(t, d)}
	for at := int64(1); at < 6; at++ {
		for _, s := range stores {
			logged(s.(*Store), 2, 3)
		}
		cut := journal.Cut{Kind: "merge", At: at, Parents: stores, Children: []journal.CutChild{childOf(at, true, true, stores...)}}
		if len(stores) == 1 {
			cut = splitOf(stores[0].(*Store))
		}
		if stores, err = d.Cut(t.Context(), cut); err != nil {
			t.Fatal(err)
		}
	}
	all, err := d.catalog.Ancestors(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	infos, err := d.Sessions(t.Context())
	if err != nil || len(infos) != 9 {
		t.Fatalf("%d sessions, %v; want 9", len(infos), err)
	}
	for _, i := range infos {
		want, err := d.catalog.Inherited(t.Context(), i.Session)
		if got := all.Inherited(i.Session); err != nil || !maps.Equal(got, want) {
			t.Errorf("%s inherits %v, want %v: %v", i.Session, got, want, err)
		}
	}
	if n := len(all.Inherited(stores[0].Info().Session)); n < 5 {
		t.Errorf("the youngest inherits from %d origins", n)
	}
}
