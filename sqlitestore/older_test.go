package sqlitestore

import (
	"errors"
	"sync"
	"testing"

	"github.com/seed47132306/terrarium/engine"
)

// TestReadersAtEveryStep opens a directory for reading at every step of its owner.
// What the catalogue does not know at such a moment is no proof that it is older.
func TestReadersAtEveryStep(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	seen := map[failpoint]bool{}
	look := func(p failpoint, _ string) error {
		v, err := OpenReadOnly(t.Context(), dir)
		if err == nil {
			var problems []error
			_, problems, err = v.Live(t.Context())
			err = errors.Join(err, errors.Join(engine.Damaged(problems)...), v.Close())
		}
		mu.Lock()
		defer mu.Unlock()
		seen[p] = true
		if err != nil {
			t.Errorf("%v: %v", p, err)
		}
		return nil
	}
	if err := mustOpen(t, dir).Close(); err != nil { // which makes the catalogue
		t.Fatal(err)
	}
	d, err := Open(t.Context(), dir, Options{hooks: hooks{reached: look}})
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
	for _, p := range []failpoint{pointSpareReady, pointFilled, pointCreated, pointAppended, pointCut, pointSealed, pointFirm, pointRetired, pointFinished, pointCompleted, pointMoved, pointReleased, pointRemoved, pointSwept} {
		if !seen[p] {
			t.Errorf("%v was not reached", p)
		}
	}
}
