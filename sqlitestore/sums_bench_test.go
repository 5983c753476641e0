package sqlitestore

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// BenchmarkSums measures which part of the time for writing a group of turns is spent on the
// checksums of their events: on computing, binding and storing them. It writes groups with and
// without checksums in turn, to two files. Other programs on the machine can only make a commit
// slower, so it compares a low percentile and not the mean.
func BenchmarkSums(b *testing.B) {
	const turns = 100
	var writers [2]*writer
	for i := range writers {
		path := filepath.Join(b.TempDir(), "store.db")
		content, err := storefile.Schema.Template()
		if err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			b.Fatal(err)
		}
		if writers[i], err = openWriter(path, journal.Normal, journal.Origin{1}, failpoint.Hooks{}); err != nil {
			b.Fatal(err)
		}
		defer func() {
			if err := writers[i].close(); err != nil {
				b.Error(err)
			}
		}()
	}
	writers[1].unsummed = true
	var took [2][]time.Duration
	for n := 0; b.Loop(); n++ {
		group := someTurns(n*turns, turns)
		for k := range writers {
			i := (n + k) % 2 // the second of a pair finds warm caches
			began := time.Now()
			if err := writers[i].commit(group); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	low := func(list []time.Duration) float64 {
		slices.Sort(list)
		return float64(list[len(list)/10]) / turns
	}
	b.ReportMetric(low(took[0]), "ns/turn")
	b.ReportMetric(100*(1-low(took[1])/low(took[0])), "sums-%")
}

// someTurns are records like those of a ring of creatures: each turn handles a message
// and sends one.
func someTurns(from, n int) (group []*journal.Record) {
	payload, ended := make([]byte, 16), []byte(`{"kind":"message","sends":1,"fuel":1234}`)
	for i := from; i < from+n; i++ {
		creature := journal.CreatureID(fmt.Sprintf("c_%022d", i%n))
		channel, next := journal.ChannelID(fmt.Sprintf("ch_%022d", i%n)), journal.ChannelID(fmt.Sprintf("ch_%022d", (i+1)%n))
		id := func(n int) journal.EventID { return journal.EventID{Origin: journal.Origin{1}, Seq: uint64(n)} }
		turn, message, cause := id(2*i+1), id(2*i+2), id(max(2*i-1, 1))
		seq := uint64(i/n + 1)
		group = append(group, &journal.Record{
			Events: []journal.Event{
				{ID: turn, Time: int64(2*i + 1), Kind: journal.EventTurnEnded, Graph: "g_0000000000000000000000", Creature: creature, Turn: turn, Attempt: 1, Channel: channel, Seq: seq, Payload: ended, Cause: cause},
				{ID: message, Time: int64(2*i + 2), Kind: journal.EventChannelMessage, Graph: "g_0000000000000000000000", Creature: creature, Turn: turn, Channel: next, Seq: seq, Payload: payload, Cause: cause},
			},
			Cursors: []journal.CursorRow{{Reader: journal.ReaderID(creature), Channel: channel, Seq: seq}},
			Heads:   []journal.HeadRow{{Channel: next, Seq: seq}},
		})
	}
	return group
}
