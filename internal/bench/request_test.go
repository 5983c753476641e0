package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

//go:embed testdata/answer.wasm
var answer []byte

// answerers adds n creatures that answer, each in its own graph.
func (w *world) answerers(n int) []journal.CreatureID {
	w.b.Helper()
	out := make([]journal.CreatureID, n)
	for i := range out {
		added, err := w.AddCreature(context.Background(), deploy.CreatureSpec{Name: fmt.Sprint("a", i), Wasm: answer})
		must(w.b, err)
		out[i] = added.Creature
	}
	must(w.b, w.WaitIdle(context.Background()))
	return out
}

// request makes one request and returns the reply, which is the payload.
func (w *world) request(ctx context.Context, to journal.CreatureID, payload, into []byte) []byte {
	reply, err := w.Request(ctx, to, engine.Outgoing{Payload: payload, Into: into}, time.Minute)
	must(w.b, err)
	return reply
}

// TestRequestsAreAnswered checks that the measured work happens.
func TestRequestsAreAnswered(t *testing.T) {
	w := newWorld(t, journal.Volatile, nil)
	to := w.answerers(1)[0]
	for i := range 100 {
		payload := bytes.Repeat([]byte{byte(i)}, i*100)
		if reply := w.request(t.Context(), to, payload, nil); !bytes.Equal(reply, payload) {
			t.Fatalf("a payload of %d bytes came back as %d", len(payload), len(reply))
		}
	}
}

// BenchmarkRequest measures a payload to a creature and back: by a caller whose context
// can end, with memory for the reply or without, and by many callers of as many creatures.
func BenchmarkRequest(b *testing.B) {
	for _, size := range []int{100, 64 << 10} {
		payload := bytes.Repeat([]byte{1}, size)
		for _, into := range []bool{false, true} {
			b.Run(fmt.Sprintf("bytes=%d/into=%v", size, into), func(b *testing.B) {
				w := newWorld(b, journal.Volatile, nil)
				to := w.answerers(1)[0]
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				var buf []byte
				if into {
					buf = make([]byte, 0, size)
				}
				b.ReportAllocs()
				for b.Loop() {
					w.request(ctx, to, payload, buf)
				}
			})
		}
	}
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) { requestFrom(b, journal.Volatile, callers) })
	}
}

// BenchmarkDurableRequest counts requests of many callers, each of which waits until the
// reply is as durable as its store promises.
func BenchmarkDurableRequest(b *testing.B) {
	for _, d := range []journal.Durability{journal.Normal, journal.Full} {
		b.Run(d.String(), func(b *testing.B) { requestFrom(b, d, 64) })
	}
}

func requestFrom(b *testing.B, d journal.Durability, callers int) {
	w := newWorld(b, d, nil)
	var to []journal.CreatureID
	if d == journal.Volatile {
		to = w.answerers(callers)
	} else {
		to = w.creatures(callers, answer) // of one graph, which share a store
		must(b, w.WaitIdle(context.Background()))
	}
	payload := make([]byte, 100)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ReportAllocs()
	b.ResetTimer()
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				w.request(ctx, to[i], payload, nil)
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "M/s")
}

// BenchmarkSendRead measures a message to a channel, and the answer on another one, which
// the caller reads.
func BenchmarkSendRead(b *testing.B) {
	w := newWorld(b, journal.Volatile, nil)
	ctx := context.Background()
	c := w.creatures(1, hop)[0]
	last, err := w.AddCreature(ctx, deploy.CreatureSpec{Name: "last", Wasm: hop})
	must(b, err)
	out, err := w.Change(ctx, topology.Connect{From: c, To: last.Creature, Name: "out"})
	must(b, err)
	in, err := w.Change(ctx, topology.Connect{From: last.Creature, To: c, Name: "in"})
	must(b, err)
	r, err := w.Read(out[0].Channel, "bench", engine.ReaderOptions{})
	must(b, err)
	defer r.Close()
	must(b, w.WaitIdle(ctx))
	payload := binary.LittleEndian.AppendUint64(nil, 1)
	b.ReportAllocs()
	for b.Loop() {
		_, err := w.Send(ctx, in[0].Channel, engine.Outgoing{Payload: payload})
		must(b, err)
		got, err := r.Next(ctx)
		must(b, err)
		r.Ack(got.Seq)
	}
}
