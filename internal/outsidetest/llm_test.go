package outsidetest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
)

const modelKey = "k3y-of-the-model"

// TestModel asks a model by a recipe: a policy judges the request, an answer arrives after a
// failure, the budget ends the use also after a restart, the session does not have the key,
// and it can be replayed without the server.
func TestModel(t *testing.T) {
	attempts := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if attempts++; attempts == 1 {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Authorization") != "Bearer "+modelKey || !bytes.Contains(body, []byte(`{"role":"system","content":"be brief"}`)) {
			t.Errorf("the server got %v %s", r.Header, body)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"good "}}]}`+"\n\n"+`data: {"choices":[{"delta":{"content":"day"},"finish_reason":"stop"}],"usage":{"prompt_tokens":150,"completion_tokens":50}}`+"\n\n")
	}))
	dir := t.TempDir()
	run := func(ask, want string) {
		t.Helper()
		x, err := terrarium.New(t.Context(), terrarium.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close(context.Background())
		applied, err := x.Apply(t.Context(), "testdata/adviser.hcl", terrarium.RecipeOptions{Vars: map[string]string{"url": server.URL, "key": modelKey}})
		if err != nil {
			t.Fatal(err)
		}
		answers, err := x.Read(applied.Channels["channel.answers"], "reader of "+ask[:1], terrarium.ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer answers.Close()
		if _, err := x.Send(t.Context(), applied.Channels["channel.questions"], terrarium.Outgoing{Payload: []byte(ask)}); err != nil {
			t.Fatal(err)
		}
		got, err := answers.Next(t.Context())
		if err != nil || !strings.HasPrefix(string(got.Payload), want) {
			t.Errorf("%q is answered by %q, %v; want %q", ask, got.Payload, err, want)
		}
		graph, err := x.FindGraph(t.Context(), "adviser")
		if err != nil {
			t.Fatal(err)
		}
		status, err := x.Status(graph)
		raw, _ := json.Marshal(status)
		if err != nil || !bytes.Contains(raw, []byte(`"used":{"millionths":250,"tokens":200},"used_by_graph":{"millionths":250,"tokens":200}`)) || bytes.Contains(raw, []byte(modelKey)) {
			t.Errorf("the status is %s, %v", raw, err)
		}
	}
	run("hello", "ok: good day")
	run("a secret", "denied: ")
	run(strings.Repeat("x", 200), "limit: capability: the budget of the creature for llm.main is 400 tokens; 200 are left")
	if attempts != 2 {
		t.Errorf("%d attempts arrived", attempts)
	}
	server.Close()
	report, err := terrarium.Replay(t.Context(), dir, terrarium.ReplayOptions{All: true})
	if err != nil || !report.Same() || report.Skipped() > 0 {
		t.Errorf("the replay is %+v, %v", report, err)
	}
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(modelKey)) {
			t.Errorf("%s has the key", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
