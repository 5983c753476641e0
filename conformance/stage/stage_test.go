package stage_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/conformance/stage"
	"github.com/seed47132306/terrarium/host"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// creature makes a creature of a module of the suite for creatures, which has had its first
// delivery.
func creature(t *testing.T, name string, o stage.Options) *stage.Creature {
	t.Helper()
	wasm, err := os.ReadFile("../creatures/testdata/" + name + ".wasm")
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.New(t.Context(), host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := h.Compile(t.Context(), wasm)
	if err != nil {
		t.Fatal(err)
	}
	c, err := stage.New(m, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close(t.Context())
		if err := errors.Join(m.Close(t.Context()), h.Close(t.Context())); err != nil {
			t.Error(err)
		}
	})
	if r, err := c.Deliver(t.Context(), &stage.Delivery{Kind: stage.Start}); err != nil || r.Error != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	return c
}

// The awareness document shows what the caller says, and its revision rises with it.
func TestAwareness(t *testing.T) {
	read := func(c *stage.Creature, d stage.Delivery) string {
		t.Helper()
		r, err := c.Deliver(t.Context(), &d)
		if err != nil || r.Error != nil || len(r.Effects) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		return string(r.Effects[0].Payload)
	}
	c := creature(t, "../../testdata/modules/watcher", stage.Options{Privileged: true})
	for i, step := range []struct {
		d    stage.Delivery
		want string
	}{
		{stage.Delivery{Kind: stage.Start}, "1"},
		{stage.Delivery{Kind: stage.GraphChanged, Peers: []string{"ann"}}, "2"},
		{stage.Delivery{Kind: stage.Start}, "2"},
		{stage.Delivery{Kind: stage.Output, Peers: []string{}}, "3"},
		{stage.Delivery{Kind: stage.Output, Listen: []string{"news"}}, "4"},
		{stage.Delivery{Kind: stage.Output, Listen: []string{"news"}, Peers: []string{}}, "4"},
		{stage.Delivery{Kind: stage.GraphChanged}, "5"},
	} {
		if got := read(c, step.d); got != step.want {
			t.Errorf("delivery %d has the revision %s, want %s", i+1, got, step.want)
		}
	}
	worker := creature(t, "../../testdata/modules/watcher", stage.Options{})
	if got := read(worker, stage.Delivery{Kind: stage.Output, Peers: []string{"ann"}}); got != "1" {
		t.Errorf("a worker sees another member: revision %s", got)
	}
}

// A timer for which no instance can be made fires once, like any other.
func TestRefusedTimerFiresOnce(t *testing.T) {
	c := creature(t, "refuses_later", stage.Options{Fresh: true})
	var refused int
	err := c.Advance(t.Context(), time.Minute, func(r *stage.Record) bool {
		if !r.Refused || r.Kind != stage.TimerFired {
			t.Errorf("%+v", r)
		}
		refused++
		return true
	})
	if err != nil || refused != 1 || len(c.Waiting()) != 0 {
		t.Errorf("%d turns, %v, waiting %v", refused, err, c.Waiting())
	}
}

// Turns that run until they are stopped take long: only a few of them do.
func TestTimersThatSpin(t *testing.T) {
	c := creature(t, "mutant_spins_in_timers", stage.Options{Limits: abi.Limits{Fuel: 100_000}})
	turns := 0
	err := c.Advance(t.Context(), time.Minute, func(*stage.Record) bool { turns++; return true })
	if !errors.Is(err, stage.ErrManyStopped) || turns > 20 {
		t.Errorf("%d turns, %v", turns, err)
	}
}

// The caller can end an advance; the clock stays at the last timer.
func TestAdvanceEnds(t *testing.T) {
	c := creature(t, "ticking", stage.Options{})
	began, turns := c.Now(), 0
	err := c.Advance(t.Context(), time.Hour, func(*stage.Record) bool { turns++; return turns < 10 })
	if took := time.Duration(c.Now() - began); err != nil || turns != 10 || took != 50*time.Millisecond {
		t.Errorf("%d turns in %v, %v", turns, took, err)
	}
	if err := c.Advance(t.Context(), time.Hour, func(*stage.Record) bool { return true }); !errors.Is(err, stage.ErrManyTimers) {
		t.Errorf("an hour of timers of 5 ms: %v", err)
	}
}
