package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
)

// leftOpen checks that err says that a bound was reached, and contains the given texts.
func leftOpen(t *testing.T, err error, texts ...string) {
	t.Helper()
	if !errors.Is(err, engine.ErrLeftOpen) || abi.CodeOf(err) != abi.Deadline {
		t.Fatalf("Close returns %v, want the code deadline with ErrLeftOpen", err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not say %q", err, text)
		}
	}
}

// TestClosingHasABoundForATurn closes the engine while a guest ignores its context and does not
// end. Acknowledged messages are not lost.
func TestClosingHasABoundForATurn(t *testing.T) {
	h := newFakeHost()
	begun, end := make(chan struct{}, 1), make(chan struct{})
	stuck := true
	h.on("stuck", func(t abi.Turn, kind abi.Kind) error {
		if kind == abi.KindMessage && stuck {
			begun <- struct{}{}
			<-end
			return &abi.Error{Code: abi.Deadline, Message: "interrupted"}
		}
		return h.behaviours["record"](t, kind)
	})
	s := newSaved(t, engine.Options{Host: h, ShutdownTimeout: time.Millisecond})
	a := s.add("a", "stuck")
	in := s.connect(a, a, "in")
	s.send(in, "1")
	<-begun
	leftOpen(t, s.Close(t.Context()), "within 1ms", "a turn of a ("+string(a)+")")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	leftOpen(t, s.Close(ended), "within 1ms")

	stuck = false
	close(end)
	s.awaitClosed()
	s.o.ShutdownTimeout = 0
	s.reopen()
	s.wait()
	if got, want := s.state(a, "heard"), "in:1\n"; got != want {
		t.Errorf("a heard %q, want %q", got, want)
	}
}

// awaitClosed waits until an engine that was left open is closed.
func (s *saved) awaitClosed() {
	s.t.Helper()
	for {
		err := s.Close(context.Background())
		if err == nil {
			return
		}
		if !errors.Is(err, engine.ErrLeftOpen) {
			s.t.Fatal(err)
		}
	}
}

// clogged is a storage whose stores report that nothing is written, and close only on
// request.
type clogged struct {
	journal.Storage
	end chan struct{}
}

type cloggedStore struct {
	journal.Store
	c *clogged
}

func (c *clogged) Create(ctx context.Context, specs ...journal.StoreSpec) ([]journal.Store, error) {
	return createThrough(ctx, c.Storage, specs, func(s journal.Store) journal.Store { return &cloggedStore{s, c} })
}

func (s *cloggedStore) Durable() uint64 { return 0 }

func (s *cloggedStore) Close(ctx context.Context) error {
	<-s.c.end
	return s.Store.Close(ctx)
}

// TestClosingHasABoundForAStore closes while a store cannot be written.
func TestClosingHasABoundForAStore(t *testing.T) {
	c := &clogged{end: make(chan struct{})}
	s := &saved{t: t, dir: t.TempDir(), o: engine.Options{ShutdownTimeout: time.Second}}
	s.wrap = func(storage journal.Storage) journal.Storage { c.Storage = storage; return c }
	s.open()
	t.Cleanup(s.shut)
	a := s.add("a", "sink")
	status, err := s.Status(s.graph(a))
	if err != nil {
		t.Fatal(err)
	}
	session := string(status[0].Session)
	leftOpen(t, s.Close(t.Context()), " of the session "+session+" that ")
	close(c.end)
	s.awaitClosed()
}

// TestClosingEndsWithTheDeadlineOfItsContext checks the bound of closing.
func TestClosingEndsWithTheDeadlineOfItsContext(t *testing.T) {
	const timeout = 2 * time.Hour
	soon, cancel := context.WithTimeout(t.Context(), time.Hour)
	if got := engine.CloseBound(soon, timeout); got <= 0 || got > time.Hour {
		t.Errorf("with a deadline in an hour, the bound is %v", got)
	}
	cancel()
	late, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
	defer cancel()
	for name, ctx := range map[string]context.Context{"ended": soon, "late": late, "none": t.Context()} {
		if got := engine.CloseBound(ctx, timeout); got != timeout {
			t.Errorf("%s: the bound is %v, want %v", name, got, timeout)
		}
	}
}

// TestCloseComesBackWithTheDeadlineOfItsContext closes the engine while a guest does not end.
// The call returns at its deadline, long before the timeout. A call without a deadline returns
// after the timeout.
func TestCloseComesBackWithTheDeadlineOfItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFakeHost()
		begun, end := h.slow("stuck")
		w := newWorld(t, engine.Options{Host: h, ShutdownTimeout: time.Hour})
		a := w.add("a", "stuck")
		w.send(w.connect(a, a, "in"), "1")
		<-begun
		began := time.Now()
		soon, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		leftOpen(t, w.Close(soon), "within 1m0s", "a turn of a (")
		if took := time.Since(began); took != time.Minute {
			t.Errorf("Close returned after %v, want the minute of its context", took)
		}
		leftOpen(t, w.Close(t.Context()), "within 1h0m0s")
		if took := time.Since(began); took != time.Hour+time.Minute {
			t.Errorf("the second Close returned %v after the first began, want an hour and a minute", took)
		}
		close(end)
	})
}

func TestANegativeShutdownTimeoutIsRefused(t *testing.T) {
	_, err := engine.New(t.Context(), engine.Options{Host: newFakeHost(), ShutdownTimeout: -1})
	if abi.CodeOf(err) != abi.InvalidArgument {
		t.Errorf("New returns %v, want invalid_argument", err)
	}
}
