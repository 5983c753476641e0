package main

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/fstest"
	"time"

	"github.com/seed47132306/terrarium"

	"example.org/embed/notes"
)

// The notes lose nothing and leave no goroutine when they are suspended and resumed often,
// even with a context that has ended.
func TestNotes(t *testing.T) {
	before := runtime.NumGoroutine()
	n, err := notes.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if err := n.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := n.Add(t.Context(), "a note"); err != nil {
			t.Fatal(err)
		}
		if total, err := n.Total(t.Context()); err != nil || total != fmt.Sprint(i+1) {
			t.Errorf("there are %s notes, %v", total, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if i%2 == 0 {
			cancel()
		}
		if err := n.Suspend(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A goroutine may need another moment to end after Close has waited for it.
	for tries := 0; runtime.NumGoroutine() > before && tries < 500; tries++ {
		time.Sleep(10 * time.Millisecond)
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines became %d", before, after)
	}
}

// A test of creatures in Go: with a seed, one worker and a clock that only Advance moves,
// every run gives the same messages at the same times.
func TestRepeatable(t *testing.T) {
	seed := uint64(1)
	x, err := terrarium.New(t.Context(), terrarium.Options{
		Clock: terrarium.NewManualClock(time.Date(2030, 1, 1, 6, 0, 0, 0, time.UTC)), Seed: &seed, Workers: 1,
		FS: fstest.MapFS{"test.hcl": {Data: []byte(`
channel "doors" {}
channel "warnings" {}
creature "door" {
  module = "builtin:js"
  listen = [channel.doors]
  send   = [channel.warnings]
  config = { script = "export default { message(turn) { turn.setTimer('open', { delayMs: turn.text() === 'open' ? 600000 : 1e9 }); }, timer(turn) { turn.send('warnings', 'the door is open'); } };" }
}`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := x.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	applied, err := x.Apply(t.Context(), "fs:/test.hcl", terrarium.RecipeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	warnings, err := x.Read(applied.Channels["channel.warnings"], "test", terrarium.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer warnings.Close()
	if _, err := x.Send(t.Context(), applied.Channels["channel.doors"], terrarium.Outgoing{Payload: []byte("open")}); err != nil {
		t.Fatal(err)
	}
	for minutes, want := range []uint64{0, 0, 1, 1} { // five minutes each
		if got := warnings.Pending(); got != want {
			t.Errorf("after %d minutes there are %d warnings instead of %d", 5*minutes, got, want)
		}
		if err := x.Advance(t.Context(), 5*time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	warning, err := warnings.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if at := time.Unix(0, warning.Time).UTC().Format(time.TimeOnly); at != "06:10:00" {
		t.Errorf("the warning %q came at %s", warning.Payload, at)
	}
}
