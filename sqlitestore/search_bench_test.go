package sqlitestore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/search"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// spoken fills a session with messages. Each has some common words and a number that few
// messages have. Every thousandth has a rare word.
func spoken(b *testing.B, s journal.Store, from, to int) {
	b.Helper()
	for i := from; i <= to; i++ {
		if err := s.Room(context.Background()); err != nil {
			b.Fatal(err)
		}
		text := fmt.Sprintf("2026-01-01 00:%02d:%02d status installed libc6:amd64 2.41-12 n %d", i/60%60, i%60, i*7919%100_000)
		if i%1000 == 0 {
			text += " seldom"
		}
		s.Append(&journal.Record{Events: []journal.Event{{
			ID: journal.EventID{Origin: s.Origin(), Seq: uint64(i)}, Time: time.Now().UnixNano() + int64(i), Kind: journal.EventChannelMessage,
			Graph: "g", Creature: journal.CreatureID(fmt.Sprintf("c%015d", i%100)), Channel: journal.ChannelID(fmt.Sprintf("h%015d", i%100)), Seq: uint64(i), Payload: []byte(text),
		}}})
	}
	if err := s.Wait(context.Background(), uint64(to)); err != nil {
		b.Fatal(err)
	}
}

func benchDirectory(b *testing.B, o Options, events int) (*Directory, journal.Store) {
	b.Helper()
	d, err := Open(context.Background(), b.TempDir(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := d.Close(); err != nil {
			b.Error(err)
		}
	})
	stores, err := d.Create(context.Background(), journal.StoreSpec{Graph: "g", Durability: journal.Normal})
	if err != nil {
		b.Fatal(err)
	}
	spoken(b, stores[0], 1, events)
	return d, stores[0]
}

// BenchmarkSearch searches 1,000,000 events for common and for rare words, and reports how long
// it took to build the index.
func BenchmarkSearch(b *testing.B) {
	const events = 1_000_000
	d, _ := benchDirectory(b, Options{}, events)
	path := filepath.Join(d.dir, search.Name)
	began := time.Now()
	if err := search.Extend(context.Background(), path, d, search.Everything, search.Hurry); err != nil {
		b.Fatal(err)
	}
	took := time.Since(began)
	size := float64(sqlite.DiskSize(path)) / (1 << 20)
	queries := func(r *rand.Rand) search.Query {
		number := fmt.Sprint(r.IntN(100_000))
		return []search.Query{
			{Text: "status"}, {Text: "seldom"}, {Text: number}, {Text: "status " + number}, {Text: `"libc6:amd64 2.41"`}, {Text: "nowhere"},
			{Text: "seldom OR " + number}, {Text: "inst* NOT seldom"}, {Text: "status", Creatures: []journal.CreatureID{"c000000000000042"}},
		}[r.IntN(9)]
	}
	for _, c := range []struct {
		name   string
		search func(search.Query) error
	}{
		{"index", func(q search.Query) error { _, err := d.Search(context.Background(), q); return err }},
		{"scan", func(q search.Query) error { return d.scanFor(q.Text) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			var all []time.Duration
			for b.Loop() {
				q := queries(r)
				began := time.Now()
				if err := c.search(q); err != nil {
					b.Fatal(err)
				}
				all = append(all, time.Since(began))
			}
			slices.Sort(all)
			b.ReportMetric(all[len(all)/2].Seconds()*1e3, "p50-ms")
			b.ReportMetric(all[len(all)*99/100].Seconds()*1e3, "p99-ms")
			b.ReportMetric(took.Seconds(), "build-s")
			b.ReportMetric(size, "index-MB")
		})
	}
}

// scanFor reads every event, as a search without an index does.
func (d *Directory) scanFor(text string) error {
	s := d.openBySize()[0]
	return s.read(context.Background(), "scan", func(f *family) error {
		n := 0
		return sqlite.Each(context.Background(), f.own.db, func(scan func(...any) error) error { return scan(&n) },
			"SELECT count(*) FROM event WHERE CAST(payload AS TEXT) LIKE '%' || ? || '%'", text)
	})
}

// BenchmarkAppendIndexed appends as fast as the disk allows, with and without an index that is
// extended in the background.
func BenchmarkAppendIndexed(b *testing.B) {
	for _, index := range []bool{false, true} {
		b.Run(fmt.Sprintf("index=%v", index), func(b *testing.B) {
			_, s := benchDirectory(b, Options{SearchIndex: index}, 100_000)
			seq := 100_000
			b.ResetTimer()
			for range b.N {
				spoken(b, s, seq+1, seq+1000)
				seq += 1000
			}
			b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "events/s")
		})
	}
}
