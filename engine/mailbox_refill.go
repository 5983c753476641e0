package engine

import (
	"context"
	"slices"

	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/internal/refill"
	"github.com/seed47132306/terrarium/engine/journal"
)

// The file of a session whose history has not been copied yet can be lost, with
// deliveries that wait for a creature. They keep waiting, because the file may be put
// back. They block only later messages of the same channel: handing those over would move
// the cursor past messages that were not read.

// markLost marks the feeds whose next messages are missing, and returns those newly found.
func (mb *mailbox) markLost(_ section, logs []backlog) (found []*feed) {
	for i := range logs {
		s, lost := logs[i].Feed, logs[i].Lost()
		if lost && !s.lost {
			found = append(found, s)
		}
		s.lost = lost
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

// refill reads the next deliveries of a creature from the store into its mailbox.
func (w *turnWorker) refill(ctx context.Context, c *creature) error {
	return refillMailbox(ctx, &c.mb, &c.home)
}

// backlog is the part of one feed of a mailbox that waits in the store.
type backlog = refill.Log[*feed]

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
		err := logs[i].Read(ctx, store, logs[i].Feed.id, limit, bytes)
		if err != nil && ctx.Err() == nil && !home.logsTo(store) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	missing := store.Missing()
	if mb.creature != nil && missing != nil {
		for i := range logs {
			logs[i].BreakOff()
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
			out = append(out, backlog{Feed: s, From: s.offered, End: end})
		}
	}
	return out
}

// putRead puts what was read into the window, in the order of the log. It returns the
// feeds that turn out to be lost.
func (mb *mailbox) putRead(g section, logs []backlog) []*feed {
	logs = slices.DeleteFunc(logs, func(b backlog) bool {
		return b.Feed.offered != b.From || !slices.Contains(mb.feeds, b.Feed)
	})
	lost := mb.markLost(g, logs)
	for i := range logs {
		if b := &logs[i]; b.Done() {
			b.Feed.offered = b.End
		}
	}
	refill.InOrder(logs, func(s *feed, ev *journal.Event) { mb.takeEvent(g, s, ev) })
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
