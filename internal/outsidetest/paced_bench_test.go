package outsidetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/capability/httpcap"
	"github.com/seed47132306/terrarium/engine/journal"
)

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

// clocked has the times of one request: when its message was sent, when the client got it,
// when the client had the response, and when the turn with the result had begun.
type clocked struct{ sent, out, back, done time.Time }

// total is the time from the message to the turn with its result.
func (c *clocked) total() time.Duration { return c.done.Sub(c.sent) }

// own is what of the total is not spent in the client: the engine's own share.
func (c *clocked) own() time.Duration { return c.out.Sub(c.sent) + c.done.Sub(c.back) }

// BenchmarkPacedRequests measures how long requests take while 5,000 begin in a second, and
// how much of that is the engine's own share. Figures are the median and the 99th percentile
// of
//
//	total  from the message that leads to a request to the turn that handles the result
//	own    of that, what is not spent in the client (Do of the grant)
//	out    from the message to the client: sending, the turn, its commit, and, with a store,
//	       until the request is durable
//	back   from the response to the turn that handles it
//
// The end is when a subscriber sees that turn begin, so own includes waking the subscriber,
// and all waiting for a processor, also for the server and the client, which are in the same
// process. The bare client of the standard library shows how much that is by itself: its
// requests go through a goroutine each, and their results through a channel, so its own share
// is two wakings of a goroutine.
func BenchmarkPacedRequests(b *testing.B) {
	for _, stored := range []bool{false, true} {
		b.Run(fmt.Sprintf("stored=%v", stored), func(b *testing.B) {
			server := httptest.NewServer(http.HandlerFunc(echo))
			defer server.Close()
			reportShares(b, engineRequests(b, stored, server.URL))
		})
	}
	b.Run("bare", func(b *testing.B) {
		server := httptest.NewServer(http.HandlerFunc(echo))
		defer server.Close()
		reportShares(b, bareRequests(b, server.URL))
	})
}

// stopwatch is the capability http, which notes when its requests begin and end. Their bodies
// are indexes of times.
type stopwatch struct {
	httpcap.Kind
	times []clocked
}

func (s *stopwatch) Open(settings json.RawMessage) (capability.Grant, error) {
	g, err := s.Kind.Open(settings)
	return watched{g, s}, err
}

// watched is a grant of a stopwatch.
type watched struct {
	capability.Grant
	s *stopwatch
}

func (w watched) Do(ctx context.Context, call capability.Call) capability.Result {
	i, err := strconv.Atoi(string(call.Body))
	if err != nil || i >= len(w.s.times) {
		return capability.Result{}
	}
	w.s.times[i].out = time.Now()
	r := w.Grant.Do(ctx, call)
	w.s.times[i].back = time.Now()
	return r
}

// Close closes the connections of the grant.
func (w watched) Close() error { return w.Grant.(io.Closer).Close() }

// engineRequests measures b.N requests of a creature.
func engineRequests(b *testing.B, stored bool, url string) []clocked {
	b.Helper()
	watch := &stopwatch{times: make([]clocked, b.N)}
	c := startCourier(b, stored, url, watch)
	events := c.watch(b, journal.EventResult, journal.EventTurnStarted)
	b.ResetTimer()
	failed := make(chan error, 1)
	go func() {
		var errs []error
		paced(b.N, func(i int) {
			watch.times[i].sent = time.Now()
			errs = append(errs, c.post(b.Context(), strconv.AppendInt(nil, int64(i), 10)))
		})
		failed <- errors.Join(errs...)
	}()
	results := map[journal.EventID]int{} // not handled yet
	for done := 0; done < b.N; {
		ob, err := events.Next(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		switch now := time.Now(); ob.Event.Kind {
		case journal.EventResult:
			i, err := strconv.Atoi(string(ob.Event.Payload))
			if err != nil || i >= b.N {
				b.Fatalf("the result is %q, %v", ob.Event.Payload, err)
			}
			results[ob.Event.ID] = i
		case journal.EventTurnStarted:
			if i, ok := results[ob.Event.Cause]; ok {
				delete(results, ob.Event.Cause)
				watch.times[i].done = now
				done++
			}
		case journal.EventLagged:
			b.Fatalf("the subscriber missed %d events", ob.Missed)
		}
	}
	if err := <-failed; err != nil {
		b.Fatal(err)
	}
	return watch.times
}

// bareRequests measures the same requests without an engine, as many at a time as a
// capability sends unless its recipe says more.
func bareRequests(b *testing.B, url string) []clocked {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: capability.DefaultConcurrency, MaxConnsPerHost: capability.DefaultConcurrency}}
	defer client.CloseIdleConnections()
	times, results, failed := make([]clocked, b.N), make(chan int, b.N), make(chan error, 1)
	b.ResetTimer()
	go func() {
		var all sync.WaitGroup
		errs := make([]error, b.N)
		paced(b.N, func(i int) {
			times[i].sent = time.Now()
			all.Go(func() {
				times[i].out = time.Now()
				errs[i] = postBare(client, url, i)
				times[i].back = time.Now()
				results <- i
			})
		})
		all.Wait()
		failed <- errors.Join(errs...)
	}()
	for range b.N {
		i := <-results
		times[i].done = time.Now()
	}
	if err := <-failed; err != nil {
		b.Fatal(err)
	}
	return times
}

func postBare(client *http.Client, url string, i int) error {
	r, err := client.Post(url, "", bytes.NewReader(strconv.AppendInt(nil, int64(i), 10)))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	_, err = io.Copy(io.Discard, r.Body)
	return err
}

func reportShares(b *testing.B, times []clocked) {
	b.Helper()
	took := make([]time.Duration, len(times))
	for name, of := range map[string]func(*clocked) time.Duration{
		"total": (*clocked).total, "own": (*clocked).own,
		"out": func(c *clocked) time.Duration { return c.out.Sub(c.sent) }, "back": func(c *clocked) time.Duration { return c.done.Sub(c.back) },
	} {
		for i := range times {
			took[i] = of(&times[i])
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, name+"-p50-ms")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, name+"-p99-ms")
	}
}
