package sqlitestore

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
)

// TestForkInsideIsRefused names places inside the directory that is forked, by various paths
// that lead there, and some that only look like such a path.
func TestForkInsideIsRefused(t *testing.T) {
	root := t.TempDir()
	from := filepath.Join(root, "pond")
	d := mustOpen(t, from)
	s := createStore(t, d)
	logged(s, 1, 10)
	if err := s.Wait(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(from, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"pond/fork", "pond/stores/fork", "pond/stores/../new/fork", "pond", "link/fork", "link/new/fork"} {
		path := filepath.Join(root, to)
		_, err := d.Fork(t.Context(), s.info.Session, path)
		wantError(t, "forking to "+to, err, abi.InvalidArgument, "is inside the session directory that is copied")
		if remedyOf(err) == "" {
			t.Errorf("forking to %s: the error has no remedy", to)
		}
		_, _, err = d.ForkAt(t.Context(), s.info.Session, journal.Mark{Since: 1 << 62}, path)
		wantError(t, "forking to "+to, err, abi.InvalidArgument)
	}
	for _, file := range filesIn(t, from) { // stores are made there in advance meanwhile
		rest, err := filepath.Rel(from, file)
		if place := strings.Split(rest, string(filepath.Separator)); err != nil || slices.Contains(place, "fork") || slices.Contains(place, "new") {
			t.Errorf("%s is left over: %v", file, err)
		}
	}
	for _, to := range []string{"pond2", "pond.new1", "fork"} {
		if _, err := d.Fork(t.Context(), s.info.Session, filepath.Join(root, to)); err != nil {
			t.Errorf("forking to %s: %v", to, err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestForkClearsOnlyItsOwn has files and directories beside the place of a fork whose names
// resemble those of unfinished forks. Only those that a killed fork has left are removed.
func TestForkClearsOnlyItsOwn(t *testing.T) {
	root := t.TempDir()
	d := mustOpen(t, filepath.Join(root, "pond"))
	s := createStore(t, d)
	put := func(name, content string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("fork.new1/lock", unfinishedMark)
	put("fork.new1/stores/x.db", "half")
	put("fork.new2/lock", "")
	if err := os.Mkdir(filepath.Join(root, "fork.new3"), 0o755); err != nil {
		t.Fatal(err)
	}
	others := []string{"fork.new4/lock", "fork.new5/notes", "fork.new6/lock", "fork.new6/notes", "fork.newer/lock", "fork.new", "fork2.new1/lock", "fork.new7"}
	for _, name := range others {
		put(name, map[string]string{"fork.new4/lock": "77 terrarium\n", "fork.newer/lock": unfinishedMark, "fork2.new1/lock": unfinishedMark}[name])
	}
	busy, err := lockUnfinished(mustMake(t, filepath.Join(root, "fork.new8")), failpoint.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Fork(t.Context(), s.info.Session, filepath.Join(root, "fork")); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"fork.new1", "fork.new2", "fork.new3"} {
		if !missing(filepath.Join(root, gone)) {
			t.Errorf("%s is left over", gone)
		}
	}
	for _, name := range append(others, "fork.new8/lock") {
		if missing(filepath.Join(root, name)) {
			t.Errorf("%s was removed", name)
		}
	}
	if content, err := os.ReadFile(filepath.Join(root, "fork", lockName)); err != nil || string(content) != string(ownerOfLock()) {
		t.Errorf("the lock of the fork contains %q, %v", content, err)
	}
	if err := busy.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustMake(t *testing.T, dir string) string {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestForkAtPruned forks a session at an event that was pruned, and at a time before the
// session began.
func TestForkAtPruned(t *testing.T) {
	d := mustOpen(t, t.TempDir())
	s := createStore(t, d)
	chatter(s, "c", 1, 100, 100)
	if err := s.Wait(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	mark := func(seq uint64) journal.Mark {
		return journal.Mark{Event: journal.EventID{Origin: s.Origin(), Seq: seq}}
	}
	to := filepath.Join(t.TempDir(), "fork")
	_, _, err := d.ForkAt(t.Context(), s.info.Session, journal.Mark{Since: 1}, to)
	wantError(t, "before the beginning", err, abi.InvalidArgument, "had not begun")
	if _, err := d.Prune(t.Context(), s.info.Session, Retention{Events: 10}); err != nil {
		t.Fatal(err)
	}
	_, _, err = d.ForkAt(t.Context(), s.info.Session, mark(5), to)
	wantError(t, "at what was pruned", err, abi.Unsupported, "up to the cursor has been pruned")
	if remedyOf(err) == "" || !missing(to) {
		t.Errorf("the remedy is %q; a fork was made: %t", remedyOf(err), !missing(to))
	}
	_, _, err = d.ForkAt(t.Context(), s.info.Session, journal.Mark{Since: 1}, to)
	wantError(t, "before the beginning", err, abi.InvalidArgument, "had not begun")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestForkAtAfterALifeWithoutEvents forks a session whose rows were first recorded by a life
// that logged no event. The changes of the next life must be in the fork too.
func TestForkAtAfterALifeWithoutEvents(t *testing.T) {
	d := mustOpen(t, t.TempDir())
	stores, err := d.Create(t.Context(), journal.StoreSpec{Graph: "g", Durability: journal.Normal, First: func(journal.Origin) *journal.Record {
		return &journal.Record{Channels: []journal.ChannelRow{{ID: "c"}}, Heads: []journal.HeadRow{{Channel: "c"}}}
	}})
	if err != nil {
		t.Fatal(err)
	}
	session := stores[0].Info().Session
	for life := range uint64(2) {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d = mustOpen(t, d.dir)
		reopened, err := d.Open(t.Context(), session)
		if err != nil {
			t.Fatal(err)
		}
		s := reopened.(*Store)
		for seq := range uint64(3) {
			n := life*3 + seq + 1
			s.Append(&journal.Record{
				Events: []journal.Event{{
					ID: journal.EventID{Origin: s.Origin(), Seq: seq + 1}, Time: int64(n), Kind: journal.EventChannelMessage, Channel: "c", Seq: n,
				}},
				Heads: []journal.HeadRow{{Channel: "c", Seq: n}},
			})
		}
		if err := s.Wait(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(t.TempDir(), "fork")
		fork, _, err := d.ForkAt(t.Context(), session, journal.Mark{Event: journal.EventID{Origin: s.Origin(), Seq: 3}, Since: int64(life*3 + 3)}, to)
		if err != nil {
			t.Fatal(err)
		}
		v := mustView(t, to)
		wantWhole(t, v, fork)
		g, err := v.Saved(t.Context(), fork)
		if want := (journal.HeadRow{Channel: "c", Seq: life*3 + 3}); err != nil || len(g.Heads) != 1 || g.Heads[0] != want {
			t.Errorf("the fork has the heads %+v, %v; want %+v", g.Heads, err, want)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}
