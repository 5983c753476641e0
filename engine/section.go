package engine

import (
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
)

// section is a graph whose critical section has been entered. Code that reads or changes
// what the section guards takes one, and only the functions below make one. It is left
// once, and must not be used afterwards. The zero section stands for no graph: that of a
// creature that was removed, or is not added yet.
type section struct{ *graph }

// enter enters the critical section.
func (g *graph) enter() section {
	g.mu.Lock()
	return section{g}
}

// enterAt is enter for a caller that will log something. It has read the clock before, so
// that no other caller waits for that.
func (g *graph) enterAt(wall int64) section {
	s := g.enter()
	s.wall = wall
	return s
}

// tryEnter is enter, but fails if another caller is in the critical section.
func (g *graph) tryEnter() (s section, ok bool) { return section{g}, g.mu.TryLock() }

// leave leaves the critical section.
func (s section) leave() { s.mu.Unlock() }

// none reports whether there is no graph.
func (s section) none() bool { return s.graph == nil }

// enter enters the critical section of the current graph, following cuts. The result is
// none if there is no graph any more.
func (h *graphPointer) enter() section {
	for {
		g := h.p.Load()
		if g == nil {
			return section{}
		}
		s := g.enter()
		if h.p.Load() == g {
			return s
		}
		s.leave()
	}
}

// enterAt is enter for a caller that will log something; see [graph.enterAt].
func (h *graphPointer) enterAt(wall int64) section {
	s := h.enter()
	if !s.none() {
		s.wall = wall
	}
	return s
}

// enterCreature finds a creature and enters the critical section of its graph.
func (e *core) enterCreature(id journal.CreatureID) (*creature, section, error) {
	l := e.rlock()
	c := l.creatures[id]
	l.runlock()
	if c != nil {
		if g := c.home.enter(); !g.none() {
			return c, g, nil
		}
	}
	return nil, section{}, errtext.Gone("creature", string(id))
}
