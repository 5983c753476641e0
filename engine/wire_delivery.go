package engine

import (
	"context"
	"iter"
	"slices"

	"github.com/seed47132306/terrarium/engine/internal/outlets"
	"github.com/seed47132306/terrarium/engine/journal"
)

// leadOut makes the deliveries of the turn's output over the creature's wires. Like
// policies, predicates run outside of critical sections.
func (w *turnWorker) leadOut(ctx context.Context) {
	t := &w.turn
	out := &outlets.Output{
		Payload: t.Put, Source: t.wiring.name, Channel: t.channel(), Message: t.d.msg.ID, Hops: outlets.Hops(t.d.msg),
		Limit: t.c.limits.Message, Time: t.d.msg.Time, Seed: t.policySeed(3 << 32),
	}
	wired, logs := out.Deliveries(ctx, t.wiring.outlets)
	t.wired, t.Logs = append(t.wired, wired...), append(t.Logs, logs...)
	w.work += sendWork * int64(len(t.wired))
}

// hasOutlet reports whether a wire still exists.
func (w *wiring) hasOutlet(id journal.WireID) bool {
	return slices.ContainsFunc(w.outlets, func(o outlets.Outlet) bool { return o.ID == id })
}

// wireEnd is a creature as an end of a wire.
func (c *creature) wireEnd() outlets.Party {
	if c == nil {
		return outlets.Party{}
	}
	return outlets.Party{ID: c.id, Name: c.name}
}

// loop names the creatures of the loop that a wire closes.
func (g section) loop(from, next *creature) (names []string) {
	targets := func(at *creature) iter.Seq[*creature] {
		return func(yield func(*creature) bool) {
			for i := range at.wires {
				if to := g.target(at, &at.wires[i]); to != nil && !yield(to) {
					return
				}
			}
		}
	}
	for _, c := range outlets.Loop(from, next, targets) {
		names = append(names, c.name)
	}
	return names
}
