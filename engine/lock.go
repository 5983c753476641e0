package engine

import (
	"cmp"
	"slices"
	"sync"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/regrow"
	"github.com/seed47132306/terrarium/engine/internal/species"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// registry is what the mutation lock guards: the topology and the index of everything
// else. It is reached only through locked.
type registry struct {
	topo        *topology.State
	graphs      map[journal.GraphID]*graph
	creatures   map[journal.CreatureID]*creature
	channels    map[journal.ChannelID]*channel
	deployments map[string]*deploy.Deployment
	saved       regrow.Saved
	restored    bool                                               // Restore has brought back the saved graphs
	families    map[journal.CreatureID]map[journal.CreatureID]bool // children by parent
	species     *species.Table                                     // of the deployments
	wires       map[journal.WireID]*creature                       // sender of each output wire
	roots       map[string]journal.CreatureID                      // by deployment
	reports     map[string]journal.ChannelID                       // report channels, by deployment
	endings     []*ending
	problems    []error // found in the storage when the engine started
	reported    bool    // and problems have been reported to observers
	closed      bool
}

func newRegistry() registry {
	return registry{
		topo: topology.New(), graphs: map[journal.GraphID]*graph{}, creatures: map[journal.CreatureID]*creature{}, channels: map[journal.ChannelID]*channel{},
		deployments: map[string]*deploy.Deployment{}, saved: regrow.Saved{},
		families: map[journal.CreatureID]map[journal.CreatureID]bool{}, species: species.NewTable(), wires: map[journal.WireID]*creature{},
		roots: map[string]journal.CreatureID{}, reports: map[string]journal.ChannelID{},
	}
}

// mutation is the mutation lock with what it guards.
type mutation struct {
	mu       sync.RWMutex
	registry registry
}

// locked is an engine between lock and unlock, or between rlock and runlock. Code that needs the lock takes a
// locked, and only lock and rlock make one. It must not outlive the lock.
type locked struct {
	*core
	*registry
}

// lock takes the mutation lock.
func (e *core) lock() locked {
	e.mutation.mu.Lock()
	return locked{e, &e.mutation.registry}
}

// rlock takes the mutation lock for reading: what it guards may be read but not changed.
func (e *core) rlock() locked {
	e.mutation.mu.RLock()
	return locked{e, &e.mutation.registry}
}

func (l locked) unlock() { l.mutation.mu.Unlock() }

func (l locked) runlock() { l.mutation.mu.RUnlock() }

// tryLock is lock, but fails instead of waiting.
func (e *core) tryLock() (l locked, ok bool) {
	return locked{e, &e.mutation.registry}, e.mutation.mu.TryLock()
}

// tryRLock is rlock, but fails instead of waiting for a writer.
func (e *core) tryRLock() (l locked, ok bool) {
	return locked{e, &e.mutation.registry}, e.mutation.mu.TryRLock()
}

// sortedGraphs returns the live graphs, oldest first.
func (e locked) sortedGraphs() []*graph {
	out := make([]*graph, 0, len(e.graphs))
	for _, g := range e.graphs {
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b *graph) int { return cmp.Or(cmp.Compare(a.born, b.born), cmp.Compare(a.id, b.id)) })
	return out
}

// noteRoot updates the index of roots.
func (e locked) noteRoot(cr *creature) {
	switch d := cr.deployment; {
	case d == "":
	case cr.root && !cr.removed:
		e.roots[d] = cr.id
	case e.roots[d] == cr.id:
		delete(e.roots, d)
	}
}

// noteReport updates the index of report channels.
func (e locked) noteReport(ch *channel, gone bool) {
	switch d := ch.deployment; {
	case !ch.report || d == "":
	case !gone:
		e.reports[d] = ch.id
	case e.reports[d] == ch.id:
		delete(e.reports, d)
	}
}
