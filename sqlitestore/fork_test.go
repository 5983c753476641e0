package sqlitestore

import (
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"

	"path/filepath"
	"testing"
	"time"
)

// TestForkHasItsOwnKind forks a session. The fork is the child of a cut of its own kind, not of
// a split, even when its catalogue is rebuilt.
func TestForkHasItsOwnKind(t *testing.T) {
	from := lineaged(t)
	v := mustView(t, from)
	for _, e := range entriesOf(t, from) {
		if !e.Live {
			continue
		}
		dir := filepath.Join(t.TempDir(), "fork")
		fork, err := v.Fork(t.Context(), e.Session, dir)
		if err != nil {
			t.Fatal(err)
		}
		got := entriesOf(t, dir)[fork]
		if got.MadeBy != catalog.KindFork || got.Cut == "" || got.SplitAt != 0 || got.MergedAt != 0 {
			t.Errorf("the fork is %+v", got)
		}
		if parent := entriesOf(t, dir)[e.Session]; parent.MadeBy != e.MadeBy || parent.SplitAt != e.SplitAt {
			t.Errorf("the parent was %+v, but is %+v", e, parent)
		}
		before := duplicate(t, dir)
		loseCatalog(t, dir)
		if _, err := Rebuild(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		wantSame(t, before, dir)

		// Before forks had a cut, they counted as splits.
		execute(t, filepath.Join(before, catalog.Name), "UPDATE store SET cut = NULL, split_at = created WHERE live; DELETE FROM cut WHERE kind = 'fork'")
		if got := entriesOf(t, before)[fork]; got.MadeBy != catalog.KindFork || got.SplitAt != 0 {
			t.Errorf("an older fork is %+v", got)
		}
	}
}

// TestForkIsNotOlder forks a session that was created while the clock was ahead. The fork is
// not older than the session.
func TestForkIsNotOlder(t *testing.T) {
	of := catalog.Entry{}
	of.Created = time.Now().Add(1000 * time.Hour).UnixNano()
	if fork, err := newFork(of); err != nil || fork.Created < of.Created {
		t.Errorf("the fork was created at %d, %v; but its session at %d", fork.Created, err, of.Created)
	}
}
