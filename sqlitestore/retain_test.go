package sqlitestore

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
)

// chatter appends messages to a channel, a second apart. The channel's reader has read up to a
// number.
func chatter(s *Store, channel journal.ChannelID, from, to, read uint64) {
	for seq := from; seq <= to; seq++ {
		s.Append(&journal.Record{
			Events: []journal.Event{{
				ID: journal.EventID{Origin: s.Origin(), Seq: seq}, Time: int64(seq) * int64(time.Second), Kind: journal.EventChannelMessage,
				Channel: channel, Seq: seq, Payload: make([]byte, 200),
			}},
			Channels: []journal.ChannelRow{{ID: channel}}, Creatures: []journal.CreatureRow{{ID: "a"}},
			Heads:   []journal.HeadRow{{Channel: channel, Seq: seq}},
			Cursors: []journal.CursorRow{{Reader: "reader:x", Channel: channel, Seq: min(seq, read)}},
			State:   []journal.StateRow{{Creature: "a", Key: fmt.Sprint(seq % 10), Value: fmt.Append(nil, seq)}},
		})
	}
}

// kept opens a directory with a bound, and appends a number of messages. It returns the numbers
// of the messages that are left when everything is done.
func kept(t *testing.T, o Options, messages, read uint64) (left []uint64, d *Directory, s *Store) {
	t.Helper()
	left, d, s = leftOpen(t, o, messages, read)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return left, d, s
}

// leftOpen does the same as kept, but the caller closes the directory.
func leftOpen(t *testing.T, o Options, messages, read uint64) (left []uint64, d *Directory, s *Store) {
	t.Helper()
	d, err := Open(t.Context(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	s = createStore(t, d)
	chatter(s, "c", 1, messages, read)
	if err := s.Wait(t.Context(), messages); err != nil {
		t.Fatal(err)
	}
	settle(t, d)
	return numbersLeft(t, s), d, s
}

func settle(t *testing.T, d *Directory) {
	t.Helper()
	if err := d.Settle(t.Context()); err != nil {
		t.Fatalf("Settle: %v", err)
	}
}

func numbersLeft(t *testing.T, s journal.Store) (left []uint64) {
	t.Helper()
	events, err := s.History(t.Context(), journal.HistoryQuery{Limit: 1 << 20, Channel: "c"})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		left = append(left, e.Seq)
	}
	return left
}

// TestAgeByAClockThatJumps prunes a log whose last events were logged while the clock was far
// ahead. Events that are young by that clock are kept until they are old.
func TestAgeByAClockThatJumps(t *testing.T) {
	const began, ahead = 1_000_000, 74 * 365 * 24 * 3600 // seconds
	for _, c := range []struct {
		name string
		now  int64 // seconds
		from uint64
	}{
		{"right again", began + 1010, 510},
		{"behind", 5, 1501},
		{"later", began + 3000, 1501},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := func() time.Time { return time.Unix(c.now, 0) }
			d, err := Open(t.Context(), t.TempDir(), Options{Retain: Retention{Age: 500 * time.Second}, Now: now})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			s := createStore(t, d)
			for seq := uint64(1); seq <= 2000; seq++ {
				at := int64(seq) + began
				if seq > 1000 {
					at += ahead
				}
				s.Append(&journal.Record{
					Events:   []journal.Event{{ID: journal.EventID{Origin: s.Origin(), Seq: seq}, Time: at * int64(time.Second), Kind: journal.EventChannelMessage, Channel: "c", Seq: seq}},
					Channels: []journal.ChannelRow{{ID: "c"}}, Creatures: []journal.CreatureRow{{ID: "a"}},
					Heads: []journal.HeadRow{{Channel: "c", Seq: seq}}, Cursors: []journal.CursorRow{{Reader: "reader:x", Channel: "c", Seq: seq}},
				})
			}
			if err := s.Wait(t.Context(), 2000); err != nil {
				t.Fatal(err)
			}
			settle(t, d)
			wantNewest(t, numbersLeft(t, s), c.from-1, c.from+1, 2000)
			wantSound(t, d, s.info.Session)
		})
	}
}

// TestJumps checks that a clock that is set is distinguished from one that is corrected.
func TestJumps(t *testing.T) {
	var j jumps
	for i, step := range []struct {
		wall, passed time.Duration
		calm         bool
	}{
		{0, 0, true},
		{time.Hour, time.Hour, true},
		{2*time.Hour + 30*time.Second, 2 * time.Hour, true},
		{1000 * time.Hour, 2*time.Hour + time.Minute, false},
		{3*time.Hour + time.Minute, 2*time.Hour + 2*time.Minute, false},
		{4 * time.Hour, 3*time.Hour + time.Minute, false},
		{4*time.Hour + time.Minute, 3*time.Hour + 2*time.Minute, true},
	} {
		if got := j.calm(int64(step.wall), step.passed); got != step.calm {
			t.Errorf("step %d: calm is %v, want %v", i, got, step.calm)
		}
	}
}

