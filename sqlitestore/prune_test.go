package sqlitestore

import (
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// TestPruneToTheLetter prunes by command. A plan lists what will be pruned, and changes
// nothing. Events that a reader still has to read remain.
func TestPruneToTheLetter(t *testing.T) {
	for _, c := range []struct {
		name       string
		bound      Retention
		read, want uint64 // want: the first number that remains
		held       bool
	}{
		{"events", Retention{Events: 95}, 100, 6, false},
		{"age", Retention{Age: 9 * time.Second}, 100, 91, false},
		{"strictest", Retention{Age: 9 * time.Second, Events: 50}, 100, 91, false},
		{"held", Retention{Events: 10}, 40, 41, true},
		{"nothing", Retention{Events: 200}, 100, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := mustOpen(t, t.TempDir())
			s := createStore(t, d)
			chatter(s, "c", 1, 100, c.read)
			if err := s.Wait(t.Context(), 100); err != nil {
				t.Fatal(err)
			}
			session := s.info.Session
			v := mustView(t, d.dir)
			plan, err := v.PlanPrune(t.Context(), session, c.bound)
			if err != nil || plan.Events != 100 || plan.Given != int64(c.want)-1 || plan.Held != c.held {
				t.Errorf("the plan is %+v, %v", plan, err)
			}
			if left := numbersLeft(t, s); len(left) != 100 {
				t.Errorf("after the plan, %d messages are left", len(left))
			}
			done, err := d.Prune(t.Context(), session, c.bound)
			if err != nil || done.Given != plan.Given || done.Since != plan.Since || done.Held != plan.Held {
				t.Errorf("Prune returned %+v, %v; the plan was %+v", done, err, plan)
			}
			if left := numbersLeft(t, s); left[0] != c.want || left[len(left)-1] != 100 {
				t.Errorf("the messages %d to %d are left; want those from %d on", left[0], left[len(left)-1], c.want)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestPruneRefuses prunes an ended session, one that does not exist, and a closed directory.
func TestPruneRefuses(t *testing.T) {
	d := mustOpen(t, t.TempDir())
	s := createStore(t, d)
	if err := d.Retire(t.Context(), s.info.Session); err != nil {
		t.Fatal(err)
	}
	_, err := d.Prune(t.Context(), s.info.Session, Retention{Events: 1})
	wantError(t, "pruning what has ended", err, abi.InvalidArgument, string(s.info.Session))
	_, err = d.Prune(t.Context(), "absent", Retention{Events: 1})
	wantError(t, "pruning nothing", err, abi.NotFound)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = d.Prune(t.Context(), createdIn(t, d.dir), Retention{Events: 1})
	wantError(t, "pruning a closed directory", err, abi.Storage)
}

// TestPruneOfWhatIsCutMeanwhile proves that pruning a session that is cut meanwhile returns the
// same error as for one that has ended.
func TestPruneOfWhatIsCutMeanwhile(t *testing.T) {
	var cut atomic.Pointer[func()] // called by every goroutine of the directory
	d, err := Open(t.Context(), t.TempDir(), smallChunks(func(p failpoint.Point, _ string) error {
		if p != failpoint.TailFollowed {
			return nil
		}
		if now := cut.Swap(nil); now != nil {
			(*now)()
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s := createStore(t, d)
	chatter(s, "c", 1, 100, 100)
	if err := s.Wait(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	split := func() { splitStore(t, d, s) }
	cut.Store(&split)
	_, err = d.Prune(t.Context(), s.info.Session, Retention{Events: 10})
	wantError(t, "pruning what was cut", err, abi.InvalidArgument, string(s.info.Session)+" has ended")
}

// TestPruneAfterCut proves that messages that were not delivered are kept, even those in the
// file of an ancestor.
func TestPruneAfterCut(t *testing.T) {
	for _, how := range []string{"prune", "retain", "plan"} {
		t.Run(how, func(t *testing.T) {
			o := Options{}
			if how == "retain" {
				o.Retain = Retention{Events: 10}
			}
			d, err := Open(t.Context(), t.TempDir(), o)
			if err != nil {
				t.Fatal(err)
			}
			s := createStore(t, d)
			chatter(s, "c", 1, 100, 40)
			if err := s.Wait(t.Context(), 100); err != nil {
				t.Fatal(err)
			}
			made, err := d.Cut(t.Context(), journal.Cut{
				Kind: "split", At: int64(200 * time.Second), Parents: []journal.Store{s},
				Children: []journal.CutChild{{
					Parents: []journal.SessionID{s.info.Session},
					StoreSpec: journal.StoreSpec{Graph: "g", Durability: journal.Normal, First: func(o journal.Origin) *journal.Record {
						return &journal.Record{
							Events:   []journal.Event{{ID: journal.EventID{Origin: o, Seq: 1}, Time: int64(200 * time.Second), Kind: journal.EventTopologyChanged}},
							Channels: []journal.ChannelRow{{ID: "c"}}, Heads: []journal.HeadRow{{Channel: "c", Seq: 100}},
						}
					}},
					Creatures: []journal.CreatureID{"a"}, Channels: []journal.ChannelID{"c"},
				}},
			})
			if err != nil {
				t.Fatal(err)
			}
			child := made[0].(*Store)
			var given int64 = 40
			switch how {
			case "prune":
				r, err := d.Prune(t.Context(), child.info.Session, Retention{Events: 10})
				if given = r.Given; err != nil {
					t.Fatal(err)
				}
			case "plan":
				r, err := mustView(t, d.dir).PlanPrune(t.Context(), child.info.Session, Retention{Events: 10})
				if given = r.Given; err != nil {
					t.Fatal(err)
				}
			}
			settle(t, d)
			messages, err := child.Messages(t.Context(), "c", 40, 0, 0, 0)
			if err != nil || len(messages) != 60 || given != 40 {
				t.Errorf("%d of 60 undelivered messages are left, and %d of 40 were pruned; %v", len(messages), given, err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestPruneWhenFilesAreGone copies what a session keeps to its own file. Just before the
// session moves to this file, its open files cannot be read, as if the background had removed
// one of them.
func TestPruneWhenFilesAreGone(t *testing.T) {
	var of atomic.Pointer[Directory]
	spoilt := false // set only by the hydrator
	o := smallChunks(func(p failpoint.Point, path string) error {
		d := of.Load()
		if p != failpoint.Standing || d == nil || spoilt {
			return nil
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, s := range d.open {
			if s.path() == path {
				spoilt = true
				d.keeper.giveBack(s.shelf.exchange(&family{own: ownReader(vouched{path: filepath.Join(d.dir, "gone.db"), session: s.info.Session})}))
			}
		}
		return nil
	})
	o.Retain = Retention{Events: 10}
	d, err := Open(t.Context(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	of.Store(d)
	s := createStore(t, d)
	chatter(s, "c", 1, 100, 40)
	if err := s.Wait(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	child := splitStore(t, d, s)[0]
	settle(t, d)
	if !spoilt || !child.complete.Load() {
		t.Errorf("the open files became unreadable: %v; the session is complete: %v", spoilt, child.complete.Load())
	}
	if left := numbersLeft(t, child); len(left) == 0 {
		t.Error("no messages are left")
	}
}

// createdIn returns a session of a closed directory.
func createdIn(t *testing.T, dir string) journal.SessionID {
	t.Helper()
	for _, e := range entriesOf(t, dir) {
		return e.Session
	}
	return ""
}

// TestPruneTellsTheSize compares the sizes that pruning reports with those of the files, even
// when so little is pruned that the files do not shrink.
func TestPruneTellsTheSize(t *testing.T) {
	dir, session := chattered(t)
	for _, events := range []int64{chatterAll - 50, chatterAll - 51} {
		before := sqlite.DiskSize(entriesOf(t, dir)[session].Path)
		d := mustOpen(t, dir)
		r, err := d.Prune(t.Context(), session, Retention{Events: events})
		if err := errors.Join(err, d.Close()); err != nil {
			t.Fatal(err)
		}
		if after := sqlite.DiskSize(entriesOf(t, dir)[session].Path); r.Given == 0 || r.Bytes != before || r.Left != after {
			t.Errorf("the file had %d bytes and has %d: %+v", before, after, r)
		}
	}
}
