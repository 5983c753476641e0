package operations

import (
	"context"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
)

// staging is a batch in which graphs are also found by ids from before the
// engine started.
type staging struct {
	*engine.Batch
	graphs graphFinder
}

// graphFinder is [Terrarium.FindGraph], or the same on the topology as a batch has it.
type graphFinder func(name string) (terrarium.GraphID, error)

// graphs finds graphs of the engine.
func (s *client) graphs(ctx context.Context) graphFinder {
	return func(name string) (terrarium.GraphID, error) { return s.t.FindGraph(ctx, name) }
}

// ifNamed finds a graph, and none without a name.
func (f graphFinder) ifNamed(name string) (terrarium.GraphID, error) {
	if name == "" {
		return "", nil
	}
	return f(name)
}
