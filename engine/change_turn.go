package engine

import (
	"cmp"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/recall"
	"github.com/seed47132306/terrarium/engine/journal"
)

// handledTurn is what a change needs of the turn that makes it: its delivery, and how
// the rest of the turn is logged and landed.
//
// The methods do nothing on nil.
type handledTurn struct {
	c    *creature
	d    delivery
	kind abi.Kind
	rest restOfTurn
	// goBack restores these fields: how far the creature had read before the turn.
	cursor   uint64 // of d's feed
	started  bool
	notified uint64
}

// restOfTurn is the rest of a turn that makes a change; see turnChange.
type restOfTurn interface {
	// recalled returns what the policies that judged the turn have recalled.
	recalled() []*recall.Recollection
	// logFirst logs the turn in the first record of a store.
	logFirst(x *change, rec *journal.Record, id journal.GraphID, origin journal.Origin)
	// announce shows subscribers what logFirst has logged.
	announce(x *change, plan *storePlan)
	// land applies the turn after the environments have followed.
	land(x *change)
	// goBack discards what was logged.
	goBack()
}

// cause is the id in the log of the message that the turn handles. It is empty if
// there is no turn, or if no log has the delivery.
func (t *handledTurn) cause(x *change) journal.EventID {
	if t == nil {
		return journal.EventID{}
	}
	return cmp.Or(x.entry.ids[t.d.msg.ID], t.d.msg.LogID())
}

// advance counts the delivery as handled before stores are cut, so that their first
// records show it as handled.
func (t *handledTurn) advance(x *change) {
	if t == nil {
		return
	}
	c, s := t.c, t.d.feed
	c.current = delivery{}
	if s != nil {
		t.cursor, s.cursor = s.cursor, max(s.cursor, t.d.msg.Seq)
	}
	t.started, t.notified = c.started, c.sight.notified
	c.noteDealt(x.home(c), t.kind)
}

// goBack undoes advance.
func (t *handledTurn) goBack() {
	if t == nil {
		return
	}
	if s := t.d.feed; s != nil {
		t.c.current, s.cursor = t.d, t.cursor
	}
	t.c.started, t.c.sight.notified = t.started, t.notified
	t.rest.goBack()
}
