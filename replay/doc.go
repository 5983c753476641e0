// Package replay runs the recorded turns of a session directory again, and compares
// their effects with the record.
//
// A turn's inputs are its delivery, its creature's state, configuration and channels,
// and its time. All of them are in the log, so a turn can be run again at any time, any
// number of times, on an instance of its module, and without any effect. A recorded
// session can therefore serve to debug a creature, and as a regression test for a
// changed one:
//
//	report, err := replay.Run(ctx, replay.Options{
//		Source: view, Host: host, Creatures: []string{"census"}, Module: wasm,
//	})
//
// # How
//
// The log is read once, in its order (walk.go). The state of each creature (actor.go) is
// reconstructed from the recorded writes of its turns, whatever the module does now, so
// every turn is compared by itself. The record of a turn gives its delivery and its
// effects (record.go). An [engine.Rehearsal] passes the delivery to an instance, and both
// lists of effects are compared (effect.go).
//
// # What is not in the log
//
// The witness (witness.go) is between a guest and its turn. It answers calls that depend
// on other creatures from the record. If the record lacks the answer to a call, such as the
// real time, the turn is not compared, but counted with the [Reason]. Facts that a guest
// does not request need not be known.
package replay
