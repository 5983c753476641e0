package outsidetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/seed47132306/terrarium"
)

// A said is one message in a conversation with a model.
type said struct {
	Role      string  `json:"role"`
	Content   *string `json:"content"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	ToolCallID string `json:"tool_call_id"`
}

// A model answers the nth request, counted from 1, with the JSON of a message, or with a
// status.
type model func(n int, messages []said) (message string, status int)

func text(s string) (string, int) {
	b, _ := json.Marshal(map[string]string{"role": "assistant", "content": s})
	return string(b), http.StatusOK
}

func call(names ...string) (string, int) { // name, arguments, name, arguments …
	var calls []any
	for i := 0; i < len(names); i += 2 {
		calls = append(calls, map[string]any{"id": fmt.Sprint("c", i), "type": "function", "function": map[string]string{"name": names[i], "arguments": names[i+1]}})
	}
	b, _ := json.Marshal(map[string]any{"role": "assistant", "content": nil, "tool_calls": calls})
	return string(b), http.StatusOK
}

// An agent is a session in which builtin:agent answers questions.
type agent struct {
	t       *testing.T
	mu      sync.Mutex
	heard   [][]said // the messages of each request
	offered []string
	session string
	vars    map[string]string
}

func newAgent(t *testing.T, config string, budget int, m model) *agent {
	t.Helper()
	a := &agent{t: t, session: t.TempDir()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Messages []said
			Tools    []struct{ Function struct{ Name string } }
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		a.mu.Lock()
		a.heard, a.offered = append(a.heard, request.Messages), nil
		for _, f := range request.Tools {
			a.offered = append(a.offered, f.Function.Name)
		}
		n := len(a.heard)
		a.mu.Unlock()
		message, status := m(n, request.Messages)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"choices":[{"message":%s,"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":100}}`, message)
	}))
	t.Cleanup(server.Close)
	a.vars = map[string]string{"url": server.URL, "config": config, "budget": fmt.Sprint(budget)}
	return a
}

