package engine_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/internal/sim"
	"github.com/seed47132306/terrarium/engine/journal"
)

// model is what a simulation knows of its own actions, apart from the log. Its facts carry
// stamps: a crash removes the facts whose place in the log it has lost, as it must undo their
// effects.
type model struct {
	edges       []edgeFact
	acks        map[journal.EventID]string // durable sends
	redelivered map[journal.EventID][]journal.EventID
	duplicates  []duplicate
	cursors     []cursorFact
	answered    []journal.EventID // requests from outside whose answer was received
	// bases are channels that have been in a graph without a store, as they were before
	// the last change that found them there: messages up to the head need not be in the
	// log.
	bases map[journal.ChannelID]base
	// limbo is what graphs without a store contained before the last change.
	limbo engine.Unlogged
	// unknown means that the process died in the middle of a change, which may or may not have
	// been made.
	unknown bool
	lost    bool // the last crash was a power loss
	// undecided are the questions in the log that have no answer.
	undecided map[journal.EventID]asking
	forget    bool // it is not known yet what the last crash has lost
}

// base is where the log of a channel begins.
type base struct{ head, offset uint64 }

// stamp is a place in the log: that many records of a session.
type stamp struct {
	session journal.SessionID
	records int
}

// edgeFact means that a listener subscribed or unsubscribed after the message with a number.
type edgeFact struct {
	edge engine.Edge
	on   bool
	at   uint64
	// handed are earlier messages that come along from a graph without a store. They are
	// of an edge or, if backlog is set, of the rest of one.
	handed  []uint64
	backlog bool
	stamp
}

// duplicate is a send that was left out because of its offset.
type duplicate struct {
	channel journal.ChannelID
	offset  uint64
}

func newModel() model {
	return model{
		acks: map[journal.EventID]string{}, redelivered: map[journal.EventID][]journal.EventID{},
		bases: map[journal.ChannelID]base{},
	}
}

func sameEdges(a, b map[engine.Edge]engine.Listens) bool {
	return maps.EqualFunc(a, b, func(engine.Listens, engine.Listens) bool { return true })
}

// noteUnlogged notes what graphs without a store contain, which a change may bring into a
// log.
func (m *model) noteUnlogged(u engine.Unlogged) {
	m.limbo = u
	for ch, head := range u.Heads {
		m.bases[ch] = base{head, u.Offsets[ch]}
	}
}

// noteChange compares the listeners before and after a change, in graphs that have a
// store.
func (m *model) noteChange(d *sim.Disk, before, after map[engine.Edge]engine.Listens, sessions map[journal.SessionID]bool) {
	at := func(id journal.SessionID) stamp {
		_, known := sessions[id]
		return stamp{id, d.Stamp(id, !known)}
	}
	for edge, l := range before {
		if _, on := after[edge]; !on && l.Session != "" {
			m.edges = append(m.edges, edgeFact{edge: edge, at: l.Head, stamp: stamp{l.Session, d.Stamp(l.Session, false)}})
		}
	}
	for edge, l := range after {
		if was, on := before[edge]; l.Session != "" && (!on || was.Session == "") {
			m.edges = append(m.edges, edgeFact{edge: edge, on: true, at: l.Head, handed: m.limbo.Waiting[edge], stamp: at(l.Session)})
		}
	}
	for edge, waiting := range m.limbo.Waiting {
		_, on := after[edge]
		if inbox := after[engine.Edge{Creature: edge.Creature, Channel: journal.InboxOf(edge.Creature)}]; !on && inbox.Session != "" {
			m.edges = append(m.edges, edgeFact{edge: edge, backlog: true, handed: waiting, stamp: at(inbox.Session)})
		}
	}
	m.noteReaders(after, at)
}

// noteReaders notes that cursors of readers have entered a log, with their channels.
func (m *model) noteReaders(after map[engine.Edge]engine.Listens, at func(journal.SessionID) stamp) {
	logged := map[journal.ChannelID]journal.SessionID{}
	for edge, l := range after {
		logged[edge.Channel] = l.Session
	}
	for i := range m.cursors {
		if c := &m.cursors[i]; c.session == "" && logged[c.key.channel] != "" {
			c.stamp = at(logged[c.key.channel])
		}
	}
}

