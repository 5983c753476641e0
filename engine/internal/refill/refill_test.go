package refill_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/engine/internal/refill"
	"github.com/seed47132306/terrarium/engine/journal"
)

// shelf is a store that has only messages.
type shelf struct {
	journal.Store
	channels map[journal.ChannelID][]journal.Event
	err      error
}

func (s *shelf) Messages(_ context.Context, ch journal.ChannelID, after, last uint64, limit int, _ int64) ([]journal.Event, error) {
	var out []journal.Event
	for _, ev := range s.channels[ch] {
		if ev.Seq > after && ev.Seq <= last && len(out) < limit {
			out = append(out, ev)
		}
	}
	return out, s.err
}

// at returns messages with numbers from first on, at the given times.
func at(first uint64, times ...int64) (out []journal.Event) {
	for i, time := range times {
		out = append(out, journal.Event{Seq: first + uint64(i), Time: time})
	}
	return out
}

// TestMessagesComeInOrder reads three channels. The second is read only in part.
func TestMessagesComeInOrder(t *testing.T) {
	s := &shelf{channels: map[journal.ChannelID][]journal.Event{
		"a": at(1, 10, 40, 20), // the clock has been set back
		"b": at(5, 15, 30, 35, 50),
		"c": at(1, 60),
	}}
	read := func(limit int, from map[journal.ChannelID]uint64) []refill.Log[journal.ChannelID] {
		logs := []refill.Log[journal.ChannelID]{{Feed: "a", From: from["a"], End: 3}, {Feed: "b", From: 4 + from["b"], End: 8}, {Feed: "c", From: from["c"], End: 1}}
		for i := range logs {
			if err := logs[i].Read(t.Context(), s, logs[i].Feed, limit, 1); err != nil {
				t.Fatal(err)
			}
		}
		return logs
	}
	var whole, parts []int64
	refill.InOrder(read(10, nil), func(_ journal.ChannelID, ev *journal.Event) { whole = append(whole, ev.Time) })
	if want := []int64{10, 15, 30, 35, 40, 20, 50, 60}; !slices.Equal(whole, want) {
		t.Errorf("read at once, the messages come at %v, want %v", whole, want)
	}
	from := map[journal.ChannelID]uint64{}
	for range 20 {
		refill.InOrder(read(1, from), func(ch journal.ChannelID, ev *journal.Event) {
			parts = append(parts, ev.Time)
			from[ch]++
		})
	}
	if !slices.Equal(parts, whole) {
		t.Errorf("read one by one, the messages come at %v, want %v", parts, whole)
	}
}

// TestAGapIsFound reads channels with missing messages.
func TestAGapIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		events     []journal.Event
		kept       int
		lost, done bool
	}{
		"at the beginning":    {at(4, 1, 2), 0, true, false},
		"in between":          {slices.Concat(at(3, 1), at(5, 2)), 1, false, false},
		"nowhere":             {at(3, 1, 2, 3), 3, false, true},
		"and nothing is left": {nil, 0, true, false},
	} {
		l := []refill.Log[int]{{From: 2, End: 5}}
		if err := l[0].Read(t.Context(), &shelf{channels: map[journal.ChannelID][]journal.Event{"k": c.events}}, "k", 10, 1); err != nil {
			t.Fatal(err)
		}
		l[0].BreakOff()
		if l[0].Lost() != c.lost {
			t.Errorf("%s: lost is %v", name, l[0].Lost())
		}
		n := 0
		refill.InOrder(l, func(int, *journal.Event) { n++ })
		if n != c.kept || l[0].Done() != c.done {
			t.Errorf("%s: %d messages are kept, done is %v", name, n, l[0].Done())
		}
	}
	failed := errors.New("the disk failed")
	l := refill.Log[int]{From: 2, End: 5}
	if err := l.Read(t.Context(), &shelf{err: failed}, "k", 10, 1); !errors.Is(err, failed) || l.Done() {
		t.Errorf("reading from a store that fails returns %v", err)
	}
}
