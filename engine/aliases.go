package engine

import (
	"github.com/seed47132306/terrarium/engine/internal/outlets"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// wiring is what a creature's aliases are bound to at one moment. It is never
// modified: a change of the creature's edges makes a new wiring. So a turn sees one
// topology, and learns by comparing pointers whether it still applies.
type wiring struct {
	name       string              // of the creature
	deployment string              // to which the creature belongs
	sends      []sendEdge          // in the order in which the edges were added
	byAlias    map[string]*channel // of sends
	outlets    []outlets.Outlet    // nil for a creature without output wires
}

type sendEdge struct {
	alias string
	ch    *channel
}

var noWiring = &wiring{}

// newWiring builds the wiring of a creature from its edges.
func newWiring(name, deployment string, edges []topology.Edge, channels map[journal.ChannelID]*channel) *wiring {
	w := &wiring{name: name, deployment: deployment}
	for _, e := range edges {
		if e.Direction != journal.Send {
			continue
		}
		ch := channels[e.Channel]
		w.sends = append(w.sends, sendEdge{e.Alias, ch})
		if w.byAlias == nil {
			w.byAlias = map[string]*channel{}
		}
		w.byAlias[e.Alias] = ch
	}
	return w
}

// handles are the send aliases that an instance has looked up, by handle.
type handles struct {
	names []handle
	index map[string]int32
}

type handle struct {
	alias  string
	wiring *wiring // for which ch holds
	ch     *channel
}
