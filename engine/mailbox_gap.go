package engine

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
