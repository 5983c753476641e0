package operations

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/sqlitetest"
)

// A fork continues independently: it has everything that its parent had, and names its
// parent. From then on, neither sees what the other does.
func TestFork(t *testing.T) {
	tr := open(t, terrarium.Options{Dir: t.TempDir()})
	desk := newDesk(t, tr)
	tell(t, tr, desk.clerk, "before")
	dir := filepath.Join(t.TempDir(), "fork")
	forked := do(t, tr, "fork", fmt.Sprintf(`{"graph":%q,"dir":%q}`, desk.clerk, dir))
	if parent := graphOf(t, tr, desk.clerk).Session; forked["parent"] != string(parent) || forked["session"] == forked["parent"] {
		t.Errorf("fork of %s answers %v", parent, forked)
	}
	refused(t, tr, "fork", fmt.Sprintf(`{"graph":%q,"dir":%q}`, desk.clerk, dir), abi.AlreadyExists, dir)
	past := do(t, tr, "history", fmt.Sprintf(`{"graph":%q,"kinds":["channel_message"]}`, desk.clerk))
	tell(t, tr, desk.clerk, "in the original")

	fork := open(t, terrarium.Options{Dir: dir})
	if _, _, err := fork.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := do(t, fork, "history", `{"graph":"clerk","kinds":["channel_message"]}`); !reflect.DeepEqual(got, past) {
		t.Errorf("the fork has the messages\n%v, want\n%v", got, past)
	}
	if line, want := ancestry(t, fork), append([]any{forked["session"]}, ancestry(t, tr)...); len(want) != 4 || !reflect.DeepEqual(line, want) {
		t.Errorf("the lineage of the fork is %v, want %v", line, want)
	}
	clerk, err := fork.FindCreature("", "clerk")
	if err != nil {
		t.Fatal(err)
	}
	tell(t, fork, clerk, "in the fork")
	for of, want := range map[*terrarium.Terrarium]string{tr: "in the original", fork: "in the fork"} {
		count, err := of.FindCreature("", "count")
		if err != nil {
			t.Fatal(err)
		}
		if got := counted(t, of, count); !reflect.DeepEqual(got, map[string]any{"count/before": "1", "count/" + want: "1"}) {
			t.Errorf("the counter has %v, want what was before and what was %s", got, want)
		}
		if report := do(t, of, "verify", `{"graph":"clerk"}`); len(report["missing"].([]any))+len(report["duplicate"].([]any))+len(report["damage"].([]any)) != 0 {
			t.Errorf("verify: %v", report)
		}
	}
}

// ancestry lists the session of a clerk and the session's ancestors.
func ancestry(t *testing.T, tr *terrarium.Terrarium) (out []any) {
	t.Helper()
	for _, s := range do(t, tr, "lineage", `{"graph":"clerk"}`)["lineage"].([]any) {
		out = append(out, s.(map[string]any)["session"])
	}
	return out
}

// An exported file is self-contained: it has the history of its session and, for a live
// session, the state of its creatures. An ended session is exported too, even if its own
// file no longer exists.
func TestExport(t *testing.T) {
	tr := open(t, terrarium.Options{Dir: t.TempDir()})
	left, right := twoDesks(t, tr)
	tell(t, tr, left.clerk, "x")
	old := graphOf(t, tr, right.clerk)
	do(t, tr, "connect", fmt.Sprintf(`{"from":%q,"to":%q}`, left.clerk, right.count))
	handedOn(t, tr, old.Session)
	for name, c := range map[string]struct {
		args, history string
		state         []string
	}{
		"live":  {fmt.Sprintf(`"graph":%q`, left.clerk), fmt.Sprintf(`{"graph":%q}`, left.clerk), []string{"count/x", "keys", "total"}},
		"past":  {fmt.Sprintf(`"graph":%q`, old.ID), fmt.Sprintf(`{"graph":%q}`, left.clerk), []string{"count/x", "keys", "total"}},
		"ended": {fmt.Sprintf(`"session":%q`, old.Session), fmt.Sprintf(`{"session":%q}`, old.Session), nil},
	} {
		path := filepath.Join(t.TempDir(), name)
		args := fmt.Sprintf(`{%s,"path":%q}`, c.args, path)
		if exported := do(t, tr, "export", args); exported["path"] != path {
			t.Errorf("export %s answers %v", args, exported)
		}
		history := []string{}
		for _, ev := range do(t, tr, "history", c.history)["events"].([]any) {
			history = append(history, ev.(map[string]any)["id"].(string))
		}
		slices.Sort(history)
		if got := column(t, path, "SELECT id FROM events ORDER BY id"); len(got) == 0 || !slices.Equal(got, history) {
			t.Errorf("%s: the file has the events\n%v, want\n%v", name, got, history)
		}
		if got := column(t, path, "SELECT key FROM state ORDER BY key"); !slices.Equal(got, c.state) {
			t.Errorf("%s: the file has the state %v, want %v", name, got, c.state)
		}
		if got := column(t, path, "PRAGMA integrity_check"); !slices.Equal(got, []string{"ok"}) {
			t.Errorf("%s: the file is not whole: %v", name, got)
		}
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		refused(t, tr, "export", args, abi.AlreadyExists, path)
		if after, err := os.ReadFile(path); err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("a file that was there is another now, %v", err)
		}
	}
}

