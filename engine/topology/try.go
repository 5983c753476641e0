package topology

import "slices"

// Try is [State.Apply] for callers whose own part may still fail: undo takes
// the operations back. Several tries are taken back in reverse order, and only
// as long as nothing else has been applied meanwhile. undo is nil when there is
// an error.
func (s *State) Try(ids IDs, ops ...Op) (deltas []Delta, undo func(), err error) {
	e := s.begin(ids)
	defer e.end()
	if deltas, err = e.apply(ops); err != nil {
		return nil, nil, err
	}
	steps, before := e.undo, e.before
	return deltas, func() { s.back(steps, before) }, nil
}

// begin starts a batch in the space that the last one left.
func (s *State) begin(ids IDs) *edit {
	const usualSteps = 8
	e := &s.edit
	e.State, e.ids, e.before = s, ids, s.last
	e.undo = make([]func(), 0, usualSteps) // which whoever may undo keeps
	return e
}

// end leaves the space for the next batch, without what an unusually large one
// used.
func (e *edit) end() {
	const kept = 1024
	changes := e.changes
	clear(changes)
	if cap(changes) > kept {
		changes = nil
	}
	e.State.edit = edit{changes: changes[:0]}
}

// back undoes the steps of a batch.
func (s *State) back(steps []func(), before counters) {
	s.torn = true // between the steps of what splits or merges
	for _, step := range slices.Backward(steps) {
		step()
	}
	s.torn, s.last = false, before
}
