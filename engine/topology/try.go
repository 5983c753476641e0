package topology

import "slices"

// Try is [State.Apply] for callers whose own part may still fail: undo undoes
// the operations. Several tries must be undone in reverse order, and only if
// nothing else has been applied meanwhile. undo is nil if there is an error.
func (s *State) Try(ids IDs, ops ...Op) (deltas []Delta, undo func(), err error) {
	e := s.begin(ids)
	defer e.end()
	if deltas, err = e.apply(ops); err != nil {
		return nil, nil, err
	}
	steps, before := e.undo, e.before
	return deltas, func() { s.back(steps, before) }, nil
}

// begin starts a batch that reuses the space of the last one.
func (s *State) begin(ids IDs) *edit {
	const usualSteps = 8
	e := &s.edit
	e.State, e.ids, e.before = s, ids, s.last
	e.undo = make([]func(), 0, usualSteps) // the caller of undo keeps it
	return e
}

// end keeps the space for the next batch, but releases that of an unusually
// large batch.
func (e *edit) end() {
	changes := e.changes
	clear(changes)
	if cap(changes) > keptChanges {
		changes = nil
	}
	e.State.edit = edit{changes: changes[:0]}
}

// keptChanges bounds the space that is kept for later batches.
const keptChanges = 1024

// takeChanges returns the changes of an operation. Few are copied, so that
// their space can be used again; many keep their space.
func (e *edit) takeChanges() []Change {
	changes := e.changes
	if cap(changes) > keptChanges {
		e.changes = nil
		return changes
	}
	defer clear(changes)
	return slices.Clone(changes)
}

// back undoes the steps of a batch.
func (s *State) back(steps []func(), before counters) {
	s.torn = true // between the steps of a split or merge
	for _, step := range slices.Backward(steps) {
		step()
	}
	s.torn, s.last = false, before
}
