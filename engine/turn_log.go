package engine

import (
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/effects"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/journal"
)

// turnLog is what a committing turn leaves in the log, and what follows from that in memory. It is
// written in one go and then landed; see commit.go. A worker reuses its own for every turn.
type turnLog struct {
	t     *turn
	g     section         // of its creature
	rec   *journal.Record // nil where there is no log
	ahead *ahead          // nil: the graph does not change before the turn lands
	shown bool            // something is logged or observed
	moved bool            // sends on channels may lead elsewhere than the turn saw
	id    journal.EventID // of the turn_ended event
	cause journal.EventID // the message that the turn has handled, if anything is shown

	posts   []post
	letters []letter
	timers  []journal.TimerRow // to be set; cancelled ones have no due time
	asks    []*question        // that the creature waits for
	asker   *creature          // its question was answered by the turn
	settled *question
	sent    uint64
	denied  int
}

// post is a message with its place in a channel.
type post struct {
	ch *channel
	m  *message.Message
}

// ahead is a change that cuts the store of the turn's graph. The turn is written to the
// first record of the new store before the environments follow, so that a crash leaves
// the change and the turn, or neither. It uses the topology, which is already as the
// change leaves it, rather than the environments.
type ahead struct {
	x      *change
	graph  journal.GraphID
	origin journal.Origin
	name   string // of the creature
	heads  map[journal.ChannelID]uint64
	events []journal.Event // of the turn, in order
}

// begin prepares the log for the turn.
func (l *turnLog) begin(g section, rec *journal.Record) {
	l.g, l.rec, l.moved = g, rec, l.t.c.wiring.Load() != l.t.wiring
	if l.shown = rec != nil || g.engine.observers.Any(); l.shown {
		l.cause = l.t.d.msg.LogID()
	}
}

// reset discards what was written, and keeps the memory.
func (l *turnLog) reset() {
	l.posts, l.g, l.rec, l.ahead, l.sent = effects.Emptied(l.posts), section{}, nil, nil, 0
	l.forgetMore()
}

func (l *turnLog) forgetMore() {
	l.letters, l.timers, l.asks = effects.Emptied(l.letters), effects.Emptied(l.timers), effects.Emptied(l.asks)
	l.asker, l.settled, l.denied = nil, nil, 0
}

// next returns the id of the next event.
func (l *turnLog) next() journal.EventID {
	if a := l.ahead; a != nil {
		return journal.EventID{Origin: a.origin, Seq: uint64(len(l.rec.Events) + 1)}
	}
	return l.g.nextID()
}

// tick returns the time of the next event.
func (l *turnLog) tick() int64 {
	if l.ahead != nil {
		return l.ahead.x.tick()
	}
	return l.g.tick()
}

// wants reports whether events of a kind are logged or observed.
func (l *turnLog) wants(k journal.EventKind) bool {
	return l.shown && (l.rec != nil || l.g.engine.observers.Wants(k))
}

// log adds an event. Observers get the events of a first record only after the change was made.
func (l *turnLog) log(ev journal.Event) {
	a := l.ahead
	if a == nil {
		l.g.log(l.rec, ev)
		return
	}
	ev.Graph = a.graph
	if ev.ID.IsZero() {
		ev.ID = l.next()
	}
	if ev.Time == 0 {
		ev.Time = l.tick()
	}
	a.events = append(a.events, ev)
	l.rec.Events = append(l.rec.Events, ev)
}

// inbox returns the inbox of a creature.
func (l *turnLog) inbox(c *creature) *channel {
	if l.ahead != nil {
		return l.ahead.channel(journal.InboxOf(c.id))
	}
	return l.g.channels[journal.InboxOf(c.id)]
}

// channel finds a channel, or returns a placeholder for one that the change will make.
func (a *ahead) channel(id journal.ChannelID) *channel {
	if ch := a.x.channel(id); ch != nil {
		return ch
	}
	return &channel{id: id}
}

// arrive finds the channels of messages once the environments have followed.
func (a *ahead) arrive(posts []post) {
	for i := range posts {
		p := &posts[i]
		p.ch = a.x.e.channels[p.m.Channel]
		p.ch.head = p.m.Seq
	}
}

