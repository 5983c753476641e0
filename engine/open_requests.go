package engine

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/approval"
	"github.com/seed47132306/terrarium/engine/journal"
)

// silence cancels the timers and requests of a creature that is removed.
func (g section) silence(c *creature) {
	for _, a := range c.timers {
		g.engine.timers.Stop(a.timer)
	}
	for _, q := range c.questions {
		g.engine.timers.Stop(q.timer)
		q.call.Interrupt()
	}
	c.approvals.Drop(g.engine.timers, func(*approval.Question) bool { return true })
	c.timers, c.questions = nil, nil
}

// putAsks adds the rows of a creature's timers and open requests to a record.
func putAsks(_ section, r *journal.Record, c *creature) {
	for _, name := range slices.Sorted(maps.Keys(c.timers)) {
		r.Timers = append(r.Timers, c.timers[name].row)
	}
	from := len(r.Requests)
	for _, q := range c.questions {
		r.Requests = append(r.Requests, q.row)
	}
	slices.SortFunc(r.Requests[from:], func(a, b journal.RequestRow) int { return strings.Compare(a.ID.String(), b.ID.String()) })
}

// restoreAsks brings back the timers and requests of saved creatures. They are not
// running yet, but a cut that comes first takes them along.
func (x *change) restoreAsks() {
	for _, row := range x.saved.Timers {
		if c := x.creatures[row.Creature]; c != nil {
			if c.timers == nil {
				c.timers = map[string]*alarm{}
			}
			c.timers[row.Name] = &alarm{row: row}
		}
	}
	for _, row := range x.saved.Requests {
		if c := x.creatures[row.Creature]; c != nil {
			if c.questions == nil {
				c.questions = map[journal.EventID]*question{}
			}
			c.questions[row.ID] = &question{key: row.ID, row: row}
		}
	}
}

// resumeAsks starts what restoreAsks has brought back. What became due meanwhile is due now.
func (x *change) resumeAsks() {
	for _, c := range x.creatures {
		g := c.home.enter()
		if g.none() {
			continue
		}
		for _, a := range c.timers {
			if a.timer == nil {
				a.timer = x.e.timers.At(time.Unix(0, a.row.Due), func() { x.e.ring(c, a) })
			}
		}
		for _, q := range c.questions {
			if q.timer == nil {
				g.await(c, q)
			}
		}
		for _, q := range c.approvals.All {
			if q.Timer == nil && q.Row.Waits() {
				g.awaitDeadline(c, q)
			}
		}
		g.leave()
	}
}

// answer is what a request gets.
type answer struct {
	code    abi.Code
	text    string            // of an error
	payload []byte            // of a reply; copied
	headers map[string]string // of the result of a capability
	from    *creature
}

// callerAnswer is what a caller outside gets: the answer, and its place in the log.
type callerAnswer struct {
	answer
	store journal.Store
	seq   uint64
}

// answerCaller passes an answer to a caller outside, if it still waits. The log of g has
// the turn that answers; without g, no log has it.
func (e *core) answerCaller(g section, request journal.EventID, a answer) {
	c, ok := e.callers.LoadAndDelete(request)
	if !ok {
		return
	}
	a.payload = slices.Clone(a.payload)
	c.(chan callerAnswer) <- answerFrom(g, a) // has room for one
}

// answerFrom is an answer with its place in the log of g.
func answerFrom(g section, a answer) callerAnswer {
	if g.none() {
		return callerAnswer{answer: a}
	}
	return callerAnswer{a, g.store, g.seq}
}
