package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/internal/fresh"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/serve"
)

// The tokens of tests.
const (
	readToken    = "token-that-may-read"
	operateToken = "token-that-may-operate"
	adminToken   = "token-that-may-do-all"
)

// world is a server with a terrarium.
type world struct {
	t    testing.TB
	tr   *terrarium.Terrarium
	h    *serve.Handler
	addr string
	c    *http.Client
}

// start starts a server, which ends with the test.
func start(t testing.TB, o serve.Options) *world {
	t.Helper()
	tr, err := terrarium.New(context.Background(), terrarium.Options{Scratch: true, FreshInstances: fresh.Instances()})
	if err != nil {
		t.Fatal(err)
	}
	if o.Tokens == nil {
		o.Tokens = []serve.Token{{Secret: readToken, Rights: operations.Rights{Scope: operations.Read}}, {Secret: operateToken, Rights: operations.Rights{Scope: operations.Operate}}, {Secret: adminToken, Rights: operations.Rights{Scope: operations.Admin}}}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, tr: tr, h: serve.NewHandler(tr, o), addr: listener.Addr().String(), c: &http.Client{Transport: &http.Transport{}}}
	w.c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- w.h.Serve(ctx, listener, nil) }()
	t.Cleanup(func() {
		w.c.CloseIdleConnections()
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := tr.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// request sends a request. Its headers are pairs of a name and a value.
func (w *world) request(method, path, body string, headers ...string) *http.Response {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, "http://"+w.addr+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := w.c.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer
}

// do runs an operation with a token, and returns the status and the answer.
func (w *world) do(token, operation, args string) (int, string) {
	w.t.Helper()
	r := w.request("POST", "/api/v1/"+operation, args, "Content-Type", "application/json", "Authorization", "Bearer "+token)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

// must runs an operation that succeeds.
func (w *world) must(operation, args string) string {
	w.t.Helper()
	status, text := w.do(adminToken, operation, args)
	if status != http.StatusOK {
		w.t.Fatalf("%s: %d %s", operation, status, text)
	}
	return text
}

// populate adds a creature that listens to a channel.
func (w *world) populate() {
	w.t.Helper()
	w.must("add_creature", `{"name":"a","module":"builtin:echo"}`)
	w.must("add_channel", `{"graph":"a","name":"lines"}`)
	w.must("set_listen", `{"creature":"a","channel":"lines","on":true}`)
}

// streamed is an event of a stream.
type streamed struct{ id, event, data string }

// stream reads events, and calls f with each until it returns false.
func (w *world) stream(token, query string, f func(streamed) bool) {
	w.t.Helper()
	r := w.request("GET", "/api/v1/events"+query, "", "Authorization", "Bearer "+token)
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(r.Body)
		w.t.Fatalf("%d %s", r.StatusCode, text)
	}
	var ev streamed
	lines := bufio.NewScanner(r.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			ev.id = value
		case "event":
			ev.event = value
		case "data":
			ev.data = value
		case "":
			if ev.data != "" && !f(ev) {
				return
			}
			ev = streamed{}
		}
	}
	w.t.Fatalf("the stream ended: %v", lines.Err())
}

func TestOperationsOverHTTP(t *testing.T) {
	w := start(t, serve.Options{})
	w.populate()
	w.must("send", `{"channel":"lines","payload":"hello"}`)
	if idle := w.must("wait_idle", ``); !strings.Contains(idle, `"idle":true`) {
		t.Error(idle)
	}
	status, text := w.do(adminToken, "send", `{"channel":"line","payload":""}`)
	var p serve.Problem
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	if status != http.StatusNotFound || p.Status != status || p.Code != "not_found" || p.Remedy == "" || p.Type != "urn:terrarium:error:not_found" {
		t.Errorf("%d %s", status, text)
	}
	for path, allowed := range map[string]string{"/api/v1/status": http.MethodPost, "/logout": http.MethodPost, "/api/v1/nothing": ""} {
		r := w.request("GET", path, "", "Authorization", "Bearer "+adminToken)
		r.Body.Close()
		if r.Header.Get("Allow") != allowed || (r.StatusCode == http.StatusMethodNotAllowed) != (allowed != "") {
			t.Errorf("GET %s: %d, Allow: %q", path, r.StatusCode, r.Header.Get("Allow"))
		}
	}
}

// Contents are not shown to a caller with the scope read, neither by operations nor in the
// stream.
func TestReadersSeeNoContents(t *testing.T) {
	w := start(t, serve.Options{})
	w.populate()
	w.must("send", `{"channel":"lines","payload":"confidential","headers":{"k":"confidential"},"durable":true}`)
	if _, text := w.do(adminToken, "history", `{"graph":"a"}`); !strings.Contains(text, "confidential") {
		t.Fatal(text)
	}
	if status, text := w.do(readToken, "history", `{"graph":"a"}`); status != http.StatusOK || strings.Contains(text, "confidential") {
		t.Error(text)
	}
	w.must("add_creature", `{"name":"picky","module":"builtin:split","config":{"to":["confidential"]},"restart":{"mode":"never"}}`)
	w.must("send_to", `{"creature":"picky","payload":"confidential"}`)
	w.must("wait_idle", ``)
	for _, kind := range []string{"turn_ended", "turn_failed", "log", "dead_letter", "direct_message"} {
		query := `{"graph":"picky","kinds":["` + kind + `"]}`
		if status, text := w.do(readToken, "history", query); status != http.StatusOK || strings.Contains(text, "config") || strings.Contains(text, "last_words") {
			t.Error(text)
		}
	}
	if _, text := w.do(readToken, "dead_letters", `{"graph":"picky"}`); !strings.Contains(text, `"reason"`) || strings.Contains(text, `"payload":"confidential"`) {
		t.Error(text)
	}
	for token, shown := range map[string]bool{readToken: false, operateToken: true} {
		query := "?after=start&kinds=channel_message"
		if shown {
			query += "&payload=1"
		}
		w.stream(token, query, func(ev streamed) bool {
			if ev.event != "channel_message" || ev.id == "" || strings.Contains(ev.data, "confidential") != shown {
				t.Errorf("%+v", ev)
			}
			return false
		})
	}
	r := w.request("GET", "/api/v1/events?payload=1", "", "Authorization", "Bearer "+readToken)
	r.Body.Close()
	if r.StatusCode != http.StatusForbidden {
		t.Error(r.StatusCode)
	}
	for _, operation := range []string{"send", "state", "search", "apply", "add_creature", "batch"} {
		if status, text := w.do(readToken, operation, `{}`); status != http.StatusForbidden {
			t.Errorf("%s: %s", operation, text)
		}
	}
}

// A reader that connects again with the id of the last event gets every later one once.
func TestStreamContinuesAfterItsCursor(t *testing.T) {
	w := start(t, serve.Options{})
	w.populate()
	const total = 60
	for range total {
		w.must("send", `{"channel":"lines","payload":"x","durable":true}`)
	}
	last, seen := "start", 0
	for seen < total {
		n := 0
		w.stream(readToken, "?kinds=channel_message&after="+last, func(ev streamed) bool {
			var r operations.EventRecord
			if err := json.Unmarshal([]byte(ev.data), &r); err != nil {
				t.Fatal(err)
			}
			seen, n, last = seen+1, n+1, ev.id
			if r.ChannelSeq != uint64(seen) && r.Seq != uint64(seen) {
				t.Fatalf("%s is number %d", ev.data, seen)
			}
			return n < 7 && seen < total
		})
	}
}

// A one-time link works once.
func TestLogin(t *testing.T) {
	w := start(t, serve.Options{})
	link := "/login?code=" + w.h.LoginCode(operations.Rights{Scope: operations.Read})
	preview := w.request("HEAD", link, "")
	preview.Body.Close()
	if preview.StatusCode != http.StatusMethodNotAllowed || preview.Header.Get("Allow") != http.MethodGet {
		t.Error(preview.StatusCode, preview.Header)
	}
	r := w.request("GET", link, "")
	r.Body.Close()
	cookies := r.Cookies()
	if r.StatusCode != http.StatusSeeOther || len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode {
		t.Fatalf("%d %v", r.StatusCode, cookies)
	}
	cookie := cookies[0].Name + "=" + cookies[0].Value
	again := w.request("GET", link, "")
	again.Body.Close()
	if again.StatusCode != http.StatusUnauthorized {
		t.Error(again.StatusCode)
	}
	status := func() int {
		r := w.request("POST", "/api/v1/status", "{}", "Content-Type", "application/json", "Cookie", cookie)
		r.Body.Close()
		return r.StatusCode
	}
	if s := status(); s != http.StatusOK {
		t.Error(s)
	}
	r = w.request("POST", "/logout", "", "Cookie", cookie)
	r.Body.Close()
	if s := status(); s != http.StatusUnauthorized {
		t.Error(s)
	}
}

func TestPage(t *testing.T) {
	w := start(t, serve.Options{})
	for path, status := range map[string]int{"/": 200, "/index.html": 200, "/app.js": 200, "/app.css": 200, "/nothing": 404, "/healthz": 200, "/readyz": 200, "/api/v1/openapi.json": 200} {
		r := w.request("GET", path, "")
		r.Body.Close()
		if r.StatusCode != status {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
		if csp := r.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %s", path, csp)
		}
	}
}

// numberOf is the number of a message in its channel.
func numberOf(t *testing.T, data string) uint64 {
	t.Helper()
	var r operations.EventRecord
	if err := json.Unmarshal([]byte(data), &r); err != nil {
		t.Fatal(err)
	}
	return r.ChannelSeq
}

// timed is a connection that notes whether each part of an answer has a deadline.
type timed struct {
	*httptest.ResponseRecorder
	due   bool
	parts int
	fault string
}

func (w *timed) SetWriteDeadline(at time.Time) error {
	w.due = !at.IsZero()
	return nil
}

func (w *timed) Write(p []byte) (int, error) {
	if w.parts++; !w.due || len(p) > 64<<10 {
		w.fault = fmt.Sprintf("part %d of %d bytes has a deadline: %t", w.parts, len(p), w.due)
	}
	w.due = false // the next part needs another one
	return w.ResponseRecorder.Write(p)
}

// Answers have a deadline for each part, and lists over the network have bounds.
func TestAnswersAreBounded(t *testing.T) {
	w := start(t, serve.Options{})
	w.populate()
	w.must("send", `{"channel":"lines","payload":"`+strings.Repeat("x", 300_000)+`","durable":true}`)
	r := httptest.NewRequest("POST", "http://localhost/api/v1/history", strings.NewReader(`{"graph":"a"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+adminToken)
	answer := &timed{ResponseRecorder: httptest.NewRecorder()}
	w.h.ServeHTTP(answer, r)
	if answer.Code != http.StatusOK || answer.parts < 4 || answer.fault != "" {
		t.Errorf("%d in %d parts: %s", answer.Code, answer.parts, answer.fault)
	}
	for _, operation := range []string{"history", "dead_letters"} {
		if status, text := w.do(adminToken, operation, `{"graph":"a","limit":10001}`); status != http.StatusTooManyRequests {
			t.Errorf("%s: %d %s", operation, status, text)
		}
	}
}

// The codes, cookies and requests of one token do not use up those of others, and logging out
// ends the streams of a cookie.
func TestCallersShare(t *testing.T) {
	w := start(t, serve.Options{})
	w.populate()
	code := w.h.LoginCode(operations.Rights{Scope: operations.Read})
	for range 30 {
		r := w.request("POST", "/api/v1/login-code", "", "Authorization", "Bearer "+readToken)
		r.Body.Close()
	}
	r := w.request("GET", "/login?code="+code, "")
	r.Body.Close()
	if r.StatusCode != http.StatusSeeOther {
		t.Fatal(r.StatusCode)
	}
	cookie := r.Cookies()[0].Name + "=" + r.Cookies()[0].Value
	stream := w.request("GET", "/api/v1/events", "", "Cookie", cookie)
	defer stream.Body.Close()
	r = w.request("POST", "/logout", "", "Cookie", cookie)
	r.Body.Close()
	if _, err := io.Copy(io.Discard, stream.Body); err != nil { // it ends
		t.Error(err)
	}
	defer w.subscribers(0, 1000)()
	r = w.request("GET", "/api/v1/events", "", "Authorization", "Bearer "+readToken)
	r.Body.Close()
	if r.StatusCode != http.StatusTooManyRequests {
		t.Error(r.StatusCode)
	}
	if status, text := w.do(readToken, "status", "{}"); status != http.StatusTooManyRequests {
		t.Errorf("%d %s", status, text)
	}
	r = w.request("GET", "/api/v1/events", "", "Authorization", "Bearer "+operateToken)
	r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Error(r.StatusCode)
	}
	r = w.request("GET", "/api/v1/events?buffer=4097", "", "Authorization", "Bearer "+operateToken)
	r.Body.Close()
	if r.StatusCode != http.StatusTooManyRequests {
		t.Error(r.StatusCode)
	}
}

// A link logs a browser in at the address of the page; without one, there is only a code.
func TestLoginLink(t *testing.T) {
	for _, address := range []string{"", "https://pond.example:7480"} {
		w := start(t, serve.Options{Address: address})
		r := w.request("POST", "/api/v1/login-code", "", "Authorization", "Bearer "+readToken)
		var answer struct{ Code, Link string }
		err := json.NewDecoder(r.Body).Decode(&answer)
		r.Body.Close()
		want := ""
		if address != "" {
			want = address + "/login?code=" + answer.Code
		}
		if err != nil || answer.Code == "" || answer.Link != want {
			t.Errorf("%q: the answer %+v, %v", address, answer, err)
		}
		if link := w.h.LoginLink(operations.Rights{Scope: operations.Read}); (link == "") != (address == "") || !strings.HasPrefix(link, address) {
			t.Errorf("%q: the link %q", address, link)
		}
	}
}
