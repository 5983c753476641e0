package connector_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/connector"
	"github.com/seed47132306/terrarium/connector/connectortest"
)

// once sends a message with a key, and reports whether the key was known.
func once(t *testing.T, w *connector.Window, p *connectortest.Port, key string) bool {
	t.Helper()
	repeated, err := w.Once(key, func(producer string, offset uint64) (bool, error) {
		r, err := p.Send(t.Context(), connector.Message{Payload: []byte(key), Producer: producer, Offset: offset})
		if err == nil && r.Duplicate() {
			err = errors.New("the session knows the offset")
		}
		return false, err
	})
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return repeated
}

// TestWindow uses more keys than a window remembers, and windows that continue from what
// the session has.
func TestWindow(t *testing.T) {
	p := connectortest.NewPort()
	w, err := connector.NewWindow(p)
	if err != nil {
		t.Fatal(err)
	}
	const keys = 2*connector.WindowSize + 10
	for i := range keys {
		if once(t, w, p, fmt.Sprint(i)) {
			t.Fatalf("key %d counts as known", i)
		}
		if i%10_000 == 9_999 { // as after a restart
			if w, err = connector.NewWindow(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, i := range []int{keys - connector.WindowSize, keys - 1} {
		if !once(t, w, p, fmt.Sprint(i)) {
			t.Errorf("key %d is forgotten", i)
		}
	}
	if once(t, w, p, fmt.Sprint(keys-connector.WindowSize-1)) {
		t.Error("a key before the window is known, so that the test of its size means nothing")
	}
	producers, err := p.Producers()
	if err != nil {
		t.Fatal(err)
	}
	if len(producers) != connector.WindowSize {
		t.Errorf("the session has %d producers", len(producers))
	}
}

// failing is a source that fails in different ways before it ends.
type failing struct{ runs atomic.Int64 }

func (f *failing) Run(context.Context, connector.Port) error {
	switch f.runs.Add(1) {
	case 1:
		return errors.New("the other side is down")
	case 2:
		panic("a mistake")
	}
	return nil
}

func (*failing) Reaches() string { return "the test" }

func (*failing) Endless() bool { return false }

// noChannel is a channel that is not used.
type noChannel struct{ connector.Channel }

func (noChannel) Close() {}

// TestRunnerTriesAgain moves the clock past the pauses after failures.
func TestRunnerTriesAgain(t *testing.T) {
	var now atomic.Int64
	clock := connector.NewManual(func() time.Time { return time.Unix(0, now.Load()) })
	r := connector.NewRunner(clock, slog.New(slog.DiscardHandler))
	defer r.Close()
	r.Set("d", []connector.Declared{{
		Direction: connector.Source, Name: "s", Deployment: "d", Opened: connector.Opened{Connector: &failing{}}, Open: func() (connector.Channel, error) { return noChannel{}, nil },
	}})
	var pauses []time.Duration
	for len(pauses) < 2 {
		if at, ok := clock.Next(time.Minute); ok {
			if s := r.Status()[0]; s.State != connector.Retrying || s.Error == "" || s.Failures != int64(len(pauses)+1) {
				t.Errorf("after a failure, the status is %+v", s)
			}
			pauses = append(pauses, at.Sub(clock.Now()))
			now.Store(at.UnixNano())
			clock.Fire(time.Minute)
		}
	}
	if err := r.SourcesEnded(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := r.Status()[0]; s.State != connector.Ended || s.Error != "" || s.Failures != 2 {
		t.Errorf("at the end, the status is %+v", s)
	}
	if pauses[0] != 500*time.Millisecond || pauses[1] != time.Second {
		t.Errorf("the pauses are %v", pauses)
	}
}

// flapping is a source that works for the given times, and then fails.
type flapping struct {
	failing
	times []time.Duration
}

func (f *flapping) Run(ctx context.Context, p connector.Port) error {
	n := int(f.runs.Add(1)) - 1
	if n == len(f.times) {
		return nil
	}
	p.Working()
	if f.times[n] > 0 {
		if err := p.Until(ctx, p.Now().Add(f.times[n])); err != nil {
			return err
		}
	}
	return errors.New("the other side has closed the connection")
}

// TestPausesGrow has a server that accepts every connection, and closes most of them at once.
func TestPausesGrow(t *testing.T) {
	var now atomic.Int64
	clock := connector.NewManual(func() time.Time { return time.Unix(0, now.Load()) })
	r := connector.NewRunner(clock, slog.New(slog.DiscardHandler))
	defer r.Close()
	r.Set("d", []connector.Declared{{
		Direction: connector.Source, Name: "s", Deployment: "d", Opened: connector.Opened{Connector: &flapping{times: []time.Duration{0, 0, 0, 10 * time.Second, 0}}},
		Open: func() (connector.Channel, error) { return noChannel{}, nil },
	}})
	var pauses []time.Duration
	for len(pauses) < 5 {
		if at, ok := clock.Next(time.Minute); ok {
			if r.Status()[0].State == connector.Retrying {
				pauses = append(pauses, at.Sub(clock.Now()))
			}
			now.Store(at.UnixNano())
			clock.Fire(time.Minute)
		}
	}
	if err := r.SourcesEnded(t.Context()); err != nil {
		t.Fatal(err)
	}
	const second = time.Second
	if want := []time.Duration{second / 2, second, 2 * second, second / 2, second}; !slices.Equal(pauses, want) {
		t.Errorf("the pauses are %v, want %v", pauses, want)
	}
}
