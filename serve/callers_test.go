package serve

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/operations"
)

// Callers that together fill the server do not keep another one out: it gets places of the
// caller with the most, until it has as many.
func TestCrowdedServerSharesPlaces(t *testing.T) {
	for _, stream := range []bool{true, false} {
		c := callers{of: map[digest][]*underWay{}, bounds: boundsFor(maxConns)}
		admit := func(name string) (cancelled *error, leave func(), err error) {
			cancelled = new(error)
			leave, err = c.admit(digestOf(name), stream, func(cause error) { *cancelled = cause })
			return cancelled, leave, err
		}
		most := c.underWay
		if stream {
			most = c.streams
		}
		var of []*error
		var leaves []func()
		for i := range most {
			name := "one"
			if i >= c.requests {
				name = "two"
			}
			cancelled, leave, err := admit(name)
			if err != nil {
				t.Fatal(i, err)
			}
			of, leaves = append(of, cancelled), append(leaves, leave)
		}
		if _, _, err := admit("one"); err == nil {
			t.Fatal("the greediest caller gets another place")
		}
		_, leave, err := admit("three")
		if err != nil || !errors.Is(*of[c.requests-1], errCrowded) {
			t.Fatalf("a new caller: %v, %v", err, *of[c.requests-1])
		}
		leaves[c.requests-1]() // the cancelled request ends, and is not counted twice
		if c.all != most || len(c.of[digestOf("one")]) != c.requests-1 {
			t.Errorf("%d are under way, %d of the greediest", c.all, len(c.of[digestOf("one")]))
		}
		leave()
		for _, leave := range leaves {
			leave()
		}
		if c.all != 0 || c.open != 0 || len(c.of) != 0 {
			t.Errorf("in the end, %d are under way, %d streams, of %d callers", c.all, c.streams, len(c.of))
		}
	}
}

// A request ends when its cookie expires, and when its token is removed or gets other rights.
// A removed token cannot begin a request, even if it was valid a moment before.
func TestRequestsEndWithTheirCredentials(t *testing.T) {
	one, two := Token{Secret: "a-token-of-one-caller", Rights: operations.Rights{Scope: operations.Read}}, Token{Secret: "a-token-of-another-one", Rights: operations.Rights{Scope: operations.Read}}
	h := NewHandler(nil, Options{Tokens: []Token{one, two}})
	r := httptest.NewRequest(http.MethodGet, "/api/v1/events", nil)
	begin := func(c caller) context.Context {
		t.Helper()
		ctx, end, err := h.begin(r, c, true)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(end)
		return ctx
	}
	of := func(token Token) caller {
		c, err := h.bearer(token.Secret)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	now := time.Now()
	h.logins.now = func() time.Time { return now }
	cookie := h.logins.add(&h.logins.cookies, maxCookies, of(one), cookieTime)
	now = now.Add(cookieTime - time.Millisecond)
	browser, ok := h.logins.find(&h.logins.cookies, cookie, false)
	if !ok {
		t.Fatal("the cookie is not known")
	}
	ctx := begin(browser)
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, errLoggedOut) {
		t.Errorf("at the expiry of its cookie, a stream ends because of %v", cause)
	}

	first, second, known := begin(of(one)), begin(of(two)), of(one)
	code := h.logins.add(&h.logins.codes, maxCodes, known, codeTime)
	two.Rights.Scope = operations.Operate
	h.SetTokens([]Token{two})
	for _, ctx := range []context.Context{first, second} {
		if cause := context.Cause(ctx); !errors.Is(cause, errRevoked) {
			t.Errorf("after its token has changed, a stream ends because of %v", cause)
		}
	}
	if _, _, err := h.begin(r, known, true); !errors.Is(err, errRevoked) {
		t.Errorf("a removed token begins a stream: %v", err)
	}
	if _, err := h.bearer(one.Secret); err == nil {
		t.Error("a removed token is known")
	}
	if _, ok := h.logins.find(&h.logins.codes, code, true); ok {
		t.Error("a code of a removed token is valid")
	}
	if c := of(two); c.rights.Scope != operations.Operate {
		t.Errorf("the other token has the scope %v", c.rights.Scope)
	}
	h.SetTokens([]Token{one, two})
	if ctx := begin(of(one)); ctx.Err() != nil {
		t.Error("a token that was added again begins no stream")
	}
}

