// Package approval holds the questions of policies on whose answers turns wait: those of a
// creature, and those that are asked while a turn is judged.
package approval

import (
	"cmp"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/internal/timing"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Question is a question of a policy about a turn of a creature.
type Question struct {
	// key is the id of the delivery in memory. The id in Row, which the store has, differs
	// if the graph had no store at that time. For a notice, key is zero: each notice has an
	// id of its own, but a new notice replaces one that was not handled, and gets its
	// answers.
	key   journal.EventID
	Row   journal.ApprovalRow
	Timer *timing.Timer // of its deadline
	// NoRecipe says that the recipe that asked had no members left when the session was restored.
	NoRecipe bool

	whole journal.ApprovalContent // until it is logged
}

// Asked is the event of a new question about a creature.
func (q *Question) Asked(c journal.CreatureID) journal.Event {
	ev := q.Row.Asked(c, q.whole)
	q.whole = journal.ApprovalContent{}
	return ev
}

// IsAbout reports whether the question is about the turn of a delivery.
func (q *Question) IsAbout(m *message.Message, kind abi.Kind) bool {
	return q.key == keyOf(m.ID, journal.KindOfDelivery(kind)) && q.Row.Delivery == journal.KindOfDelivery(kind)
}

func keyOf(id journal.EventID, kind journal.DeliveryKind) journal.EventID {
	if kind == journal.KindOfDelivery(abi.KindGraphChanged) {
		return journal.EventID{}
	}
	return id
}

// List holds the questions about a creature's turns, in the order in which they were asked.
// The graph's mu guards it.
type List struct {
	All    []*Question
	Parked bool // the turn of the creature's next delivery waits for answers
}

// Open is how many questions have no answer.
func (l *List) Open() (n int) {
	for _, q := range l.All {
		if q.Row.Waits() {
			n++
		}
	}
	return n
}

// OpenBeside reports whether another question about the same turn has no answer.
func (l *List) OpenBeside(q *Question) bool {
	return slices.ContainsFunc(l.All, func(o *Question) bool {
		return o.Row.Waits() && o.key == q.key && o.Row.Delivery == q.Row.Delivery
	})
}

// Rows are the questions as the creature's row stores them. next is the delivery that is
// put back, or nil.
func (l *List) Rows(next *message.Message) []journal.ApprovalRow {
	if len(l.All) == 0 {
		return nil
	}
	rows := make([]journal.ApprovalRow, len(l.All))
	for i, q := range l.All {
		rows[i] = q.RowOf(next)
	}
	return rows
}

// RowOf is the row of a question, with the id that the log has of its message.
func (q *Question) RowOf(next *message.Message) journal.ApprovalRow {
	row := q.Row
	if next != nil && next.ID == q.key {
		row.Message = next.LogID()
	}
	return row
}

// FirstRows are the rows for the first record of a store, in which messages have other
// ids. Questions that are answered or withdrawn with that record are left out.
func (l *List) FirstRows(next *message.Message, ids map[journal.EventID]journal.EventID, done func(*Question) bool) []journal.ApprovalRow {
	var rows []journal.ApprovalRow
	for _, q := range l.All {
		if done(q) {
			continue
		}
		row := q.RowOf(next)
		row.Message = cmp.Or(ids[row.Message], row.Message)
		rows = append(rows, row)
	}
	return rows
}

// Restore brings back the questions of a saved creature. Its turn then runs, asks again,
// and finds them, once the recipe that asked is applied.
//
// deployments are those that the creature's graph still has. A question of another one has no
// recipe that could be applied.
func (l *List) Restore(rows []journal.ApprovalRow, deployments func() map[string]bool) {
	if len(rows) == 0 {
		return
	}
	known := deployments()
	for _, row := range rows {
		l.All = append(l.All, &Question{key: keyOf(row.Message, row.Delivery), Row: row, NoRecipe: !known[row.Deployment]})
	}
}

// Unjudged reports whether a question about a turn comes from a recipe that has not been applied
// since its session was restored. Without the policies of that recipe, the turn would ask nothing:
// it would run without the approval, or against a denial. So it waits for the recipe.
func (l *List) Unjudged(applied func(deployment string) bool) bool {
	return slices.ContainsFunc(l.All, func(q *Question) bool { return !q.NoRecipe && !applied(q.Row.Deployment) })
}

// Known are the rows of the questions about the turn of a delivery.
func (l *List) Known(m *message.Message, kind abi.Kind) (rows []journal.ApprovalRow) {
	for _, q := range l.All {
		if q.IsAbout(m, kind) {
			rows = append(rows, q.Row)
		}
	}
	return rows
}

// Why questions are withdrawn.
const (
	NotAskedAgain   = "the turn no longer asks for it"
	CreatureRemoved = "the creature was removed"
	ChannelRemoved  = "the channel of the message was removed"
)

// Withdrawals are the events of questions without an answer that are withdrawn.
func (l *List) Withdrawals(c journal.CreatureID, reason string, which func(*Question) bool) (events []journal.Event) {
	for _, q := range l.All {
		if q.Row.Waits() && which(q) {
			row := q.Row
			row.Decision, row.Because = journal.Withdrawn, reason
			events = append(events, row.Decided(c, false))
		}
	}
	return events
}

// Unused are the events of the questions about a delivery that its turn has not asked
// again.
func (l *List) Unused(c journal.CreatureID, m *message.Message, kind abi.Kind) []journal.Event {
	return l.Withdrawals(c, NotAskedAgain, func(q *Question) bool { return q.IsAbout(m, kind) })
}

// Among selects the questions about one of the messages, or about a message with one of
// the ids that the log has.
func Among(messages []*message.Message, ids map[journal.EventID]bool) func(*Question) bool {
	return func(q *Question) bool {
		return !q.Row.Message.IsZero() && ids[q.Row.Message] ||
			slices.ContainsFunc(messages, func(m *message.Message) bool { return q.IsAbout(m, m.Kind) })
	}
}

// Drop forgets questions, and reports whether there were any.
func (l *List) Drop(timers *timing.Timers, which func(*Question) bool) bool {
	before := len(l.All)
	l.All = slices.DeleteFunc(l.All, func(q *Question) bool {
		if which(q) {
			timers.Stop(q.Timer)
			return true
		}
		return false
	})
	return len(l.All) < before
}

// Note compares what a turn has asked with the questions that are known, and returns those
// that are new. The creature is parked if one of them has no answer. idle reports
// questions that the turn has not asked again.
func (l *List) Note(asked []Asked, m *message.Message, kind abi.Kind, now int64) (fresh []*Question, idle func(*Question) bool) {
	l.Parked = false
	wanted := map[string]bool{}
	for i := range asked {
		wanted[asked[i].Hash] = true
	}
	idle = func(q *Question) bool { return q.IsAbout(m, kind) && q.Row.Waits() && !wanted[q.Row.Hash] }
	room := journal.MaxCreatureContent
	for _, q := range l.All {
		if !idle(q) {
			room -= q.Row.Shown()
		}
	}
	for i := range asked {
		a := &asked[i]
		known := slices.IndexFunc(l.All, func(q *Question) bool { return q.IsAbout(m, kind) && q.Row.Hash == a.Hash })
		if known >= 0 {
			l.Parked = l.Parked || l.All[known].Row.Waits()
			continue
		}
		l.Parked = true
		q := &Question{key: keyOf(m.ID, journal.KindOfDelivery(kind)), Row: a.row(m, kind, now, max(room, 0)), whole: journal.ApprovalContent{Content: a.Content, Headers: a.Headers}}
		room -= q.Row.Shown()
		fresh = append(fresh, q)
	}
	return fresh, idle
}
