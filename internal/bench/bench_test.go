package main

import (
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/sqlitestore"
)

//go:embed testdata/hop.wasm
var hop []byte

// world is an engine with its host, for benchmarks.
type world struct {
	*engine.Engine
	b testing.TB
}

func newWorld(b testing.TB, durability journal.Durability, h abi.Host) *world {
	b.Helper()
	ctx := context.Background()
	if h == nil {
		real, err := host.New(ctx, host.Options{})
		must(b, err)
		b.Cleanup(func() { must(b, real.Close(ctx)) })
		h = real
	}
	o := engine.Options{Host: h, Durability: durability}
	if durability != journal.Volatile {
		dir, err := sqlitestore.Open(ctx, b.TempDir(), sqlitestore.Options{})
		must(b, err)
		b.Cleanup(func() { must(b, dir.Close()) })
		o.Storage = dir
	}
	e, err := engine.New(ctx, o)
	must(b, err)
	b.Cleanup(func() { must(b, e.Close(ctx)) })
	return &world{e, b}
}

func must(b testing.TB, err error) {
	if err != nil {
		b.Helper() // not before: it costs half a microsecond
		b.Fatal(err)
	}
}

// creatures adds n creatures in one step.
func (w *world) creatures(n int, module []byte) []journal.CreatureID {
	w.b.Helper()
	out := make([]journal.CreatureID, n)
	err := w.Batch(context.Background(), func(b *engine.Batch) error {
		for i := range n {
			added, _, err := b.AddCreature(context.Background(), deploy.CreatureSpec{Name: fmt.Sprint("c", i), Wasm: module})
			if err != nil {
				return err
			}
			out[i] = added.Creature
		}
		// All in one graph before the batch ends, so that no store is cut.
		for i := 1; i < n; i++ {
			if _, err := b.Do(context.Background(), topology.Connect{From: out[i-1], To: out[i], Name: fmt.Sprint("ch", i)}); err != nil {
				return err
			}
		}
		return nil
	})
	must(w.b, err)
	return out
}

// ring joins n creatures in a ring and returns the channel that leads into the
// first.
func (w *world) ring(n int, module []byte) journal.ChannelID {
	w.b.Helper()
	c := w.creatures(n, module)
	out, err := w.Change(context.Background(), topology.Connect{From: c[n-1], To: c[0], Name: "closing"})
	must(w.b, err)
	must(w.b, w.WaitIdle(context.Background()))
	return out[0].Channel
}

// circulate sends tokens around until they have made hops hops together.
func (w *world) circulate(ch journal.ChannelID, tokens, hops int) {
	ctx := context.Background()
	for i := range tokens {
		n := hops / tokens
		if i < hops%tokens {
			n++
		}
		_, err := w.Send(ctx, ch, engine.Outgoing{Payload: binary.LittleEndian.AppendUint64(nil, uint64(n))})
		must(w.b, err)
	}
	must(w.b, w.WaitIdle(ctx))
}

// BenchmarkDelivery measures one message from outside to a creature that sends
// one on: no ring, no other creature.
func BenchmarkDelivery(b *testing.B) {
	w := newWorld(b, journal.Volatile, nil)
	c := w.creatures(1, hop)[0]
	in, err := w.Change(context.Background(), topology.Connect{From: c, To: c, Name: "in"})
	must(b, err)
	payload := binary.LittleEndian.AppendUint64(nil, 1)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		_, err := w.Send(context.Background(), in[0].Channel, engine.Outgoing{Payload: payload})
		must(b, err)
	}
	must(b, w.WaitIdle(context.Background()))
	perSecond(b, b.N)
}

// BenchmarkRow measures a message of 100 bytes from outside that three creatures in a row pass on.
func BenchmarkRow(b *testing.B) {
	w := newWorld(b, journal.Volatile, nil)
	first := w.creatures(3, answer)[0]
	must(b, w.WaitIdle(context.Background()))
	payload := make([]byte, 100)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		_, err := w.SendTo(context.Background(), first, engine.Outgoing{Payload: payload})
		must(b, err)
	}
	must(b, w.WaitIdle(context.Background()))
	perSecond(b, b.N)
}

// BenchmarkWatched measures the cost of subscribers: none, one that reads
// everything, and one that never reads.
func BenchmarkWatched(b *testing.B) {
	for _, who := range []string{"nobody", "reading", "never_reading"} {
		b.Run(who, func(b *testing.B) {
			w := newWorld(b, journal.Normal, nil)
			ch := w.ring(10, hop)
			if who != "nobody" {
				sub := w.Subscribe(engine.Filter{}, 0)
				defer sub.Close()
				if who == "reading" {
					go func() {
						for range sub.All(context.Background()) {
						}
					}()
				}
			}
			b.ResetTimer()
			w.circulate(ch, 10, b.N)
			perSecond(b, b.N)
		})
	}
}

func BenchmarkRing(b *testing.B) {
	for _, n := range []int{2, 10, 1000, 10000} {
		b.Run(fmt.Sprintf("wasm/%d", n), func(b *testing.B) { ring(b, nil, n) })
		b.Run(fmt.Sprintf("engine/%d", n), func(b *testing.B) { ring(b, nopHost{}, n) })
		b.Run(fmt.Sprintf("goroutines/%d", n), func(b *testing.B) { goroutineRing(b, n) })
	}
}

