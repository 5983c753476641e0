package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine"
)

// stuckKind is a capability whose attempts ignore their context.
type stuckKind struct {
	*echoKind
	begun chan struct{}
	end   chan struct{}
}

func (k *stuckKind) Open(settings json.RawMessage) (capability.Grant, error) {
	g, err := k.echoKind.Open(settings)
	return &stuckGrant{g.(*echoGrant), k}, err
}

type stuckGrant struct {
	*echoGrant
	k *stuckKind
}

func (g *stuckGrant) Do(context.Context, capability.Call) capability.Result {
	g.k.begun <- struct{}{}
	<-g.k.end
	return capability.Result{Payload: []byte("late")}
}

func (g *stuckGrant) Limits() capability.Limits {
	return capability.Limits{Concurrency: 1, Timeout: time.Millisecond, Retries: 1, Backoff: time.Millisecond}
}

// TestCapabilitiesThatDoNotEnd proves that an attempt that ignores its context fails when its
// time is up, and that Close does not wait for that attempt but names it.
func TestCapabilitiesThatDoNotEnd(t *testing.T) {
	h := newFakeHost()
	h.on("caller", caller)
	k := &stuckKind{echoKind: newEcho(), begun: make(chan struct{}, 8), end: make(chan struct{})}
	s := newSaved(t, engine.Options{Host: h, Capabilities: []capability.Kind{k}})
	a := s.add("a", "caller", reaching(`{}`))
	s.tellNow(a, "x")
	s.wait()
	got := s.state(a, "heard")
	if !strings.HasPrefix(got, "1 unavailable 0 ") || !strings.Contains(got, "earlier attempts of the capability echo.main") || len(k.begun) != 1 {
		t.Errorf("a heard %q after %d attempts", got, len(k.begun))
	}
	err := s.Close(t.Context())
	if !errors.Is(err, engine.ErrLeftOpen) || !strings.Contains(err.Error(), "1 attempt of the capability echo.main") {
		t.Errorf("Close returns %v, want an error that names the attempt", err)
	}
	close(k.end)
	s.awaitClosed()
}

// TestRefusedRequestsAreBounded proves that a turn cannot make its notes grow without a bound
// by requests that are refused.
func TestRefusedRequestsAreBounded(t *testing.T) {
	h := newFakeHost()
	counts := map[abi.Code]int{}
	h.on("caller", func(t abi.Turn, _ abi.Kind) error {
		clear(counts)
		for range 5000 {
			counts[t.Request([]byte("capability:"+strings.Repeat("x", 10_000)), nil, 0, 0)]++
		}
		return note(t, t.LastError())
	})
	w := newWorld(t, engine.Options{Host: h})
	a := w.add("a", "caller")
	w.tell(a, "x")
	w.wait()
	if n := counts[abi.Denied]; n == 0 || n > 2000 || counts[abi.LimitExceeded] != 5000-n {
		t.Errorf("calls ended with %v", counts)
	}
}