// A handler that panics answers with the code internal, and the log has the panic at the level
// error.
func TestPanicsAreLogged(t *testing.T) {
	var log strings.Builder
	h := NewHandler(nil, Options{Tokens: []Token{{Secret: "a-token-of-one-caller", Rights: operations.Rights{Scope: operations.Admin}}}, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))})
	r := httptest.NewRequest(http.MethodPost, "http://localhost/api/v1/status", strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer a-token-of-one-caller")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r) // there is no terrarium
	body, err := io.ReadAll(w.Result().Body)
	if w.Code != http.StatusInternalServerError || !strings.Contains(string(body), `"code":"internal"`) || err != nil {
		t.Errorf("the answer is %d %s, %v", w.Code, body, err)
	}
	if !strings.Contains(log.String(), "nil pointer") || !strings.Contains(log.String(), "/api/v1/status") {
		t.Errorf("the log has %q", log.String())
	}
}

// Turns are measured once metrics have been read, and no longer when nothing reads them.
func TestTurnsAreMeasuredWhileMetricsAreRead(t *testing.T) {
	tr, err := terrarium.New(t.Context(), terrarium.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := NewHandler(tr, Options{})
	now := time.Now()
	var mu sync.Mutex
	h.turns.now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	do := func(op, args string) {
		t.Helper()
		if _, err := operations.Do(t.Context(), tr, op, json.RawMessage(args)); err != nil {
			t.Fatal(err)
		}
	}
	do("add_creature", `{"name": "a", "module": "builtin:echo"}`)
	do("wait_idle", "{}")
	counts := func() string {
		return strings.Join(regexp.MustCompile(`(?m)^\S+_count \d+$`).FindAllString(string(h.turns.text(t.Context())), -1), " ")
	}
	if got := counts(); got != "terrarium_turn_duration_seconds_count 0 terrarium_delivery_latency_seconds_count 0" {
		t.Error("before anything was measured:", got)
	}
	const want = "terrarium_turn_duration_seconds_count 3 terrarium_delivery_latency_seconds_count 3"
	for range 3 {
		do("send_to", `{"creature": "a", "payload": "x"}`)
	}
	do("wait_idle", "{}")
	for got := ""; got != want; got = counts() {
		if t.Context().Err() != nil {
			t.Fatal(got)
		}
		runtime.Gosched()
	}
	if text := string(h.turns.text(t.Context())); !strings.Contains(text, `terrarium_turn_duration_seconds_bucket{le="+Inf"} 3`) || !strings.Contains(text, "# TYPE terrarium_turn_duration_seconds histogram") {
		t.Error(text)
	}
	mu.Lock()
	now = now.Add(measuredFor + time.Second)
	mu.Unlock()
	do("send_to", `{"creature": "a", "payload": "x"}`)
	h.turns.measuring.Wait()
	if got := counts(); got != want {
		t.Error("after nothing had read the metrics:", got)
	}
	h.End()
	h.End()
	h.turns.text(t.Context()) // measures nothing
	if err := tr.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A process that may have few files open accepts fewer connections, and leaves half of the
// files to its stores. There are always connections for new callers.
func TestBoundsFollowOpenFiles(t *testing.T) {
	for files, want := range map[int64]bounds{
		-1:      {2000, 1800, 1100, 1000},
		1 << 20: {2000, 1800, 1100, 1000},
		1024:    {512, 460, 281, 256},
		128:     {64, 57, 35, 32},
		10:      {20, 18, 11, 10},
	} {
		got := boundsFor(connsFor(files))
		if got != want {
			t.Errorf("with %d files, the bounds are %+v, want %+v", files, got, want)
		}
		if got.streams > got.underWay || got.underWay >= got.conns {
			t.Errorf("with %d files, the bounds %+v leave no connection for a new caller", files, got)
		}
	}
}
