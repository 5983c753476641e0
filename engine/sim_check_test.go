package engine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
)

// place is a message's place in its channel.
type place struct {
	channel journal.ChannelID
	seq     uint64
}

// ledger is the contents of the logs of all sessions, put in order.
type ledger struct {
	log      []journal.Event
	ids      map[journal.EventID]*journal.Event
	messages map[place]*journal.Event
	heads    map[journal.ChannelID]uint64
	turns    map[journal.CreatureID][]*journal.Event
	done     map[engine.Edge]map[uint64]string // how a delivery ended
	sent     map[journal.EventID][]*journal.Event
	state    map[journal.CreatureID]map[string]string
	letters  map[journal.EventID]journal.CreatureID
	unsent   map[journal.EventID]int // dead letters of what a turn sent, and what policies denied
	// began is the state that creatures had when they entered a log.
	began map[journal.CreatureID]map[string]string
}

// readLog reads the logs, and checks their invariants.
func (s *simulation) readLog() *ledger {
	l := &ledger{
		log: s.disk.Log(), ids: map[journal.EventID]*journal.Event{}, messages: map[place]*journal.Event{},
		heads: map[journal.ChannelID]uint64{}, turns: map[journal.CreatureID][]*journal.Event{},
		done: map[engine.Edge]map[uint64]string{}, sent: map[journal.EventID][]*journal.Event{},
		state: map[journal.CreatureID]map[string]string{}, letters: map[journal.EventID]journal.CreatureID{},
		unsent: map[journal.EventID]int{}, began: map[journal.CreatureID]map[string]string{},
	}
	for i := range l.log {
		ev := &l.log[i]
		l.ids[ev.ID] = ev
		switch {
		case ev.Kind.IsMessage():
			p := place{ev.Channel, ev.Seq}
			if m := l.messages[p]; m != nil {
				s.failf("%s and %s have the same number: %v", m.ID, ev.ID, p)
			}
			l.messages[p] = ev
			l.heads[ev.Channel] = max(l.heads[ev.Channel], ev.Seq)
			if !ev.Turn.IsZero() {
				l.sent[ev.Turn] = append(l.sent[ev.Turn], ev)
			}
		case ev.Kind == journal.EventTurnEnded:
			l.turns[ev.Creature] = append(l.turns[ev.Creature], ev)
			s.end(l, ev, "handled")
		case ev.Kind == journal.EventDeadLetter:
			l.unsent[ev.Turn]++
			if ev.Creature != "" && !astray(ev) {
				l.letters[ev.ID] = ev.Creature
			}
			s.end(l, ev, "dead")
		case ev.Kind == journal.EventPolicyDenied:
			l.unsent[ev.Turn]++
		case ev.Kind == journal.EventState:
			key, value, deleted := journal.DecodeStateEvent(ev.Payload)
			if l.state[ev.Creature] == nil {
				l.state[ev.Creature] = map[string]string{}
			}
			if l.state[ev.Creature][key] = string(value); deleted {
				delete(l.state[ev.Creature], key)
			}
			if ev.Turn.IsZero() {
				l.began[ev.Creature] = maps.Clone(l.state[ev.Creature])
			}
		}
	}
	return l
}

// astray reports whether a dead letter's creature may have been in another graph than the log
// at that time. This is so for a direct message or a reply that was under way during a cut.
// Where the graph with such a letter is cut, the letter is lost, so the model does not follow
// these letters.
func astray(ev *journal.Event) bool {
	var d struct{ Reason, Alias string }
	return json.Unmarshal(ev.Payload, &d) == nil && d.Reason == abi.NotConnected.String() && d.Alias == ""
}

// end notes how a delivery ended, and that it ended once.
func (s *simulation) end(l *ledger, ev *journal.Event, how string) {
	if ev.Channel == "" || ev.Creature == "" {
		return // a start, a message that never was in a channel, or a dead letter of an outside reader
	}
	edge := engine.Edge{Creature: ev.Creature, Channel: ev.Channel}
	if l.done[edge] == nil {
		l.done[edge] = map[uint64]string{}
	}
	if before := l.done[edge][ev.Seq]; before != "" {
		s.failf("message %d of %s is %s for %s, but it was %s before", ev.Seq, ev.Channel, how, ev.Creature, before)
	}
	l.done[edge][ev.Seq] = how
	m := l.messages[place{ev.Channel, ev.Seq}]
	if m == nil && how == "dead" && ev.Seq <= s.bases[ev.Channel].head {
		return
	}
	if m == nil {
		s.failf("%s %s message %d of %s, which is not in the log before", ev.Creature, how, ev.Seq, ev.Channel)
	}
	if m.Creature == ev.Creature && ev.Channel != journal.InboxOf(ev.Creature) {
		s.failf("%s hears itself: message %d of %s", ev.Creature, ev.Seq, ev.Channel)
	}
}

