package operations

import (
	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
)

// staging is a batch in which graphs are also found by ids from before the
// engine started.
type staging struct {
	*engine.Batch
	t *terrarium.Terrarium
}

// FindGraph is [Terrarium.FindGraph] on the topology as the batch has it.
func (b *staging) FindGraph(name string) (terrarium.GraphID, error) {
	return b.t.FindGraphBy(b.Batch.FindGraph, name)
}
