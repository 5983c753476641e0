package httpcap

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
)

// TestKnownHeads checks heads again and again, with bodies that differ. What is allowed, and what
// is refused, stays so, and a grant remembers neither more heads than its bound nor long ones.
func TestKnownHeads(t *testing.T) {
	opened, err := New().Open(json.RawMessage(`{"allow": ["https://example.com/a/*"], "methods": ["GET"], "max_request": 10}`))
	if err != nil {
		t.Fatal(err)
	}
	g := opened.(*grant)
	defer g.Close()
	check := func(head string, body int) bool {
		return g.Check(capability.Request{Head: []byte(head), Body: make([]byte, body)}) == nil
	}
	long := strings.Repeat("x", mostKnownBytes)
	for i := range 3 * mostKnown {
		for _, c := range []struct {
			head string
			body int
			want bool
		}{
			{`{"url": "https://example.com/a/b"}`, i % 11, true},
			{`{"url": "https://example.com/a/b"}`, 11, false},
			{fmt.Sprintf(`{"url": "https://example.com/a/%d"}`, i), 0, true},
			{fmt.Sprintf(`{"url": "https://example.com/b/%d"}`, i), 0, false},
			{`{"url": "https://example.com/a/b", "method": "POST"}`, 0, false},
			{`{"url": "https://example.com/a/b", "headers": {"host": "other"}}`, 0, false},
			{`{"url": "https://example.com/a/b", "headers": {"x": "` + long + `"}}`, 0, true},
		} {
			if got := check(c.head, c.body); got != c.want {
				t.Fatalf("round %d: %.80s with a body of %d bytes is allowed: %v", i, c.head, c.body, got)
			}
		}
	}
	if n := len(g.known.heads); n == 0 || n > mostKnown {
		t.Errorf("it remembers %d heads", n)
	}
	for raw := range g.known.heads {
		if len(raw) > mostKnownBytes || strings.Contains(raw, "/b/") {
			t.Errorf("it remembers %.80s", raw)
		}
	}
}

// TestHeadersOfTheSettingsOfAnotherCapability makes an attempt without the check of a turn, as the
// capability llm does: the headers of the settings replace those of the head.
func TestHeadersOfTheSettingsOfAnotherCapability(t *testing.T) {
	accepts := make(chan string, 2)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { accepts <- r.Header.Get("Accept") }))
	defer server.Close()
	opened, err := New().Open(json.RawMessage(`{"allow": ["` + server.URL + `"], "headers": {"Accept": "text/csv"}}`))
	if err != nil {
		t.Fatal(err)
	}
	g := opened.(*grant)
	defer g.Close()
	r := capability.Request{Head: []byte(`{"url": "` + server.URL + `", "headers": {"accept": "text/plain"}}`)}
	for range 2 {
		if got := g.Do(t.Context(), capability.Call{Request: r}); got.Code != abi.OK {
			t.Fatal(got.Text)
		}
		if got := <-accepts; got != "text/csv" {
			t.Errorf("the server has got %q", got)
		}
		if g.Check(r) == nil {
			t.Error("a turn may set a header that the settings set")
		}
	}
}

// BenchmarkCheck measures a request that was checked before.
func BenchmarkCheck(b *testing.B) {
	g, err := New().Open(json.RawMessage(`{"allow": ["https://example.com/a/*"]}`))
	if err != nil {
		b.Fatal(err)
	}
	r := capability.Request{Head: []byte(`{"method":"GET","url":"https://example.com/a/b","headers":{"accept":"text/plain"}}`)}
	b.ReportAllocs()
	for b.Loop() {
		if err := g.Check(r); err != nil {
			b.Fatal(err)
		}
	}
}
