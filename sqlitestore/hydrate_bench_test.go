package sqlitestore_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
)

// BenchmarkHistory measures how long it takes until the children of a cut have their history,
// and compares it with a copy of the file that is synced.
func BenchmarkHistory(b *testing.B) {
	const events = 1_000_000
	for _, kind := range []string{"split", "merge"} {
		b.Run("kind="+kind, func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				d := openBench(b, b.TempDir())
				stores := []journal.Store{createBench(b, d, journal.Normal)}
				if kind == "merge" {
					stores = append(stores, createBench(b, d, journal.Normal))
				}
				for _, s := range stores {
					fill(b, s, events/len(stores))
				}
				size := fileSize(b, stores[0].Info().Path)
				b.StartTimer()
				began := time.Now()
				stores, _, _ = alternate(b, d, stores, 1, journal.Normal, func() {})
				appends := watchAppends(b, stores[0])
				if err := d.Settle(context.Background()); err != nil {
					b.Fatal(err)
				}
				took := time.Since(began)
				worst := appends()
				b.StopTimer()
				whole := stores[0].Info().Path
				b.ReportMetric(float64(size)/1e6, "MB")
				b.ReportMetric(worst.Seconds()*1e3, "append-p99-ms")
				if kind == "merge" {
					b.ReportMetric(events/took.Seconds(), "events/s")
				}
				// Both children of a split get a file of their own.
				b.ReportMetric(took.Seconds()/float64(len(stores))/copyTime(b, whole).Seconds(), "x-cp")
				for _, s := range stores {
					if err := s.Close(context.Background()); err != nil {
						b.Fatal(err)
					}
				}
				if err := d.Close(); err != nil {
					b.Error(err)
				}
				b.StartTimer()
			}
		})
	}
}

// watchAppends appends an event every millisecond. When it is stopped, it returns how long the
// slowest of a hundred took to be acknowledged.
func watchAppends(b *testing.B, s journal.Store) (stop func() time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan time.Duration, 1)
	go func() {
		var took []time.Duration
		seq := s.Durable()
		for ctx.Err() == nil {
			seq++
			began := time.Now()
			s.Append(&journal.Record{Events: []journal.Event{{ID: journal.EventID{Origin: s.Origin(), Seq: seq}, Time: began.UnixNano(), Kind: journal.EventLog, Payload: make([]byte, 100)}}})
			if err := s.Wait(context.Background(), seq); err != nil {
				b.Error(err)
				break
			}
			took = append(took, time.Since(began))
			time.Sleep(time.Millisecond)
		}
		result <- percentile(took, 99)
	}()
	return func() time.Duration { cancel(); return <-result }
}

func fileSize(b *testing.B, path string) (n int64) {
	b.Helper()
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(path + suffix); err == nil {
			n += info.Size()
		}
	}
	return n
}

// copyTime measures how long it takes to copy a file and to sync the copy.
func copyTime(b *testing.B, path string) time.Duration {
	b.Helper()
	in, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(fmt.Sprintf("%s/copy", b.TempDir()))
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	began := time.Now()
	if _, err := io.Copy(out, in); err != nil {
		b.Fatal(err)
	}
	if err := out.Sync(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}
