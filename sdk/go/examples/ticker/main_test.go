package main

import (
	"testing"
	"time"

	"github.com/seed47132306/terrarium/sdk/go/terrarium/terrariumtest"
)

func TestTicker(t *testing.T) {
	f := terrariumtest.New(creature)
	f.Config = map[string]any{"every_ms": 100, "limit": 3}
	f.Channels = []string{"out"}
	if err := f.Start(); err != nil {
		t.Fatal(err)
	}
	if err := f.Advance(time.Second); err != nil {
		t.Fatal(err)
	}
	if len(f.Sent) != 3 || f.Sent[2].Payload != "tick 3 at 300" || len(f.Timers) != 0 {
		t.Errorf("sent %v, timers %v", f.Sent, f.Timers)
	}
	if err := f.Message("in", "in 50 soon a b"); err != nil {
		t.Fatal(err)
	}
	if err := f.Advance(50 * time.Millisecond); err != nil || f.Sent[3].Payload != "soon: a b" {
		t.Errorf("%v, sent %v", err, f.Sent)
	}
	if err := f.Message("in", "nonsense"); err == nil {
		t.Error("an unknown command was accepted")
	}
}
