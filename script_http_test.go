package terrarium_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/journal"
)

// scripted is a recipe whose script reports what a server answers.
const scripted = `
channel "tasks" {}
http "server" {
  allow   = ["URL", "URL/**"]
  methods = ["POST"]
}
creature "asker" {
  module = "builtin:js"
  config = {
    script = <<-JS
      export default {
        message(turn) { turn.http("URL/notes", { method: "POST", headers: { "x-checked": 7 }, body: turn.text(), tag: 3 }); },
        result(turn) { turn.output([turn.tag, turn.resultCode, turn.status, turn.text()].join(" ")); },
      };
    JS
  }
  listen = [channel.tasks]
  grants { http = ["server"] }
}
`

// TestScriptsRequest proves that a script can send requests and gets the responses.
func TestScriptsRequest(t *testing.T) {
	book := &guestbook{keys: map[string]bool{}}
	server := httptest.NewServer(book)
	defer server.Close()
	recipe := filepath.Join(t.TempDir(), "asker.hcl")
	if err := os.WriteFile(recipe, []byte(strings.ReplaceAll(scripted, "URL", server.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	x := opened(t, terrarium.Options{Dir: t.TempDir()})
	applied, err := x.Apply(t.Context(), recipe, terrarium.RecipeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Send(t.Context(), applied.Channels["channel.tasks"], terrarium.Outgoing{Payload: []byte("frog")}); err != nil {
		t.Fatal(err)
	}
	if err := x.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := book.seen(), []string{"POST /notes 7 frog"}; !slices.Equal(got, want) {
		t.Errorf("the server got %q, want %q", got, want)
	}
	graph, err := x.FindGraph(t.Context(), "asker")
	if err != nil {
		t.Fatal(err)
	}
	outputs, err := x.History(t.Context(), string(graph), journal.HistoryQuery{Kinds: []journal.EventKind{journal.EventOutput}, Limit: 10})
	if err != nil || len(outputs) != 1 || string(outputs[0].Payload) != "3 ok 200 re: frog" {
		t.Errorf("the outputs are %v, %v", outputs, err)
	}
}
