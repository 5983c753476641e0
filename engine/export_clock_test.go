package engine

import "github.com/seed47132306/terrarium/engine/journal"

// SampleClock makes workers read the clock only from time to time, as they do with the
// real one. Call it before anything runs.
func (e *Engine) SampleClock() { e.core.sampled = true }

// Busy reports whether there is pending work.
func (e *Engine) Busy() bool { return e.core.idle.Busy() }

// Held reports whether a creature is held.
func (e *Engine) Held(id journal.CreatureID) bool {
	c, g, err := e.core.enterCreature(id)
	if err != nil {
		return false
	}
	defer g.leave()
	return c.hold != nil
}
