package engine

import (
	"context"

	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
)

// addressee returns who gets a redelivered message to a creature that a graph had: that
// creature or, if it has been removed, the one that is at its address now.
func (e *Engine) addressee(ctx context.Context, graph journal.GraphID, id journal.CreatureID) (*creature, error) {
	l := e.core.rlock()
	c := l.creatures[id]
	g, _ := l.present(graph)
	l.runlock()
	if c != nil {
		return c, nil
	}
	if g != nil {
		s := g.enter()
		memory, remembers := s.store.(journal.Rememberer)
		s.leave()
		if remembers {
			row, known, err := memory.Was(ctx, id)
			if err != nil {
				return nil, err
			}
			if c := e.creatureAt(row.Deployment, row.Address); known && c != nil {
				return c, nil
			}
		}
	}
	err := errtext.Gone("creature", string(id))
	err.Op, err.Remedy = "redeliver", "its creature was removed; send the payload to another creature, or create a creature with its address again"
	return nil, err
}

// creatureAt returns the creature at an address, or nil.
func (e *Engine) creatureAt(deployment, address string) *creature {
	if address == "" {
		return nil
	}
	l := e.core.rlock()
	defer l.runlock()
	for _, c := range l.creatures {
		if c.deployment == deployment && c.spec.Address == address {
			return c
		}
	}
	return nil
}