func (s *simulation) noteSent(ch journal.ChannelID, out engine.Outgoing, unlogged bool, sent engine.Sent, err error) {
	s.say("sent %s, number %d, duplicate %v: %v", sent.Message, sent.Seq, sent.Duplicate, err)
	switch {
	case err != nil || s.disk.Crashed() || unlogged:
	case sent.Duplicate:
		s.duplicates = append(s.duplicates, duplicate{ch, out.Offset})
	case out.Durable:
		s.acks[sent.Message] = string(out.Payload)
	}
}

func (s *simulation) noteRedelivered(l journal.DeadLetterRow, sent engine.Sent) {
	s.redelivered[l.ID] = append(s.redelivered[l.ID], sent.Message)
}

// survive removes the facts that a crash has undone.
func (m *model) survive(d *sim.Disk, powerLoss bool) {
	m.edges = slices.DeleteFunc(m.edges, func(f edgeFact) bool {
		n := d.Len(f.session)
		return n >= 0 && n < f.records
	})
	m.cursors = slices.DeleteFunc(m.cursors, func(f cursorFact) bool {
		n := d.Len(f.session)
		return f.session != "" && n >= 0 && n < f.records
	})
	m.duplicates = nil
	if powerLoss {
		m.forget = true
	}
}

// interval is a range of messages during which a creature listened.
type interval struct {
	after, until uint64
	open         bool
	handed       []uint64 // earlier ones
}

// intervals returns the intervals of all edges.
func (m *model) intervals() map[engine.Edge][]interval {
	out := map[engine.Edge][]interval{}
	for _, f := range m.edges {
		list := out[f.edge]
		if f.backlog {
			out[f.edge] = append(list, interval{handed: f.handed})
		} else if f.on {
			out[f.edge] = append(list, interval{after: f.at, open: true, handed: f.handed})
		} else if n := len(list); n > 0 && list[n-1].open {
			list[n-1].until, list[n-1].open = f.at, false
		}
	}
	return out
}

// reconcile compares the listeners after a restart with the facts that survived.
func (m *model) reconcile(s *simulation) {
	live := s.edgesNow()
	want := map[engine.Edge]engine.Listens{}
	for edge, list := range m.intervals() {
		if slices.ContainsFunc(list, func(iv interval) bool { return iv.open }) {
			want[edge] = live[edge]
		}
	}
	if !sameEdges(want, live) {
		if !m.unknown {
			s.failf("after a restart, the listeners are\n%v, want\n%v", keys(live), keys(want))
		}
		for edge := range want {
			// The cut ended these subscriptions after the last message.
			if _, on := live[edge]; !on {
				want[edge] = engine.Listens{Head: s.beforeDoubt(edge.Channel, s.lastNumber(edge.Channel)), Session: "ended"}
			}
		}
		for edge, l := range live {
			if _, known := want[edge]; !known {
				l.Head = s.beforeDoubt(edge.Channel, l.Head)
				live[edge] = l
			}
		}
		m.noteChange(s.disk, want, live, nil)
	}
	// What is still in no log is lost.
	m.cursors = slices.DeleteFunc(m.cursors, func(f cursorFact) bool { return f.session == "" })
	m.limbo, s.doubtHeads = engine.Unlogged{}, nil
	m.unknown = false
}

// edgesNow returns the listeners on all channels, as they are or will be when brought back.
func (s *simulation) edgesNow() map[engine.Edge]engine.Listens {
	all := s.e.Dormant()
	maps.Copy(all, s.e.Listening())
	return all
}

func (s *simulation) lastNumber(ch journal.ChannelID) uint64 {
	last := s.bases[ch].head
	for _, ev := range s.disk.Log() {
		if ev.Channel == ch && ev.Kind.IsMessage() {
			last = max(last, ev.Seq)
		}
	}
	return last
}

func keys(m map[engine.Edge]engine.Listens) []string {
	var out []string
	for e := range m {
		out = append(out, fmt.Sprint(e))
	}
	slices.Sort(out)
	return out
}
