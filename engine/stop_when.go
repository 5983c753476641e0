package engine

import (
	"time"

	"github.com/seed47132306/terrarium/engine/internal/sorted"
	"github.com/seed47132306/terrarium/engine/internal/stopping"
	"github.com/seed47132306/terrarium/engine/journal"
)

// halted reports whether a condition of the creature's recipe keeps it from working.
func (c *creature) halted(g section) bool {
	return g.graph != nil && g.spent.Stops.Stopped(c.deployment) != nil
}

// runs reports whether the creature takes deliveries.
func (c *creature) runs(g section) bool { return c.lifecycle.runs(g) && !c.halted(g) }

// condition is [lifecycle.condition] as others see it.
func (c *creature) condition(g section) journal.CreatureState {
	if c.lifecycle.runs(g) && c.halted(g) {
		return journal.Paused
	}
	return c.lifecycle.condition()
}

// count counts a turn for the conditions of the creature's recipe.
func (g section) count(rec *journal.Record, c *creature, sent uint64) {
	if len(g.engine.stops.Of(c.deployment)) == 0 {
		return
	}
	if g.spent.Stops.Begin(rec, c.deployment, g.wall) {
		g.awaitStop()
	}
	g.spent.Stops.Turn(rec, c.id, c.deployment, sent)
}

// judgeStop stops the creatures of a deployment if a condition holds or, after the recipe was
// applied, lets them continue if none holds.
func (g section) judgeStop(rec *journal.Record, w *waker, deployment string, applied bool, by []byte) {
	change := g.spent.Judge(rec, deployment, g.engine.stops.Of(deployment), applied, g.wall, by)
	if change == nil {
		return
	}
	g.log(rec, change.Event)
	g.engine.log.Info(change.Event.Kind.String(), "deployment", deployment, "graph", g.id, "about", string(change.Event.Payload))
	for _, c := range g.sortedCreatures() {
		switch {
		case c.deployment != deployment:
			continue
		case change.Stopped:
			c.failJobs(g, stopping.NotRunning(c.id, c.name, "", g.spent.Stops.Stopped(deployment)))
		default:
			g.ringHeld(c)
			c.wake(g, w)
		}
		if g.store == nil {
			c.mb.noteLoad(g)
		}
	}
	g.reshape(w)
}

// judgeStops does that in all graphs of a change, and in all with the recipe that it applies.
func (x *change) judgeStops() {
	name := x.recipe.meta[MetaDeployment]
	for _, graph := range x.e.graphs {
		if _, entered := x.paused[graph]; name == "" || entered {
			continue
		}
		g := graph.enter()
		has := g.spent.Stops.Has(name)
		if g.leave(); has {
			x.in(graph)
		}
	}
	if len(x.e.stops.Of(name)) > 0 {
		for _, id := range x.recipe.deployed {
			g := x.home(x.e.creatures[id])
			g.spent.Stops.Begin(x.record(g), name, g.wall)
		}
	}
	for _, g := range sorted.ValuesFunc(x.paused, byGraphID) {
		if g.spent.Stops.Has(name) {
			for _, c := range g.creatures {
				if c.deployment == name {
					g.spent.Stops.Know(x.record(g), c.id, name)
				}
			}
		}
		if !g.spent.Stops.Empty() {
			g.judgeAll(x.record(g), &x.wake, name, x.attribution)
		}
	}
}

// judgeAll judges the conditions of all recipes of a graph, after a change made by an attribution.
func (g section) judgeAll(rec *journal.Record, w *waker, applied string, by []byte) {
	for _, d := range g.spent.Stops.Places() {
		if !g.ended {
			g.judgeStop(rec, w, d, d == applied, by)
		}
	}
	g.awaitStop()
}

// awaitStop sets the timer for the next condition that is about time.
func (g section) awaitStop() {
	e, graph := g.engine, g.graph
	e.timers.Stop(g.stopTimer)
	g.stopTimer = nil
	if due := g.spent.Stops.NextDue(&e.stops, g.wall); due != 0 && !g.ended {
		g.stopTimer = e.timers.At(time.Unix(0, due), func() { e.stopDue(graph) })
	}
}

// stopDue judges the conditions of a graph when the time of one has come.
func (e *core) stopDue(graph *graph) {
	var w waker
	g := graph.enterAt(e.wallClock())
	if !g.ended && !e.isClosing() {
		rec := g.newRecord()
		g.judgeAll(rec, &w, "", nil)
		g.append(rec)
	}
	g.leave()
	w.flush(e)
}