// wantNewest checks that the newest numbers are left, without a gap, and that the oldest are
// not.
func wantNewest(t *testing.T, left []uint64, from, to, last uint64) {
	t.Helper()
	if len(left) == 0 || left[0] < from || left[0] > to || left[len(left)-1] != last || uint64(len(left)) != last-left[0]+1 {
		t.Errorf("%d messages are left, from %v on; want those from about %d to %d", len(left), slices.Min(append(left, last+1)), from, last)
	}
}

func wantSound(t *testing.T, d *Directory, session journal.SessionID) {
	t.Helper()
	report, err := d.Verify(t.Context(), session)
	if n := len(report.Missing) + len(report.Duplicate) + len(report.OutOfOrder) + len(report.Damage); err != nil || n > 0 {
		t.Errorf("Verify: %+v, %v", report, err)
	}
}

// TestRetention prunes what is too old or too much, and nothing that is still to be read.
func TestRetention(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		retain   Retention
		read     uint64
		from, to uint64 // where the remaining messages begin
	}{
		{"Events", Retention{Events: 300}, 2000, 1690, 1702},
		{"Age", Retention{Age: 500 * time.Second}, 2000, 1490, 1502},
		{"Bytes", Retention{Bytes: 200 << 10}, 2000, 800, 1900},
		{"Unread", Retention{Events: 300}, 1200, 1201, 1201},
		{"NoReader", Retention{Events: 300}, 0, 1, 1},
		{"WithinBounds", Retention{Events: 1900, Age: 1900 * time.Second, Bytes: 1 << 30}, 2000, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			left, d, s := kept(t, Options{Retain: c.retain}, 2000, c.read)
			wantNewest(t, left, c.from, c.to, 2000)
			wantSound(t, d, s.info.Session)
			state, err := s.State(t.Context(), "a")
			if err != nil || len(state) != 10 || string(state["9"]) != "1999" {
				t.Errorf("state %q, %v", state, err)
			}
			unread, err := s.Messages(t.Context(), "c", c.read, 0, 0, 0)
			if err != nil || uint64(len(unread)) != 2000-c.read {
				t.Errorf("%d messages are to be read, want %d; %v", len(unread), 2000-c.read, err)
			}
			// The bound still applies after a cut.
			chatter(s, "c", 2001, 2010, 2010)
			children, err := d.Cut(t.Context(), splitOf(s))
			if err != nil {
				t.Fatal(err)
			}
			settle(t, d)
			again := numbersLeft(t, children[0])
			if again[0] < left[0] || again[len(again)-1] != 2010 {
				t.Errorf("the child has %d to %d, want about %d to 2010", again[0], again[len(again)-1], left[0])
			}
			wantSound(t, d, children[0].Info().Session)
		})
	}
}

// TestDiskBudget cuts again and again. The directory never needs much more than its budget.
func TestDiskBudget(t *testing.T) {
	const budget = 1 << 20
	_, d, s := kept(t, Options{MaxDiskBytes: budget}, 5000, 5000)
	stores := []journal.Store{s}
	for round := range 6 {
		cut := splitOf(s)
		if len(stores) > 1 {
			cut.Kind, cut.Children = "merge", cut.Children[:1]
		}
		var parents []journal.SessionID
		for _, s := range stores {
			parents = append(parents, s.Info().Session)
		}
		cut.Parents = stores
		for i := range cut.Children {
			cut.Children[i].Parents = parents
		}
		var err error
		if stores, err = d.Cut(t.Context(), cut); err != nil {
			t.Fatal(err)
		}
		for i, s := range stores {
			chatter(s.(*Store), journal.ChannelID(fmt.Sprintf("c%d-%d", round, i)), 1, 500, 500)
		}
		settle(t, d)
		if n := d.excess(t.Context()); n > budget/2 {
			t.Errorf("after %d cuts the directory exceeds its budget by %d bytes", round+1, n)
		}
	}
	for _, s := range stores {
		wantSound(t, d, s.Info().Session)
	}
}

// TestOverBudgetMeanwhile writes beyond the budget after a round has pruned. What can be pruned
// is pruned before the directory reports that it exceeds its budget.
func TestOverBudgetMeanwhile(t *testing.T) {
	const messages = 20_000
	_, d, s := kept(t, Options{MaxDiskBytes: 2 << 20}, 10, 10)
	err := d.hydrator.call(t.Context(), func(ctx context.Context) error {
		chatter(s, "c", 11, messages, messages)
		if err := s.Wait(ctx, messages); err != nil {
			return err
		}
		if d.excess(ctx) <= 0 {
			t.Errorf("%d messages do not exceed the budget", messages)
		}
		return d.hydrator.overBudget(ctx)
	})
	if err != nil {
		t.Error(err)
	}
	if n := d.excess(t.Context()); n > 0 {
		t.Errorf("the directory exceeds its budget by %d bytes", n)
	}
	wantSound(t, d, s.info.Session)
}
