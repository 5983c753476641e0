package telemetry

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/internal/histogram"
)

// The messages of OTLP 1.x in their JSON form (opentelemetry-proto, trace.proto and
// metrics.proto), as far as they are used. Whole numbers of 64 bits are strings there.

type span struct {
	TraceID      traceID     `json:"traceId"`
	SpanID       spanID      `json:"spanId"`
	ParentSpanID spanID      `json:"parentSpanId,omitempty"`
	Name         string      `json:"name"`
	Kind         int         `json:"kind"`
	Start        int64       `json:"startTimeUnixNano,string"`
	End          int64       `json:"endTimeUnixNano,string"`
	Attributes   []attribute `json:"attributes"`
	Status       *status     `json:"status,omitempty"`
}

const (
	kindConsumer = 5 // of a message
	statusError  = 2
)

type status struct {
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"`
}

type attribute struct {
	Key   string `json:"key"`
	Value value  `json:"value"`
}

type value struct {
	Text   *string `json:"stringValue,omitempty"`
	Number *string `json:"intValue,omitempty"`
}

func text(key, v string) attribute { return attribute{key, value{Text: &v}} }

func number(key string, n int64) attribute {
	v := strconv.FormatInt(n, 10)
	return attribute{key, value{Number: &v}}
}

type scope struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type resource struct {
	Attributes []attribute `json:"attributes"`
}

// resourceOf returns the attributes of the process, in a fixed order.
func resourceOf(attributes map[string]string) resource {
	var r resource
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		r.Attributes = append(r.Attributes, text(key, attributes[key]))
	}
	return r
}

// spansBody is the body of a request with spans.
func spansBody(r resource, by scope, spans []span) ([]byte, error) {
	type list struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	type group struct {
		Resource resource `json:"resource"`
		Scopes   []list   `json:"scopeSpans"`
	}
	return json.Marshal(struct {
		Groups []group `json:"resourceSpans"`
	}{[]group{{r, []list{{by, spans}}}}})
}

type point struct {
	Attributes []attribute `json:"attributes,omitempty"`
	Start      int64       `json:"startTimeUnixNano,string,omitempty"`
	Time       int64       `json:"timeUnixNano,string"`
	Value      float64     `json:"asDouble"`
}

type sum struct {
	Points      []point `json:"dataPoints"`
	Temporality int     `json:"aggregationTemporality"`
	Monotonic   bool    `json:"isMonotonic"`
}

const cumulative = 2

type gauge struct {
	Points []point `json:"dataPoints"`
}

type metric struct {
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Unit        string  `json:"unit,omitempty"`
	Sum         *sum    `json:"sum,omitempty"`
	Gauge       *gauge  `json:"gauge,omitempty"`
	Buckets     *spread `json:"histogram,omitempty"`
}

type spread struct {
	Points      []bucketPoint `json:"dataPoints"`
	Temporality int           `json:"aggregationTemporality"`
}

type bucketPoint struct {
	Start  int64     `json:"startTimeUnixNano,string"`
	Time   int64     `json:"timeUnixNano,string"`
	Count  uint64    `json:"count,string"`
	Sum    float64   `json:"sum"`
	Counts []string  `json:"bucketCounts"`
	Bounds []float64 `json:"explicitBounds"`
}

// spreadOf is the metric of a histogram.
func spreadOf(h *histogram.Histogram, name, help string, start, now int64) metric {
	p := bucketPoint{Start: start, Time: now, Count: h.Total(), Sum: h.Sum.Seconds(), Bounds: histogram.Bounds[:]}
	for _, n := range h.Counts {
		p.Counts = append(p.Counts, strconv.FormatUint(n, 10))
	}
	return metric{Name: name, Description: help, Unit: "s", Buckets: &spread{[]bucketPoint{p}, cumulative}}
}

// maxSeries is the number of series of one figure. If there are more, the rest is added up.
const maxSeries = 1000

// points returns the points of one figure.
func points(figures []terrarium.Metric, start, now int64) []point {
	var list []point
	for i, f := range figures {
		if i > maxSeries {
			list[maxSeries].Value += f.Value
			continue
		}
		p := point{Time: now, Value: f.Value}
		if f.Counter {
			p.Start = start
		}
		if i < maxSeries {
			p.Attributes = resourceOf(f.Labels).Attributes
		}
		list = append(list, p)
	}
	return list
}

// metricsBody is the body of a request with figures, and with the histograms of turns. Figures
// with the same name follow each other. start is when the counters were zero, in nanoseconds
// since 1970.
func metricsBody(r resource, by scope, figures []terrarium.Metric, turns *histogram.Turns, start, now int64) ([]byte, error) {
	list := []metric{
		spreadOf(&turns.Took, histogram.TookName, histogram.TookHelp, start, now),
		spreadOf(&turns.Latency, histogram.LatencyName, histogram.LatencyHelp, start, now),
	}
	for len(figures) > 0 {
		n := 1
		for n < len(figures) && figures[n].Name == figures[0].Name {
			n++
		}
		m := metric{Name: figures[0].Name, Description: figures[0].Help}
		if of := points(figures[:n], start, now); figures[0].Counter {
			m.Sum = &sum{of, cumulative, true}
		} else {
			m.Gauge = &gauge{of}
		}
		list, figures = append(list, m), figures[n:]
	}
	type group struct {
		Scope   scope    `json:"scope"`
		Metrics []metric `json:"metrics"`
	}
	type whole struct {
		Resource resource `json:"resource"`
		Scopes   []group  `json:"scopeMetrics"`
	}
	return json.Marshal(struct {
		Groups []whole `json:"resourceMetrics"`
	}{[]whole{{r, []group{{by, list}}}}})
}