func ring(b *testing.B, h abi.Host, n int) {
	w := newWorld(b, journal.Volatile, h)
	ch := w.ring(n, hop)
	w.circulate(ch, min(n, 500), 10*n) // every mailbox has its memory
	b.ReportAllocs()
	b.ResetTimer()
	w.circulate(ch, min(n, 500), b.N)
	perSecond(b, b.N)
}

// goroutineRing is the reference: a goroutine and a channel per creature, and
// nothing else.
func goroutineRing(b *testing.B, n int) {
	links := make([]chan int, n)
	for i := range links {
		links[i] = make(chan int, 1024)
	}
	done := make(chan struct{}, n)
	for i := range n {
		go func() {
			for hops := range links[i] {
				if hops == 0 {
					done <- struct{}{}
					continue
				}
				links[(i+1)%n] <- hops - 1
			}
		}()
	}
	tokens := min(n, 500)
	b.ResetTimer()
	for i := range tokens {
		links[i] <- b.N / tokens
	}
	for range tokens {
		<-done
	}
	b.StopTimer()
	for i := range links {
		close(links[i])
	}
	perSecond(b, b.N)
}

// BenchmarkFanOut measures one message to a thousand listeners.
func BenchmarkFanOut(b *testing.B) {
	const listeners = 1000
	for name, h := range map[string]abi.Host{"wasm": nil, "engine": nopHost{}} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b, journal.Volatile, h)
			c := w.creatures(listeners, hop)
			in, err := w.Change(context.Background(), topology.Connect{From: c[0], To: c[0], Name: "in"})
			must(b, err)
			for _, other := range c[1:] {
				_, err := w.Change(context.Background(), topology.SetEdge{Creature: other, Channel: in[0].Channel, Direction: journal.Listen, On: true})
				must(b, err)
			}
			payload := binary.LittleEndian.AppendUint64(nil, 0)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N/listeners + 1 {
				_, err := w.Send(context.Background(), in[0].Channel, engine.Outgoing{Payload: payload})
				must(b, err)
			}
			must(b, w.WaitIdle(context.Background()))
			perSecond(b, b.N)
		})
	}
}

// BenchmarkWake measures the time from sending a message to an idle creature
// until it has been handled.
func BenchmarkWake(b *testing.B) {
	w := newWorld(b, journal.Volatile, nil)
	ch := w.ring(2, hop)
	b.ResetTimer()
	for range b.N {
		w.circulate(ch, 1, 0)
	}
}

// BenchmarkSpawn adds and removes a creature of a warm module.
func BenchmarkSpawn(b *testing.B) {
	w := newWorld(b, journal.Volatile, nil)
	w.creatures(1, hop)
	ctx := context.Background()
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		added, err := w.AddCreature(ctx, deploy.CreatureSpec{Name: fmt.Sprint("s", i), Wasm: hop})
		must(b, err)
		_, err = w.RemoveCreature(ctx, added.Creature)
		must(b, err)
	}
}

// BenchmarkMemory measures the memory of a live idle creature.
func BenchmarkMemory(b *testing.B) {
	const n = 1000
	for range b.N {
		w := newWorld(b, journal.Volatile, nil)
		w.creatures(1, hop)
		before := heap()
		w.creatures2(n, hop)
		must(b, w.WaitIdle(context.Background()))
		b.ReportMetric((float64(heap())-float64(before))/n/1024, "KB/creature")
		runtime.KeepAlive(w)
	}
}

// creatures2 adds n creatures, each in its own graph.
func (w *world) creatures2(n int, module []byte) {
	for i := range n {
		_, err := w.AddCreature(context.Background(), deploy.CreatureSpec{Name: fmt.Sprint("m", i), Wasm: module})
		must(w.b, err)
	}
}

// heap returns the bytes of the heap in use after all garbage is collected:
// the remains of earlier benchmarks are freed in several steps, because
// finalizers and cleanups release more.
func heap() uint64 {
	var m runtime.MemStats
	for least := uint64(math.MaxUint64); ; least = m.HeapAlloc {
		runtime.GC()
		if runtime.ReadMemStats(&m); m.HeapAlloc >= least {
			return m.HeapAlloc
		}
	}
}

// BenchmarkDurable counts turns a second with a store: many creatures, each
// turn one delivery and one send.
func BenchmarkDurable(b *testing.B) {
	for _, d := range []journal.Durability{journal.Volatile, journal.Normal, journal.Full} {
		b.Run(d.String(), func(b *testing.B) {
			w := newWorld(b, d, nil)
			ch := w.ring(100, hop)
			w.circulate(ch, 100, 1000)
			b.ReportAllocs()
			b.ResetTimer()
			w.circulate(ch, 100, b.N)
			perSecond(b, b.N)
		})
	}
}

func perSecond(b *testing.B, n int) {
	b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "M/s")
	b.ReportMetric(0, "B/op")
}
