//go:build unix

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
	"github.com/seed47132306/terrarium/internal/gcpace"
)

// paces are how many requests begin in a second: at low ones nothing queues, and the last is the
// goal.
var paces = []int{500, 1000, 2500, 5000}

// paced begins n requests at the pace, and never waits for one.
func paced(n, pace int, begin func(i int)) {
	next := time.Now()
	for i := range n {
		time.Sleep(time.Until(next))
		begin(i)
		next = next.Add(time.Second / time.Duration(pace))
	}
}

// clocked has the times of one request: when its message was sent, when the client got it,
// when the client had the response, and when the turn with the result had begun.
type clocked struct{ sent, out, back, done time.Time }

// total is the time from the message to the turn with its result.
func (c *clocked) total() time.Duration { return c.done.Sub(c.sent) }

// own is what of the total is not spent in the client: the engine's own share.
func (c *clocked) own() time.Duration { return c.out.Sub(c.sent) + c.done.Sub(c.back) }

// BenchmarkPacedRequests measures how long requests take while so many begin in a second, and how
// much of that is the engine's own share. Figures are the median and the 99th percentile of
//
//	total   from the message that leads to a request to the turn that handles the result
//	own     of that, what is not spent in the client (Do of the grant)
//	out     from the message to the client: sending, the turn, its commit, and, with a store,
//	        until the request is written
//	back    from the response to the turn that handles it
//	beside  own of a bare client, which makes one more request for every ten at the same moments
//
// The end is when a subscriber sees that turn begin, so own includes waking the subscriber, and
// all waiting for a processor, also for the server and the client, which are in the same process,
// and for other processes. A request of the bare client takes the same way without an engine: a
// goroutine gets the message, another one makes the request, the first one gets its result, and a
// third one counts it. So its own share is four wakings of a goroutine: where that is long, the
// machine was not free, and own says little about the engine. The processor time of a request
// (cpu-us/request), with that of the server, does not depend on this.
//
// Garbage is collected as in the program terrarium, or as GOGC says. The requests of the first
// second are not measured: connections are made then, and the collector finds its pace.
func BenchmarkPacedRequests(b *testing.B) {
	defer gcpace.Start(64 << 20)()
	for _, pace := range paces {
		for _, stored := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/stored=%v", pace, stored), func(b *testing.B) {
				server := httptest.NewServer(http.HandlerFunc(echo))
				defer server.Close()
				engineRequests(b, pace, stored, server.URL)
			})
		}
		b.Run(fmt.Sprintf("%d/bare", pace), func(b *testing.B) {
			server := httptest.NewServer(http.HandlerFunc(echo))
			defer server.Close()
			client := newBare(server.URL, pace+b.N)
			var cpu time.Duration
			paced(pace+b.N, pace, func(i int) {
				if i == pace {
					cpu = startPaced(b)
				}
				client.begin(i)
			})
			times := client.end(b)
			reportCPU(b, cpu)
			reportShares(b, times[pace:])
		})
	}
}

// startPaced begins the measurement, and returns the processor time until then.
func startPaced(b *testing.B) time.Duration {
	b.Helper()
	b.ReportAllocs()
	b.ResetTimer()
	return processorTime(b)
}

func reportCPU(b *testing.B, before time.Duration) {
	b.Helper()
	b.StopTimer()
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-us/request")
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

// besideEvery is how many requests of the engine there are for one of the bare client.
const besideEvery = 10

// engineRequests measures b.N requests of a creature, after those of the first second.
func engineRequests(b *testing.B, pace int, stored bool, url string) {
	b.Helper()
	n := pace + b.N
	watch := &stopwatch{times: make([]clocked, n)}
	c := startCourier(b, stored, url, watch)
	events := c.watch(b, journal.EventResult, journal.EventTurnStarted)
	beside := newBare(url, (n+besideEvery-1)/besideEvery)
	var cpu time.Duration
	failed := make(chan error, 1)
	go func() {
		var errs []error
		paced(n, pace, func(i int) {
			if i == pace {
				cpu = startPaced(b)
			}
			if i%besideEvery == 0 {
				beside.begin(i / besideEvery)
			}
			watch.times[i].sent = time.Now()
			errs = append(errs, c.post(b.Context(), strconv.AppendInt(nil, int64(i), 10)))
		})
		failed <- errors.Join(errs...)
	}()
	results := map[journal.EventID]int{} // not handled yet
	for done := 0; done < n; {
		ob, err := events.Next(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		switch now := time.Now(); ob.Event.Kind {
		case journal.EventResult:
			i, err := strconv.Atoi(string(ob.Event.Payload))
			if err != nil || i >= n {
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
	reportCPU(b, cpu)
	reportShares(b, watch.times[pace:])
	reportPercentiles(b, "beside", beside.end(b)[pace/besideEvery:], (*clocked).own)
}

// bare makes the same requests without an engine, as many at a time as a capability sends unless
// its recipe says more.
type bare struct {
	url    string
	client *http.Client
	times  []clocked
	errs   []error
	inbox  chan note // of the goroutine in the place of the creature
	told   chan int  // requests whose results it has handled
	all    sync.WaitGroup
}

// note tells that a request is to be made, or that it has a result.
type note struct {
	request int
	result  bool
}

// newBare returns a client for n requests.
func newBare(url string, n int) *bare {
	c := &bare{url: url, times: make([]clocked, n), errs: make([]error, n), inbox: make(chan note, 2*n), told: make(chan int, n)}
	c.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: capability.DefaultConcurrency, MaxConnsPerHost: capability.DefaultConcurrency}}
	c.all.Go(func() {
		for range 2 * n {
			if got := <-c.inbox; got.result {
				c.told <- got.request
			} else {
				c.all.Go(func() { c.make(got.request) })
			}
		}
	})
	c.all.Go(func() {
		for range n {
			i := <-c.told
			c.times[i].done = time.Now()
		}
	})
	return c
}

// begin begins a request, each once.
func (c *bare) begin(i int) {
	c.times[i].sent = time.Now()
	c.inbox <- note{request: i}
}

func (c *bare) make(i int) {
	c.times[i].out = time.Now()
	c.errs[i] = c.post(i)
	c.times[i].back = time.Now()
	c.inbox <- note{i, true}
}

// end waits for all of them.
func (c *bare) end(b *testing.B) []clocked {
	b.Helper()
	c.all.Wait()
	c.client.CloseIdleConnections()
	if err := errors.Join(c.errs...); err != nil {
		b.Fatal(err)
	}
	return c.times
}

func (c *bare) post(i int) error {
	r, err := c.client.Post(c.url, "", bytes.NewReader(strconv.AppendInt(nil, int64(i), 10)))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	_, err = io.Copy(io.Discard, r.Body)
	return err
}

func reportShares(b *testing.B, times []clocked) {
	b.Helper()
	reportPercentiles(b, "total", times, (*clocked).total)
	reportPercentiles(b, "own", times, (*clocked).own)
	reportPercentiles(b, "out", times, func(c *clocked) time.Duration { return c.out.Sub(c.sent) })
	reportPercentiles(b, "back", times, func(c *clocked) time.Duration { return c.done.Sub(c.back) })
}

func reportPercentiles(b *testing.B, name string, times []clocked, of func(*clocked) time.Duration) {
	b.Helper()
	took := make([]time.Duration, len(times))
	for i := range times {
		took[i] = of(&times[i])
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, name+"-p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, name+"-p99-ms")
}
