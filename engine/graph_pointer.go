package engine

import (
	"sync/atomic"

	"github.com/seed47132306/terrarium/engine/journal"
)

// graphPointer says in which graph a creature or channel is. It is written under the
// mutation lock and in the critical sections of the old and the new graph. It may be
// read at any time, but only a holder of the graph's mu can rely on it.
type graphPointer struct{ p atomic.Pointer[graph] }

func (h *graphPointer) load() *graph   { return h.p.Load() }
func (h *graphPointer) store(g *graph) { h.p.Store(g) }

// graphID is the id of the current graph, or empty.
func graphID(h *graphPointer) journal.GraphID {
	if g := h.load(); g != nil {
		return g.id
	}
	return ""
}

// logsTo reports whether the graph still logs to a store. If not, an error of that
// store only means that a cut has closed it.
func (h *graphPointer) logsTo(s journal.Store) bool {
	g := h.enter()
	if g.none() {
		return false
	}
	defer g.leave()
	return g.store == s
}
