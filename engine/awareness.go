package engine

import (
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/outlook"
)

// Awareness returns the awareness document of a creature as it is now.
func (e *Engine) Awareness(id journal.CreatureID) (*outlook.View, error) {
	c, g, err := e.core.lockCreature(id)
	if err != nil {
		return nil, err
	}
	defer g.mu.Unlock()
	return c.updateAwareness(g), nil
}

// awareness answers the sources of the awareness document, and nil outside of
// creature_handle, where no delivery says as of when.
func (t *turn) awareness(s abi.Source) ([]byte, abi.Code) {
	if t.ReadOnly {
		return nil, abi.OK
	}
	v := t.awarenessView()
	if v == nil {
		return nil, t.Fail(abi.NotFound, "nothing: the turn has no effect any more", "the creature has been removed")
	}
	switch s {
	case abi.SourceAwarenessJSON:
		return v.JSON(), abi.OK
	case abi.SourceAwarenessMarkdown:
		return v.Markdown(), abi.OK
	}
	t.Scratch = appendRevision(t.Scratch[:0], v)
	return t.Scratch, abi.OK
}
