package engine

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// buriedRequest is a request that waited for a creature that is removed.
type buriedRequest struct {
	id    journal.EventID
	asker journal.CreatureID // empty: an outside caller
}

// answerBuried answers the requests that wait for creatures that the change removes,
// because no creature will. It runs after the records have been trimmed, since an
// answer is a message with rows of its own. If a previous change has put the asker
// into a graph that this change does not concern, the asker waits for the deadline.
func (x *change) answerBuried() {
	removed := slices.SortedFunc(maps.Values(x.burials), func(a, b *burial) int {
		l, m := &a.dead[0], &b.dead[0]
		return cmp.Or(strings.Compare(string(l.Creature), string(m.Creature)), strings.Compare(string(l.Channel), string(m.Channel)))
	})
	for _, b := range removed {
		for _, r := range b.asked {
			a := answer{code: abi.NotConnected, text: "the creature that was asked has been removed"}
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
