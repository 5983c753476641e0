// Package connectortest runs connectors without an engine, for their tests.
package connectortest

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/seed47132306/terrarium/connector"
)

// Port is a channel in memory. Like a session, it keeps its messages between two calls of
// Run. Its methods may be called from any goroutine.
type Port struct {
	// Clock is the clock of the port; nil means that of the machine. With a
	// [connector.Manual], the test must call its Begin and End.
	Clock connector.Clock
	// Refuse, if set, may refuse a message.
	Refuse func(m connector.Message) error

	mu        sync.Mutex
	sent      []connector.Message
	repeated  int
	refused   []error
	producers map[string]uint64
	channel   []connector.Delivery
	next      int // in channel
	acked     uint64
	changed   chan struct{}
	marked    int
	working   int
}

// NewPort returns a port with an empty channel.
func NewPort() *Port { return &Port{producers: map[string]uint64{}, changed: make(chan struct{})} }

// notify wakes the goroutines that wait for a change, after the caller has made the
// change.
func (p *Port) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Name implements [connector.Port].
func (*Port) Name() string { return "source.test.it" }

type receipt bool

func (r receipt) Duplicate() bool { return bool(r) }

func (receipt) Wait(context.Context) error { return nil }

// Send implements [connector.Port].
func (p *Port) Send(ctx context.Context, m connector.Message) (connector.Receipt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if p.Refuse != nil {
		if err := p.Refuse(m); err != nil {
			return nil, err
		}
	}
	defer p.notify()
	if m.Producer != "" {
		if m.Offset <= p.producers[m.Producer] {
			p.repeated++
			return receipt(true), nil
		}
		p.producers[m.Producer] = m.Offset
	}
	if m.Mark {
		p.marked++
		return receipt(false), nil
	}
	m.Payload = append([]byte(nil), m.Payload...)
	p.sent = append(p.sent, m)
	return receipt(false), nil
}

// Producers implements [connector.Port].
func (p *Port) Producers() (map[string]uint64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.producers), nil
}

// Deliver adds messages for a sink.
func (p *Port) Deliver(payloads ...string) {
	for _, payload := range payloads {
		p.DeliverWith(payload, nil)
	}
}

// DeliverWith is [Port.Deliver] for one message with headers.
func (p *Port) DeliverWith(payload string, headers map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := uint64(len(p.channel) + 1)
	p.channel = append(p.channel, connector.Delivery{ID: fmt.Sprint("origin#", n), Channel: "out", Seq: n, Time: time.Unix(int64(n), 0).UTC(), Headers: headers, Payload: []byte(payload)})
	p.notify()
}

// Rewind makes a sink get everything after an acknowledgement again, as after a kill.
func (p *Port) Rewind(acked uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acked, p.next = acked, int(acked)
}

// Next implements [connector.Port].
func (p *Port) Next(ctx context.Context) (connector.Delivery, error) {
	for {
		p.mu.Lock()
		if p.next < len(p.channel) {
			defer p.mu.Unlock()
			p.next++
			return p.channel[p.next-1], nil
		}
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return connector.Delivery{}, context.Cause(ctx)
		}
	}
}

// Ack implements [connector.Port].
func (p *Port) Ack(seq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acked = max(p.acked, min(seq, uint64(p.next))) // not beyond what Next has returned
	p.notify()
}

func (p *Port) clock() connector.Clock {
	if p.Clock != nil {
		return p.Clock
	}
	return connector.Steps{Clock: machine{}}
}

type machine struct{}

func (machine) Now() time.Time { return time.Now() }

func (machine) Timer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// Now implements [connector.Port].
func (p *Port) Now() time.Time { return p.clock().Now() }

// Until implements [connector.Port].
func (p *Port) Until(ctx context.Context, at time.Time) error {
	if m, manual := p.Clock.(*connector.Manual); manual {
		return m.TimedUntil(ctx, at)
	}
	return p.clock().Until(ctx, at)
}

// Working implements [connector.Port].
func (p *Port) Working() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.working++
	p.notify()
}

// Refused implements [connector.Port].
func (p *Port) Refused(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = append(p.refused, err)
	p.notify()
}

// Log implements [connector.Port].
func (*Port) Log() *slog.Logger { return slog.New(slog.DiscardHandler) }

// View is what a port has seen.
type View struct {
	Sent     []connector.Message
	Repeated int
	Refused  []error
	Acked    uint64
	Marked   int // offsets kept without a message
	Working  int // how often the connector has reported that it works
}

// view returns what the port has seen, and a channel that is closed when that changes.
func (p *Port) view() (View, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return View{append([]connector.Message(nil), p.sent...), p.repeated, append([]error(nil), p.refused...), p.acked, p.marked, p.working}, p.changed
}

// Seen returns what the port has seen up to now.
func (p *Port) Seen() View {
	v, _ := p.view()
	return v
}

// Wait waits until the view of the port fulfils a condition, and returns the view.
func (p *Port) Wait(ctx context.Context, until func(View) bool) (View, error) {
	for {
		v, changed := p.view()
		if until(v) {
			return v, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return v, context.Cause(ctx)
		}
	}
}

// Payloads are the payloads of messages as texts.
func (v View) Payloads() []string {
	var out []string
	for _, m := range v.Sent {
		out = append(out, string(m.Payload))
	}
	return out
}
