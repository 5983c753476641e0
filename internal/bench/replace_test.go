package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/plugins"
)

// BenchmarkReplace measures what a creature and its neighbour notice while the creature's
// module is replaced: the longest time from a request to its reply, of those under way
// meanwhile. The module is compiled already, except in new; the reference, calm, replaces
// nothing for a millisecond.
func BenchmarkReplace(b *testing.B) {
	for _, d := range []journal.Durability{journal.Volatile, journal.Normal, journal.Full} {
		for _, by := range []string{swapCompiled, swapNew, swapNothing} {
			b.Run(d.String()+"/"+by, func(b *testing.B) { newSwap(b, d).run(b, by) })
		}
	}
}

// What BenchmarkReplace replaces a module by.
const (
	swapCompiled = "compiled"
	swapNew      = "new"
	swapNothing  = "calm"
)

// swap is a world of a creature and its neighbour. Both get requests all the time.
type swap struct {
	*world
	wasm     []byte
	creature journal.CreatureID
	asked    [2]*roundTrips // of the creature, and of the neighbour
}

func newSwap(b *testing.B, d journal.Durability) *swap {
	wasm, err := plugins.Get("tally")
	must(b, err)
	s := &swap{world: newWorld(b, d, nil), wasm: wasm}
	pair := s.creatures(2, wasm)
	s.creature = pair[0]
	for i, id := range pair {
		s.asked[i] = &roundTrips{ask: func(ctx context.Context) error {
			_, err := s.Request(ctx, id, engine.Outgoing{Payload: []byte("?")}, time.Minute)
			return err
		}}
	}
	return s
}

// version is the module with another section.
func (s *swap) version(n int) []byte {
	text := fmt.Sprintf("%08d", n)
	return append(append(slices.Clone(s.wasm), 0, byte(len(text)+2), 1, 'v'), text...)
}

func (s *swap) run(b *testing.B, by string) {
	ctx := context.Background()
	if by == swapCompiled { // creatures that have the versions keep them compiled
		for n := range 2 {
			_, err := s.AddCreature(ctx, deploy.CreatureSpec{Name: fmt.Sprint("keeps", n), Wasm: s.version(n)})
			must(b, err)
		}
	}
	asking, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, r := range s.asked {
		all.Go(func() { r.run(asking) })
	}
	var noticed [2][]time.Duration
	var took []time.Duration
	b.ResetTimer()
	for n := range b.N {
		began := time.Now()
		s.step(b, by, n)
		ended := time.Now()
		took = append(took, ended.Sub(began))
		for i, r := range s.asked {
			noticed[i] = append(noticed[i], r.longest(began, ended))
		}
	}
	b.StopTimer()
	stop()
	all.Wait()
	for i, name := range []string{"itself", "neighbour"} {
		must(b, s.asked[i].failed)
		b.ReportMetric(percentile(noticed[i], 50), name+"-p50-ms")
		b.ReportMetric(percentile(noticed[i], 99), name+"-p99-ms")
	}
	b.ReportMetric(percentile(took, 99), "whole-p99-ms")
}

// step replaces the module, or lets as much time pass.
func (s *swap) step(b *testing.B, by string, n int) {
	switch by {
	case swapCompiled:
		n %= 2
	case swapNothing:
		time.Sleep(time.Millisecond)
		return
	}
	out, err := s.ReplaceModule(context.Background(), s.creature, engine.Replacement{Wasm: s.version(n)})
	must(b, err)
	must(b, out.Wait(context.Background()))
}

func percentile(list []time.Duration, p int) float64 {
	slices.Sort(list)
	return float64(list[(len(list)-1)*p/100].Nanoseconds()) / 1e6
}

// roundTrips sends requests again and again, and notes their times.
type roundTrips struct {
	ask    func(context.Context) error
	mu     sync.Mutex
	list   []trip
	failed error
}

// askPause is the time between a reply and the next request. Without it, the askers alone
// would keep the processors busy, and wait for each other.
const askPause = 50 * time.Microsecond

type trip struct{ began, ended time.Time }

func (r *roundTrips) run(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		err := r.ask(ctx)
		r.mu.Lock()
		r.list = append(r.list, trip{began, time.Now()})
		if ctx.Err() == nil {
			r.failed = cmp.Or(r.failed, err)
		}
		r.mu.Unlock()
		time.Sleep(askPause)
	}
}

// longest returns the longest time of a request that was under way between two times, and
// forgets earlier ones. It waits for the end of the one under way.
func (r *roundTrips) longest(began, ended time.Time) (longest time.Duration) {
	for done := false; !done; {
		r.mu.Lock()
		for _, t := range r.list {
			if t.ended.After(began) && t.began.Before(ended) {
				longest = max(longest, t.ended.Sub(t.began))
			}
			done = done || !t.ended.Before(ended)
		}
		r.list = r.list[:0]
		done = done || r.failed != nil
		r.mu.Unlock()
		if !done {
			time.Sleep(10 * time.Microsecond)
		}
	}
	return longest
}
