package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/host"
)

// idle is how many creatures hibernate: few, because adding them takes most of the time.
var idle = flag.Int("idle", 10_000, "how many creatures hibernate in BenchmarkHibernated")

// hibernateAfter is long enough for waking to take a part of it only, and quiet is the time
// after which an instance that is kept has nothing that the next turn can make again.
const (
	hibernateAfter = 500 * time.Millisecond
	quiet          = 3 * time.Second
)

// BenchmarkHibernated measures creatures that have answered a request and hibernate since:
// their memory, beside that of the same creatures without hibernation, and the time until a
// request wakes one and is answered. They listen on one channel, or each is alone in its graph.
func BenchmarkHibernated(b *testing.B) {
	for name, add := range map[string]func(*world, int) []journal.CreatureID{"one_graph": (*world).listeners, "apart": (*world).answerers} {
		for state, after := range map[string]time.Duration{"hibernated": hibernateAfter, "awake": -1} {
			b.Run(name+"/"+state, func(b *testing.B) {
				for range b.N {
					hibernated(b, add, after)
				}
			})
		}
	}
}

func hibernated(b *testing.B, add func(*world, int) []journal.CreatureID, after time.Duration) {
	ctx := context.Background()
	h, err := host.New(ctx, host.Options{})
	must(b, err)
	defer h.Close(ctx)
	e, err := engine.New(ctx, engine.Options{Host: h, HibernateAfter: after})
	must(b, err)
	defer e.Close(ctx)
	w := &world{e, b}
	rest := func(n int) {
		if after < 0 {
			time.Sleep(quiet)
			return
		}
		w.untilHibernated(n)
	}
	add(w, 1) // whatever is made once
	rest(1)
	heapBefore, before := heap(), private()
	creatures := add(w, *idle)
	payload := make([]byte, 100)
	ask := func() {
		for _, c := range creatures {
			w.request(ctx, c, payload, nil)
		}
	}
	ask()
	rest(*idle + 1)
	each := func(now, before uint64, unit string) {
		b.ReportMetric((float64(now)-float64(before))/float64(*idle), unit)
	}
	each(heap(), heapBefore, "B/creature")
	each(private(), before, "resident-B/creature")
	from := time.Now()
	ask()
	b.ReportMetric(float64(time.Since(from).Nanoseconds())/float64(*idle), "ns/wake")
	b.ReportMetric(0, "ns/op")
}

// listeners adds n creatures that answer and listen on one channel.
func (w *world) listeners(n int) []journal.CreatureID {
	ctx, out := context.Background(), make([]journal.CreatureID, n)
	must(w.b, w.Batch(ctx, func(b *engine.Batch) error {
		first, _, err := b.AddCreature(ctx, deploy.CreatureSpec{Name: "first", Wasm: answer})
		if err != nil {
			return err
		}
		out[0] = first.Creature
		ch, err := b.AddChannel(ctx, first.Graph, "in", "")
		for i := 1; i < n && err == nil; i++ {
			var added engine.Added
			added, _, err = b.AddCreature(ctx, deploy.CreatureSpec{Name: fmt.Sprint("c", i), Wasm: answer, Listen: []deploy.WireSpec{{Channel: string(ch.Channel)}}})
			out[i] = added.Creature
		}
		return err
	}))
	must(w.b, w.WaitIdle(ctx))
	return out
}

// untilHibernated waits until that many creatures hibernate.
func (w *world) untilHibernated(n int) {
	for asleep := 0; asleep < n; {
		time.Sleep(hibernateAfter / 5)
		graphs, err := w.Status("")
		must(w.b, err)
		asleep = 0
		for i := range graphs {
			asleep += graphs[i].Hibernated
		}
	}
}

// private returns the bytes of the process that are in memory and belong to no file, or 0 on
// systems that do not tell.
func private() uint64 {
	debug.FreeOSMemory()
	text, _ := os.ReadFile("/proc/self/statm")
	fields := bytes.Fields(text)
	if len(fields) < 3 {
		return 0
	}
	resident, _ := strconv.ParseUint(string(fields[1]), 10, 64)
	shared, _ := strconv.ParseUint(string(fields[2]), 10, 64)
	return (resident - shared) * uint64(os.Getpagesize())
}
