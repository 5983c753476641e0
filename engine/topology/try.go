package topology

// Try is [State.Apply] for callers whose own part may still fail: undo takes
// the operations back. Several tries are taken back in reverse order, and only
// as long as nothing else has been applied meanwhile. undo is nil when there is
// an error.
func (s *State) Try(ids IDs, ops ...Op) (deltas []Delta, undo func(), err error) {
	e := &edit{State: s, ids: ids, before: s.last} // with scratch of its own, which undo needs
	if deltas, err = e.apply(ops); err != nil {
		return nil, nil, err
	}
	return deltas, e.revert, nil
}
