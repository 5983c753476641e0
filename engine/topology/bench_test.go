package topology_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/seed47132306/terrarium/engine/topology"
)

var sizes = []int{1_000, 10_000, 100_000}

// bench is a state under measurement.
type bench struct {
	*State
	ids counted
}

func (b *bench) must(tb testing.TB, ops ...Op) []Delta {
	deltas, err := b.Apply(&b.ids, ops...)
	if err != nil {
		tb.Fatal(err)
	}
	return deltas
}

func member(i int) CreatureID { return CreatureID(fmt.Sprintf("c%d", i)) }

// ring makes a ring of n creatures, each of which sends to the next, with some
// chords across it.
func ring(tb testing.TB, n, chords int) *bench {
	b := &bench{State: New()}
	b.must(tb, AddCreature{ID: member(0), Name: "n0", Root: true})
	g := b.GraphOf(member(0))
	for i := 1; i < n; i++ {
		b.must(tb, AddCreature{ID: member(i), Name: fmt.Sprintf("n%d", i), Join: g, Parent: member(i - 1)})
	}
	b.must(tb, Connect{From: member(n - 1), To: member(0), Name: "closing"})
	for i := range chords {
		b.must(tb, Connect{From: member(i * 7919 % n), To: member((i*104729 + n/2) % n), Name: fmt.Sprintf("chord%d", i)})
	}
	return b
}

// report adds the median and the 99th percentile to the mean.
func report(b *testing.B, times []time.Duration) {
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds()), "p99-ns")
}

// percentile times every call of op by itself and reports the median and the
// 99th percentile beside the mean.
func percentile(b *testing.B, op func(i int)) {
	times := make([]time.Duration, 0, b.N)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		op(i)
		times = append(times, time.Since(start))
	}
	report(b, times)
}

func eachSize(b *testing.B, run func(b *testing.B, n int)) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) { run(b, n) })
	}
}

func BenchmarkAddCreature(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		s := ring(b, n, n/2)
		g := s.GraphOf(member(0))
		percentile(b, func(i int) {
			s.must(b, AddCreature{ID: member(n + i), Name: fmt.Sprintf("n%d", n+i), Join: g, Parent: member(i * 31 % n)})
		})
	})
}

func BenchmarkConnectWithin(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		s := ring(b, n, n/2)
		percentile(b, func(i int) {
			s.must(b, Connect{From: member(i * 31 % n), To: member((i*17 + n/3) % n)})
		})
	})
}

// BenchmarkToggle turns an edge off and on that holds nothing together.
func BenchmarkToggle(b *testing.B) {
	for _, d := range []Direction{Listen, Send} {
		b.Run(d.String(), func(b *testing.B) {
			eachSize(b, func(b *testing.B, n int) {
				s := ring(b, n, n)
				percentile(b, func(i int) {
					ch, _ := s.FindChannel(s.GraphOf(member(0)), fmt.Sprintf("chord%d", i/2%n))
					who := member(i / 2 * 7919 % n)
					if d == Listen {
						who = member((i/2*104729 + n/2) % n)
					}
					s.must(b, SetEdge{Creature: who, Channel: ch, Direction: d, On: i%2 == 1})
				})
			})
		})
	}
}

// BenchmarkSplitSmall splits a chain of five off a large graph; joining it
// again is not timed in the percentile but is in the mean.
func BenchmarkSplitSmall(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		s := ring(b, n, n/2)
		g := s.GraphOf(member(0))
		parent := member(0)
		for i := range 5 {
			s.must(b, AddCreature{ID: member(n + i), Name: fmt.Sprintf("n%d", n+i), Join: g, Parent: parent})
			parent = member(n + i)
		}
		ch := s.Connected(member(0), member(n))[0]
		times := make([]time.Duration, 0, b.N)
		for b.Loop() {
			start := time.Now()
			d := s.must(b, SetEdge{Creature: member(0), Channel: ch, Direction: Send})
			times = append(times, time.Since(start))
			if len(d[0].Affected) != 5 {
				b.Fatal(d)
			}
			s.must(b, SetEdge{Creature: member(0), Channel: ch, Direction: Send, On: true})
		}
		report(b, times)
	})
}

// BenchmarkRingRemoval opens a ring at ever other places, which does not split
// it: the sparse worst case, because the only way round leads over all others.
func BenchmarkRingRemoval(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		s := ring(b, n, 0)
		times := make([]time.Duration, 0, b.N)
		for i := 0; b.Loop(); i++ {
			who := member(i*7919%(n-1) + 1)
			ch, _ := s.FindChannel(s.GraphOf(who), "n"+string(who[1:]))
			start := time.Now()
			s.must(b, SetEdge{Creature: who, Channel: ch, Direction: Listen})
			times = append(times, time.Since(start))
			s.must(b, SetEdge{Creature: who, Channel: ch, Direction: Listen, On: true})
		}
		report(b, times)
	})
}

// BenchmarkRecompute is what the same costs when every removal derives all
// components anew.
func BenchmarkRecompute(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		snap := ring(b, n, n/2).Snapshot()
		for b.Loop() {
			if got := recompute(snap); got != 1 {
				b.Fatal(got)
			}
		}
	})
}

// recompute counts the components of a snapshot by breadth-first search.
func recompute(snap Snapshot) int {
	members := make(map[ChannelID][]CreatureID, len(snap.Channels))
	channels := make(map[CreatureID][]ChannelID, len(snap.Creatures))
	for _, e := range snap.Edges {
		members[e.Channel] = append(members[e.Channel], e.Creature)
		channels[e.Creature] = append(channels[e.Creature], e.Channel)
	}
	seen := make(map[CreatureID]bool, len(snap.Creatures))
	components := 0
	for _, c := range snap.Creatures {
		if seen[c.ID] {
			continue
		}
		components++
		seen[c.ID] = true
		for queue := []CreatureID{c.ID}; len(queue) > 0; queue = queue[1:] {
			for _, ch := range channels[queue[0]] {
				for _, next := range members[ch] {
					if !seen[next] {
						seen[next] = true
						queue = append(queue, next)
					}
				}
			}
		}
	}
	return components
}
