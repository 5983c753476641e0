package replay_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
)

// moody is a server that does what the first word of a body says, and counts the
// requests.
type moody struct {
	mu      sync.Mutex
	arrived map[string]int
}

func (m *moody) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	word, _, _ := strings.Cut(string(body), " ")
	m.mu.Lock()
	m.arrived[string(body)]++
	n := m.arrived[string(body)]
	m.mu.Unlock()
	switch {
	case word == "busy" && n == 1, word == "down":
		w.WriteHeader(http.StatusServiceUnavailable)
	case word == "missing" && n == 1:
		w.WriteHeader(http.StatusNotFound)
	default:
		fmt.Fprintf(w, "re: %s", body)
	}
}

// recordRequests records a session in dir with requests that succeed, succeed at a second
// attempt, fail, make the turn fail that handles their result, are redelivered, denied,
// changed into something forbidden, or approved, or are made to a server that the recipe
// does not allow. It returns the number of turns of the session. The server is closed
// before it returns.
func recordRequests(t *testing.T, dir string) int {
	m := &moody{arrived: map[string]int{}}
	server := httptest.NewServer(m)
	defer server.Close()
	tr, err := terrarium.New(t.Context(), terrarium.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	applied, err := tr.Apply(t.Context(), filepath.Join("testdata", "http.hcl"), terrarium.RecipeOptions{Vars: map[string]string{"url": server.URL, "token": "s3cr3t-s3cr3t"}})
	if err != nil {
		t.Fatal(err)
	}
	send := func(channel, line string) {
		if _, err := tr.Send(t.Context(), applied.Channels["channel."+channel], terrarium.Outgoing{Payload: []byte(line)}); err != nil {
			t.Fatal(err)
		}
		if err := tr.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{"plain", "busy", "down", "missing", "denied", "changed", "astray", "careful one", "careful two"} {
		send("tasks", line)
		waiting, err := tr.Approvals()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range waiting {
			if _, err := tr.Decide(a.ID, engine.Decision{Approve: line == "careful one", By: "ann", Reason: "so it is"}); err != nil {
				t.Fatal(err)
			}
			if err := tr.WaitIdle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	send("strays", "elsewhere")
	graph, err := tr.FindGraph(t.Context(), "courier")
	if err != nil {
		t.Fatal(err)
	}
	letters, err := tr.DeadLetters(t.Context(), graph, "", journal.EventID{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range letters {
		if _, err := tr.Redeliver(t.Context(), graph, letters[i].ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := tr.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"plain": 1, "busy": 2, "down": 2, "missing": 1, "something else": 1, "careful one": 1}
	if fmt.Sprint(m.arrived) != fmt.Sprint(want) {
		t.Errorf("%v arrived, want %v", m.arrived, want)
	}
	turns := 0
	events, err := tr.History(t.Context(), string(graph), journal.HistoryQuery{Kinds: []journal.EventKind{journal.EventTurnEnded, journal.EventTurnFailed}, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	turns = len(events)
	if err := tr.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	return turns
}

// TestRequestsToServers replays requests over HTTP when their server is closed.
func TestRequestsToServers(t *testing.T) {
	dir := t.TempDir()
	turns := recordRequests(t, dir)
	for _, fresh := range []bool{false, true} {
		r, err := terrarium.Replay(t.Context(), dir, terrarium.ReplayOptions{All: true, Fresh: fresh})
		if err != nil {
			t.Fatal(err)
		}
		same(t, r, turns)
	}
}
