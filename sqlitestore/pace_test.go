package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
)

var _ journal.Pacer = (*Directory)(nil)

// TestPaceBoundsWhatCutsLeave cuts stores without a pause, as fast as the directory allows.
// Ended sessions leave no more files than the pacing says, although no session becomes old
// enough to get its history by itself.
func TestPaceBoundsWhatCutsLeave(t *testing.T) {
	seeded.Long(t)
	d := openPaced(t, pacing{remains: 12, buried: 4, patience: time.Hour})
	lineages := make([]*Store, 3)
	for i := range lineages {
		lineages[i] = createStore(t, d)
	}
	most := 0
	for n := range 40 {
		for i, parent := range lineages {
			logged(parent, uint64(min(n+1, 2)), 140) // too many to be copied by the cut
			if err := d.Pace(t.Context()); err != nil {
				t.Fatal(err)
			}
			lineages[i] = cutAgain(t, d, parent, int64(n))
			remains, err := d.catalog.Remains(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, remains)
			if waiting := d.keeper.waiting(); waiting > d.options.pacing.buried+1 {
				t.Fatalf("%d stores wait to be closed, which is too many", waiting)
			}
		}
	}
	if most > d.options.pacing.remains+1 {
		t.Errorf("ended sessions have left up to %d files", most)
	} else if most < d.options.pacing.remains {
		t.Errorf("with at most %d files, no change had to wait", most)
	}
	settle(t, d)
	if n, err := d.catalog.Remains(t.Context()); err != nil || n > 0 || d.Behind() {
		t.Errorf("%d files remain, %v", n, err)
	}
}

// TestPaceLeavesOutWhatStays has a session without descendants. Its file is the only one with
// its history, so it remains, and no change waits for it.
func TestPaceLeavesOutWhatStays(t *testing.T) {
	d := openPaced(t, pacing{remains: 1, buried: 4, patience: time.Hour})
	a, b := createStore(t, d), createStore(t, d)
	logged(a, 1, 5)
	logged(b, 1, 5)
	cut := splitOf(a)
	cut.Parents = append(cut.Parents, b)
	if _, err := d.Cut(t.Context(), cut); err != nil {
		t.Fatal(err)
	}
	settle(t, d)
	e, err := d.catalog.Entry(t.Context(), "read", b.info.Session)
	if n, countErr := d.catalog.Remains(t.Context()); err != nil || countErr != nil || n > 0 || e.Live || missing(e.Path) {
		t.Errorf("%d files remain, want none; the session without descendants is %+v, %v", n, e, errors.Join(err, countErr))
	}
}

func openPaced(t *testing.T, p pacing) *Directory {
	t.Helper()
	d, err := Open(t.Context(), t.TempDir(), Options{pacing: p, hooks: failpoint.Hooks{Unsynced: true, SmallEvents: -1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// cutAgain cuts a store into one child.
func cutAgain(t *testing.T, d *Directory, parent *Store, at int64) *Store {
	t.Helper()
	children, err := d.Cut(t.Context(), journal.Cut{Kind: journal.CutRearrange, At: at, Parents: []journal.Store{parent},
		Children: []journal.CutChild{{Parents: []journal.SessionID{parent.info.Session}, StoreSpec: journal.StoreSpec{Graph: "g", Durability: journal.Normal,
			First: func(o journal.Origin) *journal.Record { return whole(o, 0, 1, 20) }}}}})
	if err != nil {
		t.Fatal(err)
	}
	return children[0].(*Store)
}

// TestEndedSessionsAreReadFromOpenFiles reads what each session in a line of descendants wrote
// itself, and its whole history: first while all have their files, then when only the last one
// has its file, which is open. A view, which has no open files, reads the same.
func TestEndedSessionsAreReadFromOpenFiles(t *testing.T) {
	d := openPaced(t, pacing{})
	line := []*Store{createStore(t, d)}
	logged(line[0], 1, 3)
	for n := range 4 {
		child := cutAgain(t, d, line[n], int64(10+n))
		logged(child, 2, uint64(3+n))
		line = append(line, child)
	}
	if err := d.flushed(t.Context(), line[4].info.Session); err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{"with files", "without files"} {
		for n, s := range line {
			session := s.info.Session
			all, err := d.History(t.Context(), session, journal.HistoryQuery{})
			if err != nil {
				t.Fatal(err)
			}
			var own []journal.Event
			for _, ev := range all {
				if ev.ID.Origin == s.Origin() {
					own = append(own, ev)
				}
			}
			for _, q := range []journal.HistoryQuery{{Own: true}, {Own: true, After: own[0].ID}, {Own: true, Limit: 2, Newest: true}} {
				want := own
				if q.Newest {
					want = own[max(0, len(own)-2):]
				} else if !q.After.IsZero() {
					want = own[1:]
				}
				if got, err := d.History(t.Context(), session, q); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s, session %d, %+v: %v, %v; want %v", state, n, q, got, err, want)
				}
			}
			viewed, err := mustView(t, d.dir).History(t.Context(), session, journal.HistoryQuery{})
			if err != nil || fmt.Sprint(viewed) != fmt.Sprint(all) || len(all) < 3 {
				t.Errorf("%s, session %d: a view reads %v, %v; want %v", state, n, viewed, err, all)
			}
		}
		settle(t, d)
		if n, err := d.catalog.Remains(t.Context()); err != nil || n > 0 {
			t.Fatalf("%d files remain, %v", n, err)
		}
	}
	e, err := d.catalog.Entry(t.Context(), "read", line[0].info.Session)
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.catalog.openFamily(t.Context(), e, true)
	if err != nil || f.lent == nil || !line[4].shelf.lends(f.lent) {
		t.Fatalf("the files of the open store are not lent: %+v, %v", f, err)
	}
	if err := f.close(); err != nil {
		t.Error(err)
	}
}

// TestPaceGivesUp proves that changes continue when the background cannot do anything: if it
// has no room for copies, if the caller no longer waits, and if the patience has ended.
func TestPaceGivesUp(t *testing.T) {
	o := WithoutSyncs
	o.hooks.Free = func() int64 { return 0 }
	o.pacing = pacing{remains: -1, buried: 1000, patience: time.Hour}
	d, err := Open(t.Context(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	parent := createStore(t, d)
	logged(parent, 1, 200)
	splitStore(t, d, parent)
	if !d.Behind() {
		t.Fatal("the directory is not behind")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Pace(ended); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	if err := d.Pace(t.Context()); err != nil || !d.Behind() {
		t.Errorf("without room: %v, behind %v", err, d.Behind())
	}
	impatient := o
	impatient.pacing.patience = time.Nanosecond
	e, err := Open(t.Context(), t.TempDir(), impatient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	for range 100 { // whether or not a round has just ended
		if err := e.Pace(t.Context()); err != nil || !e.Behind() {
			t.Fatalf("without patience: %v, behind %v", err, e.Behind())
		}
	}
}
