package engine

// Compare says what is different between two sets of saved graphs, as a plan
// does.
func Compare(before, after []SavedGraph) *Plan { return newComparison(before, after).plan() }

// Rows are the graphs that are running, as a storage would save them.
func Rows(e *Engine) []SavedGraph { return e.rows() }

// Judges reports whether the policy of a deployment judges events of a kind, as a turn
// finds out.
func Judges(e *Engine, deployment string, kind PolicyKind) bool {
	return e.policyOf(deployment, kind) != nil
}

// Held reports whether a creature is kept from beginning another turn.
func Held(e *Engine, id CreatureID) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	c := e.creatures[id]
	g := c.home.lock()
	defer g.mu.Unlock()
	return c.hold != nil
}
