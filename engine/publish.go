package engine

import (
	"context"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/journal"
)

// publish offers a sequenced message to every listener except its sender, and wakes
// them. Deliveries that no mailbox took become dead letters: they are added to the
// record, or only shown to subscribers.
func (g section) publish(ch *channel, m *message.Message, w *waker, rec *journal.Record) {
	for _, s := range ch.feeds {
		mb := s.mb
		if c := mb.creature; c != nil && c.id == m.Sender && ch.inbox == "" {
			if !mb.lagging && !s.lost {
				s.offered = m.Seq
			}
			continue
		}
		switch mb.offer(g, s, m) {
		case refused:
			g.deadLetter(rec, letterOf(mb, m, journal.DeadOverflow))
			continue
		case droppedOld, taken, deferred:
		}
		mb.wake(g, w)
	}
}

// post puts a message into a creature's inbox. The caller passes its reference on.
func (g section) post(rec *journal.Record, w *waker, to *creature, m *message.Message, turn, cause journal.EventID) {
	ch := g.channels[journal.InboxOf(to.id)]
	g.sequence(ch, m)
	g.logMessage(rec, ch, m, turn, cause)
	g.publish(ch, m, w, rec)
	m.Release()
}

// awaitRoom waits until the graph of a channel accepts outside messages, and enters its
// critical section. It returns not_found if the channel has been removed.
func (e *core) awaitRoom(ctx context.Context, ch *channel) (section, error) {
	for {
		g := ch.home.enter()
		if g.none() {
			return section{}, errtext.Gone("channel", string(ch.id))
		}
		if g.store == nil {
			if g.over == 0 {
				return g, nil
			}
			if g.admitted == nil {
				g.admitted = make(chan struct{})
			}
			admitted := g.admitted
			g.leave()
			select {
			case <-admitted:
			case <-ctx.Done():
				return section{}, &abi.Error{Code: abi.Unavailable, Op: "send", Message: "a mailbox of the graph is full", Remedy: "wait for the creatures to catch up, or choose another overflow policy", Err: context.Cause(ctx)}
			case <-e.closing:
				return section{}, errtext.Closed
			}
			continue
		}
		// Waiting for the disk happens outside of the critical section, so the queue
		// may have filled again when the lock is taken. The bound is exceeded by one
		// record per sender at most.
		store := g.store
		g.leave()
		if err := store.Room(ctx); err != nil {
			if ctx.Err() == nil && !ch.home.logsTo(store) {
				continue
			}
			return section{}, errtext.NotTakenIn(ctx, err)
		}
		if g = ch.home.enter(); g.none() {
			return section{}, errtext.Gone("channel", string(ch.id))
		}
		if g.store == store {
			return g, nil
		}
		g.leave()
	}
}
