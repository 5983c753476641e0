package engine

import (
	"slices"

	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/journal"
)

// letter is a delivery that will not be handled.
type letter struct {
	journal.DeadLetterRow
	mb     *mailbox        // its mailbox; nil for what never reached one
	reader string          // name of the outside reader, if it is a reader's mailbox
	turn   journal.EventID // turn that sent it, if it reached no creature
	from   *creature       // creature of that turn; nil for all others
}

// unsent is the dead letter of a send of c that leads nowhere. It keeps the bytes.
func (s *sendEffect) unsent(c *creature, turn journal.EventID, payload, headers []byte) letter {
	row := journal.DeadLetterRow{
		Reason: journal.DeadNotConnected, Creature: c.id, Sender: c.id, Alias: s.alias, Kind: journal.EventChannelMessage,
		Payload: payload, Headers: headers,
	}
	if s.to != nil {
		row.Creature, row.Kind = s.to.id, journal.EventDirectMessage
	}
	return letter{DeadLetterRow: row, turn: turn, from: c}
}

// letterOf is the dead letter of a message for a reader.
func letterOf(mb *mailbox, m *message.Message, reason journal.DeadReason) letter {
	ev := m.Event("")
	l := letterOfEvent(mb, &ev, reason)
	// Pooled messages are reused; a dead letter stays.
	l.Payload, l.Headers = slices.Clone(m.Payload), slices.Clone(m.Headers)
	return l
}

// letterOfEvent is the dead letter of a logged message for a reader.
func letterOfEvent(mb *mailbox, ev *journal.Event, reason journal.DeadReason) letter {
	l := letter{mb: mb, DeadLetterRow: journal.LetterOf(ev, reason)}
	if mb.creature != nil {
		l.Creature, l.Alias = mb.creature.id, mb.aliasOf(ev.Channel)
	} else {
		l.reader = mb.reader.name
	}
	return l
}

// count counts a dead letter as it is logged.
func (l *letter) count(e *core) {
	e.deadLetters.Add(1)
	switch {
	case l.mb != nil && l.mb.creature != nil:
		l.mb.creature.counters.DeadLetters++
	case l.from != nil:
		l.from.counters.DeadLetters++
	}
}

// event is the event of a dead letter that already has its id and time.
func (l *letter) event() journal.Event {
	return l.Event(l.turn, l.reader)
}

// deadLetter logs a delivery that will not be handled, and keeps it so that it can be redelivered.
func (g section) deadLetter(rec *journal.Record, l letter) {
	l.count(g.engine)
	l.ID, l.Time = g.nextID(), g.tick()
	if rec != nil || g.engine.observers.Wants(journal.EventDeadLetter) {
		g.log(rec, l.event())
	}
	switch {
	case l.Creature == "":
		return // an outside reader's: no creature to deliver it to
	case rec != nil:
		rec.Letters = append(rec.Letters, l.DeadLetterRow)
	default:
		g.letters.Keep(l.DeadLetterRow)
	}
}
