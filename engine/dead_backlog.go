package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/approval"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/internal/observe"
	"github.com/seed47132306/terrarium/engine/internal/sorted"
	"github.com/seed47132306/terrarium/engine/journal"
)

// foresee collects what the change is going to bury.
func (x *change) foresee(ctx context.Context, plan *storePlan) error {
	for _, id := range sorted.Keys(x.leaving) {
		cr := x.e.creatures[id]
		if cr == nil {
			continue // added by the same change
		}
		for _, s := range cr.mb.feeds {
			if err := x.foreseeFeed(ctx, x.home(cr), s, journal.DeadCreatureRemoved); err != nil {
				return err
			}
		}
	}
	for _, id := range sorted.Keys(x.dropped) {
		ch := x.e.channels[id]
		if ch == nil {
			continue
		}
		for _, s := range ch.feeds {
			if cr := s.mb.creature; cr == nil || x.leaving[cr.id] {
				continue
			}
			if err := x.foreseeFeed(ctx, x.in(ch.home.load()), s, journal.DeadChannelRemoved); err != nil {
				return err
			}
		}
	}
	for _, group := range plan.groups {
		if len(group.After) > 0 {
			continue
		}
		// The store ends with the graph, and with it what its readers have not read.
		// They can still read what they have in memory.
		for _, r := range group.before[0].readers {
			b := &burial{mb: &r.mb, home: group.before[0]}
			if err := b.stored(ctx, r.feed, journal.DeadChannelRemoved); err != nil {
				return err
			}
			if len(b.dead) > 0 {
				x.burials[r.feed] = b
			}
		}
	}
	return nil
}

// foreseeFeed collects what waits in a creature's feed: the delivery that a worker is
// handling (if the creature stays, its turn will commit), the failed delivery that
// will be tried again, the window, and the rest of the log.
func (x *change) foreseeFeed(ctx context.Context, g section, s *feed, reason journal.DeadReason) error {
	b := &burial{mb: s.mb, home: g}
	cr := s.mb.creature
	if cr.current.feed == s && x.leaving[cr.id] {
		b.add(cr.current.msg, reason)
	}
	if cr.retry != nil && cr.retry.feed == s {
		b.add(cr.retry.msg, reason)
	}
	for d := range s.mb.window.All() {
		if d.feed == s {
			b.add(d.msg, reason)
		}
	}
	if err := b.stored(ctx, s, reason); err != nil {
		return err
	}
	if len(b.dead) == 0 {
		return nil
	}
	x.burials[s] = b
	if len(cr.approvals.All) > 0 && !x.leaving[cr.id] {
		var messages []*message.Message
		if cr.retry != nil && cr.retry.feed == s {
			messages = append(messages, cr.retry.msg)
		}
		ids := map[journal.EventID]bool{} // of all that has a log, even beyond the window
		for i := range b.dead {
			ids[b.dead[i].Message] = true
		}
		b.unasked = approval.Among(messages, ids)
	}
	return nil
}

func (b *burial) add(m *message.Message, reason journal.DeadReason) {
	b.dead = append(b.dead, letterOf(b.mb, m, reason))
	if m.Kind == abi.KindRequest {
		b.asked = append(b.asked, buriedRequest{m.ID, m.Sender})
	}
}

// buryChunk is how many messages are read at a time to become dead letters.
const buryChunk = 1024

// stored adds what waits for a feed in the store.
func (b *burial) stored(ctx context.Context, s *feed, reason journal.DeadReason) error {
	if b.home.store == nil {
		return nil
	}
	for after, end := s.offered, s.lastMessage(); after < end; {
		events, err := b.home.store.Messages(ctx, s.id, after, end, buryChunk, windowBytes)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			return nil
		}
		for i := range events {
			ev := &events[i]
			if cr := b.mb.creature; cr == nil || ev.Creature != cr.id || journal.IsInbox(s.id) {
				b.dead = append(b.dead, letterOfEvent(b.mb, ev, reason))
				if ev.Kind == journal.EventRequest {
					b.asked = append(b.asked, buriedRequest{ev.ID, ev.Creature})
				}
			}
			after = ev.Seq
		}
	}
	return nil
}

