package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
)

// prunePoints are the steps of pruning.
var prunePoints = []failpoint.Point{
	failpoint.Opened, failpoint.Noting, failpoint.Noted, failpoint.Uniting, failpoint.United, failpoint.TailFollowed, failpoint.Standing, failpoint.Finishing, failpoint.Finished,
	failpoint.Completing, failpoint.Completed, failpoint.Moved, failpoint.Releasing, failpoint.Released, failpoint.Removing, failpoint.Removed, failpoint.Sweeping, failpoint.Swept,
}

func (a *errand) prune(ctx context.Context, dir string, options Options) error {
	d, err := Open(ctx, dir, options)
	if err != nil {
		return err
	}
	_, err = d.Prune(ctx, a.Session, a.Bound)
	return errors.Join(err, d.Close())
}

const killsPerPruned = 4 // of one directory

// TestKilledPruning kills a process that prunes, several times in a row, at every step and
// between them. Each time, everything that must be kept is left: the newest events, the events
// that are still to be read, and everything that is not history. The next process prunes the
// rest, and nothing else is left over.
func TestKilledPruning(t *testing.T) {
	t.Parallel()
	seed := seeded.For(t.Name())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for todo, at := errandKills(t), random.IntN(len(prunePoints)); todo > 0; todo -= killsPerPruned {
		dir, session := chattered(t)
		live := liveOf(t, dir, session)
		for range min(todo, killsPerPruned) {
			o := order{Dir: dir, Point: prunePoints[at%len(prunePoints)], Pass: 1 + random.Int32N(2), Lines: 20}
			if at++; random.IntN(3) == 0 {
				o.Point = failpoint.Count
			}
			a := &errand{Word: "prune", Session: session, Bound: Retention{Events: int64(50 + 10*random.IntN(10))}}
			a.sendOff(t, o, random)
			wantPruned(t, dir, session, live)
		}
		wantPrunedWhole(t, dir, session, live)
	}
}

const (
	chatterAll  = 400
	chatterRead = 340 // by the only outside reader; later messages are kept
)

// chattered makes a closed directory of one session whose reader is a little behind.
func chattered(t *testing.T) (dir string, session journal.SessionID) {
	t.Helper()
	d := mustOpen(t, t.TempDir())
	s := createStore(t, d)
	chatter(s, "c", 1, chatterAll, chatterRead)
	if err := s.Wait(t.Context(), chatterAll); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return d.dir, s.info.Session
}

// liveOf returns everything of a session that is not history.
func liveOf(t *testing.T, dir string, session journal.SessionID) string {
	t.Helper()
	v := mustView(t, dir)
	g, err := v.Saved(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	g.Path = ""
	state, err := v.State(t.Context(), session, "a")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(g, state)
}

// wantPruned checks that some of the oldest events are missing, and nothing else.
func wantPruned(t *testing.T, dir string, session journal.SessionID, live string) {
	t.Helper()
	v := mustView(t, dir)
	wantWhole(t, v, session)
	if got := liveOf(t, dir, session); got != live {
		t.Errorf("the live rows were %s\nbut are %s", live, got)
	}
	var left []uint64
	for _, e := range history(t, v, session) {
		left = append(left, e.Seq)
	}
	if !slices.IsSorted(left) || len(left) == 0 || left[0] > chatterRead+1 || left[len(left)-1] != chatterAll || len(left) != int(chatterAll+1-left[0]) {
		t.Fatalf("%d events are left: %v", len(left), left)
	}
}

// wantPrunedWhole prunes the directory without interruption.
func wantPrunedWhole(t *testing.T, dir string, session journal.SessionID, live string) {
	t.Helper()
	d := mustOpen(t, dir)
	_, pruneErr := d.Prune(t.Context(), session, Retention{Events: 10})
	if err := errors.Join(pruneErr, d.Close()); err != nil {
		t.Fatal(err)
	}
	wantPruned(t, dir, session, live)
	if n := len(history(t, mustView(t, dir), session)); n != chatterAll-chatterRead {
		t.Errorf("%d events are left, want the %d that have yet to be read", n, chatterAll-chatterRead)
	}
	wantTidy(t, dir)
}
