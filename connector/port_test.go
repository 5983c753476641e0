package connector

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
)

// counting is a channel with messages for a sink, which notes what is used of it.
type counting struct {
	next, acked, sent atomic.Uint64
}

type received struct{}

func (received) Duplicate() bool { return false }

func (received) Wait(context.Context) error { return nil }

func (c *counting) Send(context.Context, Message) (Receipt, error) {
	c.sent.Add(1)
	return received{}, nil
}

func (c *counting) Producers() (map[string]uint64, error) { return map[string]uint64{}, nil }

func (c *counting) Next(context.Context) (Delivery, error) {
	return Delivery{Seq: c.next.Add(2)}, nil // other members of the graph get the numbers in between
}

func (c *counting) Ack(seq uint64) { c.acked.Store(seq) }

func (c *counting) Drained(context.Context) error { return nil }

func (c *counting) Close() {}

// acting is a connector whose attempts are functions.
type acting struct{ attempts chan func(Port) error }

func (a acting) Reaches() string { return "the test" }

func (a acting) Endless() bool { return true }

func (a acting) Run(ctx context.Context, p Port) error {
	select {
	case f := <-a.attempts:
		return f(p)
	case <-ctx.Done():
		return nil
	}
}

// act runs attempts of one connector, and returns when the last has ended. They must fail.
func act(t *testing.T, r *Runner, clock *Manual, move func(time.Time), ch Channel, attempts ...func(Port) error) {
	t.Helper()
	a := acting{make(chan func(Port) error)}
	r.Set("r", []Declared{{Direction: Sink, Name: "x", Deployment: "r", Opened: Opened{Connector: a}, Open: func() (Channel, error) { return ch, nil }}})
	for i, f := range attempts {
		a.attempts <- f
		for r.Status()[0].Failures <= int64(i) {
			time.Sleep(time.Millisecond)
		}
		for {
			if at, ok := clock.Next(0); ok { // the pause before the next attempt
				move(at)
				clock.Fire(0)
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
}

func newActing(t *testing.T) (r *Runner, clock *Manual, move func(time.Time)) {
	var now atomic.Int64
	clock = NewManual(func() time.Time { return time.Unix(0, now.Load()) })
	r = NewRunner(clock, slog.New(slog.DiscardHandler))
	t.Cleanup(r.Close)
	return r, clock, func(at time.Time) { now.Store(at.UnixNano()) }
}

// TestPortAfterRun uses the port of an attempt after Run has returned: during the pause, in the
// next attempt, and after the recipe no longer declares the connector.
func TestPortAfterRun(t *testing.T) {
	ch := &counting{}
	r, clock, move := newActing(t)
	var former Port
	check := func(when string) {
		before := r.Status()
		former.Working()
		former.Refused(errors.New("late"))
		former.Ack(2)
		_, sending := former.Send(t.Context(), Message{})
		_, reading := former.Next(t.Context())
		_, asking := former.Producers()
		for what, err := range map[string]error{"Send": sending, "Next": reading, "Producers": asking, "Until": former.Until(t.Context(), time.Unix(0, 0))} {
			if abi.CodeOf(err) != abi.Stopped {
				t.Errorf("%s: %s returns the error %v", when, what, err)
			}
		}
		if after := r.Status(); len(after) > 0 && (after[0] != before[0]) {
			t.Errorf("%s: the status was %+v and is %+v", when, before, after)
		}
		if ch.sent.Load() != 0 || ch.acked.Load() != 0 || ch.next.Load() != 2 {
			t.Errorf("%s: the channel was used: %+v", when, ch)
		}
	}
	act(t, r, clock, move, ch, func(p Port) error {
		former = p
		_, err := p.Next(t.Context())
		return errors.Join(err, errors.New("fails"))
	}, func(Port) error {
		check("in the next attempt")
		return errors.New("fails")
	})
	check("afterwards")
	r.Set("r", nil)
	check("when it is not declared")
}

// TestAckOnlyWhatWasDelivered acknowledges messages that the sink has not got.
func TestAckOnlyWhatWasDelivered(t *testing.T) {
	ch := &counting{}
	r, clock, move := newActing(t)
	act(t, r, clock, move, ch, func(p Port) error {
		p.Ack(100)
		if got := ch.acked.Load(); got != 0 {
			t.Errorf("before the first message, the cursor is at %d", got)
		}
		for _, ack := range []uint64{2, 3, 100} {
			d, err := p.Next(t.Context())
			if err != nil {
				return err
			}
			p.Ack(ack)
			if got := ch.acked.Load(); got != min(ack, d.Seq) {
				t.Errorf("after message %d, Ack(%d) moves the cursor to %d", d.Seq, ack, got)
			}
		}
		return errors.New("fails")
	})
	if n := r.Status()[0].Messages; n != 3 {
		t.Errorf("%d messages count as delivered", n)
	}
}

// TestLongErrors bounds the texts of other programs in the status.
func TestLongErrors(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	for name, err := range map[string]error{
		"plain": errors.New(long), "typed": &abi.Error{Code: abi.Unavailable, Message: long, Remedy: long}, "cause": &abi.Error{Code: abi.Unavailable, Message: "it", Err: errors.New(long)},
		"not UTF-8": errors.New(strings.Repeat("\xa9", 1<<20)),
	} {
		r, clock, move := newActing(t)
		a := &counting{}
		act(t, r, clock, move, a, func(p Port) error {
			p.Refused(err)
			return err
		})
		s := r.Status()[0]
		for what, text := range map[string]string{"error": s.Error, "remedy": s.Remedy, "problem": s.Problem} {
			if len(text) > 4<<10+len("…") || !utf8.ValidString(text) {
				t.Errorf("%s: the %s has %d bytes", name, what, len(text))
			}
		}
		if !strings.HasSuffix(s.Error, "…") {
			t.Errorf("%s: the error ends with %q", name, s.Error[max(0, len(s.Error)-10):])
		}
	}
}
