package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/histogram"
)

const (
	buffer     = 1 << 16 // events that wait for the exporter
	batch      = 512     // spans of one request
	batchTime  = time.Second
	waiting    = 16 // batches that wait for the collector
	refresh    = time.Second
	firstPause = 250 * time.Millisecond // before a request is repeated
	maxPause   = 5 * time.Second
	maxAnswer  = 64 << 10
)

// Exporter sends spans and counters until it is closed.
type Exporter struct {
	t       *terrarium.Terrarium
	o       Options
	client  *http.Client
	started time.Time
	stop    context.CancelFunc   // ends what waits for the collector
	sub     *engine.Subscription // for spans; nil without them
	ended   *engine.Subscription // for the histograms of turns; nil without counters
	done    sync.WaitGroup
	ending  chan struct{} // closed by Close
	once    sync.Once
	lost    atomic.Int64 // spans that were left out

	mu    sync.Mutex // guards turns
	turns histogram.Turns

	names   map[journal.CreatureID]string // belongs to the goroutine of follow
	namedAt time.Time
}

// Start begins to send. The caller closes the exporter before the terrarium.
func Start(ctx context.Context, t *terrarium.Terrarium, o Options) *Exporter {
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Interval <= 0 {
		o.Interval = time.Minute
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second, ForceAttemptHTTP2: true}
	if usual, ok := http.DefaultTransport.(*http.Transport); ok { // the program may have replaced it
		transport = usual.Clone()
	}
	x := &Exporter{
		t: t, o: o, started: time.Now(), stop: stop, ending: make(chan struct{}), names: map[journal.CreatureID]string{},
		client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	if o.Traces != "" {
		x.sub = t.Subscribe(engine.Filter{Kinds: kinds}, buffer)
		batches := make(chan []span, waiting)
		x.done.Go(func() { x.follow(ctx, batches) })
		x.done.Go(func() { x.sendSpans(ctx, batches) })
	}
	if o.Metrics != "" {
		x.ended = t.Subscribe(engine.Filter{Kinds: []journal.EventKind{journal.EventTurnEnded, journal.EventTurnFailed}}, buffer)
		measured := make(chan struct{})
		x.done.Go(func() {
			defer close(measured)
			x.measure(ctx)
		})
		x.done.Go(func() { x.sendCounters(ctx, measured) })
	}
	return x
}

// Lost returns how many spans were left out because the collector was slow or could not be
// reached.
func (x *Exporter) Lost() int64 { return x.lost.Load() }

// Close sends what is left, at most until ctx ends, and stops. It returns the error of ctx
// if something could not be sent in time.
func (x *Exporter) Close(ctx context.Context) error {
	x.once.Do(func() {
		close(x.ending)
		for _, sub := range []*engine.Subscription{x.sub, x.ended} {
			if sub != nil {
				sub.Close()
			}
		}
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		x.done.Wait()
	}()
	var err error
	select {
	case <-ended:
	case <-ctx.Done():
		err = context.Cause(ctx)
		x.stop()
		<-ended
	}
	x.stop()
	x.client.CloseIdleConnections()
	return err
}

// follow makes spans of events, and batches of spans.
func (x *Exporter) follow(ctx context.Context, batches chan<- []span) {
	defer close(batches)
	tracer := newTracer(x.nameOf)
	var spans []span
	var due time.Time // of the batch
	flush := func() {
		if len(spans) == 0 {
			return
		}
		select {
		case batches <- spans:
		default: // the collector is too slow
			x.flushLast(ctx, batches, spans)
		}
		spans = nil
	}
	for {
		next, cancel := ctx, context.CancelFunc(func() {})
		if len(spans) > 0 {
			next, cancel = context.WithDeadline(ctx, due)
		}
		ob, err := x.sub.Next(next)
		cancel()
		switch {
		case err == nil:
		case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			flush()
			continue
		default: // it is closed
			flush()
			return
		}
		if ob.Event.Kind == journal.EventLagged {
			x.o.Log.Warn("spans are missing: the exporter was slower than the turns")
			continue
		}
		if s, ok := tracer.take(&ob); ok {
			if len(spans) == 0 {
				due = time.Now().Add(batchTime)
			}
			spans = append(spans, s)
		}
		if len(spans) >= batch || len(spans) > 0 && time.Now().After(due) {
			flush()
		}
	}
}

// flushLast passes on spans at the end, as soon as there is room. Before the end, spans are
// left out if there is no room, so that no turn waits.
func (x *Exporter) flushLast(ctx context.Context, batches chan<- []span, spans []span) {
	select {
	case <-x.ending:
	default:
		x.lose(len(spans))
		return
	}
	select {
	case batches <- spans:
	case <-ctx.Done():
		x.lose(len(spans))
	}
}

// nameOf returns the name of a creature, which a merge may have changed a moment ago.
func (x *Exporter) nameOf(id journal.CreatureID) string {
	if name, ok := x.names[id]; ok && time.Since(x.namedAt) < 10*refresh {
		return name
	}
	if time.Since(x.namedAt) >= refresh {
		if graphs, err := x.t.Status(""); err == nil {
			clear(x.names)
			for i := range graphs {
				for k := range graphs[i].Creatures {
					x.names[graphs[i].Creatures[k].ID] = graphs[i].Creatures[k].Name
				}
			}
		}
		x.namedAt = time.Now()
	}
	if name, ok := x.names[id]; ok {
		return name
	}
	return string(id)
}

func (x *Exporter) lose(n int) {
	if x.lost.Add(int64(n)) == int64(n) { // the first time; later ones are counted
		x.o.Log.Warn("spans are left out: the collector is slow or cannot be reached", "url", redacted(x.o.Traces))
	}
}

// sendSpans sends batches.
func (x *Exporter) sendSpans(ctx context.Context, batches <-chan []span) {
	for spans := range batches {
		body, err := spansBody(resourceOf(x.o.Resource), by, spans)
		if err == nil {
			err = x.post(ctx, x.o.Traces, body)
		}
		if err != nil {
			x.o.Log.Warn("spans cannot be sent", "error", err, "spans", len(spans))
			x.lose(len(spans))
		}
	}
}

// measure adds turns to the histograms until its subscription is closed. Turns of a gap are
// missing there; the counters have them.
func (x *Exporter) measure(ctx context.Context) {
	for {
		ob, err := x.ended.Next(ctx)
		if err != nil {
			return
		}
		x.mu.Lock()
		x.turns.Add(ob.Took, ob.Waited)
		x.mu.Unlock()
	}
}

// sendCounters sends the counters and histograms from time to time, and at the end, when all
// turns have been measured.
func (x *Exporter) sendCounters(ctx context.Context, measured <-chan struct{}) {
	every := time.NewTicker(x.o.Interval)
	defer every.Stop()
	for last := false; !last; {
		select {
		case <-every.C:
		case <-x.ending:
			last = true
			<-measured
		}
		figures, err := x.t.Metrics()
		if err != nil {
			continue // it is being closed
		}
		x.mu.Lock()
		turns := x.turns
		x.mu.Unlock()
		body, err := metricsBody(resourceOf(x.o.Resource), by, figures, &turns, x.started.UnixNano(), time.Now().UnixNano())
		if err == nil {
			err = x.post(ctx, x.o.Metrics, body)
		}
		if err != nil {
			x.o.Log.Warn("counters cannot be sent", "error", err)
		}
	}
}

var by = scope{Name: "github.com/seed47132306/terrarium", Version: terrarium.Version}

// post sends a body. It tries again while the collector asks for that or cannot be
// reached, as the OTLP specification requires.
func (x *Exporter) post(ctx context.Context, url string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, x.o.Timeout)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		wait, err := x.try(ctx, url, body)
		if err == nil || wait < 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-x.ending: // a collector that cannot be reached must not delay the end
			return err
		case <-time.After(max(wait, pause)):
		}
	}
}

// try sends a body once. If it can be repeated, wait is 0 or more: the time for which the
// collector asks.
func (x *Exporter) try(ctx context.Context, url string, body []byte) (wait time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	for name, value := range x.o.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := x.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer)) // so that the connection can be used again
	switch answer.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return 0, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		return time.Duration(min(max(seconds, 0), 60)) * time.Second, fmt.Errorf("the collector answers %s", answer.Status)
	}
	return -1, fmt.Errorf("the collector answers %s", answer.Status)
}
