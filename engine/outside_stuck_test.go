package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

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
// time is over, and that the engine closes without it, and names it.
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
		t.Errorf("it heard %q after %d attempts", got, len(k.begun))
	}
	err := s.Close(t.Context())
	if !errors.Is(err, engine.ErrLeftOpen) || !strings.Contains(err.Error(), "1 attempts of the capability echo.main") {
		t.Errorf("closing: %v", err)
	}
	close(k.end)
	s.awaitClosed()
}
