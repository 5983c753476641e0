package engine

// The file of a session whose history has not been copied yet can be lost, and
// what waits for a creature may be in it. That goes on waiting, for the file may
// be put back: it is in nobody's way but that of later messages of the same
// channel. To hand over these would move the cursor past what was not read.

// breakOff finds out whether messages are missing from what was read of a
// feed, and leaves those that come before. The numbers of a channel have no
// gaps, so one tells.
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

// markLost notes of which feeds nothing can be read because it is missing, and
// answers those of which that was not known. The caller holds the mu of the graph.
func (mb *mailbox) markLost(logs []backlog) (found []*feed) {
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

// tellLost says which creature waits in vain, and why.
func (e *core) tellLost(feeds []*feed, missing error) {
	for _, s := range feeds {
		c := s.mb.creature
		e.log.Warn("messages that wait for a creature are in a file that is missing", "creature", c.id, "name", c.name,
			"channel", s.id, "after", s.offered, "error", missing)
	}
}
