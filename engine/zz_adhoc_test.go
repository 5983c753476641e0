package engine_test

import (
	"fmt"
	"testing"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

func BenchmarkAdhocMerge(b *testing.B) {
	for _, n := range []int{100, 1000, 10000, 50000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newWorld(b, engine.Options{Durability: journal.Volatile})
			w.apply(team(n))
			w.wait()
			g, _ := w.Status("")
			first := g[0].Creatures[0].ID
			added, err := w.AddCreature(b.Context(), spec("lone", "sink"))
			if err != nil { b.Fatal(err) }
			w.wait()
			b.ResetTimer()
			for range b.N {
				out, err := w.Change(b.Context(), topology.Connect{From: first, To: added.Creature, Name: "x"})
				if err != nil { b.Fatal(err) }
				if _, err = w.Change(b.Context(), topology.RemoveChannel{ID: out[0].Channel}); err != nil { b.Fatal(err) }
			}
		})
	}
}
