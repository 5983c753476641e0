package engine_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/internal/sim"
)

// model is what a simulation knows of its own doing, apart from what the log
// says. Its facts carry stamps: a crash takes back those whose place in the log
// it has lost, as it must take back what they led to.
type model struct {
	edges       []edgeFact
	acks        map[engine.EventID]string // durable sends
	redelivered map[engine.EventID][]engine.EventID
	duplicates  []duplicate
	// unknown says that the process died in the middle of a change: it has
	// happened or not.
	unknown bool
	lost    bool // the last crash was a power loss
	forget  bool // and what it may have taken is not known yet
}

// stamp is a place in the log: so many records of a session.
type stamp struct {
	session engine.SessionID
	records int
}

// edgeFact says that somebody began or ceased to listen, behind the message of
// a number.
type edgeFact struct {
	edge engine.Edge
	on   bool
	at   uint64
	stamp
}

// duplicate is a send that was left out because of its offset.
type duplicate struct {
	channel engine.ChannelID
	offset  uint64
}

func newModel() model {
	return model{acks: map[engine.EventID]string{}, redelivered: map[engine.EventID][]engine.EventID{}}
}

func sameEdges(a, b map[engine.Edge]engine.Listens) bool {
	return maps.EqualFunc(a, b, func(engine.Listens, engine.Listens) bool { return true })
}

// noteChange compares who listened before and after a change.
func (m *model) noteChange(d *sim.Disk, before, after map[engine.Edge]engine.Listens, sessions map[engine.SessionID]bool) {
	for edge, l := range before {
		if _, on := after[edge]; !on {
			m.edges = append(m.edges, edgeFact{edge, false, l.Head, stamp{l.Session, d.Stamp(l.Session, false)}})
		}
	}
	for edge, l := range after {
		if _, on := before[edge]; !on {
			_, known := sessions[l.Session]
			m.edges = append(m.edges, edgeFact{edge, true, l.Head, stamp{l.Session, d.Stamp(l.Session, !known)}})
		}
	}
}

func (s *simulation) noteSent(ch engine.ChannelID, out engine.Outgoing, sent engine.Sent, err error) {
	s.say("sent %s, number %d, duplicate %v: %v", sent.Message, sent.Seq, sent.Duplicate, err)
	switch {
	case err != nil || s.disk.Crashed():
	case sent.Duplicate:
		s.duplicates = append(s.duplicates, duplicate{ch, out.Offset})
	case out.Durable:
		s.acks[sent.Message] = string(out.Payload)
	}
}

func (s *simulation) noteRedelivered(l engine.DeadLetterRow, sent engine.Sent) {
	s.redelivered[l.ID] = append(s.redelivered[l.ID], sent.Message)
}

// survive takes back the facts that a crash has undone.
func (m *model) survive(d *sim.Disk, powerLoss bool) {
	m.edges = slices.DeleteFunc(m.edges, func(f edgeFact) bool {
		n := d.Len(f.session)
		return n >= 0 && n < f.records
	})
	m.duplicates = nil
	if powerLoss {
		m.forget = true
	}
}

// interval is a time during which somebody listened, by numbers.
type interval struct {
	after, until uint64
	open         bool
}

// intervals are when everybody listened on what.
func (m *model) intervals() map[engine.Edge][]interval {
	out := map[engine.Edge][]interval{}
	for _, f := range m.edges {
		list := out[f.edge]
		if f.on {
			out[f.edge] = append(list, interval{after: f.at, open: true})
		} else if n := len(list); n > 0 && list[n-1].open {
			list[n-1].until, list[n-1].open = f.at, false
		}
	}
	return out
}

// reconcile compares who listens after a restart with what survived.
func (m *model) reconcile(s *simulation) {
	live := s.e.Listening()
	want := map[engine.Edge]engine.Listens{}
	for edge, list := range m.intervals() {
		if list[len(list)-1].open {
			want[edge] = live[edge]
		}
	}
	if !sameEdges(want, live) {
		if !m.unknown {
			s.failf("after a restart listen\n%v, want\n%v", keys(live), keys(want))
		}
		for edge := range want {
			// What the cut has ended, it has ended behind the last message.
			if _, on := live[edge]; !on {
				want[edge] = engine.Listens{Head: s.lastNumber(edge.Channel)}
			}
		}
		m.noteChange(s.disk, want, live, nil)
	}
	m.unknown = false
}

func (s *simulation) lastNumber(ch engine.ChannelID) uint64 {
	var last uint64
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
