package pagetest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/capability/llmcap"
)

// A model answers by the rules of examples/agents, each request when the test lets it.
type model struct {
	t       *testing.T
	grant   capability.Grant
	address string
	asked   chan string   // the name of the function that the answer calls, or the text of the answer
	let     chan struct{} // lets one answer go
	end     chan struct{}
}

func startModel(t *testing.T) *model {
	t.Helper()
	rules, err := os.ReadFile("../../examples/agents/model.json")
	if err != nil {
		t.Fatal(err)
	}
	settings, err := json.Marshal(map[string]any{"endpoint": "http://127.0.0.1/v1", "models": []string{"scripted"}, "scripted": string(rules)})
	if err != nil {
		t.Fatal(err)
	}
	grant, err := llmcap.New().Open(settings)
	if err != nil {
		t.Fatal(err)
	}
	m := &model{t: t, grant: grant, asked: make(chan string), let: make(chan struct{}), end: make(chan struct{})}
	server := httptest.NewServer(m)
	m.address = server.URL + "/v1"
	t.Cleanup(func() {
		close(m.end)
		server.Close()
	})
	return m
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request map[string]json.RawMessage
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &request) != nil {
		m.t.Errorf("the request is %q, %v", body, err)
		return
	}
	delete(request, "stream")
	delete(request, "stream_options")
	body, err = json.Marshal(request)
	if err != nil {
		m.t.Error(err)
		return
	}
	result := m.grant.Do(r.Context(), capability.Call{Request: capability.Request{Body: body}, Attempt: 1})
	var said struct {
		Message struct {
			Content string `json:"content"`
			Calls   []struct {
				Function struct{ Name string }
			} `json:"tool_calls"`
		}
	}
	var raw struct {
		Message, Usage json.RawMessage
		Finish         string `json:"finish_reason"`
	}
	if json.Unmarshal(result.Payload, &said) != nil || json.Unmarshal(result.Payload, &raw) != nil {
		m.t.Errorf("the rules answer %s: %s", result.Payload, result.Text)
		return
	}
	what := said.Message.Content
	if calls := said.Message.Calls; len(calls) > 0 {
		what = calls[0].Function.Name
	}
	for _, step := range []func() bool{
		func() bool {
			select {
			case m.asked <- what:
				return true
			case <-m.end:
				return false
			}
		},
		func() bool {
			select {
			case <-m.let:
				return true
			case <-m.end:
				return false
			}
		},
	} {
		if !step() {
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	answer := map[string]any{"choices": []any{map[string]any{"index": 0, "message": raw.Message, "finish_reason": raw.Finish}}, "usage": raw.Usage}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		m.t.Error(err)
	}
}

// expect waits for a request whose answer will be this, and leaves it open.
func (m *model) expect(what string) {
	m.t.Helper()
	select {
	case got := <-m.asked:
		if !strings.Contains(got, what) {
			m.t.Fatalf("the model is about to answer %q, want %q", got, what)
		}
	case <-time.After(patience):
		m.t.Fatalf("no request came to which the answer is %q", what)
	}
}

// next lets the open request have its answer, and waits for the next one.
func (m *model) next(what string) {
	m.t.Helper()
	m.let <- struct{}{}
	m.expect(what)
}

// The page while examples/agents works on a question: the specialist appears, is wired, is
// used and is removed.
func TestAgents(t *testing.T) {
	m := startModel(t)
	l := startLive(t)
	l.do("apply", `{"recipe": "../../examples/agents", "vars": {"endpoint": `+quote(m.address)+`, "key": `+quote(secret)+`}}`)
	b := open(t, l.link("graph"), desk)
	names := "[...document.querySelectorAll('.chip .name')].map(n => n.textContent).sort().join()"
	wire := "document.querySelectorAll('.edge.wire').length"
	b.until(names + " === 'lead'")
	l.do("send", `{"channel": "questions", "payload": "How far away is the Moon?"}`)

	m.expect("group_add_node")
	m.next("group_wire") // the specialist has been spawned
	b.until(names + " === 'astronomer,lead'")
	if n := eval[int](b, wire); n != 0 {
		t.Errorf("%d wires before the model has wired", n)
	}
	m.next("384,400 km") // it is wired, has the question and asks the model
	b.until(wire + " === 1")
	b.until("document.querySelector('.scene').textContent.includes('astronomer')")
	eval[any](b, "location.hash = '#/graph?creature=astronomer'")
	b.until("document.querySelector('.panel h1')?.textContent === 'astronomer'")
	b.holds(".panel", "species specialist", "wire to", "lead", "llm.main", "models scripted at "+m.address, "used by the graph")
	b.shot("agents")

	m.next("group_remove_node") // its answer has reached the lead
	b.until("[...document.querySelectorAll('.panel .gauge')].some(g => /used by the graph.*[1-9].* of 1,000,000 tokens/.test(g.textContent))")
	b.until("[...document.querySelectorAll('.panel .grant')].some(g => /used by the creature: [1-9]/.test(g.textContent))")
	m.next("The astronomer says") // it has been removed
	b.until(names + " === 'lead' && " + wire + " === 0")
	b.until("document.querySelector('.panel')?.textContent.includes('This creature no longer exists.')")
	m.let <- struct{}{}
	l.do("wait_idle", `{}`)

	b.goTo("events")
	for _, kind := range []string{"creature started", "output wire added", "direct message", "wired output", "output wire removed", "creature stopped"} {
		b.until("[...document.querySelectorAll('.event')].some(e => e.textContent.includes(" + quote(kind) + "))")
	}
	if strings.Contains(eval[string](b, "document.documentElement.outerHTML"), secret) {
		t.Error("the page has the key")
	}
	var said []string
	for _, e := range l.do("history", `{"graph": "lead", "kinds": ["channel_message"]}`)["events"].([]any) {
		said = append(said, quote(e.(map[string]any)["payload"]))
	}
	if !slices.ContainsFunc(said, func(text string) bool {
		return strings.Contains(text, "The astronomer says: The Moon is about 384,400 km away.")
	}) {
		t.Errorf("the messages are %q", said)
	}
}
