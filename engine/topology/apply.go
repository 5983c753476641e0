package topology

import (
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/abi"
)

// Apply applies operations in order and returns one delta for each. Either all
// succeed, or none has any effect; the error is then an [*abi.Error] whose Op
// is the name of the failed operation. If there are several operations, the
// message says which one failed (IDs["index"] counts from zero).
//
// Undone operations do not give back the ids that they have taken from ids.
func (s *State) Apply(ids IDs, ops ...Op) ([]Delta, error) {
	deltas, _, err := s.Try(ids, ops...)
	return deltas, err
}

// apply applies a batch, or none of it.
func (e *edit) apply(ops []Op) ([]Delta, error) {
	deltas := make([]Delta, 0, len(ops))
	for i, op := range ops {
		e.delta, e.moved, e.changes = Delta{}, nil, e.changes[:0]
		if err := e.run(op); err != nil {
			e.back(e.undo, e.before)
			err = numbered(err, i, len(ops))
			err.Op = e.delta.Op
			return nil, err
		}
		deltas = append(deltas, e.finish())
	}
	return deltas, nil
}

// run applies one operation and records its changes.
func (e *edit) run(op Op) *abi.Error {
	switch op := op.(type) {
	case AddCreature:
		e.delta.Op = op.op()
		return e.addCreatureOp(op)
	case RemoveCreature:
		e.delta.Op = op.op()
		return e.removeCreatureOp(op)
	case AddChannel:
		e.delta.Op = op.op()
		return e.addChannelOp(op)
	case RemoveChannel:
		e.delta.Op = op.op()
		return e.removeChannelOp(op)
	case Connect:
		e.delta.Op = op.op()
		return e.connectOp(op)
	case Disconnect:
		e.delta.Op = op.op()
		return e.disconnectOp(op)
	case SetEdge:
		e.delta.Op = op.op()
		return e.setEdgeOp(op)
	case SetStopped:
		e.delta.Op = op.op()
		return e.flagOp(op.ID, func(f *flags) { f.stopped, f.paused = op.Stopped, op.Stopped && op.Paused })
	case SetPrivileged:
		e.delta.Op = op.op()
		return e.flagOp(op.ID, func(f *flags) { f.privileged = op.Privileged })
	case SetRoot:
		e.delta.Op = op.op()
		return e.flagOp(op.ID, func(f *flags) { f.root = op.Root })
	case SetNames:
		e.delta.Op = op.op()
		return e.setNamesOp(op)
	}
	e.delta.Op = "apply"
	return &abi.Error{
		Code:    abi.InvalidArgument,
		Message: fmt.Sprintf("%T is not an operation", op),
		Remedy:  "pass the operations of this package as values",
	}
}

// finish completes the delta of an operation that succeeded.
func (e *edit) finish() Delta {
	e.torn = false
	slices.SortFunc(e.moved, byAge)
	for _, c := range e.moved {
		e.delta.Affected = append(e.delta.Affected, c.id)
	}
	if len(e.changes) > 0 {
		e.delta.Changes = e.takeChanges()
	}
	return e.delta
}

// within records graphs that the operation concerns but neither merges nor
// splits.
func (e *edit) within(graphs ...*graph) {
	for _, g := range graphs {
		e.delta.OldGraphs = append(e.delta.OldGraphs, g.id)
		e.delta.NewGraphs = append(e.delta.NewGraphs, g.id)
	}
}