// handedOn waits until the file of a session that a disconnect has ended is removed,
// because other files have all its contents.
func handedOn(t *testing.T, tr *terrarium.Terrarium, session terrarium.SessionID) {
	t.Helper()
	for {
		if err := tr.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		list, err := tr.Sessions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(list, func(i journal.SessionInfo) bool { return i.Session == session })
		if at < 0 || list[at].Live {
			t.Fatalf("%s is not a session that has ended", session)
		}
		if list[at].Path == "" {
			return
		}
	}
}

// column returns the result of a query on a store. It reads nothing but that one file.
func column(t *testing.T, path, query string) (out []string) {
	t.Helper()
	db := sqlitetest.Open(t, "file:"+path+"?immutable=1&mode=ro")
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		out = append(out, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// Only the history is left of a session that merged into another: it cannot begin a
// session of its own, and the error says where to look.
func TestForkOfWhatHasEnded(t *testing.T) {
	tr := open(t, terrarium.Options{Dir: t.TempDir()})
	left, right := twoDesks(t, tr)
	old := graphOf(t, tr, right.clerk)
	do(t, tr, "connect", fmt.Sprintf(`{"from":%q,"to":%q}`, left.clerk, right.count))
	handedOn(t, tr, old.Session)
	dir := filepath.Join(t.TempDir(), "fork")
	refused(t, tr, "fork", fmt.Sprintf(`{"session":%q,"dir":%q}`, old.Session, dir), abi.NotFound, "only its history is left")
	if _, err := tr.Fork(t.Context(), string(old.Session), dir); abi.CodeOf(err) != abi.NotFound || !strings.Contains(err.Error(), string(graphOf(t, tr, left.clerk).Session)) {
		t.Errorf("Fork of a session that has ended: %v, want one that names the session in which it goes on", err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a directory %s: %v", dir, err)
	}
	// The id of its graph leads to the session into which it merged.
	if forked := do(t, tr, "fork", fmt.Sprintf(`{"graph":%q,"dir":%q}`, old.ID, dir)); forked["parent"] != string(graphOf(t, tr, left.clerk).Session) {
		t.Errorf("fork of the graph %s answers %v", old.ID, forked)
	}
}

// A session that cannot be found is not copied, and without a directory none is.
func TestCopyMistakes(t *testing.T) {
	kept := open(t, terrarium.Options{Scratch: true})
	desk := newDesk(t, kept)
	do(t, kept, "wait_idle", ``)
	path := filepath.Join(t.TempDir(), "x")
	for _, op := range []string{`"path"`, `"dir"`} {
		name := map[string]string{`"path"`: "export", `"dir"`: "fork"}[op]
		refused(t, kept, name, fmt.Sprintf(`{"graph":"nowhere",%s:%q}`, op, path), abi.NotFound, "nowhere")
		refused(t, kept, name, fmt.Sprintf(`{"graph":"nowhere","session":"x",%s:%q}`, op, path), abi.InvalidArgument, "both")
		refused(t, kept, name, fmt.Sprintf(`{"graph":%q}`, desk.clerk), abi.InvalidArgument, "missing")
	}
	volatile := open(t, terrarium.Options{})
	add(t, volatile, "a", "builtin:relay")
	do(t, volatile, "wait_idle", ``)
	for name, args := range map[string]string{"export": `{"graph":"a","path":%q}`, "fork": `{"graph":"a","dir":%q}`} {
		refused(t, volatile, name, fmt.Sprintf(args, path), abi.Unavailable, "has no store")
	}
	g := string(graphOf(t, volatile, terrarium.CreatureID("a")).ID)
	if err := volatile.Export(t.Context(), g, path); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("Export of a graph that keeps nothing: %v", err)
	}
	if _, err := volatile.Fork(t.Context(), g, path); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("Fork of a graph that keeps nothing: %v", err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is something at %s: %v", path, err)
	}
}
