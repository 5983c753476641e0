package hostile

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/seed47132306/terrarium/engine"
)

// Traffic is the neighbours' traffic during an attack.
type Traffic struct {
	// Sent and Arrived count the numbered messages that went in and came out at
	// the other end.
	Sent, Arrived int
	// Wrong describes the first message that came out of order, twice or
	// changed, or is empty.
	Wrong string
	// Median and Worst are the times a message took from one end to the other.
	Median, Worst time.Duration
}

// traffic sends numbered messages through the neighbours, a few at a time, and
// reads them at the other end.
type traffic struct {
	s      *Stage
	reader *engine.Reader
	enough chan struct{} // closed to end it
	done   chan struct{} // closed at its end; seen, times and err are then final

	mu   sync.Mutex
	next chan struct{} // closed at the end of the current round

	seen  Traffic
	times []time.Duration
	err   error
}

const (
	// window is how many messages are in flight at once.
	window = 8
	// pace is the time between rounds, so that the neighbours do not keep a
	// processor busy.
	pace = 500 * time.Microsecond
)

// startTraffic starts sending. When it returns, messages are arriving.
func startTraffic(ctx context.Context, s *Stage) (*traffic, error) {
	reader, err := s.t.Read(s.out, "traffic", engine.ReaderOptions{})
	if err != nil {
		return nil, err
	}
	t := &traffic{
		s: s, reader: reader,
		next: make(chan struct{}), enough: make(chan struct{}), done: make(chan struct{}),
	}
	go t.run(ctx)
	if err := t.more(ctx, 1); err != nil {
		_, terr := t.stop()
		return nil, fmt.Errorf("the neighbours did not start: %w (%w)", err, terr)
	}
	return t, nil
}

func (t *traffic) run(ctx context.Context) {
	defer close(t.done)
	defer t.reader.Close()
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for last := false; ; {
		if t.err = t.round(ctx); t.err != nil || last {
			return
		}
		t.mu.Lock()
		close(t.next)
		t.next = make(chan struct{})
		t.mu.Unlock()
		select {
		case <-ticker.C:
		case <-t.enough:
			last = true // one more, to see that everything still works
		}
	}
}

// round sends some messages and waits for them.
func (t *traffic) round(ctx context.Context) error {
	var sent [window]time.Time
	for i := range sent {
		sent[i] = time.Now()
		payload := strconv.Itoa(t.seen.Sent)
		if _, err := t.s.t.Send(ctx, t.s.in, engine.Outgoing{Payload: []byte(payload)}); err != nil {
			return fmt.Errorf("sending to the neighbours: %w", err)
		}
		t.seen.Sent++
	}
	for _, at := range sent {
		in, err := t.reader.Next(ctx)
		if err != nil {
			return fmt.Errorf("message %d of the neighbours does not arrive: %w", t.seen.Arrived, err)
		}
		t.times = append(t.times, time.Since(at))
		if want := strconv.Itoa(t.seen.Arrived); string(in.Payload) != want && t.seen.Wrong == "" {
			t.seen.Wrong = fmt.Sprintf("%q came instead of %q", in.Payload, want)
		}
		t.seen.Arrived++
		t.reader.Ack(in.Seq)
	}
	return nil
}

// more waits for that many further rounds. Any goroutine may call it.
func (t *traffic) more(ctx context.Context, rounds int) error {
	for range rounds {
		t.mu.Lock()
		next := t.next
		t.mu.Unlock()
		select {
		case <-next:
		case <-t.done:
			return t.err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// stop ends the traffic after one more round and returns the result.
func (t *traffic) stop() (Traffic, error) {
	close(t.enough)
	<-t.done
	if len(t.times) > 0 {
		slices.Sort(t.times)
		t.seen.Median, t.seen.Worst = t.times[len(t.times)/2], t.times[len(t.times)-1]
	}
	return t.seen, t.err
}
