package outsidetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
)

// echo is a server that answers with what it gets.
func echo(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }

// courier is an engine with a creature that posts every message to a server.
type courier struct {
	t     *terrarium.Terrarium
	tasks journal.ChannelID
	sub   *engine.Subscription
}

// startCourier begins a session, on disk if stored is set, and posts to a server.
func startCourier(b *testing.B, stored bool, url string) *courier {
	b.Helper()
	o := terrarium.Options{}
	if stored {
		o.Dir = b.TempDir()
	}
	t, err := terrarium.New(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = t.Close(context.Background()) })
	applied, err := t.Apply(b.Context(), "testdata/courier.hcl", terrarium.RecipeOptions{Vars: map[string]string{"url": url}})
	if err != nil {
		b.Fatal(err)
	}
	sub := t.Subscribe(engine.Filter{Kinds: []journal.EventKind{journal.EventResult}}, 1<<16)
	b.Cleanup(sub.Close)
	return &courier{t, applied.Channels["channel.tasks"], sub}
}

func (c *courier) post(ctx context.Context, payload []byte) error {
	_, err := c.t.Send(ctx, c.tasks, terrarium.Outgoing{Payload: payload})
	return err
}

// outstanding is how many requests wait for their result at the same time, which the limit
// requests bounds.
const outstanding = 256

// BenchmarkRequests measures whole requests: a message, a turn that requests, the request to
// a server of this process, and the turn with the result, in a session on disk.
func BenchmarkRequests(b *testing.B) {
	for _, stored := range []bool{false, true} {
		b.Run(fmt.Sprintf("stored=%v", stored), func(b *testing.B) {
			server := httptest.NewServer(http.HandlerFunc(echo))
			defer server.Close()
			c := startCourier(b, stored, server.URL)
			b.ResetTimer()
			room := make(chan struct{}, outstanding)
			go func() {
				for range b.N {
					room <- struct{}{}
					if c.post(b.Context(), []byte("x")) != nil {
						return
					}
				}
			}()
			for range b.N {
				if _, err := c.sub.Next(b.Context()); err != nil {
					b.Fatal(err)
				}
				<-room
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}

// pace is how many requests begin in a second.
const pace = 5000

// paced begins n requests at the pace, and never waits for one.
func paced(n int, begin func(i int)) {
	next := time.Now()
	for i := range n {
		time.Sleep(time.Until(next))
		begin(i)
		next = next.Add(time.Second / pace)
	}
}

// BenchmarkPacedRequests measures how long requests take while 5,000 begin in a second: from
// the message that leads to a request until its result is in the log. Beside it are the same
// requests by the bare client of the standard library: the difference is the share of the
// engine.
func BenchmarkPacedRequests(b *testing.B) {
	for _, stored := range []bool{false, true} {
		b.Run(fmt.Sprintf("stored=%v", stored), func(b *testing.B) {
			server := httptest.NewServer(http.HandlerFunc(echo))
			defer server.Close()
			reportQuantiles(b, startCourier(b, stored, server.URL).paced(b))
		})
	}
	b.Run("bare", func(b *testing.B) {
		server := httptest.NewServer(http.HandlerFunc(echo))
		defer server.Close()
		reportQuantiles(b, bare(b, server.URL))
	})
}

// paced measures b.N requests.
func (c *courier) paced(b *testing.B) []time.Duration {
	b.Helper()
	begun, took := make([]time.Time, b.N), make([]time.Duration, b.N)
	failed := make(chan error, b.N)
	b.ResetTimer()
	go func() {
		paced(b.N, func(i int) {
			begun[i] = time.Now()
			if err := c.post(b.Context(), strconv.AppendInt(nil, int64(i), 10)); err != nil {
				failed <- err
			}
		})
		close(failed)
	}()
	for range b.N {
		ob, err := c.sub.Next(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		i, err := strconv.Atoi(string(ob.Event.Payload))
		if err != nil || i >= b.N {
			b.Fatalf("the result is %q, %v", ob.Event.Payload, err)
		}
		took[i] = time.Since(begun[i])
	}
	for err := range failed {
		b.Fatal(err)
	}
	return took
}

// bare measures the same requests without an engine, as many at a time as a capability sends
// unless its recipe says more.
func bare(b *testing.B, url string) []time.Duration {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: capability.DefaultConcurrency, MaxConnsPerHost: capability.DefaultConcurrency}}
	defer client.CloseIdleConnections()
	took, errs := make([]time.Duration, b.N), make(chan error, 2*b.N)
	var all sync.WaitGroup
	b.ResetTimer()
	paced(b.N, func(i int) {
		begun := time.Now()
		all.Go(func() {
			r, err := client.Post(url, "", bytes.NewReader(strconv.AppendInt(nil, int64(i), 10)))
			if err != nil {
				errs <- err
				return
			}
			defer r.Body.Close()
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				errs <- err
			}
			took[i] = time.Since(begun)
		})
	})
	all.Wait()
	close(errs)
	for err := range errs {
		b.Fatal(err)
	}
	return took
}

func reportQuantiles(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
