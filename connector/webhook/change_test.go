package webhook_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed47132306/terrarium/connector"
	"github.com/seed47132306/terrarium/connector/connectortest"
	"github.com/seed47132306/terrarium/connector/webhook"
)

// changing is a webhook that ends and starts again behind a server that continues.
type changing struct {
	t       *testing.T
	router  *webhook.Router
	source  connector.Connector
	address string
	seen    *connectortest.Port
}

func newChanging(t *testing.T) *changing {
	t.Helper()
	c := &changing{t: t, router: webhook.NewRouter(), seen: connectortest.NewPort()}
	data, err := json.Marshal(map[string]any{"path": "/hooks/orders", "secret": secret})
	if err != nil {
		t.Fatal(err)
	}
	if c.source, err = webhook.New(c.router).Open(data); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(c.router.Serving())
	t.Cleanup(server.Close)
	c.address = server.Listener.Addr().String()
	return c
}

// start runs the webhook with a port in front of the one that sees its messages. begin ends
// it, and wait waits until it has ended.
func (c *changing) start(port connector.Port) (begin, wait func()) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	ended, before := make(chan error, 1), c.seen.Seen().Working
	go func() { ended <- c.source.Run(ctx, port) }()
	if _, err := c.seen.Wait(c.t.Context(), func(v connectortest.View) bool { return v.Working > before }); err != nil {
		c.t.Fatal(err)
	}
	return cancel, func() {
		cancel()
		if err := <-ended; err != nil {
			c.t.Error(err)
		}
	}
}

// answer is what a sender learns.
type answer struct {
	status int
	text   string
	retry  string // the header Retry-After
	reused bool   // the connection had been used before
}

