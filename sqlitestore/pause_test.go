package sqlitestore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// alternate splits a store and merges the sides again, n times. It returns how long each cut
// took, and how long it took until what was written by it was acknowledged.
func alternate(b *testing.B, d *sqlitestore.Directory, stores []journal.Store, n int, durability journal.Durability, between func()) (_ []journal.Store, pauses, waits []time.Duration) {
	b.Helper()
	for range n {
		cut := journal.Cut{Kind: "split", At: time.Now().UnixNano()}
		children := 2
		if len(stores) > 1 {
			cut.Kind, children = "merge", 1
		}
		cut.Parents = stores
		var parents []journal.SessionID
		for _, s := range stores {
			parents = append(parents, s.Info().Session)
		}
		for range children {
			cut.Children = append(cut.Children, journal.CutChild{
				Parents: parents,
				StoreSpec: journal.StoreSpec{Graph: "g", Durability: durability, First: func(o journal.Origin) *journal.Record {
					return &journal.Record{Events: []journal.Event{{ID: journal.EventID{Origin: o, Seq: 1}, Time: time.Now().UnixNano(), Kind: journal.EventTopologyChanged}}}
				}},
			})
		}
		began := time.Now()
		made, err := d.Cut(context.Background(), cut)
		if err != nil {
			b.Fatal(err)
		}
		pauses = append(pauses, time.Since(began))
		stores = made
		for _, s := range made {
			if durability != journal.Full {
				break
			}
			if err := s.Wait(context.Background(), 1); err != nil {
				b.Fatal(err)
			}
		}
		waits = append(waits, time.Since(began))
		between()
	}
	return stores, pauses, waits
}

// percentile sorts durations, and returns the one that the given percentage does not exceed.
func percentile(d []time.Duration, percent int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(len(d)*percent/100, len(d)-1)]
}

// report reports the median and the longest of some times.
func report(b *testing.B, times []time.Duration, of string) {
	b.Helper()
	if len(times) > 0 {
		b.ReportMetric(percentile(times, 50).Seconds()*1e3, of+"p50-ms")
		b.ReportMetric(percentile(times, 99).Seconds()*1e3, of+"p99-ms")
	}
}

// twoSyncs measures how long it takes to sync a page twice, one after the other. What is
// written to a store of the durability full after a cut waits for its own sync and for that of
// the cut.
func twoSyncs(b *testing.B, f *os.File) time.Duration {
	b.Helper()
	began := time.Now()
	for range 2 {
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began)
}

// arithmetic measures how long it takes to do nothing but arithmetic, about as much as a cut
// does. The machine causes the difference between its longest times and its median.
func arithmetic(b *testing.B) time.Duration {
	b.Helper()
	began := time.Now()
	x := uint64(88172645463325252)
	for range 600_000 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	if x == 0 { // it never is: see G. Marsaglia, Xorshift RNGs, 2003
		b.Fatal("a generator has ended")
	}
	return time.Since(began)
}

// fewestCuts is the number of cuts from which the 99th percentile means something: of 200 cuts,
// it is almost the longest, which was 2 ms in one run and 7 ms in another.
const fewestCuts = 500

// BenchmarkPause measures how much writers notice of a cut, which must not depend on the length
// of the history. "calm" cuts twenty times a second. "full" does the same with stores of that
// durability, and also reports when the first event after the cut is acknowledged; the
// creatures do not stand still for that. Between the cuts, both measure the machine: arithmetic
// and, with "full", two syncs of the disk, which would disturb "calm". "storm" cuts as fast as
// possible.
func BenchmarkPause(b *testing.B) {
	for _, events := range []int{1_000, 1_000_000} {
		for _, mode := range []string{"calm", "full", "storm"} {
			b.Run(fmt.Sprintf("events=%d/%s", events, mode), func(b *testing.B) {
				d := openBench(b, b.TempDir())
				durability := journal.Normal
				if mode == "full" {
					durability = journal.Full
				}
				s := createBench(b, d, durability)
				fill(b, s, events)
				stores := []journal.Store{s}
				f, err := os.Create(filepath.Join(b.TempDir(), "synced"))
				if err != nil {
					b.Fatal(err)
				}
				defer f.Close()
				var syncs, work []time.Duration
				between := func() {}
				if mode != "storm" {
					between = func() {
						time.Sleep(40 * time.Millisecond)
						if mode == "full" {
							syncs = append(syncs, twoSyncs(b, f))
						}
						work = append(work, arithmetic(b))
						time.Sleep(10 * time.Millisecond)
					}
				}
				stores, _, _ = alternate(b, d, stores, 4, durability, between)
				b.ResetTimer()
				stores, pauses, waits := alternate(b, d, stores, max(b.N, fewestCuts), durability, between)
				b.StopTimer()
				report(b, pauses, "")
				if mode == "full" {
					report(b, waits, "acknowledged-")
				}
				report(b, syncs, "syncs-")
				report(b, work, "arithmetic-")
				for _, s := range stores {
					if err := s.Close(context.Background()); err != nil {
						b.Fatal(err)
					}
				}
				if err := d.Close(); err != nil {
					b.Error(err)
				}
			})
		}
	}
}
