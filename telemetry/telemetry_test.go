package telemetry

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collector is a server that keeps what it receives, and answers as a test says.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	answers []int // of the next requests; then 200
	spans   []span
	metrics map[string]metric
	headers http.Header
	got     chan struct{} // after each request that was accepted
}

func collect(t *testing.T, answers ...int) *collector {
	c := &collector{answers: answers, metrics: map[string]metric{}, got: make(chan struct{}, 1000)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.answers) > 0 {
			code := c.answers[0]
			c.answers = c.answers[1:]
			w.WriteHeader(code)
			return
		}
		body, err := io.ReadAll(r.Body)
		var got struct {
			ResourceSpans []struct {
				Resource   resource
				ScopeSpans []struct{ Spans []span }
			}
			ResourceMetrics []struct{ ScopeMetrics []struct{ Metrics []metric } }
		}
		if err != nil || json.Unmarshal(body, &got) != nil || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s got %s: %v", r.URL.Path, body, err)
		}
		c.headers = r.Header
		for _, group := range got.ResourceSpans {
			if group.Resource.Attributes[0].Key != "service.name" || *group.Resource.Attributes[0].Value.Text != "pond" {
				t.Errorf("the resource is %+v", group.Resource)
			}
			for _, list := range group.ScopeSpans {
				c.spans = append(c.spans, list.Spans...)
			}
		}
		for _, group := range got.ResourceMetrics {
			for _, list := range group.ScopeMetrics {
				for _, m := range list.Metrics {
					c.metrics[m.Name] = m
				}
			}
		}
		c.got <- struct{}{}
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) options(t *testing.T) Options {
	t.Helper()
	o, err := FromEnvironment([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_SERVICE_NAME=pond", "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20frog"})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// find returns the span of the only turn of a creature.
func (c *collector) find(t *testing.T, name string) span {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []span
	for _, s := range c.spans {
		if *s.Attributes[0].Value.Text == name {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d spans", name, len(found))
	}
	return found[0]
}

const chain = `
channel "one" {}
channel "two" {}
channel "three" {}
creature "ann" {
  module = "builtin:relay"
  listen = [channel.one]
  send   = [channel.two]
}
creature "bob" {
  module = "builtin:tally"
  listen = [channel.two]
  send   = [channel.three]
  config = { key = "line", every = 1 }
}
`

func open(t *testing.T, dir string) (*terrarium.Terrarium, *terrarium.Applied) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "chain.hcl")
	if err := os.WriteFile(path, []byte(chain), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := terrarium.New(t.Context(), terrarium.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	applied, err := r.Apply(t.Context(), path, terrarium.RecipeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.WaitIdle(t.Context()); err != nil { // their starts
		t.Fatal(err)
	}
	return r, applied
}

func finish(t *testing.T, x *Exporter, r *terrarium.Terrarium) {
	t.Helper()
	if err := x.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The turns that handle a message and what it causes are one trace, with a store and
// without one. If the message names the caller's trace, they belong to that.
func TestTrace(t *testing.T) {
	for name, dir := range map[string]string{"volatile": "", "saved": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			c := collect(t)
			r, applied := open(t, dir)
			x := Start(t.Context(), r, c.options(t))
			const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
			_, err := r.Send(t.Context(), applied.Channels["channel.one"], terrarium.Outgoing{Payload: []byte("frog"), Headers: map[string]string{"traceparent": caller}})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.WaitIdle(t.Context()); err != nil {
				t.Fatal(err)
			}
			finish(t, x, r)
			ann, bob := c.find(t, "ann"), c.find(t, "bob")
			if ann.TraceID != "0af7651916cd43dd8448eb211c80319c" || ann.ParentSpanID != "b7ad6b7169203331" {
				t.Errorf("the first span is in the trace %s under %s", ann.TraceID, ann.ParentSpanID)
			}
			if bob.TraceID != ann.TraceID || bob.ParentSpanID != ann.SpanID {
				t.Errorf("the second span is in the trace %s under %s", bob.TraceID, bob.ParentSpanID)
			}
			for _, s := range []span{ann, bob} {
				if s.Start <= 0 || s.End <= s.Start || s.Kind != kindConsumer || s.Status != nil || !strings.HasPrefix(s.Name, "message ") {
					t.Errorf("the span is %+v", s)
				}
			}
			if got := c.headers.Get("Authorization"); got != "Bearer frog" {
				t.Errorf("the header is %q", got)
			}
			turns := c.metrics["terrarium_turns_total"]
			if turns.Sum == nil || len(turns.Sum.Points) != 2 || turns.Sum.Points[0].Value < 1 || !turns.Sum.Monotonic {
				t.Errorf("the counters are %+v", c.metrics)
			}
			for _, name := range []string{"terrarium_turn_duration_seconds", "terrarium_delivery_latency_seconds"} {
				m := c.metrics[name]
				if m.Buckets == nil || m.Unit != "s" || m.Buckets.Temporality != cumulative || len(m.Buckets.Points) != 1 {
					t.Errorf("%s is %+v", name, m)
					continue
				}
				p := m.Buckets.Points[0]
				if p.Count != 2 || p.Sum <= 0 || p.Start <= 0 || p.Time <= p.Start || len(p.Counts) != len(p.Bounds)+1 || strings.Count(strings.Join(p.Counts, ""), "0") < len(p.Counts)-2 {
					t.Errorf("%s has %+v, want two turns", name, p)
				}
			}
		})
	}
}

// If a metric has too many series, the rest of them is added up.
func TestManySeries(t *testing.T) {
	var figures []terrarium.Metric
	for i := range maxSeries + 20 {
		figures = append(figures, terrarium.Metric{Name: "a", Counter: true, Value: 1, Labels: map[string]string{"creature": strconv.Itoa(i)}})
	}
	list := points(figures, 5, 9)
	if len(list) != maxSeries+1 || list[maxSeries].Value != 20 || list[maxSeries].Attributes != nil || list[0].Start != 5 || *list[7].Attributes[0].Value.Text != "7" {
		t.Errorf("%d points, the last is %+v", len(list), list[len(list)-1])
	}
}

// A turn that fails has a span with an error.
func TestFailedTurn(t *testing.T) {
	ids := journal.EventID{Seq: 7}
	tracer := newTracer(func(journal.CreatureID) string { return "ann" })
	s, ok := tracer.take(&engine.Observed{Took: 20, Event: journal.Event{
		ID: journal.EventID{Seq: 8}, Kind: journal.EventTurnFailed, Creature: "c1", Cause: ids, Time: 30, Payload: []byte(`{"kind":"message","code":"trapped","error":"x"}`),
	}})
	if !ok || s.Status == nil || s.Status.Code != statusError || s.Status.Message != "trapped" || s.Start != 10 || s.End != 30 {
		t.Errorf("%+v", s)
	}
	if s.TraceID != traceOf(ids) || s.ParentSpanID != "" || len(s.TraceID) != 32 || len(s.SpanID) != 16 {
		t.Errorf("%+v", s)
	}
}

// A collector that is unavailable for a moment gets the spans later.
func TestCollectorComesBack(t *testing.T) {
	c := collect(t, 503, 429, 503)
	o := c.options(t)
	o.Metrics = ""
	r, applied := open(t, "")
	x := Start(t.Context(), r, o)
	if _, err := r.Send(t.Context(), applied.Channels["channel.one"], terrarium.Outgoing{Payload: []byte("frog")}); err != nil {
		t.Fatal(err)
	}
	<-c.got
	finish(t, x, r)
	if c.find(t, "bob").Name != "message bob" || x.Lost() != 0 {
		t.Errorf("%d spans are lost", x.Lost())
	}
}

// A collector that never answers delays neither turns nor closing, and lost spans are
// counted. After a refusal there is no other attempt.
func TestCollectorIsAway(t *testing.T) {
	hang := make(chan struct{})
	asked := make(chan struct{}, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-hang
	}))
	defer server.Close()
	defer close(hang)
	r, applied := open(t, "")
	x := Start(t.Context(), r, Options{Traces: server.URL, Timeout: time.Hour})
	for i := range 3 * batch {
		if _, err := r.Send(t.Context(), applied.Channels["channel.one"], terrarium.Outgoing{Payload: []byte{byte('a' + i%3)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := x.Close(ctx); err == nil {
		t.Error("nothing was left to send")
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if x.Lost() == 0 {
		t.Error("no span is lost")
	}

	c := collect(t, slices.Repeat([]int{403}, 100)...)
	r, applied = open(t, "")
	x = Start(t.Context(), r, c.options(t))
	if _, err := r.Send(t.Context(), applied.Channels["channel.one"], terrarium.Outgoing{Payload: []byte("frog")}); err != nil {
		t.Fatal(err)
	}
	if err := r.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	finish(t, x, r)
	if n := x.Lost(); n < 2 {
		t.Errorf("%d spans are lost", n)
	}
}

// At the end, more spans than fit into the queue reach a collector that answers late.
func TestCloseSendsAll(t *testing.T) {
	x := &Exporter{ending: make(chan struct{}), o: Options{Log: slog.New(slog.DiscardHandler)}}
	batches := make(chan []span, 1)
	x.flushLast(t.Context(), batches, make([]span, 2))
	if x.Lost() != 2 || len(batches) != 0 {
		t.Errorf("while turns run, %d spans are lost", x.Lost())
	}
	close(x.ending)
	batches <- nil
	done := make(chan struct{})
	go func() {
		defer close(done)
		x.flushLast(t.Context(), batches, make([]span, 3))
	}()
	<-batches
	if got := <-batches; len(got) != 3 || x.Lost() != 2 {
		t.Errorf("%d spans get through, and %d are lost", len(got), x.Lost())
	}
	<-done
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	batches <- nil
	if x.flushLast(ctx, batches, make([]span, 4)); x.Lost() != 6 {
		t.Errorf("once the time is over, %d spans are lost", x.Lost())
	}
}

// The program may have replaced the default transport of HTTP clients.
func TestReplacedTransport(t *testing.T) {
	usual := http.DefaultTransport
	defer func() { http.DefaultTransport = usual }()
	http.DefaultTransport = struct{ http.RoundTripper }{usual}
	c := collect(t)
	r, _ := open(t, "")
	finish(t, Start(t.Context(), r, c.options(t)), r)
	if len(c.metrics) == 0 {
		t.Error("no counters were sent")
	}
}

// A password in the collector's address is in neither the log nor an error.
func TestPasswordOfCollector(t *testing.T) {
	var log strings.Builder
	x := &Exporter{o: Options{Traces: "http://frog:secret@h:4318/v1/traces", Log: slog.New(slog.NewTextHandler(&log, nil))}}
	if x.lose(1); !strings.Contains(log.String(), "h:4318") || strings.Contains(log.String(), "secret") {
		t.Errorf("the log is %s", &log)
	}
	for _, address := range []string{"ftp://frog:secret@h", "frog:secret@h", "//frog:secret@", "http://frog:secret@h:port", "http://frog:secret@h:%zz"} {
		_, err := FromEnvironment([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + address})
		if abi.CodeOf(err) != abi.InvalidArgument || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestFromEnvironment(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT=http://h:4318/x/"
	for _, c := range []struct {
		env  []string
		want Options
	}{
		{nil, Options{}},
		{[]string{endpoint}, Options{Traces: "http://h:4318/x/v1/traces", Metrics: "http://h:4318/x/v1/metrics"}},
		{[]string{endpoint, "OTEL_SDK_DISABLED=True"}, Options{}},
		{[]string{endpoint, "OTEL_METRICS_EXPORTER=none", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://i/t"}, Options{Traces: "https://i/t"}},
	} {
		o, err := FromEnvironment(c.env)
		if err != nil || o.Traces != c.want.Traces || o.Metrics != c.want.Metrics || o.Enabled() != (c.want.Traces+c.want.Metrics != "") {
			t.Errorf("%v: %+v, %v", c.env, o, err)
		}
	}
	o, err := FromEnvironment([]string{endpoint, "OTEL_EXPORTER_OTLP_TIMEOUT=1500", "OTEL_METRIC_EXPORT_INTERVAL=250", "OTEL_RESOURCE_ATTRIBUTES= host.name = a%2Cb , service.name=x", "OTEL_SERVICE_NAME=y"})
	if err != nil || o.Timeout != 1500*time.Millisecond || o.Interval != 250*time.Millisecond || o.Resource["host.name"] != "a,b" || o.Resource["service.name"] != "y" {
		t.Errorf("%+v, %v", o, err)
	}
	for _, bad := range []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=h:4318", "OTEL_EXPORTER_OTLP_ENDPOINT=ftp://h", "OTEL_EXPORTER_OTLP_HEADERS=secret", "OTEL_EXPORTER_OTLP_HEADERS=a=%zz",
		"OTEL_EXPORTER_OTLP_TIMEOUT=soon", "OTEL_EXPORTER_OTLP_TIMEOUT=0", "OTEL_METRIC_EXPORT_INTERVAL=-1", "OTEL_TRACES_EXPORTER=jaeger",
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_RESOURCE_ATTRIBUTES=x",
	} {
		name, _, _ := strings.Cut(bad, "=")
		_, err := FromEnvironment([]string{endpoint, bad})
		if abi.CodeOf(err) != abi.InvalidArgument || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func FuzzTraceParent(f *testing.F) {
	for _, s := range []string{"", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x", "00-00000000000000000000000000000000-b7ad6b7169203331-01"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		headers, ok := journal.EncodeHeaders(map[string]string{"traceparent": s})
		if !ok {
			return
		}
		p, ok := traceParent(headers)
		if ok && (len(p.trace) != 32 || len(p.span) != 16 || zeros(string(p.trace)) || zeros(string(p.span)) || !strings.Contains(s, string(p.trace)+"-"+string(p.span))) {
			t.Errorf("%q is read as %+v", s, p)
		}
	})
}
