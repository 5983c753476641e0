// Package journal is the contract between the engine and its session stores. It describes
// the log, the live rows beside the log, and the stores that keep both. It contains data
// and small interfaces, and starts no goroutines.
//
//   - [Event] is one entry of a log. Its payload is bytes or one of the structs in
//     event_payloads.go, by its [EventKind].
//   - [Record] is what one change adds to a log, all of it or nothing: events, and
//     rows for the current state (creatures, channels, cursors, state, timers).
//   - [Storage] makes and opens stores, and cuts them when graphs merge and split;
//     [Store] keeps one session. Package storetest tests an implementation.
//   - [Replay] reads the events of a whole session directory, starting at an [EventCursor].
//   - [Succession] maps graphs that have ended to their successors.
package journal
