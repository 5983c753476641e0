package engine

import "context"

// bury makes dead letters of everything that a source has waiting.
func (x *change) bury(g *graph, rec *Record, mb *mailbox, s *source, reason string) {
	log := x.logOf(g)
	var dead []delivery
	if cr := mb.creature; cr != nil && cr.retry != nil && cr.retry.src == s {
		dead = append(dead, *cr.retry)
		// It was between two attempts, so no worker is using these.
		cr.retry, cr.attempt = nil, 0
	}
	dead = append(dead, mb.remove(s)...)
	for _, d := range dead {
		log.deadLetter(rec, letterOf(mb, d.msg, reason))
		d.msg.release()
	}
	if g.store == nil {
		mb.noteLoad(g)
	}
	if end := s.end(); end > s.offered && log.store != nil {
		x.buryStored(log, rec, mb, s, reason, end)
	}
	if s.ch != nil {
		s.ch.forget(s)
		s.ch = nil
	}
	if cr := mb.creature; cr != nil && cr.current.src == s && !x.leaving[cr.id] {
		// Its turn is under way and will commit. Until then a crash must not
		// take the delivery away, so it becomes a backlog of one.
		s.until, s.offered = cr.current.msg.seq, cr.current.msg.seq
		rec.putCursor(cr.reader(), s)
		return
	}
	s.until, s.cursor, s.offered = s.end(), s.end(), s.end()
	mb.forget(s)
}

// buryChunk is how many messages are read at a time to become dead letters.
const buryChunk = 1024

// buryStored makes dead letters of what a source has waiting in the store.
func (x *change) buryStored(g *graph, rec *Record, mb *mailbox, s *source, reason string, end uint64) {
	ctx := context.Background() // the change is past the point of giving up
	for after := s.offered; after < end; {
		events, err := g.store.Messages(ctx, s.id, after, end, buryChunk)
		if err != nil {
			x.e.log.Error("dead letters of a removed backlog could not be listed", "channel", s.id, "after", after, "error", err)
			return
		}
		if len(events) == 0 {
			return
		}
		for i := range events {
			ev := &events[i]
			if mb.creature == nil || ev.Creature != mb.creature.id || isInbox(s.id) {
				g.deadLetter(rec, letterOfEvent(mb, ev, reason))
			}
			after = ev.Seq
		}
	}
}
