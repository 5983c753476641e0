package sqlitestore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore"
)

func openBench(tb testing.TB, dir string) *sqlitestore.Directory {
	tb.Helper()
	d, err := sqlitestore.Open(context.Background(), dir, sqlitestore.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func createBench(tb testing.TB, d *sqlitestore.Directory, durability journal.Durability) journal.Store {
	tb.Helper()
	stores, err := d.Create(context.Background(), journal.StoreSpec{Graph: "g_bench", Durability: durability})
	if err != nil {
		tb.Fatal(err)
	}
	return stores[0]
}

// turns makes records as an engine does: a message and the end of the turn
// that sent it, the reader's cursor and the channel's head.
type turns struct {
	mu   sync.Mutex
	s    journal.Store
	seq  uint64
	time int64
}

var turnPayload = []byte(`{"line":"2026-01-01 00:00:00 status installed libc6:amd64 2.41-12","n":12345}`)

func (t *turns) put(producer int) uint64 {
	creature := journal.CreatureID(fmt.Sprintf("c_%08d", producer))
	channel := journal.ChannelID(fmt.Sprintf("ch_%07d", producer))
	t.mu.Lock()
	defer t.mu.Unlock()
	message := journal.EventID{Origin: t.s.Origin(), Seq: t.seq + 1}
	turn := journal.EventID{Origin: t.s.Origin(), Seq: t.seq + 2}
	t.seq += 2
	t.time += 2
	t.s.Append(&journal.Record{
		Events: []journal.Event{
			{ID: message, Time: t.time, Kind: journal.EventChannelMessage, Graph: "g_bench", Creature: creature, Turn: turn, Attempt: 1, Channel: channel, Seq: t.seq, Payload: turnPayload, Cause: message},
			{ID: turn, Time: t.time + 1, Kind: journal.EventTurnEnded, Graph: "g_bench", Creature: creature, Attempt: 1, Cause: message},
		},
		Cursors: []journal.CursorRow{{Reader: journal.ReaderID(creature), Channel: channel, Seq: t.seq}},
		Heads:   []journal.HeadRow{{Channel: channel, Seq: t.seq}},
	})
	return t.seq
}

func BenchmarkAppend(b *testing.B) {
	for _, durability := range []journal.Durability{journal.Full, journal.Normal} {
		for _, producers := range []int{1, 8, 256} {
			b.Run(fmt.Sprintf("durability=%s/producers=%d", durability, producers), func(b *testing.B) {
				d := openBench(b, b.TempDir())
				s := createBench(b, d, durability)
				t := &turns{s: s, time: time.Now().UnixNano()}
				b.ReportAllocs()
				b.ResetTimer()
				var group sync.WaitGroup
				for p := range producers {
					n := b.N / producers
					if p < b.N%producers {
						n++
					}
					group.Go(func() {
						for range n {
							if err := s.Wait(context.Background(), t.put(p)); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				group.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
				b.StopTimer()
				if err := d.Close(); err != nil {
					b.Error(err)
				}
			})
		}
	}
}

// BenchmarkSync is the reference for the durability full: a file of the size
// of a group that is written and synced.
func BenchmarkSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "f"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	for b.Loop() {
		if _, err := f.Write(page); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

func fill(tb testing.TB, s journal.Store, events int) {
	tb.Helper()
	t := &turns{s: s, time: time.Now().UnixNano()}
	for range events / 2 {
		if err := s.Room(context.Background()); err != nil {
			tb.Fatal(err)
		}
		t.put(int(t.seq) % 100)
	}
	if err := s.Wait(context.Background(), t.seq); err != nil {
		tb.Fatal(err)
	}
}

func BenchmarkCreate(b *testing.B) {
	d := openBench(b, b.TempDir())
	for b.Loop() {
		s := createBench(b, d, journal.Normal)
		b.StopTimer()
		if err := s.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	if err := d.Close(); err != nil {
		b.Error(err)
	}
}

// BenchmarkOpen opens a directory with one store, lists it and opens it for writing. A resume
// costs that besides the engine's own work.
func BenchmarkOpen(b *testing.B) {
	for _, events := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("events=%d", events), func(b *testing.B) {
			dir := b.TempDir()
			d := openBench(b, dir)
			fill(b, createBench(b, d, journal.Normal), events)
			if err := d.Close(); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				d := openBench(b, dir)
				graphs, _, err := d.Saved(context.Background())
				if err != nil {
					b.Fatal(err)
				}
				s, err := d.Open(context.Background(), graphs[0].Session)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.History(context.Background(), journal.HistoryQuery{Newest: true, Limit: 100}); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := d.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

func BenchmarkMessages(b *testing.B) {
	d := openBench(b, b.TempDir())
	s := createBench(b, d, journal.Normal)
	fill(b, s, 100_000)
	for b.Loop() {
		if _, err := s.Messages(context.Background(), "ch_0000004", 10, 0, 64, 0); err != nil {
			b.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		b.Error(err)
	}
}