// The graph that keeps what the old graph had for a creature: the present graph of the creature
// or, if the creature has been removed or is in another group, the successor of the old graph.
func (x *change) successor(old section, c journal.CreatureID, group *storeGroup) journal.GraphID {
	if id := x.e.topo.GraphOf(c); slices.Contains(group.After, id) {
		return id
	}
	if id, _ := x.e.topo.Current(old.id); slices.Contains(group.After, id) {
		return id
	}
	return group.After[0]
}

// inter adds to the first record of a graph's new store the rest of what the former
// graphs had: the dead letters that the graph keeps, and the metadata.
func (x *change) inter(rec *journal.Record, group *storeGroup, id journal.GraphID, origin journal.Origin) {
	x.bequeathMeta(rec, group, id)
	x.firstMemory(rec, group, id)
	var own []*burial
	for _, b := range x.burials {
		if slices.Contains(group.before, b.home) && x.successor(b.home, b.mb.creature.id, group) == id {
			own = append(own, b)
		}
	}
	slices.SortFunc(own, func(a, b *burial) int {
		l, m := &a.dead[0], &b.dead[0]
		return cmp.Or(cmp.Compare(l.Creature, m.Creature), cmp.Compare(l.Channel, m.Channel), cmp.Compare(l.Seq, m.Seq))
	})
	for _, b := range own {
		b.events = nil
		for i := range b.dead {
			l := &b.dead[i]
			l.ID, l.Time = journal.EventID{Origin: origin, Seq: uint64(len(rec.Events) + 1)}, x.tick()
			l.Message = cmp.Or(x.entry.ids[l.Message], l.Message)
			ev := l.event()
			ev.Graph = id
			b.events = append(b.events, ev)
			rec.Letters = append(rec.Letters, l.DeadLetterRow)
			rec.Events = append(rec.Events, ev)
		}
		for _, ev := range b.withdrawals() {
			ev.ID, ev.Time = journal.EventID{Origin: origin, Seq: uint64(len(rec.Events) + 1)}, x.tick()
			ev.Graph, ev.Cause = id, cmp.Or(x.entry.ids[ev.Cause], ev.Cause)
			b.events, rec.Events = append(b.events, ev), append(rec.Events, ev)
		}
	}
}

// bury makes dead letters of everything that waits in a creature's feed.
func (x *change) bury(g section, rec *journal.Record, mb *mailbox, s *feed) {
	x.mourn(g, rec, s)
	cr := mb.creature
	if b := x.burials[s]; b != nil && b.unasked != nil {
		x.withdraw(g, rec, b)
	}
	if cr.retry != nil && cr.retry.feed == s {
		// It was between two attempts, so no worker uses it.
		cr.retry.msg.Release()
		cr.retry, cr.attempt = nil, 0
	}
	for _, d := range mb.remove(s) {
		d.msg.Release()
	}
	if g.store == nil {
		mb.noteLoad(g)
	}
	if s.ch != nil {
		s.ch.dropFeed(s)
		s.ch = nil
	}
	if cr.current.feed == s && !x.leaving[cr.id] {
		// Its turn is in progress and will commit. Until then a crash must not lose
		// the delivery, so it becomes a backlog of one.
		s.until, s.offered = cr.current.msg.Seq, cr.current.msg.Seq
		putCursor(rec, cr.reader(), s)
		return
	}
	s.until, s.cursor, s.offered = s.lastMessage(), s.lastMessage(), s.lastMessage()
	mb.dropFeed(s)
}

// withdrawals are the events that withdraw the questions about the buried deliveries.
func (b *burial) withdrawals() []journal.Event {
	if b.unasked == nil {
		return nil
	}
	return b.mb.creature.approvals.Withdrawals(b.mb.creature.id, approval.ChannelRemoved, b.unasked)
}

