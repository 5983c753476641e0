package engine_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
)

// readerKey is the key under which the cursor of an outside reader is stored.
type readerKey struct {
	name    string
	channel journal.ChannelID
}

// cursorFact means that a reader has acknowledged up to a number, or begins after it.
type cursorFact struct {
	key readerKey
	seq uint64
	stamp
}

// simReader is an open reader.
type simReader struct {
	*engine.Reader
	key  readerKey
	last uint64 // it has read up to here
}

// simCall is a request from outside that has not been answered yet.
type simCall struct {
	*engine.Call
	to      journal.CreatureID
	payload string
}

// outside is the users outside of a running engine.
type outside struct {
	readers []*simReader
	calls   []simCall
}

// read opens a reader, reads with one, or closes one.
func (s *simulation) read(st step) {
	if len(s.readers) == 0 || st.a%4 == 0 {
		s.openReader(st)
		return
	}
	r := s.readers[st.b%len(s.readers)]
	if st.a%10 == 1 {
		s.say("close %v", r.key)
		r.Close()
		s.readers = slices.DeleteFunc(s.readers, func(x *simReader) bool { return x == r })
		return
	}
	for range 1 + st.c%6 {
		if !s.readOne(r) {
			return
		}
		if s.random.IntN(2) == 0 {
			s.acknowledge(r)
		}
	}
}

func (s *simulation) openReader(st step) {
	ch, ok := s.channel(st.b)
	if !ok || len(s.readers) > 3 {
		return
	}
	key := readerKey{fmt.Sprintf("r%d", st.c%2), ch}
	reader, err := s.e.Read(ch, key.name, engine.ReaderOptions{FromStart: st.c%3 > 0, Buffer: 1 + st.c%5})
	s.say("open %v: %v", key, err)
	if err != nil {
		return
	}
	r := &simReader{Reader: reader, key: key, last: s.e.CursorOf(reader)}
	if known := s.cursor(key); known != nil && known.seq != r.last && !s.e.Volatile(ch) {
		s.failf("%v begins after %d, not after %d", key, r.last, known.seq)
	} else if known == nil {
		s.noteCursor(key, r.last)
	}
	s.readers = append(s.readers, r)
}

// readOne reads one message, if there is one.
func (s *simulation) readOne(r *simReader) bool {
	unlogged := s.e.VolatileReader(r.Reader)
	in, some, err := s.e.Poll(s.ctx, r.Reader)
	if m := missedOf(err); m != nil && !s.disk.Crashed() {
		s.say("%v misses %d to %d", r.key, m.From, m.To)
		if m.From != r.last+1 || m.To < m.From || !unlogged && m.To > s.bases[r.key.channel].head {
			s.failf("%v has read up to %d, but the engine says that it has missed %d to %d", r.key, r.last, m.From, m.To)
		}
		r.last = m.To
		return true
	}
	if !some || s.disk.Crashed() {
		return false
	}
	s.say("%v reads %d %q: %v", r.key, in.Seq, in.Payload, err)
	if in.Seq != r.last+1 && !unlogged && in.Seq > s.bases[r.key.channel].head+1 {
		s.failf("%v reads message %d after %d", r.key, in.Seq, r.last)
	}
	r.last = in.Seq
	// What is left of a channel that was removed before its graph had a log will never be
	// in a log.
	left := in.Seq <= s.bases[r.key.channel].head && s.e.SessionOf(r.key.channel) == ""
	if !unlogged && !left {
		s.acks[in.ID] = string(in.Payload)
	}
	return true
}

func (s *simulation) acknowledge(r *simReader) {
	r.Ack(r.last)
	s.noteCursor(r.key, s.e.CursorOf(r.Reader))
}

// cursor is the known cursor of a reader, if there is one.
func (m *model) cursor(key readerKey) *cursorFact {
	for i := len(m.cursors) - 1; i >= 0; i-- {
		if m.cursors[i].key == key {
			return &m.cursors[i]
		}
	}
	return nil
}

func (s *simulation) noteCursor(key readerKey, seq uint64) {
	session := s.e.SessionOf(key.channel)
	s.cursors = append(s.cursors, cursorFact{key, seq, stamp{session, s.disk.Stamp(session, false)}})
}

