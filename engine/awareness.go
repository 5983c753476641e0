package engine

import (
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/outlook"
)

// Awareness returns the current awareness document of a creature.
func (e *Engine) Awareness(id journal.CreatureID) (*outlook.View, error) {
	c, g, err := e.core.enterCreature(id)
	if err != nil {
		return nil, err
	}
	defer g.leave()
	return c.updateAwareness(g), nil
}

// awareness answers reads of the awareness document. Outside of creature_handle the
// answer is nil, because there is no delivery to which the document would apply.
func (t *turn) awareness(s abi.Source) ([]byte, abi.Code) {
	if t.ReadOnly {
		return nil, abi.OK
	}
	v := t.awarenessView()
	if v == nil {
		return nil, t.Fail(abi.NotFound, "nothing to do: the turn will have no effect", "the creature has been removed")
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
