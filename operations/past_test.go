package operations

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
)

// Topology describes the graphs before a merge, with what was removed since and without
// what was added since. A token for a graph sees what has become that graph, and nothing
// else.
func TestTopologyOfAMoment(t *testing.T) {
	tr, err := terrarium.New(t.Context(), terrarium.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tr.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	run := func(rights Rights, name, args string) any {
		t.Helper()
		result, err := DoAs(t.Context(), tr, rights, name, json.RawMessage(args))
		if err != nil {
			t.Fatal(name, err)
		}
		return result
	}
	all := Rights{Scope: Admin}
	for _, name := range []string{"frog", "newt", "toad"} {
		run(all, "add_creature", fmt.Sprintf(`{"name": %q, "module": "builtin:echo"}`, name))
	}
	channel := run(all, "connect", `{"from": "frog", "to": "frog", "channel": "pond"}`).(*ChannelResult).Channel
	run(all, "stop_creature", `{"creature": "newt"}`)
	run(all, "send", `{"channel": "pond", "payload": "mark"}`)
	at := run(all, "search", `{"query": "mark"}`).(*SearchResult).Found[0].Cursor
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	run(all, "connect", `{"from": "frog", "to": "newt"}`)
	run(all, "remove_channel", fmt.Sprintf(`{"channel": %q}`, channel))
	run(all, "remove_creature", `{"creature": "toad"}`)

	names := func(rights Rights, args string) (out string) {
		r := run(rights, "topology", args).(*TopologyResult)
		for _, g := range r.Graphs {
			for _, c := range g.Creatures {
				out += fmt.Sprintf("%s %s ", c.Name, c.State)
			}
			for _, c := range g.Channels {
				out += fmt.Sprintf("%s %d>%d ", c.Name, len(c.Senders), len(c.Listeners))
			}
			out += "| "
		}
		return out
	}
	const before = "frog running pond 1>1 | newt stopped | toad running | "
	if got := names(all, fmt.Sprintf(`{"at": %q}`, at)); got != before {
		t.Errorf("at the cursor: %s", got)
	}
	if got := names(all, fmt.Sprintf(`{"at": %q, "graph": "frog"}`, at)); got != "frog running pond 1>1 | newt stopped | " {
		t.Errorf("what became the graph of frog: %s", got)
	}
	if got := names(Rights{Scope: Read, Graphs: []string{"newt"}}, fmt.Sprintf(`{"at": %q}`, at)); got != "frog running pond 1>1 | newt stopped | " {
		t.Errorf("with a token for newt: %s", got)
	}
	if got := names(all, fmt.Sprintf(`{"at": %q}`, later)); got != "frog running newt stopped frog-to-newt 1>1 | " {
		t.Errorf("now: %s", got)
	}
	if got := names(all, `{"at": "9999-12-31T23:59:59Z"}`); got != "frog running newt stopped frog-to-newt 1>1 | " {
		t.Errorf("at the end of time: %s", got)
	}
	if got := names(all, `{"at": "0001-01-01T00:00:00Z"}`); got != "" {
		t.Errorf("at the beginning of time: %s", got)
	}
	if got := names(all, `{"at": "2001-01-01T00:00:00Z"}`); got != "" {
		t.Errorf("before everything: %s", got)
	}
	for _, wrong := range []string{`"yesterday"`, `"AAAA"`, `""`} {
		if _, err := DoAs(t.Context(), tr, all, "topology", json.RawMessage(`{"at": `+wrong+`}`)); abi.CodeOf(err) != abi.InvalidArgument {
			t.Errorf("at %s: %v", wrong, err)
		}
	}
}

// A terrarium without a session directory has no past.
func TestTopologyWithoutADirectory(t *testing.T) {
	tr, err := terrarium.New(t.Context(), terrarium.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tr.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	if _, err := DoAs(t.Context(), tr, Rights{Scope: Read}, "topology", json.RawMessage(`{"at": "start"}`)); abi.CodeOf(err) != abi.Unsupported {
		t.Error(err)
	}
}

// sessions of what is not a directory returns not_found, whatever its path is.
func TestSessionsOfOddPaths(t *testing.T) {
	tr, err := terrarium.New(t.Context(), terrarium.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tr.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, file + "/below", "a\x00b", strings.Repeat("x", 5000), t.TempDir(), "\ufffd\n"} {
		args, err := json.Marshal(SessionsArgs{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DoAs(t.Context(), tr, Rights{Scope: Admin}, "sessions", args); abi.CodeOf(err) != abi.NotFound {
			t.Errorf("%.40q: %v", dir, err)
		}
	}
}
