package terrarium

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/seed47132306/terrarium/abi"
)

// copies says whether the session stores can be copied; if they cannot, it
// checks that they say so and leave nothing behind.
func copies(t *testing.T, tr *Terrarium, graph CreatureID) bool {
	t.Helper()
	if _, err := CopierOf(tr.storage); err == nil {
		return true
	}
	file, dir := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "dir")
	refused(t, tr, "export", fmt.Sprintf(`{"graph":%q,"path":%q}`, graph, file), abi.Unsupported, "cannot be copied")
	refused(t, tr, "fork", fmt.Sprintf(`{"graph":%q,"dir":%q}`, graph, dir), abi.Unsupported, "cannot be copied")
	for _, path := range []string{file, dir} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", path, err)
		}
	}
	return false
}

// A session that was forked goes on by itself: it has all that its parent had,
// says where it came from, and neither sees what the other does from then on.
func TestFork(t *testing.T) {
	tr := open(t, Options{Dir: t.TempDir()})
	desk := newDesk(t, tr)
	tell(t, tr, desk.clerk, "before")
	if !copies(t, tr, desk.clerk) {
		return
	}
	dir := filepath.Join(t.TempDir(), "fork")
	forked := do(t, tr, "fork", fmt.Sprintf(`{"graph":%q,"dir":%q}`, desk.clerk, dir))
	if parent := graphOf(t, tr, desk.clerk).Session; forked["parent"] != string(parent) || forked["session"] == forked["parent"] {
		t.Errorf("fork of %s answers %v", parent, forked)
	}
	refused(t, tr, "fork", fmt.Sprintf(`{"graph":%q,"dir":%q}`, desk.clerk, dir), abi.AlreadyExists, dir)
	past := do(t, tr, "history", fmt.Sprintf(`{"graph":%q,"kinds":["channel_message"]}`, desk.clerk))
	tell(t, tr, desk.clerk, "in the original")

	fork := open(t, Options{Dir: dir})
	if _, _, err := fork.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := do(t, fork, "history", `{"graph":"clerk","kinds":["channel_message"]}`); !reflect.DeepEqual(got, past) {
		t.Errorf("the fork has the messages\n%v, want\n%v", got, past)
	}
	if line := do(t, fork, "lineage", `{"graph":"clerk"}`)["lineage"].([]any); !reflect.DeepEqual(line[0].(map[string]any)["parents"], []any{forked["parent"]}) {
		t.Errorf("the lineage of the fork is %v, want the parent %v", line, forked["parent"])
	}
	clerk, err := fork.FindCreature("", "clerk")
	if err != nil {
		t.Fatal(err)
	}
	tell(t, fork, clerk, "in the fork")
	for of, want := range map[*Terrarium]string{tr: "in the original", fork: "in the fork"} {
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

// A session is exported to a file that was not there, live or ended.
func TestExport(t *testing.T) {
	tr := open(t, Options{Dir: t.TempDir()})
	left, right := twoDesks(t, tr)
	tell(t, tr, left.clerk, "x")
	if !copies(t, tr, left.clerk) {
		return
	}
	old := graphOf(t, tr, right.clerk)
	do(t, tr, "connect", fmt.Sprintf(`{"from":%q,"to":%q}`, left.clerk, right.count))
	for name, args := range map[string]string{
		"live":  fmt.Sprintf(`"graph":%q`, left.clerk),
		"past":  fmt.Sprintf(`"graph":%q`, old.ID),
		"ended": fmt.Sprintf(`"session":%q`, old.Session),
	} {
		path := filepath.Join(t.TempDir(), name)
		args := fmt.Sprintf(`{%s,"path":%q}`, args, path)
		if exported := do(t, tr, "export", args); exported["path"] != path {
			t.Errorf("export %s answers %v", args, exported)
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

// What cannot be found is not copied, and without a directory nothing is.
func TestCopyMistakes(t *testing.T) {
	kept := open(t, Options{Scratch: true})
	desk := newDesk(t, kept)
	do(t, kept, "wait_idle", ``)
	path := filepath.Join(t.TempDir(), "x")
	for _, op := range []string{`"path"`, `"dir"`} {
		name := map[string]string{`"path"`: "export", `"dir"`: "fork"}[op]
		refused(t, kept, name, fmt.Sprintf(`{"graph":"nowhere",%s:%q}`, op, path), abi.NotFound, "nowhere")
		refused(t, kept, name, fmt.Sprintf(`{"graph":"nowhere","session":"x",%s:%q}`, op, path), abi.InvalidArgument, "both")
		refused(t, kept, name, fmt.Sprintf(`{"graph":%q}`, desk.clerk), abi.InvalidArgument, "missing")
	}
	volatile := open(t, Options{})
	add(t, volatile, "a", "builtin:relay")
	for name, args := range map[string]string{"export": `{"graph":"a","path":%q}`, "fork": `{"graph":"a","dir":%q}`} {
		if _, err := volatile.Do(context.Background(), name, json.RawMessage(fmt.Sprintf(args, path))); abi.CodeOf(err) != abi.Unavailable {
			t.Errorf("%s of a graph that keeps nothing: %v", name, err)
		}
	}
	if err := volatile.Export(t.Context(), "a", path); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("Export of a graph that keeps nothing: %v", err)
	}
	if _, err := volatile.Fork(t.Context(), "a", path); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("Fork of a graph that keeps nothing: %v", err)
	}
}
