package outsidetest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

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
}

// watch shows events of the courier until the end of the benchmark.
func (c *courier) watch(b *testing.B, kinds ...journal.EventKind) *engine.Subscription {
	b.Helper()
	sub := c.t.Subscribe(engine.Filter{Kinds: kinds}, 1<<16)
	b.Cleanup(sub.Close)
	return sub
}

// startCourier begins a session, on disk if stored is set, and posts to a server. Kinds of
// capabilities replace those of the same name.
func startCourier(b *testing.B, stored bool, url string, kinds ...capability.Kind) *courier {
	b.Helper()
	o := terrarium.Options{Capabilities: kinds}
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
	return &courier{t, applied.Channels["channel.tasks"]}
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
			results := c.watch(b, journal.EventResult)
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
				if _, err := results.Next(b.Context()); err != nil {
					b.Fatal(err)
				}
				<-room
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}
