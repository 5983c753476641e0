package deploy

import "context"

// Predicate is a condition on outputs that a deployment declares and output
// wires name. Whether it holds depends only on the event.
//
// Its method may be called from any goroutine.
type Predicate interface {
	// Holds reports whether the condition is true. The engine is in no critical section
	// when it calls Holds, at most once per output, and the call may take as long as the
	// predicate's own timeout. If it fails, the output is not delivered and the creature's
	// log gives the reason.
	Holds(ctx context.Context, event *OutputEvent) (bool, error)
}

// OutputEvent is an output about to be delivered over wires. The slice is not to be
// modified or kept.
type OutputEvent struct {
	Time    int64 // of the delivery that caused it, nanoseconds since 1970
	Seed    uint64
	Output  []byte
	Source  string // name of the creature
	Channel string // of the delivery, under the creature's name for it
}