// withdraw withdraws the questions about deliveries that are about to be buried, unless a cut
// has. The creature, if it waits for their answers, continues with what is next.
func (x *change) withdraw(g section, rec *journal.Record, b *burial) {
	cr := b.mb.creature
	if b.events == nil {
		for _, ev := range b.withdrawals() {
			x.log(x.logOf(g), rec, ev)
		}
	}
	if cr.approvals.Drop(x.e.timers, b.unasked) {
		cr.unpark(x.e.core)
		x.unasked = append(x.unasked, cr)
	}
}

// putUnasked writes the rows of creatures whose questions the change has withdrawn, and
// wakes them. It runs after the records have been trimmed.
func (x *change) putUnasked() {
	for _, cr := range x.unasked {
		if g := x.home(cr); !g.none() {
			putApprovals(g, x.record(g), cr)
			cr.wake(g, &x.wake)
		}
	}
}

// show shows subscribers an event of a store's first record.
func (x *change) show(plan *storePlan, ev *journal.Event) {
	x.e.observers.Publish(ev, observe.Source{Session: plan.children[ev.Graph].Info().Session})
}

// mourn logs the dead letters of a feed, unless a cut has logged them.
func (x *change) mourn(g section, rec *journal.Record, s *feed) {
	b := x.burials[s]
	if b == nil || b.events != nil {
		return
	}
	log := x.logOf(g)
	for _, l := range b.dead {
		log.deadLetter(rec, l)
	}
}

// announce shows subscribers the dead letters that a cut has logged. They are the
// first events of the new logs. So they are shown in the order of their ids, before
// the environments follow and log more.
func (x *change) announce(plan *storePlan) {
	var interred []*burial
	for _, b := range x.burials {
		if b.events != nil {
			interred = append(interred, b)
		}
	}
	slices.SortFunc(interred, func(a, b *burial) int {
		l, m := &a.events[0], &b.events[0]
		return cmp.Or(cmp.Compare(l.Graph, m.Graph), cmp.Compare(l.ID.Seq, m.ID.Seq))
	})
	for _, b := range interred {
		for i := range b.events {
			if i < len(b.dead) { // otherwise it withdraws a question
				b.dead[i].count(x.e.core)
			}
			x.show(plan, &b.events[i])
		}
	}
}

const removedText = "the creature that was asked has been removed"

// answerBuried answers the requests that wait for creatures that the change removes,
// because no creature will. It runs after the records have been trimmed, since an
// answer is a message with rows of its own. If a previous change has put the asker
// into a graph that this change does not concern, the asker waits for the deadline.
func (x *change) answerBuried() {
	removed := sorted.ValuesFunc(x.burials, func(a, b *burial) int {
		l, m := &a.dead[0], &b.dead[0]
		return cmp.Or(strings.Compare(string(l.Creature), string(m.Creature)), strings.Compare(string(l.Channel), string(m.Channel)))
	})
	for _, b := range removed {
		for _, r := range b.asked {
			a := answer{code: abi.NotConnected, text: removedText}
			if r.asker == "" {
				x.e.answerCaller(b.logged(), r.id, a)
			} else if cr := x.e.creatures[r.asker]; cr != nil {
				x.answerAsker(cr, r.id, a)
			}
		}
	}
}

// answerAsker answers a request of a creature, if it is still open.
func (x *change) answerAsker(cr *creature, request journal.EventID, a answer) {
	g, entered := x.paused[cr.home.load()]
	if !entered {
		return
	}
	for key, q := range cr.questions {
		if key == request || q.row.ID == request {
			g.answerOpenRequest(x.record(g), &x.wake, cr, key, a, journal.EventID{}, x.turn.cause(x))
			return
		}
	}
}

// logged is the graph whose log an outside caller waits for: none if it has ended.
func (b *burial) logged() section {
	if b.home.ended {
		return section{}
	}
	return b.home
}
