// Package refill reads what waits in a store for one reader of several channels, and puts
// it into the order of the log.
package refill

import (
	"context"

	"github.com/seed47132306/terrarium/engine/journal"
)

// Log is the part of a channel that waits in the store for a reader. F is what the reader
// has for the channel.
type Log[F any] struct {
	Feed      F
	From, End uint64 // it has read up to From; the last message is End

	events []journal.Event
	whole  bool // events reach End
	broken bool // what follows events, or all of it, is missing
}

// Read reads the next messages, with a bound on their number and approximately on their
// bytes. Without an error it replaces what was read before.
func (l *Log[F]) Read(ctx context.Context, s journal.Store, channel journal.ChannelID, limit int, bytes int64) error {
	events, err := s.Messages(ctx, channel, l.From, l.End, limit, bytes)
	if err != nil {
		return err
	}
	n := len(events)
	l.events, l.whole, l.broken = events, n == 0 || events[n-1].Seq >= l.End, false
	return nil
}

// BreakOff finds out whether messages are missing from what was read, and keeps those
// before the gap. The numbers of a channel are consecutive, so a gap shows.
func (l *Log[F]) BreakOff() {
	for i := range l.events {
		if l.events[i].Seq != l.From+1+uint64(i) {
			l.events, l.whole, l.broken = l.events[:i], false, true
			return
		}
	}
	if len(l.events) == 0 {
		l.whole, l.broken = false, true
	}
}

// Lost reports whether the next message is missing.
func (l *Log[F]) Lost() bool { return l.broken && len(l.events) == 0 }

// Done reports whether no promised message is left.
func (l *Log[F]) Done() bool { return l.whole && len(l.events) == 0 }

// InOrder passes on what was read, in the order of the log. A channel that was not read to
// its end is known only in part, so nothing later than its last known message can be
// passed on yet. Comparing only the next messages keeps the order of every channel, even
// if the clock has been set back.
func InOrder[F any](logs []Log[F], pass func(F, *journal.Event)) {
	for {
		var next *Log[F]
		for i := range logs {
			l := &logs[i]
			if len(l.events) > 0 && (next == nil || l.events[0].Time < next.events[0].Time) {
				next = l
			}
		}
		if next == nil {
			return
		}
		pass(next.Feed, &next.events[0])
		if next.events = next.events[1:]; len(next.events) == 0 && !next.whole {
			return
		}
	}
}
