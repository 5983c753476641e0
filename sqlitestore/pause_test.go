package sqlitestore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// alternate splits a store and merges the sides again, n times, and answers how
// long each cut took.
func alternate(b *testing.B, d *sqlitestore.Directory, stores []engine.Store, n int, between func()) ([]engine.Store, []time.Duration) {
	b.Helper()
	var pauses []time.Duration
	for range n {
		cut := engine.Cut{Kind: "split", At: time.Now().UnixNano()}
		children := 2
		if len(stores) > 1 {
			cut.Kind, children = "merge", 1
		}
		cut.Parents = stores
		var parents []engine.SessionID
		for _, s := range stores {
			parents = append(parents, s.Info().Session)
		}
		for range children {
			cut.Children = append(cut.Children, engine.CutChild{
				StoreSpec: engine.StoreSpec{Graph: "g", Durability: engine.Normal}, Parents: parents,
				First: func(o engine.Origin) *engine.Record {
					return &engine.Record{Events: []engine.Event{{ID: engine.EventID{Origin: o, Seq: 1}, Time: time.Now().UnixNano(), Kind: engine.EventTopologyChanged}}}
				},
			})
		}
		began := time.Now()
		made, err := d.Cut(context.Background(), cut)
		if err != nil {
			b.Fatal(err)
		}
		pauses = append(pauses, time.Since(began))
		stores = made
		between()
	}
	return stores, pauses
}

// percentile sorts durations and answers the one that so many percent do not
// exceed.
func percentile(d []time.Duration, percent int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(len(d)*percent/100, len(d)-1)]
}

// twoSyncs is how long it takes to sync a page twice, one after the other: a cut
// waits for two rounds of syncs, so it is not faster than the disk does that.
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

// BenchmarkPause is what those who write notice of a cut: it must not depend on
// the length of the history. "calm" cuts twenty times a second, and measures two
// syncs of the disk between the cuts; "storm" cuts as fast as it can.
func BenchmarkPause(b *testing.B) {
	for _, events := range []int{1_000, 1_000_000} {
		for _, mode := range []string{"calm", "storm"} {
			b.Run(fmt.Sprintf("events=%d/%s", events, mode), func(b *testing.B) {
				d := openBench(b, b.TempDir())
				s := createBench(b, d, engine.Normal)
				fill(b, s, events)
				stores := []engine.Store{s}
				f, err := os.Create(filepath.Join(b.TempDir(), "synced"))
				if err != nil {
					b.Fatal(err)
				}
				defer f.Close()
				var pauses, syncs []time.Duration
				between := func() {}
				if mode == "calm" {
					between = func() {
						time.Sleep(40 * time.Millisecond)
						syncs = append(syncs, twoSyncs(b, f))
						time.Sleep(10 * time.Millisecond)
					}
				}
				stores, _ = alternate(b, d, stores, 4, between)
				b.ResetTimer()
				stores, pauses = alternate(b, d, stores, b.N, between)
				b.StopTimer()
				b.ReportMetric(percentile(pauses, 50).Seconds()*1e3, "p50-ms")
				b.ReportMetric(percentile(pauses, 99).Seconds()*1e3, "p99-ms")
				if len(syncs) > 0 {
					b.ReportMetric(percentile(syncs, 50).Seconds()*1e3, "syncs-p50-ms")
					b.ReportMetric(percentile(syncs, 99).Seconds()*1e3, "syncs-p99-ms")
				}
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
