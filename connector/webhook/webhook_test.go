package webhook_test

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/connector"
	"github.com/seed47132306/terrarium/connector/connectortest"
	"github.com/seed47132306/terrarium/connector/webhook"
)

const secret = "0123456789abcdef-secret"

// hook is a running webhook, with an HTTP server in front of it.
type hook struct {
	t      *testing.T
	port   *connectortest.Port
	server *httptest.Server
	stop   func()
}

func newHook(t *testing.T, port *connectortest.Port, settings map[string]any) *hook {
	t.Helper()
	all := map[string]any{"path": "/hooks/orders", "secret": secret}
	for name, v := range settings {
		all[name] = v
	}
	data, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	router := webhook.NewRouter()
	c, err := webhook.New(router).Open(data)
	if err != nil {
		t.Fatal(err)
	}
	h := &hook{t: t, port: port, server: httptest.NewServer(router.Serving())}
	ctx, cancel := context.WithCancel(t.Context())
	ended, before := make(chan error, 1), port.Seen().Working // an earlier hook may have had the port
	go func() { ended <- c.Run(ctx, port) }()
	var once sync.Once
	h.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			h.server.Close()
		})
	}
	t.Cleanup(h.stop)
	if _, err := port.Wait(t.Context(), func(v connectortest.View) bool { return v.Working > before }); err != nil {
		t.Fatal(err)
	}
	return h
}

// post sends a request, and returns the status and the answer.
func (h *hook) post(body string, headers ...string) (int, string) {
	h.t.Helper()
	return h.send(http.MethodPost, "/hooks/orders", body, headers...)
}

