package engine

import (
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/deque"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/journal"
)

// feed is one log that a mailbox is fed from: a channel that a creature or an outside
// reader listens on, or a creature's inbox. The critical section of the graph owns it.
type feed struct {
	mb    *mailbox
	id    journal.ChannelID
	ch    *channel // nil once the edge is removed and only the backlog is left
	alias string   // the creature's name for the channel

	cursor  uint64 // last message dealt with
	offered uint64 // last message put in the window, or passed over; >= cursor
	until   uint64 // last message to read; 0: no end

	lost bool // the next message cannot be read; see mailbox_refill.go

	portrait uint64 // portrait for which the alias was noted; the creature's worker owns it
}

// lastMessage is the number of the last message to read so far.
func (s *feed) lastMessage() uint64 {
	switch {
	case s.until != 0:
		return s.until
	case s.ch != nil:
		return s.ch.head
	}
	return s.offered
}

// dealt is the number up to which a creature has dealt with everything: the delivery that
// it is handling is the first that it has not. (The cursor may be further, if a later
// message was dropped.)
func (s *feed) dealt() uint64 {
	for _, d := range s.inHand() {
		return d.msg.Seq - 1
	}
	return s.cursor
}

// inHand lists the deliveries that a worker is handling, or that are to be tried again;
// there is at most one.
func (s *feed) inHand() []*delivery {
	var out []*delivery
	if c := s.mb.creature; c != nil {
		for _, d := range []*delivery{&c.current, c.retry} {
			if d != nil && d.msg != nil && d.feed == s {
				out = append(out, d)
			}
		}
	}
	return out
}

// drained reports whether a feed without an edge has nothing left to read.
func (s *feed) drained() bool { return s.ch == nil && s.cursor >= s.until }

// alias is the creature's name for the channel of a delivery; "" for a delivery to its inbox. A
// redelivered message of a channel comes to the inbox and still counts as one of its channel.
func (d *delivery) alias() string {
	if d.feed != nil && d.feed.alias != "" {
		return d.feed.alias
	}
	if m := d.msg; m.Kind == abi.KindMessage && journal.IsInbox(m.Channel) && len(m.Headers) > 0 {
		alias, _, _ := journal.FindHeader(m.Headers, message.HeaderAlias)
		return string(alias)
	}
	return ""
}

// direct reports whether the delivery was sent to the creature itself.
func (d *delivery) direct() bool { return journal.IsInbox(d.msg.Channel) && d.alias() == "" }

// delivery is one message for one reader.
type delivery struct {
	msg  *message.Message
	feed *feed
}

// mailbox is the window on a reader's feeds: the next deliveries, in the
// order of the graph's log. The critical section of the graph owns it.
type mailbox struct {
	creature *creature // one of creature and reader is set
	reader   *Reader
	feeds    []*feed

	window deque.Deque[delivery]
	bound  int
	bytes  int64 // of the deliveries in the window
	// lagging says that a feed's offered is behind its end: unless it is lost, the rest
	// is read from the store once the window is empty. Until then nothing new is put into
	// the window, which keeps the order.
	lagging bool
	// over says that the mailbox counts in graph.over.
	over bool
	// dropped counts deliveries lost to the overflow policy.
	dropped uint64
}

// windowBytes is how many bytes of payloads and headers a mailbox accepts, however few
// messages they belong to.
const windowBytes = 8 << 20

// full reports whether the mailbox has accepted factor times its bound.
func (mb *mailbox) full(factor int) bool {
	return mb.window.Len() >= factor*mb.bound || mb.bytes >= int64(factor)*windowBytes
}

// hardFactor is how far beyond its bound a mailbox accepts what creatures of its own
// graph send. Outside publishers wait from the bound on.
const hardFactor = 8

// overflowed is what offer did with a delivery that it did not accept.
type overflowed uint8

const (
	taken      overflowed = iota
	deferred              // the store has it
	droppedOld            // the oldest delivery was dropped to make room
	refused               // it must become a dead letter
)

// offer puts a message into the window, or notes that the store has more.
func (mb *mailbox) offer(g section, s *feed, m *message.Message) overflowed {
	if g.store != nil {
		if mb.lagging || s.lost || mb.full(1) {
			mb.lagging = true // a lost feed is tried again
			return deferred
		}
		mb.push(s, m)
		return taken
	}
	result := taken
	if mb.full(1) {
		switch policy := mb.overflow(); {
		case policy == deploy.OverflowDropOldest:
			old := mb.pop()
			old.feed.cursor = old.msg.Seq
			old.msg.Release()
			mb.dropped++
			result = droppedOld
		case policy == deploy.OverflowDeadLetter || mb.full(hardFactor):
			s.offered = m.Seq
			mb.dropped++
			return refused
		}
	}
	mb.push(s, m)
	mb.noteLoad(g)
	return result
}

func (mb *mailbox) overflow() deploy.Overflow {
	if mb.creature != nil {
		return mb.creature.spec.Overflow
	}
	return deploy.OverflowBlock
}

