package engine_test

import (
	"context"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// A creature that still has a backlog on a channel of another graph has a cursor in a channel
// that its store no longer knows. That is valid.
func TestABacklogAcrossASplitIsSound(t *testing.T) {
	h := newFakeHost()
	release := make(chan struct{})
	h.onContext("slow", func(ctx context.Context, tn abi.Turn, kind abi.Kind) error {
		if kind == abi.KindMessage {
			select {
			case <-release:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	w := newWorld(t, engine.Options{Host: h, Storage: openStorage(t, t.TempDir())})
	a, b := w.add("a", "relay"), w.add("b", "slow")
	link := w.connect(a, b, "link")
	for range 3 {
		w.send(link, "x")
	}
	if out := w.change(topology.SetEdge{Creature: b, Channel: link, Direction: journal.Listen}); out.Delta.Kind != "split" {
		t.Fatalf("the change was a %s, want a split", out.Delta.Kind)
	}
	for _, g := range w.status() {
		report, err := w.Verify(t.Context(), string(g.ID))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(report.Damage) + len(report.Missing) + len(report.Duplicate) + len(report.OutOfOrder); n != 0 {
			t.Errorf("the session of %s is not sound: %+v", g.Creatures[0].Name, report)
		}
	}
	close(release)
	w.wait()
}
