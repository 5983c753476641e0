package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// largeRecipe is how many creatures the recipes of BenchmarkLargeRecipe have.
const largeRecipe = 10_000

// written is a recipe whose creatures are written out, in a row: each listens to the channel
// that the one before sends to. A file of a recipe has at most 1 MiB.
func written(n int) []string {
	files := []string{"channel \"c0\" {}\n"}
	for begin := 1; begin <= n; begin += 2000 {
		var out strings.Builder
		for i := begin; i < min(begin+2000, n+1); i++ {
			fmt.Fprintf(&out, "channel \"c%d\" {}\ncreature \"w%d\" {\n  module = \"builtin:gate\"\n  listen = [channel.c%d]\n  send   = [channel.c%d]\n  config = { match = \"^%d\" }\n}\n", i, i, i-1, i, i)
		}
		files = append(files, out.String())
	}
	return files
}

// repeated is a recipe whose creatures come from a block with for_each.
func repeated(n int) []string {
	return []string{fmt.Sprintf(`
locals { all = toset(flatten([for i in range(%d) : [for j in range(100) : "${i}-${j}" if i * 100 + j < %d]])) }
channel "c" { for_each = local.all }
channel "out" {}
creature "w" {
  for_each = local.all
  module   = "builtin:gate"
  listen   = [channel.c[each.key]]
  send     = [channel.out]
  config   = { match = "^${each.key}" }
}
`, n/100+1, n)}
}

// BenchmarkLargeRecipe applies a recipe of 10,000 creatures, plans it against what runs, and
// applies it again with one creature more. It reports the time of each, and the largest heap
// that was in use.
func BenchmarkLargeRecipe(b *testing.B) {
	for name, recipe := range map[string]func(int) []string{"written": written, "repeated": repeated} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				applyLarge(b, recipe)
			}
		})
	}
}

func applyLarge(b *testing.B, recipe func(int) []string) {
	ctx, dir := context.Background(), b.TempDir()
	write := func(n int) {
		for i, text := range recipe(n) {
			must(b, os.WriteFile(filepath.Join(dir, fmt.Sprint("part", i, ".hcl")), []byte(text), 0o600))
		}
	}
	write(largeRecipe)
	t, err := terrarium.New(ctx, terrarium.Options{})
	must(b, err)
	defer t.Close(ctx)
	highest := watchHeap()
	timed := func(unit string, f func() error) {
		from := time.Now()
		must(b, f())
		b.ReportMetric(float64(time.Since(from).Microseconds())/1e3, unit)
	}
	apply := func() error {
		_, err := t.Apply(ctx, dir, terrarium.RecipeOptions{})
		return err
	}
	timed("apply-ms", apply)
	must(b, t.WaitIdle(ctx))
	timed("plan-ms", func() error {
		_, err := t.PlanApply(ctx, dir, terrarium.RecipeOptions{})
		return err
	})
	write(largeRecipe + 1)
	timed("one-more-ms", apply)
	b.ReportMetric(float64(highest())/1e6, "peak-MB")
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/1e6, "live-MB")
	b.ReportMetric(0, "ns/op")
}

// watchHeap looks at the heap until the function that it returns is called, which returns
// the most bytes of it that were in use.
func watchHeap() func() uint64 {
	end, most := make(chan struct{}), make(chan uint64)
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		var highest uint64
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			highest = max(highest, m.HeapInuse)
			select {
			case <-tick.C:
			case <-end:
				most <- highest
				return
			}
		}
	}()
	return func() uint64 {
		close(end)
		return <-most
	}
}

// BenchmarkConnectAndPart connects a creature to one of a ring, so that their graphs merge, and
// removes the channel again, so that they part.
func BenchmarkConnectAndPart(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			ctx, w := context.Background(), newWorld(b, journal.Volatile, nil)
			ring := w.creatures(n, hop)
			lone, err := w.AddCreature(ctx, deploy.CreatureSpec{Name: "lone", Wasm: hop})
			must(b, err)
			must(b, w.WaitIdle(ctx))
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				out, err := w.Change(ctx, topology.Connect{From: ring[n/2], To: lone.Creature, Name: "bridge"})
				must(b, err)
				_, err = w.Change(ctx, topology.RemoveChannel{ID: out[0].Channel})
				must(b, err)
			}
		})
	}
}
