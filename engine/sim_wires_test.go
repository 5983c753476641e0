package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/engine/journal"
)

// wire adds an output wire to a creature.
func (s *simulation) wire(st step) {
	from, ok := s.creature(st.a)
	to, has := s.creature(st.b)
	if !ok || !has {
		return
	}
	w := journal.OutputWire{From: from, To: to, WithContent: true, AllowSelf: st.c%2 == 0}
	if st.c%9 == 0 {
		w.To = journal.ToRoot
	}
	s.change(fmt.Sprintf("wire %s to %s", w.From, w.To), func() error {
		_, err := s.e.AddWire(s.ctx, w)
		return err
	})
}

func (s *simulation) unwire(st step) {
	list, err := s.e.Wires("")
	if err != nil {
		s.failf("Wires: %v", err)
	}
	if len(list) == 0 {
		return
	}
	id := list[st.a%len(list)].ID
	s.change("unwire "+string(id), func() error {
		_, err := s.e.RemoveWire(s.ctx, id)
		return err
	})
}

func (s *simulation) wiresNow() map[journal.WireID]journal.OutputWire {
	list, err := s.e.Wires("")
	if err != nil {
		s.failf("Wires: %v", err)
	}
	out := map[journal.WireID]journal.OutputWire{}
	for _, w := range list {
		out[w.ID] = w
	}
	return out
}

// checkWires checks that a change removed exactly the wires whose sender was removed, those
// whose ends are now in different graphs, and those that it named.
func (s *simulation) checkWires(what string, before situation) {
	now, home := s.wiresNow(), homes(s.e.Shapes())
	for id, w := range before.wires {
		from, there := home[string(w.From)]
		to, reachable := home[string(w.To)]
		stays := there && (!reachable || from.ID == to.ID)
		got, kept := now[id]
		switch {
		case what == "unwire "+string(id) || strings.HasPrefix(what, "apply"):
		case kept != stays || kept && got != w:
			s.failf("%s: the wire %+v exists: %v, %+v, want %v", what, w, kept, got, stays)
		}
	}
	for id, w := range now {
		if to, ok := home[string(w.To)]; ok && to.ID != home[string(w.From)].ID {
			s.failf("%s: the wire %s leads from %s to %s, which is in another graph", what, id, w.From, w.To)
		}
	}
}

// wireHeader names the wire of a delivery.
const wireHeader = "terrarium-wire"

// checkWired checks the outputs of turns: each is delivered once on every wire that the
// creature had, and on no other.
func (s *simulation) checkWired(l *ledger) {
	live := map[journal.CreatureID][]journal.WireID{}   // as in the log
	before := map[journal.CreatureID][]journal.WireID{} // when the creature's last turn ended
	unlogged := len(s.bases) > 0                        // wires may have come into the log with a graph
	for i := range l.log {
		ev := &l.log[i]
		switch ev.Kind {
		case journal.EventWireAdded:
			live[ev.Creature] = append(live[ev.Creature], wireOf(ev))
		case journal.EventWireRemoved:
			if id := wireOf(ev); !slices.Contains(live[ev.Creature], id) && !unlogged {
				s.failf("the wire %s is removed, but was never added", id)
			}
			live[ev.Creature] = slices.DeleteFunc(slices.Clone(live[ev.Creature]), func(w journal.WireID) bool { return w == wireOf(ev) })
		case journal.EventTurnEnded:
			had := live[ev.Creature]
			s.checkOutput(l, ev, had, intersection(had, before[ev.Creature]), unlogged)
			before[ev.Creature] = slices.Clone(had)
		}
	}
	if unlogged {
		return
	}
	now := map[journal.WireID]journal.CreatureID{}
	for id, w := range s.wiresNow() {
		now[id] = w.From
	}
	creatures, _, _ := s.e.Members()
	for c, list := range live {
		if !slices.Contains(creatures, c) {
			continue // a crash after its removal may have lost its last events
		}
		for _, id := range list {
			if now[id] != c {
				s.failf("the log has the wire %s of %s, which does not exist", id, c)
			}
			delete(now, id)
		}
	}
	if len(now) > 0 {
		s.failf("the wires %v are not in the log", now)
	}
}

// checkOutput checks that one turn has delivered its output over wires in may only, and over
// all wires in must.
func (s *simulation) checkOutput(l *ledger, turn *journal.Event, may, must []journal.WireID, unlogged bool) {
	out, puts := "", false
	if m := l.messages[place{turn.Channel, turn.Seq}]; m != nil {
		out, puts = putOut(string(m.Payload))
	}
	seen := map[journal.WireID]bool{}
	for _, m := range l.sent[turn.ID] {
		if m.Kind != journal.EventWiredOutput {
			continue
		}
		id := journal.WireID(journal.DecodeHeaders(m.Headers)[wireHeader])
		if !puts || string(m.Payload) != out || m.Channel == "" || seen[id] || !slices.Contains(may, id) && !unlogged {
			s.failf("turn %s of %s delivers %q over %s, twice: %v; its wires are %v, the expected output is %q, %v", turn.ID, turn.Creature, m.Payload, id, seen[id], may, out, puts)
		}
		seen[id] = true
	}
	if puts && len(seen)+l.unsent[turn.ID] < len(must) {
		s.failf("turn %s of %s delivers %q over the wires %v, want at least %v", turn.ID, turn.Creature, out, seen, must)
	}
}

func intersection(a, b []journal.WireID) []journal.WireID {
	return slices.DeleteFunc(slices.Clone(a), func(id journal.WireID) bool { return !slices.Contains(b, id) })
}

// wireOf is the wire of an event.
func wireOf(ev *journal.Event) journal.WireID {
	var d struct{ Wire journal.WireID }
	if err := json.Unmarshal(ev.Payload, &d); err != nil {
		return ""
	}
	return d.Wire
}
