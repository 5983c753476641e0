package engine_test

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// guarded is the deployment whose policy asks about messages. The others have no policy, so
// that sends without one are tried too.
const guarded = "d0"

// aboutApprovals reports whether the program of a seed begins with creatures whose policy asks
// about most of what they relay.
func aboutApprovals(seed uint64) bool { return seed%4 == 0 }

// gatekeeper asks about every message that was relayed with the order to ask. Some of its
// questions are decided by their deadlines, either way.
func gatekeeper() *judge {
	return &judge{send: func(ev *deploy.SendEvent) (d deploy.SendDecision) {
		if !asksFor(string(ev.Payload)) {
			return d
		}
		h := fnv.New32a()
		h.Write(ev.Payload)
		n := h.Sum32()
		within := []time.Duration{100 * time.Millisecond, 3 * time.Second, 0}[n%3]
		d.Words = question("may it?", func(a *deploy.Ask) { a.Within, a.Allow = within, n/3%2 == 0 })
		return d
	}}
}

// asksFor reports whether the policy asks about a message.
func asksFor(payload string) bool { return slices.Contains(strings.Fields(payload), "p0") }

// decideStep answers one of the questions that wait.
func (s *simulation) decideStep(st step) { s.decide(st.a, st.b%3 > 0) }

// decide answers a question, and reports whether there was one.
func (s *simulation) decide(n int, approve bool) bool {
	list, err := s.e.Approvals()
	if err != nil {
		s.failf("Approvals: %v", err)
	}
	if len(list) == 0 {
		return false
	}
	q := list[n%len(list)]
	decided, err := s.e.Decide(q.ID, engine.Decision{Approve: approve, By: "ann"})
	s.say("decide %s of %s on %s, approve %v: %v", q.ID, q.Creature, q.Channel, approve, err)
	if err == nil && (decided.ID != q.ID || decided.Waits()) {
		s.failf("the answer to %s is %+v", q.ID, decided)
	}
	if _, err := s.e.Decide(q.ID, engine.Decision{Approve: !approve}); err == nil {
		s.failf("the question %s was answered twice", q.ID)
	}
	return true
}

// asking is a message that a turn would send, and what has become of the question about it.
type asking struct {
	creature journal.CreatureID
	cause    journal.EventID
	channel  journal.ChannelID
}

// checkApprovals checks that no message leaves while its question waits or after it was denied,
// and that a turn sends what was approved at most once.
func (s *simulation) checkApprovals(l *ledger) {
	type verdict struct {
		id       journal.EventID
		decision journal.ApprovalDecision
	}
	asked, now := map[journal.EventID]asking{}, map[asking]verdict{}
	sent := map[asking]map[journal.EventID]int{}
	for i := range l.log {
		ev := &l.log[i]
		what := asking{ev.Creature, ev.Cause, ev.Channel}
		switch ev.Kind {
		case journal.EventApprovalAsked:
			asked[ev.ID], now[what] = what, verdict{id: ev.ID}
		case journal.EventApprovalDecided:
			var p journal.ApprovalDecidedPayload
			if err := json.Unmarshal(ev.Payload, &p); err != nil {
				s.failf("%s: %v", ev.Payload, err)
			}
			if what, known := asked[p.Approval]; known {
				if v := now[what]; v.id == p.Approval && v.decision != "" {
					s.failf("the question %s was decided twice: %s, then %s", p.Approval, v.decision, p.Decision)
				}
				now[what] = verdict{p.Approval, p.Decision}
				delete(asked, p.Approval)
			}
		case journal.EventChannelMessage:
			if ev.Turn.IsZero() || !asksFor(string(ev.Payload)) {
				continue
			}
			if sent[what] == nil {
				sent[what] = map[journal.EventID]int{}
			}
			if sent[what][ev.Turn]++; sent[what][ev.Turn] > 1 {
				s.failf("turn %s of %s sent %q twice on %s", ev.Turn, ev.Creature, ev.Payload, ev.Channel)
			}
			if v, ok := now[what]; ok && v.decision != journal.Approved && v.decision != journal.Withdrawn {
				s.failf("%s sent %q on %s, although the answer to %s is %q", ev.Creature, ev.Payload, ev.Channel, v.id, v.decision)
			}
		}
	}
	s.undecided = asked
}

// checkDecided checks, once all has settled, that no question was lost. A power loss after a
// cut may lose the event that withdraws the question of a creature that was removed.
func (s *simulation) checkDecided() {
	creatures, _, _ := s.e.Members()
	for id, what := range s.undecided {
		if !slices.Contains(creatures, what.creature) {
			continue
		}
		s.failf("the question %s of %s about %s on %s has no answer, and does not wait", id, what.creature, what.cause, what.channel)
	}
}
