package llmcap

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
)

// answers returns a handler that answers with a body.
func answers(kind string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(body)
	}
}

// TestMemory proves that no answer takes many times its size in memory, whatever its
// contents. The answers are 2 MB long, the most that the setting allows in a stream.
func TestMemory(t *testing.T) {
	const size = 2 << 20
	fill := func(head, part, end string) []byte {
		var b bytes.Buffer
		b.Grow(size)
		b.WriteString(head)
		for b.Len()+len(part)+len(end) < size {
			b.WriteString(part)
		}
		b.WriteString(end)
		return b.Bytes()
	}
	end := `],"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`
	for name, tt := range map[string]struct {
		body []byte
		code abi.Code
	}{
		"calls":    {fill(`{"choices":[{"index":0,"message":{"tool_calls":[`, `{},`, `{}]},"finish_reason":"stop"}]}`), abi.TooLarge},
		"choices":  {fill(`{"choices":[`, `{},`, `{}]}`), abi.TooLarge},
		"an error": {fill(`{"error":[`, `{},`, `{}]}`), abi.Unavailable},
		"others":   {fill(`{"x":[`, `{},`, `{}`+end), abi.OK},
		"deep":     {fill(`{"x":[`, `[[[[[[[[{"a":[]}]]]]]]]],`, `{}`+end), abi.OK},
		"a text":   {fill(`{"choices":[{"message":{"content":"`, `a`, `"},"finish_reason":"stop"}]}`), abi.TooLarge},
		"a name":   {fill(`{"choices":[{"message":{"tool_calls":[{"function":{"name":"`, `a`, `"}}]},"finish_reason":"stop"}]}`), abi.TooLarge},
		"an id":    {fill(`{"choices":[{"message":{"tool_calls":[{"id":"`, `a`, `"}]},"finish_reason":"stop"}]}`), abi.Unavailable},
	} {
		var zip bytes.Buffer
		w, _ := gzip.NewWriterLevel(&zip, gzip.BestSpeed)
		if _, err := w.Write(tt.body); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		for _, zipped := range []bool{false, true} {
			g := open(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
				if zipped {
					w.Header().Set("Content-Encoding", "gzip")
					answers("application/json", zip.Bytes())(w, r)
					return
				}
				answers("application/json", tt.body)(w, r)
			}), `,"max_response":32768`)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := askFor(t, time.Minute, g, hello)
			runtime.ReadMemStats(&after)
			// Reading the body allocates about five times its size, most of which is free at once.
			if used := after.TotalAlloc - before.TotalAlloc; r.Code != tt.code || used > 8*size {
				t.Errorf("%s, gzip %v: %s %s, and it allocates %d MB for %d MB", name, zipped, r.Code, r.Text, used>>20, size>>20)
			}
		}
	}
}

