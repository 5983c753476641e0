package llmcap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "k3y-of-the-model"

// open opens a grant for a server, with further settings.
func open(t testing.TB, url, more string) *grant {
	t.Helper()
	raw := fmt.Sprintf(`{"endpoint":"%s/v1","models":["small","large"],"key":%q,"prices":{"small":"0.15 0.60","large":"2.50 10"}%s}`, url, secret, more)
	g, err := New().Open(json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	return g.(*grant)
}

// ask makes one attempt, as the engine does.
func ask(t testing.TB, g *grant, body string) capability.Result {
	t.Helper()
	return askFor(t, time.Second, g, body)
}

func askFor(t testing.TB, timeout time.Duration, g *grant, body string) capability.Result {
	t.Helper()
	r := capability.Request{Body: []byte(body)}
	if err := g.Check(r); err != nil {
		return capability.Failure(abi.CodeOf(err), err.Error())
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	return g.Do(ctx, capability.Call{Request: r, Key: "key-1", Attempt: 1})
}

// serve starts a server that answers with a function, and ends with the test.
func serve(t testing.TB, f http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s.URL
}

// stream writes an answer as events.
func stream(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_, _ = io.WriteString(w, text)
	}
}

const hello = `{"messages":[{"role":"user","content":"hello"}]}`

// TestRequest proves what the server gets, and what the creature gets.
func TestRequest(t *testing.T) {
	var got map[string]any
	var header http.Header
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		header, got = r.Header, nil
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil || r.URL.Path != "/v1/chat/completions" || r.Method != "POST" {
			t.Error(r.Method, r.URL, err)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"good day `+secret+`"},"finish_reason":"stop"}],"usage":{"prompt_tokens":500,"completion_tokens":100}}`)
	})
	g := open(t, url, "")
	r := ask(t, g, `{"model":"large","messages":[{"role":"system","content":"be kind"},{"role":"user","content":"hello"}],
		"tools":[{"type":"function","function":{"name":"group_send","parameters":{"type":"object"}}}],"max_tokens":100,"temperature":0}`)
	want := `{"model":"large","message":{"role":"assistant","content":"good day (sensitive value)"},"finish_reason":"stop","usage":{"prompt_tokens":500,"completion_tokens":100,"total_tokens":600},"cost":0.00225}`
	if r.Code != abi.OK || string(r.Payload) != want {
		t.Errorf("the result is %s %s\n%s\nwant\n%s", r.Code, r.Text, r.Payload, want)
	}
	if r.Used[tokens] != 600 || r.Used[money] != 2250 {
		t.Errorf("it has used %v", r.Used)
	}
	if header.Get("Authorization") != "Bearer "+secret || header.Get("Idempotency-Key") != "key-1" {
		t.Errorf("the headers are %v", header)
	}
	if got["model"] != "large" || got["max_tokens"] != 100.0 || got["stream"] != true || got["temperature"] != 0.0 || len(got["messages"].([]any)) != 2 || len(got["tools"].([]any)) != 1 {
		t.Errorf("the server got %v", got)
	}
	// Defaults, and the other name of the bound.
	ask(t, open(t, url, `,"max_tokens_name":"max_completion_tokens","stream":false,"max_tokens":7`), hello)
	if _, has := got["max_tokens"]; has || got["model"] != "small" || got["max_completion_tokens"] != 7.0 || got["stream"] != nil {
		t.Errorf("the server got %v", got)
	}
}

// TestStreams proves that the parts of an answer are put together, however a server
// divides it.
func TestStreams(t *testing.T) {
	part := func(delta string) string { return `{"choices":[{"index":0,"delta":` + delta + `}]}` }
	end := func(reason string) string {
		return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
	}
	counts := `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}`
	join := func(sep string, parts ...string) string {
		var out strings.Builder
		for _, p := range parts {
			out.WriteString("data: " + p + sep + sep)
		}
		return out.String()
	}
	text := func(s string) string {
		return `{"role":"assistant","content":` + fmt.Sprintf("%q", s) + `}`
	}
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"group_add_node","arguments":"{\"species\":\"s\"}"}},{"id":"b","type":"function","function":{"name":"x","arguments":"{}"}}]}`
	for name, tt := range map[string]struct{ body, message, finish string }{
		"as usual":           {join("\n", part(`{"role":"assistant","content":""}`), part(`{"content":"go"}`), part(`{"content":"od"}`), end("stop"), counts, "[DONE]"), text("good"), "stop"},
		"carriage returns":   {join("\r\n", part(`{"content":"go"}`), part(`{"content":"od"}`), end("stop"), counts, "[DONE]"), text("good"), "stop"},
		"only them":          {join("\r", part(`{"content":"go"}`), part(`{"content":"od"}`), end("stop"), counts), text("good"), "stop"},
		"no space":           {"data:" + part(`{"content":"good"}`) + "\n\ndata:" + end("stop") + "\n\ndata:" + counts + "\n\n", text("good"), "stop"},
		"comments and names": {": ping\n\nevent: x\nid: 1\nretry: 5\ndata: " + part(`{"content":"good"}`) + "\n\n:\n\n" + join("\n", end("stop"), counts), text("good"), "stop"},
		"several lines":      {"data: {\"choices\":[{\"index\":0,\ndata: \"delta\":{\"content\":\"good\"},\"finish_reason\":\"stop\"}]}\n\n" + join("\n", counts), text("good"), "stop"},
		"a mark in front":    {"\xef\xbb\xbf" + join("\n", part(`{"content":"good"}`), end("stop"), counts), text("good"), "stop"},
		"no last empty line": {join("\n", part(`{"content":"good"}`), end("stop")) + "data: " + counts, text("good"), "stop"},
		"after the end":      {join("\n", part(`{"content":"good"}`), end("stop"), counts, "[DONE]", "garbage"), text("good"), "stop"},
		"other choices":      {join("\n", part(`{"content":"good"}`), `{"choices":[{"index":1,"delta":{"content":"evil"}}]}`, end("length"), counts), text("good"), "length"},
		"a refusal":          {join("\n", part(`{"refusal":"no"}`), end("stop"), counts), text("no"), "stop"},
		"nothing":            {join("\n", end("stop"), counts), text(""), "stop"},
		"calls in fragments": {join("\n", part(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"group_","arguments":""}}]}`),
			part(`{"tool_calls":[{"index":1,"id":"b","function":{"name":"x","arguments":"{"}}]}`), part(`{"tool_calls":[{"index":0,"function":{"name":"add_node","arguments":"{\"species\""}}]}`),
			part(`{"tool_calls":[{"index":0,"function":{"arguments":":\"s\"}"}},{"index":1,"function":{"arguments":"}"}}]}`), end("tool_calls"), counts), call, "tool_calls"},
		"names repeated": {join("\n", part(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"group_add_node","arguments":"{\"species\""}}]}`),
			part(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"group_add_node","arguments":":\"s\"}"}},{"index":1,"id":"b","function":{"name":"x","arguments":"{}"}}]}`), end("tool_calls"), counts), call, "tool_calls"},
		"numbers with gaps, out of order": {join("\n", part(`{"tool_calls":[{"index":127,"id":"b","function":{"name":"x","arguments":"{"}}]}`), part(`{"tool_calls":[{"index":5,"id":"a","function":{"name":"group_add_node","arguments":"{\"species\":\"s\"}"}}]}`),
			part(`{"tool_calls":[{"index":127,"function":{"arguments":"}"}}]}`), end("tool_calls"), counts), call, "tool_calls"},
		"one number for all": {join("\n", part(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"group_add_node","arguments":"{\"species\""}}]}`), part(`{"tool_calls":[{"index":0,"function":{"arguments":":\"s\"}"}}]}`),
			part(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"x","arguments":"{"}}]}`), part(`{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}`), end("tool_calls"), counts), call, "tool_calls"},
		"one number for all, by turns": {join("\n", part(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"group_add_node","arguments":"{\"species\""}}]}`), part(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"x","arguments":"{"}}]}`),
			part(`{"tool_calls":[{"index":0,"id":"a","function":{"arguments":":\"s\"}"}}]}`), part(`{"tool_calls":[{"index":0,"id":"b","function":{"arguments":"}"}}]}`), end("tool_calls"), counts), call, "tool_calls"},
		"a new id in every part": {join("\n", part(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"group_add_node","arguments":""}}]}`), part(`{"tool_calls":[{"index":0,"id":"c","function":{"arguments":"{\"species\":\"s\"}"}}]}`),
			part(`{"tool_calls":[{"index":1,"id":"b","function":{"name":"x"}}]}`), part(`{"tool_calls":[{"index":1,"id":"d","function":{"arguments":"{}"}}]}`), end("tool_calls"), counts), call, "tool_calls"},
		"complete, with one number for all": {join("\n", `{"choices":[{"index":0,"message":{"tool_calls":[{"index":0,"id":"a","function":{"name":"group_add_node","arguments":"{\"species\":\"s\"}"}},{"index":0,"id":"b","function":{"name":"x","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, counts), call, "tool_calls"},
		"not numbered": {join("\n", part(`{"tool_calls":[{"id":"a","function":{"name":"group_add_node","arguments":"{\"species\""}}]}`), part(`{"tool_calls":[{"function":{"arguments":":\"s\"}"}}]}`),
			part(`{"tool_calls":[{"id":"b","function":{"name":"x","arguments":"{}"}}]}`), end("tool_calls"), counts), call, "tool_calls"},
	} {
		r := ask(t, open(t, serve(t, stream(tt.body)), ""), hello)
		var a struct {
			Message json.RawMessage
			Finish  string `json:"finish_reason"`
			Usage   usage
		}
		if err := json.Unmarshal(r.Payload, &a); r.Code != abi.OK || err != nil || string(a.Message) != tt.message || a.Finish != tt.finish || a.Usage != (usage{7, 3, 10, false}) {
			t.Errorf("%s: %s %s\n%s\nwant %s", name, r.Code, r.Text, r.Payload, tt.message)
		}
	}
}

// TestFailures proves that each failure has a code, and says whether another attempt may
// help and what the failed one may have cost.
func TestFailures(t *testing.T) {
	status := func(code int, header, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if name, value, ok := strings.Cut(header, ": "); ok {
				w.Header().Set(name, value)
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	object := func(body string) http.HandlerFunc { return status(200, "Content-Type: application/json", body) }
	later := time.Now().Add(2 * time.Hour).UTC()
	half := `data: {"choices":[{"index":0,"delta":{"content":"ha"}}]}` + "\n\n"
	for name, tt := range map[string]struct {
		serve http.HandlerFunc
		code  abi.Code
		again bool
		used  bool
		after time.Duration
		text  string
	}{
		"busy, in seconds": {serve: status(429, "Retry-After: 7", `{"error":{"message":"slow down"}}`), code: abi.Unavailable, again: true, after: 7 * time.Second},
		"busy until a date": {serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", later.Add(-time.Minute).Format(http.TimeFormat))
			w.Header().Set("Retry-After", later.Format(http.TimeFormat))
			w.WriteHeader(429)
		}, code: abi.Unavailable, again: true, after: time.Minute},
		"busy, in words":  {serve: status(429, "Retry-After: soon", ""), code: abi.Unavailable, again: true},
		"broken":          {serve: status(500, "", "oops"), code: abi.Unavailable, again: true},
		"overloaded":      {serve: status(529, "", ""), code: abi.Unavailable, again: true},
		"wrong key":       {serve: status(401, "", `{"error":{"message":"bad key `+secret+`"}}`), code: abi.Denied, text: "bad key (sensitive value)"},
		"no such model":   {serve: status(404, "", `{"error":"no model"}`), code: abi.NotFound, text: "no model"},
		"bad request":     {serve: status(400, "", `{"message":"too many"}`), code: abi.InvalidArgument, text: "too many"},
		"too long":        {serve: status(413, "", ``), code: abi.TooLarge},
		"unpaid":          {serve: status(402, "", ``), code: abi.Denied},
		"a redirect":      {serve: status(302, "Location: http://127.0.0.1:1/", ``), code: abi.Unavailable},
		"a page":          {serve: status(200, "Content-Type: text/html", "<html>log in</html>"), code: abi.Unavailable, used: true, text: "text/html"},
		"no type":         {serve: status(200, "Content-Type: ", "{}"), code: abi.Unavailable, used: true},
		"no JSON":         {serve: object("hello"), code: abi.Unavailable, again: true, used: true},
		"another object":  {serve: object(`{"choices":7}`), code: abi.Unavailable, again: true, used: true},
		"no choice":       {serve: object(`{"choices":[]}`), code: abi.Unavailable, again: true, used: true},
		"an array":        {serve: object(`[]`), code: abi.Unavailable, again: true, used: true},
		"an error":        {serve: object(`{"error":{"message":"model is loading"}}`), code: abi.Unavailable, again: true, used: true, text: "model is loading"},
		"an error inside": {serve: stream(half + `data: {"error":{"message":"out of memory"}}` + "\n\n"), code: abi.Unavailable, again: true, used: true, text: "out of memory"},
		"half a stream":   {serve: stream(half), code: abi.Unavailable, again: true, used: true},
		"half an event":   {serve: stream(half + `data: {"choices":[{"ind`), code: abi.Unavailable, again: true, used: true},
		"done too early":  {serve: stream(half + "data: [DONE]\n\n"), code: abi.Unavailable, again: true, used: true},
		"cut off": {serve: func(w http.ResponseWriter, _ *http.Request) {
			stream(half)(w, nil)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, code: abi.Unavailable, again: true, used: true},
		"shorter than it says": {serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			stream(half)(w, nil)
		}, code: abi.Unavailable, again: true, used: true},
		"says it is huge": {serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1099511627776")
			stream(half)(w, nil)
		}, code: abi.TooLarge, used: true},
		"endless": {serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for i := 0; i < 100_000; i++ {
				if _, err := io.WriteString(w, strings.Repeat(half, 100)); err != nil {
					return
				}
			}
		}, code: abi.TooLarge, used: true},
		"silent": {serve: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, code: abi.Deadline, again: true, used: true},
		"a thousand calls": {serve: stream(`data: {"choices":[{"delta":{"tool_calls":[{"index":1000,"id":"x"}]}}]}` + "\n\n"), code: abi.TooLarge, used: true},
		"a call below 0":   {serve: stream(`data: {"choices":[{"delta":{"tool_calls":[{"index":-1,"id":"x"}]}}]}` + "\n\n"), code: abi.TooLarge, used: true},
		"a long answer":    {serve: object(`{"choices":[{"message":{"content":"` + strings.Repeat("a", 5000) + `"},"finish_reason":"stop"}]}`), code: abi.TooLarge, used: true},
	} {
		g := open(t, serve(t, tt.serve), `,"max_response":4096`)
		r := ask(t, g, hello)
		if r.Code != tt.code || r.Again != tt.again || (len(r.Used) > 0) != tt.used || r.After != tt.after || !strings.Contains(r.Text, tt.text) || r.Text == "" || strings.Contains(r.Text, secret) || len(r.Text) > 2000 || len(r.Payload) > 0 {
			t.Errorf("%s: %s again=%v used=%v after=%s %q", name, r.Code, r.Again, r.Used, r.After, r.Text)
		}
	}
	if r := ask(t, open(t, "http://127.0.0.1:1", ""), hello); r.Code != abi.Unavailable || !r.Again || r.Used != nil {
		t.Errorf("a server that is down gives %+v", r)
	}
}

// TestCounting proves that impossible numbers of tokens are replaced by an estimate.
func TestCounting(t *testing.T) {
	for counts, want := range map[string]usage{
		`{"prompt_tokens":5,"completion_tokens":2}`:     {5, 2, 7, false},
		`{"prompt_tokens":0,"completion_tokens":2}`:     {24, 2, 26, true},
		`{"prompt_tokens":-5,"completion_tokens":2}`:    {24, 2, 26, true},
		`{"prompt_tokens":5,"completion_tokens":1e30}`:  {24, 2, 26, true},
		`{"prompt_tokens":5,"completion_tokens":0}`:     {24, 2, 26, true},
		`{"prompt_tokens":5,"completion_tokens":128}`:   {24, 2, 26, true},
		`{"prompt_tokens":5,"completion_tokens":99999}`: {24, 2, 26, true},
		`{"prompt_tokens":5,"completion_tokens":1e999}`: {24, 2, 26, true},
		`{"prompt_tokens":600,"completion_tokens":2}`:   {24, 2, 26, true},
		`{"prompt_tokens":500,"completion_tokens":2}`:   {500, 2, 502, false},
		`{"prompt_tokens":5,"completion_tokens":120}`:   {5, 120, 125, false},
		`null`: {24, 2, 26, true},
	} {
		r := ask(t, open(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"good"},"finish_reason":"stop"}],"usage":`+counts+`}`)
		}), `,"max_tokens":96`), hello)
		var a answer
		if err := json.Unmarshal(r.Payload, &a); err != nil || a.Usage != want || r.Used[tokens] != want.Total {
			t.Errorf("%s: %+v %v, want %+v", counts, a.Usage, err, want)
		}
	}
}

// TestRefused proves which requests of a creature are refused, and that nothing of them
// is sent.
func TestRefused(t *testing.T) {
	url := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request arrived") })
	g := open(t, url, `,"max_request":2000,"max_tokens":50`)
	for body, code := range map[string]abi.Code{
		``: abi.InvalidArgument, `7`: abi.InvalidArgument, `{}`: abi.InvalidArgument, hello + `{}`: abi.InvalidArgument, hello + `}`: abi.InvalidArgument, hello + ` ]x`: abi.InvalidArgument,
		`{"messages":[]}`: abi.InvalidArgument, `{"messages":[{"role":"user"}]}`: abi.InvalidArgument, `{"messages":[{"role":"god","content":"x"}]}`: abi.InvalidArgument,
		`{"messages":[{"role":"user","content":"x","tool_call_id":"a"}]}`: abi.InvalidArgument, `{"messages":[{"role":"tool","content":"x"}]}`: abi.InvalidArgument,
		`{"messages":[{"role":"assistant","content":null}]}`: abi.InvalidArgument, `{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`: abi.InvalidArgument,
		`{"messages":[{"role":"user","content":"x"}],"n":100}`: abi.InvalidArgument, `{"messages":[{"role":"user","content":"x"}],"stream":false}`: abi.InvalidArgument,
		`{"messages":[{"role":"user","content":"x"}],"model":"huge"}`: abi.Denied, `{"messages":[{"role":"user","content":"x"}],"model":" small"}`: abi.Denied,
		`{"messages":[{"role":"user","content":"x"}],"max_tokens":51}`: abi.InvalidArgument, `{"messages":[{"role":"user","content":"x"}],"max_tokens":-1}`: abi.InvalidArgument,
		`{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"a b"}}]}`: abi.InvalidArgument,
		`{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"web_search","function":{"name":"a"}}]}`: abi.InvalidArgument,
		`{"messages":[{"role":"user","content":"` + strings.Repeat("x", 2000) + `"}]}`:                         abi.TooLarge,
	} {
		r := ask(t, g, body)
		if r.Code != code || r.Text == "" {
			t.Errorf("%.80s: %s %s, want %s", body, r.Code, r.Text, code)
		}
	}
	if err := g.Check(capability.Request{Head: []byte("{}"), Body: []byte(hello)}); abi.CodeOf(err) != abi.InvalidArgument {
		t.Errorf("a head gives %v", err)
	}
}

// TestPolicies proves what a policy can see and change.
func TestPolicies(t *testing.T) {
	g := open(t, "https://api.example.com", "")
	view := g.View(capability.Request{Body: []byte(hello)})
	raw, err := json.Marshal(view)
	if err != nil || view["model"] != "small" || view["max_tokens"] != 4096.0 || view["endpoint"] != "https://api.example.com/v1" || strings.Contains(string(raw), secret) {
		t.Errorf("a policy sees %s, %v", raw, err)
	}
	r, err := g.Amend(capability.Request{Body: []byte(hello)}, json.RawMessage(`{"model":"large","messages":[{"role":"user","content":"bye"}],"max_tokens":9}`))
	if err != nil || g.Check(r) != nil {
		t.Fatal(err, g.Check(r))
	}
	q, err := g.read(r.Body)
	if err != nil || q.Model != "large" || q.MaxTokens != 9 || len(q.Messages) != 1 || *q.Messages[0].Content != "bye" {
		t.Errorf("it becomes %s, %v", r.Body, err)
	}
	for _, members := range []string{`{"url":"http://evil.example"}`, `{"messages":7}`, `[]`, `{"n":2}`, `{"MESSAGES":[{"role":"user","content":"bye"}]}`, `{"Model":"large"}`} {
		if r, err := g.Amend(capability.Request{Body: []byte(hello)}, json.RawMessage(members)); err == nil {
			t.Errorf("%s gives %s", members, r.Body)
		}
	}
	if r, err := g.Amend(capability.Request{Body: []byte(hello)}, json.RawMessage(`{"model":"huge"}`)); err != nil || abi.CodeOf(g.Check(r)) != abi.Denied {
		t.Errorf("another model gives %s, %v", r.Body, err)
	}
}

// TestSettings proves which settings are refused, which lead to warnings, and what is
// shown.
func TestSettings(t *testing.T) {
	const start = `{"endpoint":"https://api.example.com/v1","models":["m"]`
	for _, settings := range []string{
		`{}`, `[]`, `{"endpoint":"","models":["m"]}`, `{"endpoint":"api.example.com","models":["m"]}`, `{"endpoint":"ftp://x.example","models":["m"]}`, `{"endpoint":"https://u:p@x.example","models":["m"]}`,
		`{"endpoint":"https://x.example?key=1","models":["m"]}`, `{"endpoint":"https://*.example","models":["m"]}`, `{"endpoint":"https://x.example/v1/chat/completions","models":["m"]}`, `{"endpoint":"https://127.1","models":["m"]}`,
		`{"endpoint":"https://x.example","models":[]}`, `{"endpoint":"https://x.example","models":["a","a"]}`, `{"endpoint":"https://x.example","models":[""]}`, start + `,"key":""}`, start + `,"key":"a\nb-and-more"}`,
		start + `,"key":"abcdefgh","headers":{"Authorization":"x"}}`, start + `,"headers":{"Accept":"x"}}`, start + `,"headers":{"Host":"x"}}`, start + `,"prices":{"x":"1 2"}}`, start + `,"prices":{"m":"1"}}`,
		start + `,"prices":{"m":"-1 2"}}`, start + `,"prices":{"m":"1e3 2"}}`, start + `,"prices":{"m":"99999 2"}}`, start + `,"money_per_graph":"5"}`, start + `,"prices":{"m":"1 2"},"money_per_graph":"0"}`,
		start + `,"prices":{"m":"1 2"},"money_per_creature":"much"}`, start + `,"max_tokens":99999999}`, start + `,"max_tokens_name":"tokens"}`, start + `,"on_failure":"nothing"}`, start + `,"retries":1000}`, start + `,"addresses":["x"]}`,
	} {
		var typed *abi.Error
		if _, err := New().Open(json.RawMessage(settings)); !errors.As(err, &typed) || typed.Code != abi.InvalidArgument || typed.Remedy == "" {
			t.Errorf("%s: %v", settings, err)
		}
	}
	for settings, want := range map[string]int{
		start + `}`: 1, start + `,"tokens_per_graph":1}`: 0, `{"endpoint":"http://x.example","models":["m"],"key":"abcdefgh","tokens_per_graph":1}`: 1, start + `,"key":"abc","tokens_per_graph":1}`: 1,
		`{"endpoint":"http://127.0.0.1:1","models":["m"],"key":"abcdefgh","tokens_per_graph":1}`: 0, start + `,"tokens_per_graph":1,"proxy":"environment"}`: 1,
	} {
		g, err := New().Open(json.RawMessage(settings))
		if err != nil || len(g.Warnings()) != want {
			t.Errorf("%s: %v %v", settings, g.Warnings(), err)
		}
	}
	g := open(t, "https://api.example.com", `,"tokens_per_graph":1000,"money_per_creature":"2.5"`)
	want := "models small, large at https://api.example.com/v1; up to 1000 tokens per graph; up to 2.50 of money per creature"
	if got := strings.Join(g.Allows(), "; "); got != want {
		t.Errorf("it allows %q, want %q", got, want)
	}
}

// TestForecast proves that no answer can use more than the forecast, unless the server
// counts more than one token for every two bytes.
func TestForecast(t *testing.T) {
	g := open(t, "https://api.example.com", `,"max_tokens":100`)
	f := g.Forecast(capability.Request{Body: []byte(hello)})
	if want := int64(len(hello)+1)/2 + 100; f[tokens] != want || f[money] != g.prices["small"].cost(want-100, 100) {
		t.Errorf("the forecast is %v", f)
	}
	for text, want := range map[string]int64{"0": 0, "1": 1_000_000, "0.000001": 1, "12.5": 12_500_000} {
		if got, ok := capability.ParseMoney(text); !ok || got != want {
			t.Errorf("%s is %d", text, got)
		}
	}
	for _, text := range []string{"", ".5", "1.", "1.0000001", "1,5", "+1", "1_0", "0x1", "1234567890", "1e2", "NaN"} {
		if got, ok := capability.ParseMoney(text); ok {
			t.Errorf("%q is %d", text, got)
		}
	}
}

// FuzzAssemble proves that nothing that a server sends leads to an answer that a creature
// cannot read, or to a panic.
func FuzzAssemble(f *testing.F) {
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\r\n\r\n"), true)
	f.Add([]byte(`{"choices":[{"message":{"tool_calls":[{"function":{"name":"a"}}]},"finish_reason":"x"}]}`), false)
	f.Fuzz(func(t *testing.T, body []byte, stream bool) {
		a, long, err := assemble(t.Context(), body, stream, 1000)
		if err != nil || long {
			return
		}
		if raw, err := json.Marshal(a); err != nil || !json.Valid(raw) || a.Message.Content == nil && len(a.Message.ToolCalls) == 0 {
			t.Fatalf("%s %v", raw, err)
		}
	})
}
