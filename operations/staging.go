package operations

import (
	"context"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
)

// staging is a batch that also finds graphs by ids from before the start of the engine.
type staging struct {
	*engine.Batch
	graphs graphFinder
}

// graphFinder is [terrarium.Terrarium.FindGraph], or its counterpart on the topology of a batch.
type graphFinder func(name string) (terrarium.GraphID, error)

// graphs finds graphs of the engine.
func (s *client) graphs(ctx context.Context) graphFinder {
	return func(name string) (terrarium.GraphID, error) { return s.t.FindGraph(ctx, name) }
}

// ifNamed finds a graph by name. Without a name it returns none.
func (f graphFinder) ifNamed(name string) (terrarium.GraphID, error) {
	if name == "" {
		return "", nil
	}
	return f(name)
}