// ask sends a request from outside.
func (s *simulation) ask(st step) {
	c, ok := s.creature(st.a)
	if !ok {
		return
	}
	payload := s.payload(st.b) + fmt.Sprintf(" q%d", st.c%3)
	call, err := s.e.Ask(s.sendContext(journal.InboxOf(c)), c, engine.Outgoing{Payload: []byte(payload)}, 5*time.Second)
	s.say("ask %s %q: %v", c, payload, err)
	if err == nil && !s.disk.Crashed() {
		s.calls = append(s.calls, simCall{call, c, payload})
	}
}

// collect collects the answers that have arrived. Every caller gets one answer.
func (s *simulation) collect(step) {
	s.calls = slices.DeleteFunc(s.calls, func(c simCall) bool {
		if !c.Answered() {
			return false
		}
		reply, err := c.Reply(s.ctx)
		s.say("%s answers %q: %q, %v", c.to, c.payload, reply, err)
		s.checkReply(c, reply, err)
		return true
	})
}

// checkReply checks that an answer is the one that the payload requests.
func (s *simulation) checkReply(c simCall, reply []byte, err error) {
	name, orders := ordersOf(c.payload)
	mute, dies := slices.Contains(orders, order{orderMute, 1}), slices.ContainsFunc(orders, func(o order) bool { return o.what == orderDie || o.what == orderFail })
	switch code := abi.CodeOf(err); {
	case err == nil && !mute && string(reply) == "re-"+name:
		if !s.e.Volatile(journal.InboxOf(c.to)) {
			s.answered = append(s.answered, c.Request())
		}
	case code == abi.Unavailable && mute:
	case code == abi.Trapped && dies:
	case code == abi.NotConnected && !s.lives(c.to):
	case code == abi.UnknownOutcome || s.disk.Crashed(): // it could not be made durable
	default:
		s.failf("%q was answered with %q, %v", c.payload, reply, err)
	}
}

// lives reports whether a creature with that id exists.
func (s *simulation) lives(c journal.CreatureID) bool {
	_, err := s.e.FindGraph(string(c))
	return err == nil
}

// checkOutside checks, when everything has settled, that readers have read everything,
// and that callers got their answers.
func (s *simulation) checkOutside(l *ledger) {
	defer s.calm()()
	ended, cancel := context.WithCancel(s.ctx)
	cancel()
	for _, r := range s.readers {
		for s.readOne(r) {
		}
		s.acknowledge(r)
		if s.e.Ended(r.Reader) || s.e.VolatileReader(r.Reader) {
			continue
		}
		if last := l.heads[r.key.channel]; r.last != last && last > s.bases[r.key.channel].head {
			s.failf("%v has read only up to %d, but there are %d messages", r.key, r.last, last)
		}
		if err := r.WaitRead(ended); err != nil { // the context has ended, so WaitRead must not wait
			s.failf("WaitRead: %v", err)
		}
	}
	s.collect(step{})
	for _, c := range s.calls {
		edge := engine.Edge{Creature: c.to, Channel: journal.InboxOf(c.to)}
		if m := l.ids[c.Request()]; m != nil && l.done[edge][m.Seq] == "handled" {
			s.failf("%s has handled %q, but its caller has no answer", c.to, c.payload)
		}
		if _, err := c.Reply(ended); err == nil {
			s.failf("%q has an answer that was not collected", c.payload)
		}
	}
	s.calls = nil
	if n := s.e.Callers(); n != 0 {
		s.failf("the engine has %d waiting callers that the test does not know", n)
	}
}

// checkAnswered checks that the turns whose answers callers got are not lost.
func (s *simulation) checkAnswered(l *ledger) {
	s.answered = slices.DeleteFunc(s.answered, func(id journal.EventID) bool {
		m := l.ids[id]
		if m == nil {
			return true // it was sent before its graph had a log
		}
		c := journal.CreatureID(m.Channel[len("inbox:"):])
		if l.done[engine.Edge{Creature: c, Channel: m.Channel}][m.Seq] == "handled" {
			return false
		}
		if !s.forget || s.o.Durability == journal.Full {
			s.failf("request %s was answered, but its turn is lost", id)
		}
		return true
	})
}
