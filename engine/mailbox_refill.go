package engine

import (
	"context"
	"slices"

	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/journal"
)

// The file of a session whose history has not been copied yet can be lost, with
// deliveries that wait for a creature. They keep waiting, because the file may be put
// back. They block only later messages of the same channel: handing those over would move
// the cursor past messages that were not read.

// breakOff finds out whether messages are missing from what was read of a feed, and keeps
// those before the gap. The numbers of a channel are consecutive, so a gap shows.
func (b *backlog) breakOff() {
	for i := range b.events {
		if b.events[i].Seq != b.from+1+uint64(i) {
			b.events, b.whole, b.broken = b.events[:i], false, true
			return
		}
	}
	if len(b.events) == 0 {
		b.whole, b.broken = false, true
	}
}

// markLost marks the feeds whose next messages are missing, and returns those newly
// found.
func (mb *mailbox) markLost(_ section, logs []backlog) (found []*feed) {
	for i := range logs {
		b := &logs[i]
		lost := b.broken && len(b.events) == 0
		if lost && !b.feed.lost {
			found = append(found, b.feed)
		}
		b.feed.lost = lost
	}
	return found
}

// reportLost reports which creatures wait in vain, and why.
func (e *core) reportLost(feeds []*feed, missing error) {
	for _, s := range feeds {
		c := s.mb.creature
		e.log.Warn("messages that wait for a creature are in a missing file", "creature", c.id, "name", c.name,
			"channel", s.id, "after", s.offered, "error", missing)
	}
}

// refill reads the next deliveries of a creature from the store into its
// mailbox.
func (w *turnWorker) refill(ctx context.Context, c *creature) error {
	return refillMailbox(ctx, &c.mb, &c.home)
}

// backlog is the part of one feed of a mailbox that waits in the store.
type backlog struct {
	feed   *feed
	from   uint64
	end    uint64
	events []journal.Event
	whole  bool // events reach end
	broken bool // what follows events, or all of it, is missing
}

// refillMailbox reads the next deliveries of a lagging mailbox from the store. It reads
// outside of the critical section; if the graph was cut meanwhile, or the mailbox
// changed, it discards what it has read, and the next call reads again.
func refillMailbox(ctx context.Context, mb *mailbox, home *graphPointer) error {
	g := home.enter()
	if g.none() {
		return nil
	}
	if !mb.lagging || mb.window.Len() > 0 || g.store == nil {
		g.leave()
		return nil
	}
	store, logs := g.store, mb.backlogs()
	limit, bytes := max(16, mb.bound/max(1, len(logs))), max(1, windowBytes/int64(max(1, len(logs))))
	g.leave()

	for i := range logs {
		b := &logs[i]
		events, err := store.Messages(ctx, b.feed.id, b.from, b.end, limit, bytes)
		if err != nil {
			if ctx.Err() == nil && !home.logsTo(store) {
				return nil
			}
			return err
		}
		n := len(events)
		b.events, b.whole = events, n == 0 || events[n-1].Seq >= b.end
	}
	missing := store.Missing()
	if mb.creature != nil && missing != nil {
		for i := range logs {
			logs[i].breakOff()
		}
	}
	again := home.enter()
	if again.none() {
		return nil
	}
	if again != g || again.store != store {
		again.leave()
		return nil
	}
	lost := mb.putRead(again, logs)
	again.leave()
	g.engine.reportLost(lost, missing)
	return nil
}

// backlogs lists the feeds with deliveries that wait in the store.
func (mb *mailbox) backlogs() []backlog {
	var out []backlog
	for _, s := range mb.feeds {
		if end := s.lastMessage(); end > s.offered {
			out = append(out, backlog{feed: s, from: s.offered, end: end})
		}
	}
	return out
}

// putRead puts what was read into the window, in the order of the log. A feed that was
// not read to its end is known only in part, so nothing later than its last known message
// can be taken yet. It returns the feeds that turn out to be lost.
func (mb *mailbox) putRead(g section, logs []backlog) []*feed {
	logs = slices.DeleteFunc(logs, func(b backlog) bool {
		return b.feed.offered != b.from || !slices.Contains(mb.feeds, b.feed)
	})
	lost := mb.markLost(g, logs)
	for i := range logs {
		if b := &logs[i]; b.whole && len(b.events) == 0 {
			b.feed.offered = b.end // no promised message is left
		}
	}
	for {
		b := earliest(logs)
		if b == nil {
			break
		}
		mb.takeEvent(g, b.feed, &b.events[0])
		if b.events = b.events[1:]; len(b.events) == 0 && !b.whole {
			break
		}
	}
	mb.lagging = false
	for _, s := range mb.feeds {
		if s.lastMessage() > s.offered && !s.lost {
			mb.lagging = true
		}
	}
	for _, s := range slices.Clone(mb.feeds) {
		if mb.settleFeed(s) {
			mb.dropFeed(s)
		}
	}
	return lost
}

// earliest returns the log whose next message is the oldest, or nil if all are read.
// Comparing only the next messages keeps the order of every channel, even if the clock
// has been set back.
func earliest(logs []backlog) *backlog {
	var found *backlog
	for i := range logs {
		b := &logs[i]
		if len(b.events) > 0 && (found == nil || b.events[0].Time < found.events[0].Time) {
			found = b
		}
	}
	return found
}

// takeEvent puts a message that was read from the store into the window.
func (mb *mailbox) takeEvent(g section, s *feed, ev *journal.Event) {
	if mb.creature != nil && ev.Creature == mb.creature.id && !journal.IsInbox(s.id) {
		s.offered = ev.Seq // a sender never hears itself
		if mb.window.Len() == 0 {
			s.cursor = max(s.cursor, ev.Seq)
		}
		return
	}
	m := message.New(ev.Payload, ev.Headers)
	m.ID, m.Time, m.Channel, m.Seq, m.Sender = ev.ID, ev.Time, ev.Channel, ev.Seq, ev.Creature
	m.Kind = message.KindOf(ev.Kind)
	m.SenderName = g.senderName(ev.Creature)
	mb.push(s, m)
	m.Release()
}

// senderName is the current name of a sender, if it is still in the graph.
func (g section) senderName(id journal.CreatureID) string {
	if id == "" {
		return ""
	}
	if c := g.creatures[id]; c != nil {
		return c.name
	}
	return string(id)
}