func (h *hook) send(method, path, body string, headers ...string) (int, string) {
	h.t.Helper()
	q, err := http.NewRequestWithContext(h.t.Context(), method, h.server.URL+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		q.Header.Add(headers[i], headers[i+1])
	}
	r, err := h.server.Client().Do(q)
	if err != nil {
		h.t.Fatal(err)
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(r.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return r.StatusCode, string(answer)
}

func (h *hook) sent() []connector.Message { return h.port.Seen().Sent }

func sign(body, key string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// TestHostileRequests sends requests that must all be refused.
func TestHostileRequests(t *testing.T) {
	tokens := newHook(t, connectortest.NewPort(), map[string]any{"content_types": []string{"application/json"}, "max_body": 100})
	signed := newHook(t, connectortest.NewPort(), map[string]any{"auth": "hmac-sha256", "max_body": 100})
	token := "Bearer " + secret
	for _, c := range []struct {
		name    string
		h       *hook
		method  string
		path    string
		body    string
		status  int
		headers []string
	}{
		{"no secret", tokens, "POST", "", "{}", 401, nil},
		{"an empty secret", tokens, "POST", "", "{}", 401, []string{"Authorization", "Bearer "}},
		{"another secret", tokens, "POST", "", "{}", 401, []string{"Authorization", "Bearer " + secret[:len(secret)-1] + "x"}},
		{"the beginning of the secret", tokens, "POST", "", "{}", 401, []string{"Authorization", "Bearer " + secret[:len(secret)-1]}},
		{"more than the secret", tokens, "POST", "", "{}", 401, []string{"Authorization", token + "x"}},
		{"another scheme", tokens, "POST", "", "{}", 401, []string{"Authorization", "Basic " + secret}},
		{"the secret without a scheme", tokens, "POST", "", "{}", 401, []string{"Authorization", secret}},
		{"two secrets, one of them right", tokens, "POST", "", "{}", 401, []string{"Authorization", "Bearer x", "Authorization", token}},
		{"the secret in the URL", tokens, "POST", "/hooks/orders?secret=" + secret, "{}", 401, nil},
		{"another method", tokens, "GET", "", "", 405, []string{"Authorization", token}},
		{"a method that an intermediary may rewrite", tokens, "PUT", "", "{}", 405, []string{"Authorization", token, "X-Http-Method-Override", "POST"}},
		{"another path", tokens, "POST", "/hooks/other", "{}", 404, []string{"Authorization", token}},
		{"a path below", tokens, "POST", "/hooks/orders/", "{}", 404, []string{"Authorization", token}},
		{"no type", tokens, "POST", "", "{}", 415, []string{"Authorization", token}},
		{"another type", tokens, "POST", "", "{}", 415, []string{"Authorization", token, "Content-Type", "text/plain"}},
		{"a type that begins well", tokens, "POST", "", "{}", 415, []string{"Authorization", token, "Content-Type", "application/jsonx"}},
		{"a body that is too large", tokens, "POST", "", strings.Repeat("x", 101), 413, []string{"Authorization", token, "Content-Type", "application/json"}},
		{"a compressed body", tokens, "POST", "", "{}", 415, []string{"Authorization", token, "Content-Type", "application/json", "Content-Encoding", "gzip"}},
		{"an empty key", tokens, "POST", "", "{}", 400, []string{"Authorization", token, "Content-Type", "application/json", "Idempotency-Key", ""}},
		{"two keys", tokens, "POST", "", "{}", 400, []string{"Authorization", token, "Content-Type", "application/json", "Idempotency-Key", "a", "Idempotency-Key", "b"}},
		{"a long key", tokens, "POST", "", "{}", 400, []string{"Authorization", token, "Content-Type", "application/json", "Idempotency-Key", strings.Repeat("k", 257)}},
		{"no signature", signed, "POST", "", "{}", 401, nil},
		{"the secret in place of a signature", signed, "POST", "", "{}", 401, []string{"Authorization", token}},
		{"a signature of another body", signed, "POST", "", "{}", 401, []string{"X-Hub-Signature-256", "sha256=" + sign("{ }", secret)}},
		{"a signature with another key", signed, "POST", "", "{}", 401, []string{"X-Hub-Signature-256", "sha256=" + sign("{}", "x"+secret)}},
		{"a short signature", signed, "POST", "", "{}", 401, []string{"X-Hub-Signature-256", "sha256=" + sign("{}", secret)[:62]}},
		{"no signature in the header", signed, "POST", "", "{}", 401, []string{"X-Hub-Signature-256", "sha256="}},
		{"a signature that is no number", signed, "POST", "", "{}", 401, []string{"X-Hub-Signature-256", "sha256=zz"}},
		{"two signatures, one of them right", signed, "POST", "", "{}", 401, []string{"X-Hub-Signature-256", sign("{}", secret), "X-Hub-Signature-256", "00"}},
		{"a signed body that is too large", signed, "POST", "", strings.Repeat("x", 101), 413, []string{"X-Hub-Signature-256", sign(strings.Repeat("x", 101), secret)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := c.path
			if path == "" {
				path = "/hooks/orders"
			}
			status, answer := c.h.send(c.method, path, c.body, c.headers...)
			if status != c.status {
				t.Errorf("the status is %d, want %d:\n%s", status, c.status, answer)
			}
			if strings.Contains(answer, secret) || !strings.Contains(answer, `"remedy"`) {
				t.Errorf("the answer is\n%s", answer)
			}
			if sent := c.h.sent(); len(sent) > 0 {
				t.Errorf("the request got in: %+v", sent)
			}
		})
	}
}

// TestUnfinishedBody has a sender that leaves before its body is complete.
func TestUnfinishedBody(t *testing.T) {
	h := newHook(t, connectortest.NewPort(), nil)
	conn, err := net.Dial("tcp", h.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /hooks/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 10\r\n\r\nhalf", secret)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusRequestTimeout || len(h.sent()) > 0 {
		t.Errorf("the status is %d, and %d messages are sent", r.StatusCode, len(h.sent()))
	}
}

// A content type that no request can have is refused with the recipe.
func TestContentTypesAreChecked(t *testing.T) {
	for _, text := range []string{"application/json; charset=utf-8", "json", "", "a b/c", "application/json, text/plain"} {
		settings, err := json.Marshal(map[string]any{"path": "/hooks/a", "secret": secret, "content_types": []string{text}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := webhook.New(webhook.NewRouter()).Open(settings); abi.CodeOf(err) != abi.InvalidArgument || !strings.Contains(err.Error(), "content type") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAccepts(t *testing.T) {
	h := newHook(t, connectortest.NewPort(), map[string]any{"auth": "hmac-sha256", "headers": []string{"X-Event"}, "content_types": []string{"Application/JSON"}})
	status, answer := h.post(`{"n": 1}`, "X-Hub-Signature-256", "sha256="+sign(`{"n": 1}`, secret), "X-Event", "order\xff", "X-Other", "no", "Content-Type", "application/json; charset=utf-8")
	if status != http.StatusAccepted || answer != `{"accepted":true,"repeated":false}`+"\n" {
		t.Fatalf("the answer is %d %s", status, answer)
	}
	sent := h.sent()
	if len(sent) != 1 || string(sent[0].Payload) != `{"n": 1}` || len(sent[0].Headers) != 1 || sent[0].Headers["x-event"] != "order\uFFFD" {
		t.Errorf("the message is %+v", sent)
	}
}

// TestKeys repeats keys: in requests at the same time, after a refusal, after an unknown
// outcome, and after a restart.
func TestKeys(t *testing.T) {
	var fails atomic.Pointer[abi.Error]
	port := connectortest.NewPort()
	port.Refuse = func(connector.Message) error {
		if err := fails.Swap(nil); err != nil {
			return err
		}
		return nil
	}
	h := newHook(t, port, nil)
	post := func(key string) (int, string) {
		return h.post("x", "Authorization", "Bearer "+secret, "Idempotency-Key", key)
	}
	var all sync.WaitGroup
	var fresh atomic.Int64
	for range 20 {
		all.Go(func() {
			if status, answer := post("same"); status == http.StatusAccepted && strings.Contains(answer, `"repeated":false`) {
				fresh.Add(1)
			}
		})
	}
	all.Wait()
	if n := len(h.sent()); n != 1 || fresh.Load() != 1 {
		t.Errorf("20 requests with one key make %d messages, and %d are said to be new", n, fresh.Load())
	}
	for i, e := range []*abi.Error{
		{Code: abi.Denied, Message: "a policy denies it"}, {Code: abi.UnknownOutcome, Message: "the disk is full"}, {Code: abi.Unavailable, Message: "not now"},
	} {
		fails.Store(e)
		want := []int{http.StatusForbidden, http.StatusServiceUnavailable, http.StatusServiceUnavailable}[i]
		if status, answer := post(fmt.Sprint("key", i)); status != want {
			t.Errorf("%v gives %d %s", e, status, answer)
		}
		if status, answer := post(fmt.Sprint("key", i)); status != http.StatusAccepted || !strings.Contains(answer, `"repeated":false`) {
			t.Errorf("after %v, the request gives %d %s", e, status, answer)
		}
	}
	h.stop()
	h = newHook(t, port, nil)
	for _, key := range []string{"same", "key0", "key1", "key2"} {
		if status, answer := post(key); status != http.StatusAccepted || !strings.Contains(answer, `"repeated":true`) {
			t.Errorf("after a restart, %s gives %d %s", key, status, answer)
		}
	}
	if n := len(h.sent()); n != 4 {
		t.Errorf("there are %d messages, want 4", n)
	}
}

func TestBadSettings(t *testing.T) {
	for settings, want := range map[string]string{
		`{"path": "/api/v1/apply", "secret": "` + secret + `"}`:                             "path",
		`{"path": "/hooks/", "secret": "` + secret + `"}`:                                   "path",
		`{"path": "/hooks/../api", "secret": "` + secret + `"}`:                             "path",
		`{"path": "/hooks/a?b", "secret": "` + secret + `"}`:                                "path",
		`{"path": "/hooks/a", "secret": "short"}`:                                           "secret",
		`{"path": "/hooks/a", "secret": "` + secret + `", "max_body": 16000000}`:            "max_body",
		`{"path": "/hooks/a", "secret": "` + secret + `", "headers": ["Authorization"]}`:    "secrets",
		`{"path": "/hooks/a", "secret": "` + secret + `", "key_header": "a b"}`:             "header",
		`{"path": "/hooks/a", "secret": "` + secret + `", "signature_header": "a\r\nb: c"}`: "header",
	} {
		_, err := webhook.New(webhook.NewRouter()).Open(json.RawMessage(settings))
		if abi.CodeOf(err) != abi.InvalidArgument || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "short\"") {
			t.Errorf("%s: %v, want %q", settings, err, want)
		}
	}
}

// TestSamePath has two sources with one path.
func TestSamePath(t *testing.T) {
	router := webhook.NewRouter()
	c, err := webhook.New(router).Open(json.RawMessage(`{"path": "/hooks/a", "secret": "` + secret + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	router.Serving()
	ctx, cancel := context.WithCancel(t.Context())
	port, ended := connectortest.NewPort(), make(chan error, 1)
	go func() { ended <- c.Run(ctx, port) }()
	if _, err := port.Wait(t.Context(), func(v connectortest.View) bool { return v.Working > 0 }); err != nil {
		t.Fatal(err)
	}
	if err := c.Run(t.Context(), connectortest.NewPort()); abi.CodeOf(err) != abi.AlreadyExists {
		t.Errorf("the second source ends with %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestEndsDuringBody removes the webhook while a body has not arrived, and sends bodies
// that are not read because nothing shows that the sender knows the secret.
func TestEndsDuringBody(t *testing.T) {
	h := newHook(t, connectortest.NewPort(), map[string]any{"auth": "hmac-sha256"})
	slow := func(signature string) (net.Conn, func() string) {
		t.Helper()
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", h.server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := fmt.Fprintf(c, "POST /hooks/orders HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 100\r\n%s\r\n", signature); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(c)
		return c, func() string {
			line, err := lines.ReadString('\n')
			if err != nil {
				return err.Error()
			}
			return strings.TrimSpace(line)
		}
	}
	for _, signature := range []string{"", "X-Hub-Signature-256: sha256=12\r\n", "X-Hub-Signature-256: nothing\r\n"} {
		if _, line := slow(signature); !strings.Contains(line(), "401") {
			t.Errorf("a body is read with %q", signature)
		}
	}
	right := "X-Hub-Signature-256: " + sign("", "") + "\r\n"
	_, line := slow(right)
	if got := line(); !strings.Contains(got, "100") {
		t.Fatalf("a body that may have the right signature is answered with %s", got)
	}
	for range 15 {
		if _, next := slow(right); !strings.Contains(next(), "100") {
			t.Fatal("a body is not read")
		}
	}
	if _, next := slow(right); !strings.Contains(next(), "503") {
		t.Error("bodies whose signature is not known have no bound")
	}
	h.stop() // which would take 30 seconds
	for got := line(); !strings.Contains(got, "503"); got = line() {
		if got != "" {
			t.Fatalf("the end of the webhook is answered with %q", got)
		}
	}
}

// TestChannelIsGone sends to a channel that was removed: the source ends with an error,
// so that the status reports it.
func TestChannelIsGone(t *testing.T) {
	port := connectortest.NewPort()
	port.Refuse = func(connector.Message) error { return &abi.Error{Code: abi.NotFound, Message: "no channel"} }
	router := webhook.NewRouter()
	c, err := webhook.New(router).Open([]byte(`{"path": "/hooks/orders", "secret": "` + secret + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	router.Serving()
	ended := make(chan error, 1)
	go func() { ended <- c.Run(t.Context(), port) }()
	if _, err := port.Wait(t.Context(), func(v connectortest.View) bool { return v.Working > 0 }); err != nil {
		t.Fatal(err)
	}
	q := httptest.NewRequest(http.MethodPost, "/hooks/orders", strings.NewReader("x"))
	q.Header.Set("Authorization", "Bearer "+secret)
	answer := httptest.NewRecorder()
	router.ServeHTTP(answer, q)
	if err := <-ended; abi.CodeOf(err) != abi.NotFound || answer.Code != http.StatusServiceUnavailable {
		t.Errorf("the source ends with %v, and the answer is %d", err, answer.Code)
	}
}
