package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// readers are creatures that read these sources in each turn.
var readers = map[string][]abi.Source{
	"nothing":  nil,
	"revision": {abi.SourceAwarenessRevision},
	"all":      {abi.SourceAwarenessRevision, abi.SourceAwarenessJSON, abi.SourceAwarenessMarkdown},
}

// newReader adds a creature that reads sources in each turn, in a graph with the given
// number of members. It returns a channel that the creature listens on.
func newReader(t testing.TB, members int, sources []abi.Source) (*world, journal.CreatureID, journal.ChannelID) {
	h := newFakeHost()
	h.on("reader", func(turn abi.Turn, _ abi.Kind) error {
		for _, s := range sources {
			if _, code := turn.Source(s); code != abi.OK {
				return codeErr(turn, code)
			}
		}
		return nil
	})
	w := newWorld(t, engine.Options{Host: h, Workers: 1})
	c := w.add("reader", "reader", privileged)
	in := w.connect(c, c, "in")
	w.try(func(b *engine.Batch) error {
		for i := range members - 1 {
			added, _, err := b.AddCreature(t.Context(), spec(fmt.Sprint("m", i), "sink"))
			if err != nil {
				return err
			}
			if _, err := b.Do(t.Context(), topology.SetEdge{Creature: added.Creature, Channel: in, Direction: journal.Send, On: true}); err != nil {
				return err
			}
		}
		return nil
	})
	w.wait()
	return w, c, in
}

// TestReadingWhatHasNotChangedAllocatesNothing compares turns that read an unchanged
// document with turns that do not read.
func TestReadingWhatHasNotChangedAllocatesNothing(t *testing.T) {
	allocations := map[string]float64{}
	for name, sources := range readers {
		w, _, in := newReader(t, 100, sources)
		w.send(in, "first")
		w.wait()
		ctx := context.Background()
		allocations[name] = testing.AllocsPerRun(20, func() {
			for range 1000 {
				if _, err := w.Send(ctx, in, engine.Outgoing{}); err != nil {
					t.Error(err)
				}
			}
			w.wait()
		}) / 1000
	}
	for name, n := range allocations {
		if n > allocations["nothing"]+0.5 {
			t.Errorf("a turn that reads %s allocates %.2f times, one that reads nothing %.2f times", name, n, allocations["nothing"])
		}
	}
}

// BenchmarkAwareness delivers to creatures that read the document, in a graph that
// does not change.
func BenchmarkAwareness(b *testing.B) {
	for _, name := range []string{"nothing", "revision", "all"} {
		b.Run(name, func(b *testing.B) {
			w, _, in := newReader(b, 100, readers[name])
			ctx := context.Background()
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if _, err := w.Send(ctx, in, engine.Outgoing{}); err != nil {
					b.Fatal(err)
				}
			}
			w.wait()
		})
	}
}

// BenchmarkAwarenessOfAChange makes the document of a privileged creature, in both
// forms, after a change of its graph. It includes that change.
func BenchmarkAwarenessOfAChange(b *testing.B) {
	for _, members := range []int{10, 1000, 10_000} {
		for _, reads := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/reads=%v", members, reads), func(b *testing.B) {
				w, c, _ := newReader(b, members, nil)
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					w.change(topology.SetStopped{ID: c, Stopped: i%2 == 0})
					if !reads {
						continue
					}
					view, err := w.Awareness(c)
					if err != nil {
						b.Fatal(err)
					}
					if len(view.JSON()) == 0 || len(view.Markdown()) == 0 {
						b.Fatal("an empty document")
					}
				}
			})
		}
	}
}
