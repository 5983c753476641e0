package webhook_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/connector"
	"github.com/seed47132306/terrarium/connector/connectortest"
	"github.com/seed47132306/terrarium/connector/webhook"
)

// TestDeclaredPaths sends requests to paths that are declared, but whose webhooks do not run.
func TestDeclaredPaths(t *testing.T) {
	c := newChanging(t)
	client := c.client()
	c.expect(client, "undeclared", http.StatusNotFound)
	c.router.Declare("a", []connector.Connector{c.source})
	a := c.expect(client, "declared", http.StatusServiceUnavailable)
	if !strings.Contains(a.text, `"remedy"`) || a.retry == "" {
		t.Errorf("the answer is %+v", a)
	}
	_, wait := c.start(c.seen)
	c.expect(client, "running", http.StatusAccepted)
	wait()
	c.expect(client, "changing", http.StatusServiceUnavailable)
	c.router.Declare("b", []connector.Connector{c.source})
	c.router.Declare("a", nil)
	c.expect(client, "moved", http.StatusServiceUnavailable)
	c.router.Declare("b", []connector.Connector{})
	c.expect(client, "removed", http.StatusNotFound)
}

// TestNotReady sends a request before it is known which paths are declared.
func TestNotReady(t *testing.T) {
	w := httptest.NewRecorder()
	webhook.NotReady(w, httptest.NewRequest(http.MethodPost, "/hooks/orders", strings.NewReader("x")))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("the answer is %d %v %s", w.Code, w.Header(), w.Body)
	}
}

// TestAnswersNameNothing has messages that are not taken for reasons of the session, which
// senders should not learn.
func TestAnswersNameNothing(t *testing.T) {
	for code, want := range map[abi.Code]abi.Code{
		abi.NotFound: abi.Unavailable, abi.Unavailable: abi.Unavailable, abi.Storage: abi.Unavailable, abi.UnknownOutcome: abi.UnknownOutcome,
	} {
		port := connectortest.NewPort()
		port.Refuse = func(connector.Message) error {
			return &abi.Error{Code: code, Op: "send", Message: "the channel c-12345 is gone", Remedy: "call topology"}
		}
		c := newChanging(t)
		c.seen = port
		_, wait := c.start(port)
		a := c.expect(c.client(), "x", http.StatusServiceUnavailable)
		var got struct{ Code, Detail, Remedy string }
		if err := json.Unmarshal([]byte(a.text), &got); err != nil {
			t.Fatal(err)
		}
		if got.Code != want.String() || strings.Contains(a.text, "c-12345") || got.Remedy != "send the request again, with the same key" || a.retry == "" {
			t.Errorf("%v: the answer is %+v", code, a)
		}
		if code != abi.NotFound { // which ends the webhook with an error
			wait()
		}
	}
}

// TestUnknownWhileEnding ends a webhook when a message is taken, and does not become durable.
func TestUnknownWhileEnding(t *testing.T) {
	c := newChanging(t)
	c.router.Impatient()
	late := &slow{Port: c.seen, sending: make(chan struct{}), release: make(chan struct{})}
	end, wait := c.start(late)
	go func() {
		<-late.sending
		end()
	}()
	if a := c.expect(c.client(), "a", http.StatusServiceUnavailable); !strings.Contains(a.text, "unknown_outcome") {
		t.Errorf("the answer is %+v", a)
	}
	wait()
}

// TestMalformedBody sends bodies that are not valid.
func TestMalformedBody(t *testing.T) {
	c := newChanging(t)
	_, wait := c.start(c.seen)
	defer wait()
	for body, want := range map[string]int{
		"5\r\nhello\r\n0\r\n\r\n":        http.StatusAccepted,
		"zz\r\nhello\r\n0\r\n\r\n":       http.StatusBadRequest,
		"5\r\nhello, world\r\n0\r\n\r\n": http.StatusBadRequest,
		"fffffffffffffffff\r\nhello\r\n": http.StatusBadRequest,
		"5\r\nhel":                       http.StatusRequestTimeout,
	} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", c.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "POST /hooks/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nTransfer-Encoding: chunked\r\n\r\n%s", secret, body); err != nil {
			t.Fatal(err)
		}
		if want == http.StatusRequestTimeout {
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
		}
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if r.StatusCode != want || err != nil || r.Close != (want != http.StatusAccepted) {
			t.Errorf("%q: the answer is %d %s, and the connection ends: %v; %v", body, r.StatusCode, text, r.Close, err)
		}
	}
}
