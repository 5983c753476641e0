package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/recall"
	"github.com/seed47132306/terrarium/engine/journal"
)

// maxConflicts is how often a turn may conflict with other changes of its graph before it
// is run with all other changes excluded.
const maxConflicts = 3

// handleAlone is handle within the mutation lock, so that the topology stays as the turn sees it.
// The guest is bounded by its limits, and the wait for room in the store comes before.
func (w *turnWorker) handleAlone(ctx context.Context, c *creature, d delivery, kind abi.Kind) section {
	if err := w.awaitStore(ctx, c); err != nil {
		return w.postpone(ctx, c, d, err)
	}
	l := w.e.lock()
	defer l.unlock()
	w.turn.alone = &l
	defer func() { w.turn.alone = nil }()
	if g, over := w.attempt(ctx, c, d, kind); over {
		return g
	}
	if w.turn.changesGraph() {
		return w.commitChange(ctx, l, c, d)
	}
	return w.commit(ctx, c)
}

// commitChange commits a turn together with its changes to the graph: either all of it
// takes effect, or the turn is run again. It returns as commit does.
func (w *turnWorker) commitChange(ctx context.Context, l locked, c *creature, d delivery) section {
	t := &w.turn
	if g := c.home.load(); g == nil || c.removed {
		return w.commit(ctx, c) // commit notices that
	}
	o, ids := t.draftOptions()
	x := newChange(l, "tool", o)
	if err := t.tools.Replay(ctx, t.stage(l, x.Draft, ids)); err != nil {
		x.Undo()
		switch {
		case ctx.Err() != nil:
			return w.postpone(ctx, c, d, err)
		case t.asking.Waits:
			return w.park(ctx, c, d, t.kind)
		case t.alone != nil && (abi.CodeOf(err) == abi.Denied || abi.CodeOf(err) == abi.LimitExceeded):
			x.logRefusals()
			return w.failed(ctx, c, d, t.kind, err) // to run it again would not help
		}
		return w.conflicted(ctx, c, d)
	}
	for node := range t.tools.Prepared {
		c := node.(preparedNode).creature
		x.creatures[c.id] = c
	}
	x.turn = &handledTurn{c: c, d: d, kind: t.kind, rest: &turnChange{w: w, c: c}}
	switch err := x.carryOut(ctx); {
	case errors.Is(err, errtext.Forgotten):
		return w.conflicted(ctx, c, d)
	case errors.Is(err, errElsewhere):
		return w.failed(ctx, c, d, t.kind, err) // it may be the message of this very turn
	case err != nil:
		return w.postpone(ctx, c, d, err)
	}
	d.msg.Release()
	t.reset()
	g := c.home.enter() // nothing can remove it meanwhile
	c.pace.Hasty = w.e.storage.Behind()
	return g
}

// conflicted makes a turn run again because its graph has changed meanwhile. Nothing of the
// first run remains. It returns as handle does.
func (w *turnWorker) conflicted(ctx context.Context, c *creature, d delivery) section {
	w.turn.reset()
	w.e.discardInstance(ctx, c)
	g := c.home.enter()
	if g.none() || c.removed {
		d.msg.Release()
		return g
	}
	c.current = delivery{}
	c.conflicts++
	c.counters.Conflicts++
	switch {
	case c.job != nil:
		c.job.again = true
	case d.feed != nil:
		c.retry = &d
	default: // a start, which take makes again
		d.msg.Release()
	}
	return g
}

// turnChange is the rest of a turn that makes a change. It is logged in the same record
// as the change or, if the change cuts stores, in the first record of its creature's new
// store. So a crash leaves both or neither. The graph operations come first, so that the
// turn's sends reach the creatures that it has added.
type turnChange struct {
	w       *turnWorker
	c       *creature
	written bool  // in a first record
	size    int64 // of what the turn has stored
}

// recalled implements [restOfTurn], as the methods below do.
func (tc *turnChange) recalled() []*recall.Recollection {
	t := &tc.w.turn
	return []*recall.Recollection{&t.recalled, &t.tools.recalled}
}

func (tc *turnChange) goBack() { tc.w.log.reset() }

// logFirst logs the turn in the first record of the store that its creature's graph
// gets, before the environments follow.
func (tc *turnChange) logFirst(x *change, rec *journal.Record, id journal.GraphID, origin journal.Origin) {
	before := rec.Size()
	info, _ := x.e.topo.Creature(tc.c.id)
	l := &tc.w.log
	l.begin(x.home(tc.c), rec)
	l.ahead = &ahead{x: x, graph: id, origin: origin, name: info.Name, heads: map[journal.ChannelID]uint64{}}
	l.moved, l.cause = true, x.turn.cause(x)
	l.write()
	if len(x.e.stops.Of(tc.c.deployment)) > 0 {
		x.home(tc.c).spent.Stops.Foresee(rec, tc.c.id, tc.c.deployment, l.sent)
	}
	tc.written, tc.size = true, rec.Size()-before
}

// announce shows observers the events of the turn in a first record, in the order of the log.
func (tc *turnChange) announce(x *change, plan *storePlan) {
	if !tc.written {
		return
	}
	events := tc.w.log.ahead.events
	for i := range events {
		x.show(plan, &events[i])
	}
}

// land applies the rest of the turn, when the environments have followed.
func (tc *turnChange) land(x *change) {
	c, t, l := tc.c, &tc.w.turn, &tc.w.log
	g := x.home(c)
	if s := t.d.feed; s != nil && !slices.Contains(c.mb.feeds, s) {
		t.d.feed = nil // the change has removed it
	}
	if tc.written {
		l.land(g, nil, &x.wake) // the first record has the rows
	} else {
		rec := x.record(g)
		before := rec.Size()
		l.begin(g, rec)
		l.write()
		l.land(g, rec, &x.wake)
		tc.size = rec.Size() - before
	}
	if tc.size > 0 {
		const op = 1 << 10 // about what is stored of an operation on the graph
		c.charge(g, tc.size+int64(t.tools.Len())*op)
	}
	t.tools.Keep()
}
