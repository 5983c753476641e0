package webhook_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/connector/webhook"
)

// deadlines tells a test which deadlines the router sets.
type deadlines struct {
	http.ResponseWriter
	set func(time.Time)
}

func (d deadlines) SetReadDeadline(at time.Time) error {
	d.set(at)
	return http.NewResponseController(d.ResponseWriter).SetReadDeadline(at)
}

// atEnd calls a function before it reports the end of a body.
type atEnd struct {
	io.ReadCloser
	do func()
}

func (b atEnd) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.do()
	}
	return n, err
}

// TestEndsAtEndOfBody ends a webhook when net/http has read the whole body, but the webhook
// does not know that yet: the deadline then ends the context of the connection.
func TestEndsAtEndOfBody(t *testing.T) {
	c := newChanging(t)
	end, wait := c.start(c.seen)
	first := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if !first {
			c.router.ServeHTTP(w, q)
			return
		}
		first = false
		passed := make(chan struct{})
		q.Body = atEnd{q.Body, func() {
			end()
			<-passed
		}}
		c.router.ServeHTTP(deadlines{w, func(at time.Time) {
			if at.Unix() == 1 {
				close(passed)
			}
		}}, q)
	}))
	defer server.Close()
	c.address = server.Listener.Addr().String()
	client := c.client()
	c.expect(client, "a", http.StatusServiceUnavailable)
	wait()
	_, wait = c.start(c.seen)
	defer wait()
	if a := c.expect(client, "b", http.StatusAccepted); a.reused {
		t.Error("the connection is used again")
	}
}

// TestNoDeadlineAfterBody ends a webhook when a body has arrived.
func TestNoDeadlineAfterBody(t *testing.T) {
	webhook.InterruptsAfterBody(deadlines{httptest.NewRecorder(), func(at time.Time) {
		t.Errorf("the deadline %v can end the context of the connection", at)
	}})
}

// TestLeavesDeadConnection sends requests on a connection whose context has ended for
// whatever reason: at most one of them fails.
func TestLeavesDeadConnection(t *testing.T) {
	c := newChanging(t)
	_, wait := c.start(c.seen)
	defer wait()
	server := httptest.NewUnstartedServer(c.router)
	cancels := make(chan context.CancelFunc, 2)
	server.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		ctx, cancel := context.WithCancel(ctx)
		cancels <- cancel
		return ctx
	}
	server.Start()
	defer server.Close()
	c.address = server.Listener.Addr().String()
	client := c.client()
	c.expect(client, "a", http.StatusAccepted)
	(<-cancels)()
	if a := c.expect(client, "b", http.StatusServiceUnavailable); !a.reused {
		t.Fatal("the connection was not kept, so that the test means nothing")
	}
	c.expect(client, "c", http.StatusAccepted)
	(<-cancels)()
}
