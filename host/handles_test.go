package host

import (
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
)

// sweptByHand returns a host whose handles only the test sweeps.
func sweptByHand(t testing.TB) *Host {
	h := newHost(t, Options{})
	h.handles.sweeping = true
	return h
}

func has(i *Instance) bool { return i.handle.function.Load() != nil }

func TestIdleInstancesLoseTheirHandle(t *testing.T) {
	h := sweptByHand(t)
	m := compile(t, h, readModule(t, "echo"))
	turn := func(i *Instance) {
		t.Helper()
		if err := i.Handle(t.Context(), &fakeTurn{}, abi.KindMessage, 0); err != nil {
			t.Fatal(err)
		}
	}
	fresh, idle, busy, closed := instantiate(t, m, nil), instantiate(t, m, nil), instantiate(t, m, nil), instantiate(t, m, nil)
	for _, i := range []*Instance{idle, closed, busy} {
		turn(i)
	}
	if has(fresh) || !has(idle) || !has(busy) {
		t.Fatal("a handle is not there from the first turn on")
	}
	h.handles.sweep()
	closed.Close(t.Context())
	turn(busy)
	if last := h.handles.sweep(); last || has(idle) || !has(busy) || len(h.handles.kept) != 1 {
		t.Errorf("after a rest: last %v, the idle one has it %v, the busy one %v, %d are kept", last, has(idle), has(busy), len(h.handles.kept))
	}
	turn(idle)
	if !has(idle) {
		t.Error("the next turn does not keep it")
	}
	h.handles.sweep()
	if last := h.handles.sweep(); !last || h.handles.kept != nil {
		t.Errorf("no instance runs: last %v, %d are kept", last, len(h.handles.kept))
	}
}

// TestStartsKeepFewHandles starts more instances at once than may keep their handle. The others get
// one with the first delivery that follows.
func TestStartsKeepFewHandles(t *testing.T) {
	h := sweptByHand(t)
	m := compile(t, h, readModule(t, "echo"))
	turn := func(i *Instance, kind abi.Kind) {
		t.Helper()
		if err := i.Handle(t.Context(), &fakeTurn{}, kind, 0); err != nil {
			t.Fatal(err)
		}
	}
	var last *Instance
	for range keptAfterStart + 1 {
		last = instantiate(t, m, nil)
		turn(last, abi.KindStart)
	}
	if has(last) || len(h.handles.kept) != keptAfterStart {
		t.Errorf("%d handles are kept, and the last instance has one: %v", len(h.handles.kept), has(last))
	}
	turn(last, abi.KindMessage)
	if !has(last) {
		t.Error("the delivery after the start does not keep the handle")
	}
}

// The sweeping goroutine ends when nothing is left to sweep, and the next turn starts
// another.
func TestSweepingEnds(t *testing.T) {
	h := newHost(t, Options{})
	h.handles.rest = time.Millisecond
	i := instantiate(t, compile(t, h, readModule(t, "echo")), nil)
	for range 3 {
		if err := i.Handle(t.Context(), &fakeTurn{}, abi.KindMessage, 0); err != nil {
			t.Fatal(err)
		}
		h.handles.sweeps.Wait()
		if has(i) {
			t.Error("the handle is kept")
		}
	}
}

// An instance may lose its handle at any moment, even while it runs.
func TestSweepsDisturbNoInstance(t *testing.T) {
	h := sweptByHand(t)
	m := compile(t, h, readModule(t, "echo"))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				i, err := m.Instantiate(t.Context(), nil, &fakeTurn{})
				if err != nil {
					t.Error(err)
					return
				}
				for range 20 {
					if err := i.Handle(t.Context(), &fakeTurn{}, abi.KindMessage, 0); err != nil {
						t.Error(err)
					}
					h.handles.sweep()
				}
				i.Close(t.Context())
			}
		})
	}
	wg.Wait()
	if len(h.handles.kept) != 0 {
		t.Errorf("%d closed instances are kept", len(h.handles.kept))
	}
}
