package engine

import (
	"context"

	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
)

// addressee is the creature that gets what is delivered to one again that a graph had:
// itself or, if it has been removed, the one that is at its address now.
func (e *Engine) addressee(ctx context.Context, graph journal.GraphID, id journal.CreatureID) (*creature, error) {
	e.mu.RLock()
	c := e.creatures[id]
	now, _ := e.topo.Current(graph)
	g := e.graphs[now]
	e.mu.RUnlock()
	if c != nil {
		return c, nil
	}
	if g != nil {
		g.mu.Lock()
		memory, remembers := g.store.(journal.Rememberer)
		g.mu.Unlock()
		if remembers {
			row, known, err := memory.Was(ctx, id)
			if err != nil {
				return nil, err
			}
			if c := e.at(row.Deployment, row.Address); known && c != nil {
				return c, nil
			}
		}
	}
	err := errtext.Gone("creature", string(id))
	err.Op, err.Remedy = "redeliver", "its creature was removed; send the payload to another, or bring one back to its address"
	return nil, err
}

// at is the creature at an address, or nil.
func (e *Engine) at(deployment, address string) *creature {
	if address == "" {
		return nil
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, c := range e.creatures {
		if c.deployment == deployment && c.spec.Address == address {
			return c
		}
	}
	return nil
}
