package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
)

// verify checks the log and the live rows of a session.
func (s *session) verify() journal.VerifyReport {
	s.look()
	r := journal.VerifyReport{Session: s.info.Session, Events: int64(s.len())}
	if !s.info.Complete && !s.gone {
		for _, p := range s.parents {
			r.IncompleteFrom = append(r.IncompleteFrom, p.info.Session)
		}
	}
	s.verifyOrigins(&r)
	s.verifyChannels(&r)
	s.verifyRows(&r)
	return r
}

// gap describes the missing numbers between two numbers.
func gap(form func(uint64) string, from, to uint64, last func(uint64) string) string {
	if from == to {
		return form(from)
	}
	return form(from) + " to " + last(to)
}

func (s *session) verifyOrigins(r *journal.VerifyReport) {
	numbers := map[journal.Origin][]uint64{}
	var order []journal.Origin
	for _, ev := range s.all() {
		if numbers[ev.ID.Origin] == nil {
			order = append(order, ev.ID.Origin)
		}
		numbers[ev.ID.Origin] = append(numbers[ev.ID.Origin], ev.ID.Seq)
	}
	for _, o := range order {
		id := func(n uint64) string { return journal.EventID{Origin: o, Seq: n}.String() }
		slices.Sort(numbers[o])
		last := uint64(0)
		for _, n := range numbers[o] {
			if n > last+1 {
				r.Missing = append(r.Missing, gap(id, last+1, n-1, id))
			}
			last = n
		}
	}
}

func (s *session) verifyChannels(r *journal.VerifyReport) {
	messages := map[journal.ChannelID][]journal.Event{}
	for _, ev := range s.all() {
		if ev.Kind.IsMessage() && ev.Channel != "" {
			messages[ev.Channel] = append(messages[ev.Channel], ev)
		}
	}
	var ids []journal.ChannelID
	for id := range messages {
		ids = append(ids, id)
	}
	for id := range s.rows.heads {
		if messages[id] == nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		s.verifyChannel(r, id, messages[id])
	}
}

func (s *session) verifyChannel(r *journal.VerifyReport, id journal.ChannelID, list []journal.Event) {
	name := func(n uint64) string { return fmt.Sprintf("channel %s number %d", id, n) }
	bare := func(n uint64) string { return fmt.Sprint(n) }
	slices.SortStableFunc(list, func(a, b journal.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	var last journal.Event
	for _, ev := range list {
		switch {
		case ev.Seq > last.Seq+1 && last.Time < s.unlogged: // the missing messages were never in a log
		case ev.Seq > last.Seq+1:
			r.Missing = append(r.Missing, gap(name, last.Seq+1, ev.Seq-1, bare))
		case ev.Seq == last.Seq:
			r.Duplicate = append(r.Duplicate, fmt.Sprintf("%s: %s and %s", name(ev.Seq), last.ID, ev.ID))
		}
		if last.Seq > 0 && ev.Seq > last.Seq && ev.Time <= last.Time {
			r.OutOfOrder = append(r.OutOfOrder, fmt.Sprintf("%s: %s is not later than %s, number %d", name(ev.Seq), ev.ID, last.ID, last.Seq))
		}
		last = ev
	}
	if head := s.rows.heads[id].Seq; head > last.Seq && last.Time >= s.unlogged {
		r.Missing = append(r.Missing, gap(name, last.Seq+1, head, bare))
	}
}

func (s *session) verifyRows(r *journal.VerifyReport) {
	if !s.info.Live {
		return
	}
	damaged := func(ok bool, what string, args ...any) {
		if !ok {
			r.Damage = append(r.Damage, fmt.Sprintf(what, args...))
		}
	}
	creature := func(id journal.CreatureID) bool { _, ok := s.rows.creatures[id]; return ok }
	channel := func(id journal.ChannelID) bool { _, ok := s.rows.channels[id]; return ok }
	for _, c := range s.saved().Cursors {
		head := s.rows.heads[c.Channel].Seq
		if c.Until == 0 {
			damaged(channel(c.Channel), "a cursor of %s is on the unknown channel %s", c.Reader, c.Channel)
			damaged(c.Seq <= head || !channel(c.Channel), "the cursor of %s is beyond the head of %s", c.Reader, c.Channel)
		} else {
			damaged(c.Until <= head || !channel(c.Channel), "a backlog of %s is beyond the head of %s", c.Reader, c.Channel)
		}
		damaged(outside(c.Reader) || creature(journal.CreatureID(c.Reader)), "a cursor of the unknown creature %s", c.Reader)
	}
	for _, e := range s.rows.edges {
		damaged(creature(e.Creature) && channel(e.Channel), "an edge of %s to %s leads nowhere", e.Creature, e.Channel)
	}
	for k := range s.rows.state {
		damaged(creature(k.creature), "state of the unknown creature %s", k.creature)
	}
	for k := range s.rows.timers {
		damaged(creature(k.creature), "a timer of the unknown creature %s", k.creature)
	}
	for _, q := range s.rows.requests {
		damaged(creature(q.Creature), "a request of the unknown creature %s", q.Creature)
	}
	for _, w := range s.rows.wires {
		damaged(creature(w.From), "an output wire of the unknown creature %s", w.From)
	}
}
