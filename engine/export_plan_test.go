package engine

import "github.com/seed47132306/terrarium/engine/journal"

// Rows are the running graphs as a storage would save them.
func Rows(e *Engine) []journal.SavedGraph { return e.rows() }

// Judges reports whether the policy of a deployment judges events of a kind, as a turn
// determines it.
func Judges(e *Engine, deployment string, kind journal.PolicyKind) bool {
	return e.core.policyOf(deployment, kind) != nil
}

// Held reports whether a creature is kept from starting another turn.
func Held(e *Engine, id journal.CreatureID) bool {
	l := e.core.rlock()
	defer l.runlock()
	c := l.creatures[id]
	g := c.home.enter()
	defer g.leave()
	return c.hold != nil
}

// Staying returns why a creature stays stopped.
func Staying(e *Engine, id journal.CreatureID) error {
	l := e.core.rlock()
	defer l.runlock()
	return l.creatures[id].huskReason
}
