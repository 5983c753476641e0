package terrarium_test

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Advance moves the time of a resumed session whose last event is later than the clock.
func TestAdvanceBehindTheSession(t *testing.T) {
	files := fstest.MapFS{
		"a.js": {Data: []byte("export default { start(turn) { turn.setTimer('tick', {delayMs: 10000, periodMs: 10000}); }, timer(turn) { turn.send('out', 'rang'); } }")},
		"a.hcl": {Data: []byte(`
channel "out" {}
creature "ticks" {
  module = "builtin:js"
  config = { script = file("a.js") }
  send   = [channel.out]
}`)},
	}
	dir := t.TempDir()
	for _, run := range []struct {
		year    int
		advance time.Duration
		rings   int
	}{{2026, 25 * time.Second, 2}, {2000, 100 * time.Second, 10}} {
		clock := terrarium.NewManualClock(time.Date(run.year, 1, 1, 0, 0, 0, 0, time.UTC))
		x := opened(t, terrarium.Options{Dir: dir, Clock: clock, Workers: 1})
		if _, err := x.ApplyFS(t.Context(), files, ".", terrarium.RecipeOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := x.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		sub := x.Subscribe(terrarium.Filter{Kinds: []journal.EventKind{journal.EventTimer}}, 0)
		if err := x.Advance(t.Context(), run.advance); err != nil {
			t.Fatal(err)
		}
		if got := clock.Now(); got.Year() != run.year {
			t.Errorf("the clock is at %v", got)
		}
		sub.Close()
		rings := 0
		for range sub.All(t.Context()) {
			rings++
		}
		if rings != run.rings {
			t.Errorf("in %d, it rang %d times in %v, want %d", run.year, rings, run.advance, run.rings)
		}
		closed(t, x)
	}
}