// ask sends questions in a session that it starts or continues, and returns as many outputs.
func (a *agent) ask(answers int, questions ...string) (got []string) {
	a.t.Helper()
	x, err := terrarium.New(a.t.Context(), terrarium.Options{Dir: a.session})
	if err != nil {
		a.t.Fatal(err)
	}
	defer x.Close(context.Background())
	applied, err := x.Apply(a.t.Context(), "testdata/agent.hcl", terrarium.RecipeOptions{Vars: a.vars})
	if err != nil {
		a.t.Fatal(err)
	}
	reader, err := x.Read(applied.Channels["channel.answers"], "test", terrarium.ReaderOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	defer reader.Close()
	for _, q := range questions {
		if _, err := x.Send(a.t.Context(), applied.Channels["channel.questions"], terrarium.Outgoing{Payload: []byte(q)}); err != nil {
			a.t.Fatal(err)
		}
	}
	for range answers {
		m, err := reader.Next(a.t.Context())
		if err != nil {
			a.t.Fatal(err)
		}
		got = append(got, string(m.Payload))
		reader.Ack(m.Seq)
	}
	if err := x.WaitIdle(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
	return got
}

// last is the last message of the nth request.
func (a *agent) last(n int) string {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.heard) < n {
		a.t.Fatalf("%d requests, want %d or more", len(a.heard), n)
	}
	m := a.heard[n-1]
	return *m[len(m)-1].Content
}

// paired proves that each call of a function is followed by its result, and each result
// comes after its call.
func (a *agent) paired() {
	a.t.Helper()
	for n, messages := range a.heard {
		open := []string{}
		for _, m := range messages {
			switch {
			case m.Role == "tool" && (len(open) == 0 || open[0] != m.ToolCallID):
				a.t.Errorf("request %d: a result of %q, want one of %q", n+1, m.ToolCallID, open)
			case m.Role == "tool":
				open = open[1:]
			case len(open) > 0:
				a.t.Errorf("request %d: calls without results: %q", n+1, open)
			}
			for _, c := range m.ToolCalls {
				if open = append(open, c.ID); !json.Valid([]byte(c.Function.Arguments)) {
					a.t.Errorf("request %d: the arguments are %q", n+1, c.Function.Arguments)
				}
			}
		}
	}
}

func wantTexts(t *testing.T, got []string, want ...string) {
	t.Helper()
	for i, w := range want {
		if i >= len(got) || !strings.HasPrefix(got[i], w) {
			t.Errorf("the answers are %q, want %q", got, want)
			return
		}
	}
}

// TestAgentCallsTools proves that an agent calls functions, gives the model their results and
// their refusals, and answers in the end.
func TestAgentCallsTools(t *testing.T) {
	a := newAgent(t, `{"history": 64}`, 1_000_000, func(n int, _ []said) (string, int) {
		switch n {
		case 1:
			return call("group_channel", `{"action":"create","name":"notes"}`, "group_remove_node", `{"creature":"nobody"}`)
		case 2:
			return call("dance", `{}`, "group_status", `{"limit":`, "group_status", `[1]`, "in valid", `{}`)
		case 3:
			return text("")
		}
		return text("done")
	})
	wantTexts(t, a.ask(2, "begin", "again"), "Stopped, because the model gave no answer.", "done")
	for i, want := range []string{`"name":"notes"`, `there is no creature`} {
		if m := a.heard[1][len(a.heard[1])-2+i]; !strings.Contains(*m.Content, want) {
			t.Errorf("the result is %s, want %s", *m.Content, want)
		}
	}
	for i, want := range []string{"there is no function", "are not JSON", "are not a JSON object", "there is no function"} {
		if m := a.heard[2][len(a.heard[2])-4+i]; !strings.Contains(*m.Content, want) {
			t.Errorf("the result is %s, want %s", *m.Content, want)
		}
	}
	if system := *a.heard[0][0].Content; !strings.HasPrefix(system, "You answer.") || !strings.Contains(system, "# `agent`") {
		t.Errorf("the system text is %s", system)
	}
	if got := strings.Join(a.offered, " "); !strings.Contains(got, "group_add_node") || !strings.HasSuffix(got, " wait") {
		t.Errorf("the functions are %s", got)
	}
	a.paired()
	report, err := terrarium.Replay(t.Context(), a.session, terrarium.ReplayOptions{All: true})
	if err != nil || !report.Same() {
		t.Errorf("the replay is %+v, %v", report, err)
	}
}

// TestAgentStops proves that an agent stops after its steps, reports that, and handles the
// messages that have waited, one after the other.
func TestAgentStops(t *testing.T) {
	a := newAgent(t, `{"steps": 3, "tools": ["group_status"]}`, 1_000_000, func(_ int, m []said) (string, int) {
		for _, s := range m {
			if s.Role == "user" && strings.HasSuffix(*s.Content, "second") {
				return text("second")
			}
		}
		return call("group_status", `{}`, "group_send", `{}`)
	})
	wantTexts(t, a.ask(2, "first", "second"), "Stopped after 3 steps", "second")
	if got := strings.Join(a.offered, " "); got != "group_status wait" || len(a.heard) != 4 {
		t.Errorf("%d requests, with the functions %s", len(a.heard), got)
	}
	if got := a.last(2); !strings.Contains(got, "there is no function") {
		t.Errorf("a function that is not allowed gives %s", got)
	}
	a.paired()
}

// TestAgentForgets proves that the history has a bound, also with large results and calls
// and after restarts.
func TestAgentForgets(t *testing.T) {
	a := newAgent(t, `{"history": 9, "history_bytes": 8192}`, 10_000_000, func(n int, m []said) (string, int) {
		if n%3 > 0 {
			large := fmt.Sprintf(`{"creature":%q}`, strings.Repeat("ä", 1000))
			return call("group_status", `{}`, "group_start_node", large, "group_start_node", large, "group_start_node", large)
		}
		return text(strings.Repeat("ü", 5000))
	})
	for i := range 4 {
		a.ask(1, fmt.Sprint("question ", i, strings.Repeat("ß", 3000)))
	}
	for n, messages := range a.heard {
		size := 0
		for _, m := range messages[1:] {
			b, _ := json.Marshal(m)
			size += len(b)
		}
		if size > 2*8192 || len(messages) > 12 {
			t.Errorf("request %d has %d messages of %d bytes", n+1, len(messages), size)
		}
		if !bytes.Contains(fmt.Append(nil, texts(messages)), fmt.Append(nil, "question ", n/3)) {
			t.Errorf("request %d has lost its question", n+1)
		}
	}
	if len(a.heard) != 12 {
		t.Errorf("%d requests", len(a.heard))
	}
	a.paired()
}

func texts(messages []said) (out []string) {
	for _, m := range messages {
		if m.Content != nil {
			out = append(out, *m.Content)
		}
	}
	return out
}

// TestAgentBudget proves that an agent whose budget is used up reports that once, even after a
// restart, and works again with a larger one.
func TestAgentBudget(t *testing.T) {
	a := newAgent(t, `{}`, 4000, func(int, []said) (string, int) { return call("wait", `{}`) })
	if got := a.ask(1, "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t"); !strings.HasPrefix(got[0], "Stopped, because the budget is used up") {
		t.Errorf("the answer is %q", got)
	}
	used := len(a.heard)
	a.ask(0, "again")
	if len(a.heard) != used {
		t.Errorf("%d requests without a budget", len(a.heard)-used)
	}
	a.vars["budget"] = "1000000"
	a.ask(0, "with more")
	if got := a.last(used + 1); !strings.HasSuffix(got, "with more") || !strings.Contains(fmt.Sprint(texts(a.heard[used])), "again") {
		t.Errorf("the model hears %q", texts(a.heard[used]))
	}
}

// TestAgentRefused proves that an agent says that a server refuses it, and tries without
// the old messages.
func TestAgentRefused(t *testing.T) {
	a := newAgent(t, `{}`, 1_000_000, func(n int, _ []said) (string, int) {
		switch n {
		case 1:
			return `{}`, http.StatusBadRequest
		case 2:
			return `{}`, http.StatusUnauthorized
		}
		return text("good")
	})
	wantTexts(t, a.ask(3, "one", "two", "three"), "Stopped, because the model did not answer. llm: the server answered 400", "Stopped, because the model did not answer. llm: the server answered 401", "good")
	if got := texts(a.heard[1]); len(got) != 2 {
		t.Errorf("after a refusal the model hears %q", got)
	}
}