// target is where a send goes when the turn lands, if that may differ from what the turn
// saw; nil: nowhere.
func (l *turnLog) target(s *sendEffect) *channel {
	switch {
	case l.ahead != nil:
		return l.ahead.target(l.t.c, s)
	case s.to == nil:
		return l.t.c.wiring.Load().byAlias[s.alias]
	case s.to.home.load() != l.g.graph || s.to.removed:
		return nil
	}
	return l.inbox(s.to)
}

func (a *ahead) target(c *creature, s *sendEffect) *channel {
	topo := a.x.e.topo
	if s.to != nil {
		if topo.GraphOf(s.to.id) != a.graph {
			return nil
		}
		return a.channel(journal.InboxOf(s.to.id))
	}
	info, _ := topo.Creature(c.id)
	for _, e := range info.Edges {
		if e.Direction == journal.Send && e.Alias == s.alias {
			return a.channel(e.Channel)
		}
	}
	return nil
}

// astray reports whether sends lead elsewhere than the turn saw.
func (l *turnLog) astray() bool {
	if l.ahead == nil {
		return l.moved
	}
	return slices.ContainsFunc(l.t.sends, func(s sendEffect) bool { return s.ch != nil && l.target(&s) != s.ch })
}

// unwired reports whether an output wire was removed.
func (l *turnLog) unwired(id journal.WireID) bool {
	if l.ahead != nil {
		return draft.WireWithID(l.ahead.x.WiresOf(l.t.c.id), id) < 0
	}
	return l.moved && !l.t.c.wiring.Load().hasOutlet(id)
}

// wireEnd is where an output wire leads; nil: nowhere.
func (l *turnLog) wireEnd(wire *journal.OutputWire) *creature {
	if l.ahead != nil {
		return l.ahead.wireEnd(l.t.c, wire)
	}
	return l.g.target(l.t.c, wire)
}

func (a *ahead) wireEnd(from *creature, wire *journal.OutputWire) *creature {
	topo := a.x.e.topo
	if wire.To != journal.ToRoot {
		if topo.GraphOf(wire.To) != a.graph {
			return nil
		}
		return a.x.creature(wire.To)
	}
	for _, id := range topo.Roots(a.graph) {
		if c := a.x.creature(id); from.deployment == "" || c.deployment == from.deployment {
			return c
		}
	}
	return nil
}

// question finds the request that the turn has handled, if its sender still waits in the graph.
func (l *turnLog) question(m *message.Message) (asker *creature, q *question) {
	if a := l.ahead; a == nil {
		asker = l.g.creatures[m.Sender]
	} else if a.x.e.topo.GraphOf(m.Sender) == a.graph {
		asker = a.x.e.creatures[m.Sender]
	}
	if asker != nil {
		q = asker.questions[m.ID]
	}
	return asker, q
}

// message makes a message of the creature from bytes that the turn will reuse.
func (l *turnLog) message(kind abi.Kind, payload, headers []byte) *message.Message {
	m := l.g.newMessage(l.rec, payload, headers)
	m.Kind, m.Sender, m.SenderName = kind, l.t.c.id, l.t.c.name
	return m
}

// post gives a message its place in a channel, and logs it.
func (l *turnLog) post(ch *channel, m *message.Message) {
	l.posts = append(l.posts, post{ch, m})
	if l.ahead != nil {
		l.postAhead(ch, m)
		return
	}
	l.g.sequence(ch, m)
	if l.shown {
		l.g.logMessage(l.rec, ch, m, l.id, l.cause)
	}
}

func (l *turnLog) postAhead(ch *channel, m *message.Message) {
	a := l.ahead
	if m.Sender != "" {
		m.SenderName = a.name // a merge may change it
	}
	a.heads[ch.id] = max(a.heads[ch.id], ch.head) + 1
	m.Channel, m.Seq, m.ID, m.Time = ch.id, a.heads[ch.id], l.next(), l.tick()
	ev := m.Event(a.graph)
	ev.Turn, ev.Cause = l.id, l.cause
	l.log(ev)
	l.rec.Heads = append(l.rec.Heads, journal.HeadRow{Channel: ch.id, Seq: m.Seq})
}