// TestBounds proves how many calls an answer may have, and how long their names may be,
// whether or not they have ids.
func TestBounds(t *testing.T) {
	calls := func(n int, call string) string {
		return `{"choices":[{"KIND":{"tool_calls":[` + strings.TrimSuffix(strings.Repeat(call+",", n), ",") + `]},"finish_reason":"stop"}]}`
	}
	name := func(n int) string { return `{"function":{"name":"` + strings.Repeat("a", n) + `"}}` }
	part := func(name string) string {
		return `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"` + name + `"}}]}}]}` + "\n\n"
	}
	end := `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	for i, tt := range []struct {
		body   string
		stream bool
		calls  int
		err    error
	}{
		{strings.Replace(calls(mostCalls, name(1)), "KIND", "message", 1), false, mostCalls, nil},
		{strings.Replace(calls(mostCalls+1, name(1)), "KIND", "message", 1), false, 0, errCalls},
		{"data: " + strings.Replace(calls(mostCalls+1, `{}`), "KIND", "delta", 1), true, 0, errCalls},
		{strings.Replace(calls(1, name(mostName)), "KIND", "message", 1), false, 1, nil},
		{strings.Replace(calls(1, name(mostName+1)), "KIND", "message", 1), false, 0, errName},
		{strings.Repeat(part("a")+part("b"), mostName/2) + end, true, 1, nil},
		{strings.Repeat(part("a")+part("b"), mostName/2+1) + end, true, 0, errName},
		{strings.Repeat(part("group_send"), 1000) + end, true, 1, nil},
	} {
		a, long, err := assemble(t.Context(), []byte(tt.body), tt.stream, 1000)
		if !errors.Is(err, tt.err) || long || len(a.Message.ToolCalls) != tt.calls {
			t.Errorf("%d: %d calls, %v, want %d, %v", i, len(a.Message.ToolCalls), err, tt.calls, tt.err)
		}
	}
}

// TestAssemblingEnds proves that an attempt ends when its time is over while an answer is
// being put together, and that its tokens count.
func TestAssemblingEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	err := events(ctx, []byte(strings.Repeat("data: {}\n\n", 10_000)), func([]byte) error {
		if seen++; seen == 5 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || seen > 100 {
		t.Errorf("%d events are read after the end, and the error is %v", seen-5, err)
	}
	g := open(t, "https://api.example.com", "")
	q, err := g.read([]byte(hello))
	if err != nil {
		t.Fatal(err)
	}
	r := g.answer(ctx, q, len(hello), capability.Result{Status: 200, Headers: map[string]string{"content-type": "text/event-stream"}, Payload: []byte("data: {}\n\n")})
	if r.Code != abi.Deadline || !r.Again || r.Used[tokens] == 0 || !strings.Contains(r.Text, "timeout") {
		t.Errorf("%s %s %v %v", r.Code, r.Text, r.Again, r.Used)
	}
}

// escaped writes a text in JSON with an escape for each character.
func escaped(text string) string {
	var out strings.Builder
	for _, c := range text {
		fmt.Fprintf(&out, `\u%04X`, c)
	}
	return out.String()
}

// TestSecretsInAnswers proves that the key and the headers do not reach a creature in pieces or
// escaped, in any part of an answer or an error.
func TestSecretsInAnswers(t *testing.T) {
	const other = `an/other "secret"`
	whole := func(message string) string {
		return `{"choices":[{"message":` + message + `,"finish_reason":"stop"}]}`
	}
	pieces := func(delta func(c string) string, text string) string {
		var out strings.Builder
		for _, c := range text {
			raw, _ := json.Marshal(string(c))
			out.WriteString(`data: {"choices":[{"delta":` + delta(string(raw)) + `}]}` + "\n\n")
		}
		return out.String() + `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	}
	content := func(c string) string { return `{"content":` + c + `}` }
	call := func(member string) func(string) string {
		return func(c string) string { return `{"tool_calls":[{"index":0,"function":{"` + member + `":` + c + `}}]}` }
	}
	inner, _ := json.Marshal(`{"a":"` + escaped(secret) + `","b":"an\/other \"secret\""}`)
	for name, tt := range map[string]struct {
		kind, body string
		status     int
	}{
		"content in pieces":     {"text/event-stream", pieces(content, "it is "+secret+" and "+other), 200},
		"arguments in pieces":   {"text/event-stream", pieces(call("arguments"), `{"key":"`+secret+`"}`), 200},
		"a name in pieces":      {"text/event-stream", pieces(call("name"), secret), 200},
		"escaped":               {"application/json", whole(`{"content":"` + escaped(secret) + `"}`), 200},
		"a call, escaped":       {"application/json", whole(`{"tool_calls":[{"id":"` + escaped(secret) + `","function":{"name":"` + escaped(secret) + `","arguments":"` + escaped(secret) + `"}}]}`), 200},
		"arguments in JSON":     {"application/json", whole(`{"tool_calls":[{"function":{"name":"f","arguments":` + string(inner) + `}}]}`), 200},
		"a reason":              {"application/json", `{"choices":[{"message":{"content":""},"finish_reason":"` + escaped(secret) + `"}]}`, 200},
		"an error":              {"application/json", `{"error":{"message":"` + escaped(secret) + `"}}`, 200},
		"an error of a status":  {"application/json", `{"error":{"message":"` + escaped(secret) + `"}}`, 400},
		"a status to try again": {"application/json", `{"error":{"message":"` + escaped(secret) + `"}}`, 503},
		"and in pages":          {"text/plain", escaped(secret), 503},
	} {
		g := open(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", tt.kind)
			w.WriteHeader(tt.status)
			_, _ = io.WriteString(w, tt.body)
		}), `,"headers":{"x-other":`+fmt.Sprintf("%q", other)+`}`)
		r := ask(t, g, hello)
		seen := escapes.ReplaceAllString(string(r.Payload)+r.Text, "?")
		var plain any
		_ = json.Unmarshal(r.Payload, &plain)
		all := fmt.Sprint(seen, plain, r.Text)
		if strings.Contains(all, secret) || strings.Contains(all, other) || strings.Contains(strings.ReplaceAll(all, `\`, ""), other) || strings.Contains(all, "????") || !strings.Contains(all, "(sensitive value)") {
			t.Errorf("%s: %s %s %s", name, r.Code, r.Text, r.Payload)
		}
	}
	g := open(t, "https://api.example.com", "")
	for _, same := range []string{"", `a\b`, `{"path":"C:\\u0041","s":"\u0041\/"}`} {
		if got := g.veil(same); got != same {
			t.Errorf("%q becomes %q", same, got)
		}
	}
}

// FuzzLookUp proves that looking up a value in valid JSON finds the same as decoding it.
func FuzzLookUp(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{ "a" : [ 1 , {"a":"}"} ] , "b":"\\\"" }`, `{"a":{"a":1},"a":2.5e3}`, `{"\u0061":null}`, `{}`, `[{"a":0}]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		raw = bytes.Trim(raw, " \t\r\n")
		if !json.Valid(raw) {
			return
		}
		var want map[string]json.RawMessage
		isObject := json.Unmarshal(raw, &want) == nil && want != nil
		m := []member{{name: "a"}}
		if got := lookUp(raw, m); got != isObject {
			t.Fatalf("%s is an object: %v", raw, got)
		}
		if a := want["a"]; string(a) != "null" && string(a) != string(m[0].value) {
			t.Fatalf("%s has %s, want %s", raw, m[0].value, a)
		}
		var elements, found []json.RawMessage
		if json.Unmarshal(raw, &elements) == nil && elements != nil {
			if err := each(raw, func(e []byte) error { found = append(found, e); return nil }); err != nil || fmt.Sprintf("%s", found) != fmt.Sprintf("%s", elements) {
				t.Fatalf("%s has %s, %v", raw, found, err)
			}
		}
	})
}
