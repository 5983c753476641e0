package engine

import (
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/lookup"
	"github.com/seed47132306/terrarium/engine/journal"
)

// FindCreature finds a creature by its id, or by a name that is unique in the given
// graph or, without one, in the engine.
func (e *Engine) FindCreature(g journal.GraphID, name string) (journal.CreatureID, error) {
	l := e.core.rlock()
	defer l.runlock()
	return lookup.Creature(l.topo, g, name)
}

// FindChannel finds a channel by its id, or by a name that is unique in the given
// graph or, without one, in the engine.
func (e *Engine) FindChannel(g journal.GraphID, name string) (journal.ChannelID, error) {
	l := e.core.rlock()
	defer l.runlock()
	return lookup.Channel(l.topo, g, name)
}

// FindGraph finds a graph by its id, by an id that it had before a merge, or by the
// name of a creature in it.
func (e *Engine) FindGraph(name string) (journal.GraphID, error) {
	l := e.core.rlock()
	defer l.runlock()
	return lookup.Graph(l.topo, name)
}

// present returns the graph with an id, or with one that it had before a merge.
func (e locked) present(id journal.GraphID) (*graph, error) {
	now, ok := e.topo.Current(id)
	if !ok {
		return nil, errtext.Gone("graph", string(id))
	}
	return e.graphs[now], nil
}

// presentOrAll is present, or returns all graphs if no id is given, oldest first.
func (e locked) presentOrAll(id journal.GraphID) ([]*graph, error) {
	if id == "" {
		return e.sortedGraphs(), nil
	}
	g, err := e.present(id)
	return []*graph{g}, err
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

// sessionOf finds a session by its id, or by the id of a graph, live or saved.
func (e *core) sessionOf(name string) (journal.SessionID, journal.Store, error) {
	l := e.rlock()
	defer l.runlock()
	if now, ok := l.topo.Current(journal.GraphID(name)); ok {
		g := l.graphs[now].enter()
		defer g.leave()
		if g.store == nil {
			return "", nil, errtext.NoHistory(name)
		}
		return g.store.Info().Session, g.store, nil
	}
	if d := l.saved[journal.GraphID(name)]; d != nil {
		return d.Session, nil, nil
	}
	return journal.SessionID(name), nil, nil
}