// checkLog checks what holds whenever no turn is running: after a restart, and when
// everything has settled.
func (s *simulation) checkLog() *ledger {
	defer s.calm()()
	if len(s.disk.Violations) > 0 {
		s.failf("violations: %q", s.disk.Violations)
	}
	l := s.readLog()
	live := s.e.Listening()
	maps.DeleteFunc(live, func(_ engine.Edge, at engine.Listens) bool { return at.Session == "" })
	s.checkChannels(l, live)
	s.checkTurns(l)
	s.checkWired(l)
	s.checkState(l)
	s.checkLetters(l, live)
	s.checkAnswered(l)
	s.checkAcks(l)
	s.checkWatched(l)
	s.checkApprovals(l)
	return l
}

// checkChannels checks that channels have no gaps, that no creature handles anything out
// of order, and that messages of producers are accepted once.
func (s *simulation) checkChannels(l *ledger, live map[engine.Edge]engine.Listens) {
	for edge, at := range live {
		if head := max(l.heads[edge.Channel], s.bases[edge.Channel].head); at.Head != head {
			s.failf("the head of %s is %d, but the log has %d", edge.Channel, at.Head, head)
		}
	}
	offsets := map[journal.ChannelID]uint64{}
	for ch, b := range s.bases {
		offsets[ch] = b.offset
	}
	for ch, head := range l.heads {
		for seq := uint64(1); seq <= head; seq++ {
			m := l.messages[place{ch, seq}]
			if m == nil && seq <= s.bases[ch].head {
				continue
			}
			if m == nil {
				s.failf("message %d of %s is missing; the last is %d", seq, ch, head)
			}
			if seq <= s.bases[ch].head {
				continue
			}
			if _, orders := ordersOf(string(m.Payload)); m.Creature == "" && m.Cause.IsZero() && len(orders) > 0 {
				if o := orders[len(orders)-1]; o.what == 'o' {
					if uint64(o.n) <= offsets[ch] {
						s.failf("offset %d is in %s after %d", o.n, ch, offsets[ch])
					}
					offsets[ch] = uint64(o.n)
				}
			}
		}
		if p, err := s.e.Producers(ch); err == nil && p["p"] != offsets[ch] {
			s.failf("the producer's offset on %s is %d, but the log has %d", ch, p["p"], offsets[ch])
		}
	}
	for _, d := range s.duplicates {
		if _, err := s.e.Producers(d.channel); err == nil && offsets[d.channel] < d.offset {
			s.failf("offset %d of %s was left out, but the log only has %d", d.offset, d.channel, offsets[d.channel])
		}
	}
}

// checkTurns checks the effects of turns: each once, as the payload says, in order.
func (s *simulation) checkTurns(l *ledger) {
	for id, sent := range l.sent {
		turn := l.ids[id]
		if turn == nil || turn.Kind != journal.EventTurnEnded && turn.Kind != journal.EventDeadLetter {
			s.failf("%q was sent by turn %s, which is not in the log", sent[0].Payload, id)
		}
	}
	for c, turns := range l.turns {
		n, digest := 0, l.began[c]["digest"]
		if b := l.began[c]["n"]; b != "" {
			n, _ = strconv.Atoi(b)
		}
		last := map[journal.ChannelID]uint64{}
		for _, t := range turns {
			if t.Channel == "" {
				continue
			}
			if t.Seq <= last[t.Channel] {
				s.failf("%s handled message %d of %s after %d", c, t.Seq, t.Channel, last[t.Channel])
			}
			last[t.Channel] = t.Seq
			m := l.messages[place{t.Channel, t.Seq}]
			n, digest = n+1, absorb(digest, deliveryKind(m.Kind), string(m.Payload))
			s.checkSends(l, t, string(m.Payload))
		}
		if n > 0 && (l.state[c]["n"] != strconv.Itoa(n) || l.state[c]["digest"] != digest) {
			s.failf("%s has the state %q after %d turns; the digest should be %s", c, l.state[c], n, digest)
		}
	}
}

