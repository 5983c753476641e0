// Package replay runs the recorded turns of a session directory again, and compares
// what they do with what they did.
//
// A turn's inputs are its delivery, its creature's state, configuration and channels,
// and its time. All of them are in the log, so a turn can be run on an instance of its
// module at any time later, as often as one likes, and nothing comes of it. That makes
// a recorded session a debugger, and a regression test for a creature that is being
// changed:
//
//	report, err := replay.Run(ctx, replay.Options{
//		Source: view, Host: host, Creatures: []string{"census"}, Module: wasm,
//	})
//
// # How
//
// The log is read once, in its order (walk.go). Of each creature (actor.go) the state is
// added up from what its turns wrote, whatever the module does now: so every turn is
// judged by itself. A turn's record becomes its delivery and its effects (record.go); the
// delivery is handed to an instance in an [engine.Rehearsal], and both lists of effects
// are compared (effect.go).
//
// # What is not in the log
//
// The witness (witness.go) stands between a guest and its turn. It answers what depends
// on others from the record, and notes when a guest asks for something that the record
// does not have, such as the real time: such a turn is not judged, and counted with the
// [Reason]. What a guest does not ask for need not be known.
package replay
