package outsidetest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
)

// TestStopsWhenMoneyIsSpent stops a recipe after answers of a model that cost as much as its
// stop_when block says, one of them before a restart. What is asked then waits, and is answered
// when the recipe is applied with more.
func TestStopsWhenMoneyIsSpent(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"good day"},"finish_reason":"stop"}],"usage":{"prompt_tokens":150,"completion_tokens":50}}`)
	}))
	defer server.Close()
	dir := t.TempDir()
	run := func(enough, ask, stopped, want string) {
		t.Helper()
		x, err := terrarium.New(t.Context(), terrarium.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close(context.Background())
		applied, err := x.Apply(t.Context(), "testdata/thrifty.hcl", terrarium.RecipeOptions{Vars: map[string]string{"url": server.URL, "key": modelKey, "enough": enough}})
		if err != nil {
			t.Fatal(err)
		}
		answers, err := x.Read(applied.Channels["channel.answers"], "reader", terrarium.ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer answers.Close()
		if ask != "" {
			if _, err := x.Send(t.Context(), applied.Channels["channel.questions"], terrarium.Outgoing{Payload: []byte(ask), Durable: true}); err != nil {
				t.Fatal(err)
			}
		}
		if err := x.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		graph, err := x.FindGraph(t.Context(), "adviser")
		if err != nil {
			t.Fatal(err)
		}
		status, err := x.Status(graph)
		if err != nil {
			t.Fatal(err)
		}
		var reasons []string
		for _, s := range status[0].Stopped {
			reasons = append(reasons, s.Condition+": "+s.Reason)
		}
		if got := strings.Join(reasons, "; "); got != stopped {
			t.Errorf("after %q, the stops are %q; want %q", ask, got, stopped)
		}
		if want == "" {
			return
		}
		in, err := answers.Next(t.Context())
		if err != nil || string(in.Payload) != want {
			t.Errorf("%q is answered by %q, %v; want %q", ask, in.Payload, err, want)
		}
		answers.Ack(in.Seq)
	}
	const spent = "stop_when.spent: money 0.0005 of 0.0005"
	run("0.0005", "one", "", "ok: good day")
	run("0.0005", "two", spent, "ok: good day")
	run("0.0005", "three", spent, "")
	if asked != 2 {
		t.Errorf("the server was asked %d times before the recipe continues", asked)
	}
	run("1", "", "", "ok: good day")
	if asked != 3 {
		t.Errorf("the server was asked %d times", asked)
	}
}