func deliveryKind(k journal.EventKind) abi.Kind {
	switch k {
	case journal.EventTimer:
		return abi.KindTimer
	case journal.EventRequest:
		return abi.KindRequest
	case journal.EventResult:
		return abi.KindResult
	case journal.EventWiredOutput:
		return abi.KindOutput
	}
	return abi.KindMessage
}

// checkSends checks what one turn has sent on channels.
func (s *simulation) checkSends(l *ledger, turn *journal.Event, payload string) {
	next, relays := relayed(payload)
	var last int64
	for _, m := range l.sent[turn.ID] {
		if m.Kind == journal.EventChannelMessage && (!relays || string(m.Payload) != next) && !ofTool(string(m.Payload)) {
			s.failf("%s sent %q on %s for %q", turn.Creature, m.Payload, m.Channel, payload)
		}
		if m.Time <= last || m.Time <= turn.Time {
			s.failf("the sends of turn %s are out of order", turn.ID)
		}
		last = m.Time
	}
	var d struct{ Sends int }
	if err := json.Unmarshal(turn.Payload, &d); err != nil {
		s.failf("turn %s: %v", turn.ID, err)
	}
	sent, other := 0, 0
	for _, m := range l.sent[turn.ID] {
		switch m.Kind {
		case journal.EventResult:
			other++
		case journal.EventWiredOutput: // see checkWired
		default:
			sent++
		}
	}
	other += l.unsent[turn.ID]
	if sent > d.Sends || sent+other < d.Sends {
		s.failf("turn %s of %s sent %d messages, %d are in the log", turn.ID, turn.Creature, d.Sends, sent)
	}
}

// checkState checks that the state of each creature is the sum of its events.
func (s *simulation) checkState(l *ledger) {
	creatures, _, _ := s.e.Members()
	for _, c := range creatures {
		if s.e.Volatile(journal.InboxOf(c)) {
			continue
		}
		state, err := s.e.State(s.ctx, c, "")
		if err != nil {
			s.failf("State of %s: %v", c, err)
		}
		got := map[string]string{}
		for _, e := range state {
			got[e.Key] = string(e.Value)
		}
		if fmt.Sprint(got) != fmt.Sprint(l.state[c]) && len(got)+len(l.state[c]) > 0 {
			s.failf("the state of %s is %v, but its events add up to %v", c, got, l.state[c])
		}
	}
}

// checkLetters checks that dead letters are kept until they are redelivered.
func (s *simulation) checkLetters(l *ledger, live map[engine.Edge]engine.Listens) {
	alive := func(c journal.CreatureID) bool {
		_, ok := live[engine.Edge{Creature: c, Channel: journal.InboxOf(c)}]
		return ok
	}
	want := map[journal.EventID]bool{}
	for id, c := range l.letters {
		again := slices.ContainsFunc(s.redelivered[id], func(m journal.EventID) bool { return l.ids[m] != nil })
		if alive(c) && !again {
			want[id] = true
		}
	}
	_, _, graphs := s.e.Members()
	for _, g := range graphs {
		if status, err := s.e.Status(g); err != nil || status[0].Session == "" {
			continue
		}
		letters, err := s.e.DeadLetters(s.ctx, g, "", journal.EventID{}, 0)
		if err != nil {
			s.failf("DeadLetters: %v", err)
		}
		for _, row := range letters {
			if alive(row.Creature) && !want[row.ID] && !astray(l.ids[row.ID]) {
				s.failf("%s has the dead letter %s twice, or after it was redelivered: %+v", row.Creature, row.ID, row)
			}
			delete(want, row.ID)
		}
	}
	for id := range want {
		s.failf("the dead letter %s of %s is lost: %s", id, l.letters[id], l.ids[id].Payload)
	}
}

// checkAcks checks that what was acknowledged as durable exists.
func (s *simulation) checkAcks(l *ledger) {
	for id, payload := range s.acks {
		if l.ids[id] != nil {
			continue
		}
		if !s.forget || s.o.Durability == journal.Full {
			s.failf("%q was acknowledged as durable (%s) and is lost", payload, id)
		}
		delete(s.acks, id)
	}
	s.forget = false
}

// check checks what holds when everything has settled.
func (s *simulation) check() {
	l := s.checkLog()
	if report := s.disk.Report(); len(report) > 0 {
		s.failf("damage: %q", report)
	}
	s.checkComplete(l)
	s.checkParents()
	s.checkAsks(l)
	s.checkOutside(l)
	s.checkDecided()
}

