package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/letterbox"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/journal"
)

// DeadLetters returns the dead letters of a graph, or of one of its creatures if one is given, in
// the order in which they were logged: at most limit (0: 1,000), after the one with the given id.
// A graph without a store keeps the last 1,000, and at most 2 MiB of them.
func (e *Engine) DeadLetters(ctx context.Context, graph journal.GraphID, creature journal.CreatureID, after journal.EventID, limit int) ([]journal.DeadLetterRow, error) {
	l := e.core.rlock()
	g, err := l.present(graph)
	l.runlock()
	if err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = 1000
	}
	s := g.enter()
	store, kept := s.store, s.letters.Page(creature, after, limit)
	s.leave()
	if store != nil {
		return store.DeadLetters(ctx, creature, after, limit)
	}
	return kept, nil
}

// Redeliver delivers a dead letter again. It goes through the inbox of its creature, where a
// message of a channel arrives as one of that channel, as it did the first time. If no edge led
// anywhere for the original send, the letter is sent on the channel that now has the sender's
// alias. If a recipe has replaced the creature with another at the same address, the new one gets
// the letter. letter is the id of the dead letter or of its message, which must be unique in the
// graph. The dead letter is removed; if the delivery fails again, a new one is made.
func (e *Engine) Redeliver(ctx context.Context, graph journal.GraphID, letter journal.EventID) (Sent, error) {
	row, err := e.findLetter(ctx, graph, letter)
	if err != nil {
		return Sent{}, err
	}
	c, err := e.addressee(ctx, graph, row.Creature)
	if err != nil {
		return Sent{}, err
	}
	wall := e.core.wallClock()
	g := c.home.enterAt(wall)
	if g.none() {
		return Sent{}, errtext.Gone("creature", string(row.Creature))
	}
	var w waker
	sent, err := g.redeliver(&w, c, row)
	g.leave()
	w.flush(&e.core)
	if err == nil {
		e.forgetLetter(graph, g.graph, row.ID)
	}
	return sent, err
}

// forgetLetter removes a dead letter that a graph keeps for a creature that is in another
// one since a split. The message has been sent already, so a crash in between keeps the
// letter rather than losing it.
func (e *Engine) forgetLetter(keeper journal.GraphID, delivered *graph, letter journal.EventID) {
	l := e.core.rlock()
	g, _ := l.present(keeper)
	l.runlock()
	if g == nil || g == delivered {
		return
	}
	s := g.enter()
	defer s.leave()
	s.letters.DropOne(letter)
	if s.store != nil && !s.ended {
		s.append(&journal.Record{Drop: journal.Drop{Letters: []journal.EventID{letter}}})
	}
}

// redeliver implements Redeliver.
func (g section) redeliver(w *waker, c *creature, row journal.DeadLetterRow) (Sent, error) {
	ch, kind, sender := g.channels[journal.InboxOf(c.id)], message.KindOf(row.Kind), row.Sender
	if row.Kind == journal.EventWiredOutput && row.Alias != "" && !row.WasSent() {
		root := g.rootOf(c)
		if root == nil {
			return Sent{}, errtext.StillUnconnected(c.id, "there is still no root for the output of "+c.name, "assign a root first, with assign_root")
		}
		ch = g.channels[journal.InboxOf(root.id)]
	} else if row.Alias != "" && !row.WasSent() {
		if ch = c.wiring.Load().byAlias[row.Alias]; ch == nil {
			return Sent{}, errtext.StillUnconnected(c.id, c.name+" still has no send alias "+row.Alias, "connect it first")
		}
		kind, sender = abi.KindMessage, c.id
	}
	if kind == abi.KindRequest {
		kind = abi.KindMessage // no sender still waits for the answer
	}
	rec := g.newRecord()
	m := message.New(slices.Clone(row.Payload), headersAgain(&row, c, g))
	m.Kind, m.Sender = kind, sender
	if s := g.creatures[sender]; s != nil {
		m.SenderName = s.name
	}
	g.sequence(ch, m)
	sent := Sent{Message: m.ID, Seq: m.Seq}
	g.logMessage(rec, ch, m, journal.EventID{}, cmp.Or(row.Message, row.ID))
	g.publish(ch, m, w, rec)
	m.Release()
	if rec != nil {
		rec.Drop.Letters = append(rec.Drop.Letters, row.ID)
	}
	g.letters.DropOne(row.ID)
	g.append(rec)
	return sent, nil
}

// headersAgain returns the headers for redelivering a dead letter: a channel's message
// also gets the creature's alias of the channel. A letter of an earlier version does not
// have the alias; the creature may still listen.
func headersAgain(l *journal.DeadLetterRow, c *creature, g section) []byte {
	headers := slices.Clone(l.Headers)
	if !l.WasSent() || l.Kind != journal.EventChannelMessage {
		return headers
	}
	alias := l.Alias
	if ch := g.channels[l.Channel]; alias == "" && ch != nil {
		if s := c.mb.feed(ch); s != nil {
			alias = s.alias
		}
	}
	if alias == "" {
		return headers
	}
	return message.WithAlias(headers, alias)
}

// findLetter finds a dead letter by its own id or by the id of its message.
func (e *Engine) findLetter(ctx context.Context, graph journal.GraphID, id journal.EventID) (journal.DeadLetterRow, error) {
	return letterbox.Find(id, func(after journal.EventID) ([]journal.DeadLetterRow, error) {
		return e.DeadLetters(ctx, graph, "", after, 0)
	})
}