// post sends a request.
func (c *changing) post(client *http.Client, method, body string) (a answer, err error) {
	trace := &httptrace.ClientTrace{GotConn: func(g httptrace.GotConnInfo) { a.reused = g.Reused }}
	q, err := http.NewRequestWithContext(httptrace.WithClientTrace(c.t.Context(), trace), method, "http://"+c.address+"/hooks/orders", strings.NewReader(body))
	if err != nil {
		return a, err
	}
	q.Header.Set("Authorization", "Bearer "+secret)
	r, err := client.Do(q)
	if err != nil {
		return a, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	a.status, a.text, a.retry = r.StatusCode, string(text), r.Header.Get("Retry-After")
	return a, err
}

// expect sends a request, and compares the status of the answer.
func (c *changing) expect(client *http.Client, body string, status int) answer {
	c.t.Helper()
	a, err := c.post(client, http.MethodPost, body)
	if err != nil || a.status != status {
		c.t.Fatalf("%q is answered with %+v, %v; want %d", body, a, err, status)
	}
	return a
}

// client returns a client with connections of its own.
func (c *changing) client() *http.Client {
	client := &http.Client{Transport: &http.Transport{}}
	c.t.Cleanup(client.CloseIdleConnections)
	return client
}

// slow is a port that holds messages back.
type slow struct {
	*connectortest.Port
	sending chan struct{} // Send has begun
	release chan struct{} // nil: Send waits for the end of its context
}

func (p *slow) Send(ctx context.Context, m connector.Message) (connector.Receipt, error) {
	if p.release == nil {
		p.sending <- struct{}{}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	r, err := p.Port.Send(ctx, m)
	return held{r, p}, err
}

// held is the receipt of a message that is not durable yet.
type held struct {
	connector.Receipt
	p *slow
}

func (r held) Wait(ctx context.Context) error {
	r.p.sending <- struct{}{}
	select {
	case <-r.p.release:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// TestKeepsConnection changes a webhook while a request waits to be taken. The sender sends
// the next requests on the same connection.
func TestKeepsConnection(t *testing.T) {
	c := newChanging(t)
	client := c.client()
	_, wait := c.start(c.seen)
	c.expect(client, "first", http.StatusAccepted)
	wait()
	for range 50 {
		blocked := &slow{Port: c.seen, sending: make(chan struct{})}
		end, wait := c.start(blocked)
		go func() {
			<-blocked.sending
			end()
		}()
		c.expect(client, "a", http.StatusServiceUnavailable)
		wait()
		_, wait = c.start(c.seen)
		for _, body := range []string{"b", "", "c"} {
			if a := c.expect(client, body, http.StatusAccepted); !a.reused {
				t.Fatal("the connection was not kept")
			}
		}
		wait()
	}
	if n := len(c.seen.Seen().Sent); n != 151 {
		t.Errorf("%d messages have arrived, want 151", n)
	}
}

// TestTakenWhileEnding ends a webhook when a message is taken, but not durable yet.
func TestTakenWhileEnding(t *testing.T) {
	c := newChanging(t)
	late := &slow{Port: c.seen, sending: make(chan struct{}), release: make(chan struct{})}
	end, wait := c.start(late)
	client, other := c.client(), c.client()
	go func() {
		defer close(late.release)
		<-late.sending
		end()
		for status := http.StatusMethodNotAllowed; status == http.StatusMethodNotAllowed; { // until the webhook has left
			a, err := c.post(other, http.MethodGet, "")
			if status = a.status; err != nil {
				t.Error(err)
			}
		}
	}()
	c.expect(client, "a", http.StatusAccepted)
	wait()
}

// TestEndCutsBody ends a webhook while a body arrives. The connection cannot be used again,
// and the sender learns that.
func TestEndCutsBody(t *testing.T) {
	c := newChanging(t)
	_, wait := c.start(c.seen)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", c.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "POST /hooks/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n", secret); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(conn)
	if r, err := http.ReadResponse(lines, nil); err != nil || r.StatusCode != http.StatusContinue {
		t.Fatalf("the body is not read: %v, %v", r, err)
	}
	if _, err := conn.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	wait()
	r, err := http.ReadResponse(lines, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		t.Fatal(err)
	}
	if r.StatusCode != http.StatusServiceUnavailable || !r.Close {
		t.Errorf("the answer is %d, and says that the connection ends: %v", r.StatusCode, r.Close)
	}
	if b, err := lines.ReadByte(); err == nil {
		t.Errorf("the connection continues with %q", b)
	}
}

// TestChangesUnderLoad changes a webhook again and again while senders keep their
// connections. An answer of 503 means that the message was not taken, and all are served
// after the last change.
func TestChangesUnderLoad(t *testing.T) {
	c := newChanging(t)
	_, wait := c.start(c.seen)
	var senders sync.WaitGroup
	var answered atomic.Int64
	progress, over := make(chan struct{}, 1), make(chan struct{})
	var mu sync.Mutex
	outcomes := map[string]int{}
	clients := make([]*http.Client, 8)
	for i := range clients {
		clients[i] = c.client()
		senders.Go(func() {
			for n := 0; ; n++ {
				body := fmt.Sprint(i, "-", n, strings.Repeat(" ", n%3*20_000))
				a, err := c.post(clients[i], http.MethodPost, body)
				if err == nil { // else the body was cut, and the sender did not read the answer
					mu.Lock()
					outcomes[body] = a.status
					mu.Unlock()
				}
				answered.Add(1)
				select {
				case progress <- struct{}{}:
				case <-over:
					return
				default:
				}
			}
		})
	}
	for range 40 {
		for want := answered.Load() + 10; answered.Load() < want; {
			<-progress
		}
		wait()
		_, wait = c.start(c.seen)
	}
	close(over)
	senders.Wait()
	for i, client := range clients {
		c.expect(client, fmt.Sprint("last ", i), http.StatusAccepted)
	}
	wait()
	taken := map[string]bool{}
	for _, payload := range c.seen.Seen().Payloads() {
		taken[payload] = true
	}
	for body, status := range outcomes {
		if taken[body] != (status == http.StatusAccepted) {
			t.Errorf("%.20q is answered with %d, and taken: %v", body, status, taken[body])
		}
	}
}