// noteLoad keeps graph.over: the number of mailboxes that outside publishers wait for.
// They are those of running creatures and of readers, from full until half empty.
func (mb *mailbox) noteLoad(g section) {
	over := mb.over
	switch {
	case mb.overflow() != deploy.OverflowBlock || (mb.creature != nil && !mb.creature.runs(g)):
		over = false
	case mb.full(1):
		over = true
	case mb.window.Len() <= mb.bound/2 && mb.bytes <= windowBytes/2:
		over = false
	}
	if over == mb.over {
		return
	}
	mb.over = over
	if over {
		g.over++
		return
	}
	if g.over--; g.over == 0 {
		g.admit()
	}
}

func (mb *mailbox) push(s *feed, m *message.Message) {
	m.Retain()
	mb.window.Push(delivery{m, s})
	mb.bytes += m.Size()
	s.offered = m.Seq
}

// pop removes and returns the next delivery; the caller takes over its reference.
func (mb *mailbox) pop() delivery {
	d := mb.window.Pop()
	mb.bytes -= d.msg.Size()
	return d
}

// remove removes and returns every delivery of a feed, in order.
func (mb *mailbox) remove(s *feed) []delivery {
	out := mb.window.Remove(func(d *delivery) bool { return d.feed == s })
	for i := range out {
		mb.bytes -= out[i].msg.Size()
	}
	return out
}

// waiting reports whether the reader has something to do.
func (mb *mailbox) waiting() bool { return mb.window.Len() > 0 || mb.lagging }

// pending counts the deliveries in the window and in the store. A creature's own
// messages, which it will pass over, are counted too.
func (mb *mailbox) pending() uint64 {
	var n uint64
	for _, s := range mb.feeds {
		if end := s.lastMessage(); end > s.offered {
			n += end - s.offered
		}
	}
	return n + uint64(mb.window.Len())
}

// inbox returns the live feed of a creature's inbox, or nil.
func (mb *mailbox) inbox() *feed {
	for _, s := range mb.feeds {
		if s.ch != nil && s.ch.inbox != "" {
			return s
		}
	}
	return nil
}

// feed returns the live feed for a channel, or nil.
func (mb *mailbox) feed(ch *channel) *feed {
	for _, s := range mb.feeds {
		if s.ch == ch {
			return s
		}
	}
	return nil
}

// addFeed starts listening on a channel from a given message on.
func (mb *mailbox) addFeed(ch *channel, alias string, cursor uint64) *feed {
	s := &feed{mb: mb, id: ch.id, ch: ch, alias: alias, cursor: cursor, offered: cursor}
	mb.feeds = append(mb.feeds, s)
	ch.feeds = append(ch.feeds, s)
	if cursor < ch.head {
		mb.lagging = true
	}
	return s
}

// addBacklog starts reading the rest of a channel whose edge was removed.
func (mb *mailbox) addBacklog(row journal.CursorRow) {
	mb.feeds = append(mb.feeds, &feed{
		mb: mb, id: row.Channel, alias: row.Alias,
		cursor: row.Seq, offered: row.Seq, until: row.Until,
	})
	mb.lagging = true
}

// detach ends listening; earlier messages are still delivered. It reports whether a
// backlog is left.
func (mb *mailbox) detach(s *feed) (backlog bool) {
	s.until = s.ch.head
	s.ch.dropFeed(s)
	s.ch = nil
	if mb.settleFeed(s) {
		mb.dropFeed(s)
		return false
	}
	return true
}

// settleFeed reports whether a feed without an edge has nothing left to handle. All messages
// between the cursor and the end may be the creature's own, which it passes over.
func (mb *mailbox) settleFeed(s *feed) bool {
	switch {
	case s.ch != nil:
		return false
	case mb.creature == nil:
	case mb.holds(s):
		return false // even if a later message was dropped
	case s.offered >= s.until:
		s.cursor = s.until
	}
	return s.drained()
}

// holds reports whether a creature has a delivery of a feed in its window, or is handling one.
func (mb *mailbox) holds(s *feed) bool {
	if c := mb.creature; c.current.feed == s || (c.retry != nil && c.retry.feed == s) {
		return true
	}
	for d := range mb.window.All() {
		if d.feed == s {
			return true
		}
	}
	return false
}

func (mb *mailbox) dropFeed(s *feed) { mb.feeds = without(mb.feeds, s) }

// without returns list without x, keeping the order.
func without[T comparable](list []T, x T) []T {
	return slices.DeleteFunc(list, func(y T) bool { return y == x })
}

// wake notifies the reader that something is waiting.
func (mb *mailbox) wake(g section, w *waker) {
	if mb.creature != nil {
		mb.creature.wake(g, w)
		return
	}
	mb.reader.signal()
}

// aliasOf is the reader's name for a channel that it listens on, or used to listen on and
// has not read to the end; "" for its inbox.
func (mb *mailbox) aliasOf(channel journal.ChannelID) string {
	for _, s := range mb.feeds {
		if s.id == channel {
			return s.alias
		}
	}
	return ""
}
