package serve

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/histogram"
)

// measuredFor is how long turns are measured after the metrics were read. A turn that is
// measured costs more, so they are not measured while nothing reads them.
const measuredFor = 5 * time.Minute

// writeHistogram appends a histogram in the text format of Prometheus.
func writeHistogram(b *bytes.Buffer, h *histogram.Histogram, name, help string) {
	fmt.Fprintf(b, "# HELP %s %s, while metrics are read.\n# TYPE %s histogram\n", name, help, name)
	total := uint64(0)
	for i, n := range h.Counts {
		total += n
		le := "+Inf"
		if i < len(histogram.Bounds) {
			le = strconv.FormatFloat(histogram.Bounds[i], 'g', -1, 64)
		}
		fmt.Fprintf(b, "%s_bucket{le=%q} %d\n", name, le, total)
	}
	fmt.Fprintf(b, "%s_sum %v\n%s_count %d\n", name, h.Sum.Seconds(), name, total)
}

// durations measures turns while metrics are read.
type durations struct {
	t   *terrarium.Terrarium
	now func() time.Time

	mu    sync.Mutex // guards the fields below
	read  time.Time  // when the metrics were read last
	turns histogram.Turns
	end   context.CancelFunc // of measuring; nil if nothing is measured
	over  bool

	measuring sync.WaitGroup
}

// text returns the histograms, and has turns measured for some time from now on.
func (d *durations) text(ctx context.Context) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.read = d.now()
	if d.end == nil && !d.over {
		sub := d.t.Subscribe(engine.Filter{Kinds: []journal.EventKind{journal.EventTurnEnded, journal.EventTurnFailed}}, streamBuffer)
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it outlives the request
		d.end = cancel
		d.measuring.Go(func() { d.measure(ctx, sub) })
	}
	var b bytes.Buffer
	writeHistogram(&b, &d.turns.Took, histogram.TookName, histogram.TookHelp)
	writeHistogram(&b, &d.turns.Latency, histogram.LatencyName, histogram.LatencyHelp)
	return b.Bytes()
}

// measure adds turns until its context ends, or until nothing has read the metrics for some
// time, or until the engine has been closed.
func (d *durations) measure(ctx context.Context, sub *engine.Subscription) {
	defer sub.Close()
	for {
		quick, cancel := context.WithTimeout(ctx, measuredFor)
		ob, err := sub.Next(quick)
		waited := quick.Err() != nil // the wait ended without an event, and the events have not ended
		cancel()
		if !d.note(&ob, err == nil) || err != nil && !waited {
			return
		}
	}
}

// note adds a turn, if there is one. It reports whether measuring continues.
func (d *durations) note(ob *engine.Observed, is bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over || d.now().Sub(d.read) > measuredFor {
		d.end()
		d.end = nil
		return false
	}
	if is {
		d.turns.Add(ob.Took, ob.Waited)
	}
	return true
}

// stop ends measuring.
func (d *durations) stop() {
	d.mu.Lock()
	d.over = true
	end := d.end
	d.mu.Unlock()
	if end != nil {
		end()
	}
	d.measuring.Wait()
}
