package sqlitestore

import (
	"fmt"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
)

// TestIndexOfFewChannels writes messages of few channels and of many. The fewer there are, the
// sooner the index is brought up to date.
func TestIndexOfFewChannels(t *testing.T) {
	for of, want := range map[int]int{1: indexLeast, indexLeast / indexRun: indexLeast, 16: indexRun * 16, indexBatch: indexBatch} {
		d := mustOpen(t, t.TempDir())
		s := createStore(t, d)
		seq := uint64(0)
		write := func(n int) (waiting int) {
			for range n {
				ch := journal.ChannelID(fmt.Sprintf("c%d", seq%uint64(of)))
				seq++
				s.Append(&journal.Record{Events: []journal.Event{{ID: journal.EventID{Origin: s.Origin(), Seq: seq}, Time: int64(seq), Kind: journal.EventChannelMessage, Channel: ch, Seq: seq}}})
			}
			if err := s.park(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer s.queue.resume()
			return s.w.unindexed
		}
		if n := write(want - 1); n != want-1 {
			t.Errorf("of %d channels, %d of %d messages are not indexed", of, n, want-1)
		}
		if n := write(1); n != 0 {
			t.Errorf("of %d channels, %d of %d messages are not indexed", of, n, want)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}