// checkParents checks that every creature's parent exists.
func (s *simulation) checkParents() {
	status, err := s.e.Status("")
	if err != nil {
		s.failf("Status: %v", err)
	}
	creatures, _, _ := s.e.Members()
	for _, g := range status {
		for _, c := range g.Creatures {
			if c.Parent != "" && !slices.Contains(creatures, c.Parent) {
				s.failf("the parent of %s is %s, which does not exist", c.ID, c.Parent)
			}
		}
	}
}

// checkComplete checks that every listener has dealt with all that was sent while it
// listened, and with nothing else.
func (s *simulation) checkComplete(l *ledger) {
	intervals := s.intervals()
	for edge, done := range l.done {
		// Letters from before their graph had a log are not in a log.
		maps.DeleteFunc(done, func(seq uint64, how string) bool {
			return how == "dead" && seq <= s.bases[edge.Channel].head && !slices.ContainsFunc(intervals[edge], func(iv interval) bool {
				return slices.Contains(iv.handed, seq)
			})
		})
	}
	for edge, list := range intervals {
		rest := l.done[edge]
		for _, iv := range list {
			if iv.open {
				iv.until = l.heads[edge.Channel]
			}
			for _, seq := range iv.handed {
				if l.messages[place{edge.Channel, seq}] != nil && rest[seq] == "" {
					s.failf("%s has never dealt with message %d of %s, from before the graph had a log", edge.Creature, seq, edge.Channel)
				}
				delete(rest, seq)
			}
			for seq := iv.after + 1; seq <= iv.until; seq++ {
				m := l.messages[place{edge.Channel, seq}]
				own := m != nil && m.Creature == edge.Creature && edge.Channel != journal.InboxOf(edge.Creature)
				if rest[seq] == "" && !own {
					s.failf("%s has never dealt with message %d of %s", edge.Creature, seq, edge.Channel)
				}
				delete(rest, seq)
			}
		}
		for seq, how := range rest {
			s.failf("message %d of %s is %s for %s, which did not listen: %+v", seq, edge.Channel, how, edge.Creature, list)
		}
	}
	for edge, done := range l.done {
		if intervals[edge] == nil && len(done) > 0 {
			s.failf("%s never listened on %s, but dealt with %v", edge.Creature, edge.Channel, done)
		}
	}
}

// checkAsks checks that every request has one answer, and that every timer fired.
func (s *simulation) checkAsks(l *ledger) {
	answered := map[string]bool{}
	for i := range l.log {
		if ev := &l.log[i]; ev.Kind == journal.EventResult {
			id := journal.DecodeHeaders(ev.Headers)["terrarium-request"]
			if answered[id] && id != "" { // redelivered late replies say nothing about their request
				s.failf("request %s has two answers", id)
			}
			answered[id] = true
		}
	}
	live := s.e.Listening()
	for i := range l.log {
		ev := &l.log[i]
		_, alive := live[engine.Edge{Creature: ev.Creature, Channel: journal.InboxOf(ev.Creature)}]
		if ev.Kind == journal.EventRequest && alive && !answered[ev.ID.String()] && ev.Seq > s.bases[ev.Channel].head {
			s.failf("request %s of %s has no answer", ev.ID, ev.Creature)
		}
	}
	creatures, _, _ := s.e.Members()
	for _, c := range creatures {
		if open := s.e.Open(c); len(open) > 0 {
			s.failf("%s still waits for answers: %+v", c, open)
		}
		if s.e.Volatile(journal.InboxOf(c)) {
			continue
		}
		timers, err := s.e.Timers(c)
		if err != nil {
			s.failf("Timers: %v", err)
		}
		for _, t := range timers {
			if t.Period == 0 {
				s.failf("a timer of %s has not fired: %+v", c, t)
			}
		}
		s.checkTimer(l, c)
	}
}

// checkTimer checks that the last timer set has fired.
func (s *simulation) checkTimer(l *ledger, c journal.CreatureID) {
	var set, rang int64
	for _, t := range l.turns[c] {
		if m := l.messages[place{t.Channel, t.Seq}]; m != nil {
			_, orders := ordersOf(string(m.Payload))
			for _, o := range orders {
				if o.what == orderTimer {
					set = t.Time
				}
			}
		}
	}
	for i := range l.log {
		if ev := &l.log[i]; ev.Kind == journal.EventTimer && ev.Channel == journal.InboxOf(c) && journal.DecodeHeaders(ev.Headers)["terrarium-timer"] == "once" {
			rang = ev.Time
		}
	}
	if set > rang {
		s.failf("a timer of %s that was set at %d has never fired; the last one fired at %d", c, set, rang)
	}
}
