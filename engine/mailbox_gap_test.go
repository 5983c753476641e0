package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

var errHole = errors.New("the file of a session is missing")

// hole is a storage in which some messages of a channel cannot be read, as if they were
// in a missing file.
type hole struct {
	journal.Storage
	channel     journal.ChannelID // "": the file is back
	first, last uint64
}

type holed struct {
	journal.Store
	h *hole
}

func (h *hole) Open(ctx context.Context, id journal.SessionID) (journal.Store, error) {
	s, err := h.Storage.Open(ctx, id)
	return &holed{s, h}, err
}

func (h *hole) Cut(ctx context.Context, cut journal.Cut) ([]journal.Store, error) {
	return cutThrough(ctx, h.Storage, cut, func(s journal.Store) journal.Store { return &holed{s, h} })
}

func (s *holed) wrapped() journal.Store { return s.Store }

func (s *holed) Missing() error {
	if s.h.channel != "" {
		return errHole
	}
	return nil
}

func (s *holed) Messages(ctx context.Context, ch journal.ChannelID, after, until uint64, limit int, bytes int64) ([]journal.Event, error) {
	events, err := s.Store.Messages(ctx, ch, after, until, limit, bytes)
	return slices.DeleteFunc(events, func(ev journal.Event) bool {
		return ev.Channel == s.h.channel && s.h.first <= ev.Seq && ev.Seq <= s.h.last
	}), err
}

// TestWhatIsLostGoesOnWaiting makes a part of a creature's backlog unreadable. The creature
// gets the messages before that part, and those of other channels. The rest waits, even through
// a split and after the edge was removed, and is delivered in order when the file is back.
func TestWhatIsLostGoesOnWaiting(t *testing.T) {
	const waiting = 6
	for _, c := range []struct{ first, last uint64 }{{1, 6}, {1, 2}, {3, 4}, {6, 6}} {
		t.Run(fmt.Sprintf("%d to %d", c.first, c.last), func(t *testing.T) {
			h := &hole{first: c.first, last: c.last}
			s := newSaved(t, engine.Options{})
			a, b, third := s.add("a", "sink"), s.add("b", "record"), s.add("c", "sink")
			ch, other, bridge := s.connect(a, b, "in"), s.connect(a, b, "other"), s.connect(a, third, "bridge")
			s.change(topology.SetStopped{ID: b, Stopped: true})
			for i := range waiting {
				s.send(ch, fmt.Sprint(i+1))
			}
			s.send(other, "o")
			s.wrap = func(storage journal.Storage) journal.Storage { h.Storage, h.channel = storage, ch; return h }
			s.reopen()
			s.change(topology.SetStopped{ID: b})
			s.send(ch, "7")
			s.wait()
			s.change(topology.Disconnect{From: a, To: third, Channel: bridge})
			s.send(ch, "8")
			s.send(other, "p")
			s.wait()
			s.change(topology.SetEdge{Creature: b, Channel: ch, Direction: journal.Listen})
			s.wait()
			want := "other:o\nother:p\n" + heardOn("in", 1, int(c.first)-1)
			if got := s.state(b, "heard"); byChannel(got) != byChannel(want) {
				t.Errorf("with a hole in the log, b heard %q, want %q", got, want)
			}
			s.wrap = func(storage journal.Storage) journal.Storage { h.Storage, h.channel = storage, ""; return h }
			s.reopen()
			s.wait()
			want = "other:o\nother:p\n" + heardOn("in", 1, 8)
			if got := s.state(b, "heard"); byChannel(got) != byChannel(want) {
				t.Errorf("once the file is back, b has heard %q, want %q", got, want)
			}
		})
	}
}

// heardOn is what the module record stores for messages with rising numbers.
func heardOn(alias string, from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "%s:%d\n", alias, i)
	}
	return b.String()
}

// byChannel sorts messages by channel, and keeps the order within each.
func byChannel(heard string) string {
	lines := strings.Split(heard, "\n")
	slices.SortStableFunc(lines, func(a, b string) int {
		x, _, _ := strings.Cut(a, ":")
		y, _, _ := strings.Cut(b, ":")
		return strings.Compare(x, y)
	})
	return strings.Join(lines, "\n")
}
