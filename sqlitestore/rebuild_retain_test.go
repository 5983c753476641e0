package sqlitestore

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// TestRebuildPruned rebuilds the catalogue of a pruned directory, with a bound or a budget,
// before and after cuts. The remaining history is the same, and so are the descriptions of the
// sessions.
func TestRebuildPruned(t *testing.T) {
	seeded.Long(t)
	for name, o := range map[string]Options{
		"Events": {Retain: Retention{Events: 300}},
		"Bytes":  {Retain: Retention{Bytes: 200 << 10}},
		"Budget": {MaxDiskBytes: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			left, d, s := leftOpen(t, o, 5000, 5000)
			if left[0] == 1 {
				t.Fatal("nothing has been pruned")
			}
			// No event of the session's first origin will be left, and a part of its history is
			// inherited.
			s = reopened(t, d, s)
			for seq := uint64(1); seq <= 1000; seq++ {
				s.Append(whole(s.Origin(), seq-1, 1, 200))
			}
			settle(t, d)
			children, err := d.Cut(t.Context(), splitOf(s))
			if err != nil {
				t.Fatal(err)
			}
			settle(t, d)
			for _, c := range children {
				chatter(c.(*Store), "d", 1, 500, 500)
			}
			settle(t, d)
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			before := duplicate(t, d.dir)
			loseCatalog(t, d.dir)
			report, err := Rebuild(t.Context(), d.dir)
			if err != nil || len(report.Live) != 2 || len(report.Sessions) != 3 || len(report.Unreadable)+len(report.Aside)+len(report.Missing)+len(report.Unknown) > 0 {
				t.Fatalf("%+v, %v", report, err)
			}
			wantSame(t, before, d.dir)
			keepsTo(t, d.dir, o, report.Live)
		})
	}
}

// keepsTo opens a directory whose sessions continue within their bounds, and checks that no
// file is set aside.
func keepsTo(t *testing.T, dir string, o Options, live []journal.SessionID) {
	t.Helper()
	d, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, problems, err := d.Saved(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("Saved: problems %v, %v", problems, err)
	}
	for _, session := range live {
		s, err := d.Open(t.Context(), session)
		if err != nil {
			t.Fatal(err)
		}
		s.Append(whole(s.Origin(), 0, 3, 10))
	}
	settle(t, d)
	for _, session := range live {
		wantSound(t, d, session)
	}
	if strange, err := filepath.Glob(filepath.Join(dir, files.Stores, "*"+files.OrphanSuffix)); err != nil || len(strange) > 0 {
		t.Errorf("%v were set aside; %v", strange, err)
	}
}

func reopened(t *testing.T, d *Directory, s *Store) *Store {
	t.Helper()
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, err := d.Open(t.Context(), s.info.Session)
	if err != nil {
		t.Fatal(err)
	}
	return again.(*Store)
}

// TestRebuildKilledWhilePruning has a process killed at each step of pruning, and then loses
// the catalogue. The session has everything that it must keep, and either all of the rest or
// none.
func TestRebuildKilledWhilePruning(t *testing.T) {
	seeded.Long(t)
	points := []failpoint.Point{
		failpoint.Noted, failpoint.Stripped, failpoint.United, failpoint.TailFollowed, failpoint.Standing, failpoint.Finishing, failpoint.Finished, failpoint.Completing, failpoint.Completed, failpoint.Moved,
		failpoint.Sweeping, failpoint.Removed, failpoint.Swept,
	}
	for _, point := range points {
		t.Run(point.String(), func(t *testing.T) {
			dir := t.TempDir()
			o := smallChunks(nil)
			d, err := Open(t.Context(), dir, o)
			if err != nil {
				t.Fatal(err)
			}
			s := createStore(t, d)
			chatter(s, "c", 1, 100, 100) // the first origin is pruned completely
			s = reopened(t, d, s)
			for seq := uint64(101); seq <= 400; seq += 3 {
				s.Append(later(s.Origin(), seq, 3, 100))
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			killed := killedPruning(t, dir, s.info.Session, point)
			loseCatalog(t, killed)
			report, err := Rebuild(t.Context(), killed)
			if err != nil || len(report.Live) != 1 || len(report.Aside)+len(report.Unreadable)+len(report.Missing) > 0 {
				t.Fatalf("%+v, %v", report, err)
			}
			v := mustView(t, killed)
			events, err := v.History(t.Context(), s.info.Session, journal.HistoryQuery{Limit: 1 << 20})
			if n := len(events); err != nil || n < 50 || n > 60 && n != 400 {
				t.Errorf("%d events are left; %v", n, err)
			}
			keepsTo(t, killed, pruning(o, nil), report.Live)
		})
	}
}

// later makes a record of messages like those of chatter, under an origin that begins after a
// number of messages.
func later(o journal.Origin, from uint64, n, before uint64) *journal.Record {
	r := &journal.Record{}
	for seq := from; seq < from+n; seq++ {
		r.Events = append(r.Events, journal.Event{
			ID: journal.EventID{Origin: o, Seq: seq - before}, Time: int64(seq) * 1e9, Kind: journal.EventChannelMessage, Channel: "c", Seq: seq, Payload: make([]byte, 200),
		})
	}
	last := from + n - 1
	r.Heads = []journal.HeadRow{{Channel: "c", Seq: last}}
	r.Cursors = []journal.CursorRow{{Reader: "reader:x", Channel: "c", Seq: last}}
	return r
}

func pruning(o Options, reached func(failpoint.Point, string) error) Options {
	o.Retain, o.hooks.Reached = Retention{Events: 50}, reached
	return o
}

// killedPruning opens a session that has more than it must keep. It returns a copy of the
// directory as it is when a step is reached for the first time, which is what a process that is
// killed there leaves.
func killedPruning(t *testing.T, dir string, session journal.SessionID, point failpoint.Point) string {
	t.Helper()
	killed := filepath.Join(t.TempDir(), "killed")
	reached := make(chan error, 1)
	d, err := Open(t.Context(), dir, pruning(smallChunks(nil), func(p failpoint.Point, path string) error {
		if p == point && (p != failpoint.Removed || strings.HasSuffix(path, files.StoreSuffix)) && missing(killed) {
			reached <- copyKilled(killed, dir)
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Open(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	settle(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-reached:
		if err != nil {
			t.Fatal(err)
		}
	default:
		t.Fatalf("%s has not been reached", point)
	}
	return killed
}

// copyKilled copies a directory in use, except for the memory that its processes share.
func copyKilled(to, dir string) error {
	return filepath.WalkDir(dir, func(path string, f fs.DirEntry, err error) error {
		if err != nil || strings.HasSuffix(path, "-shm") {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if f.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o600)
	})
}
