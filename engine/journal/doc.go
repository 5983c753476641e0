// Package journal is the contract between the engine and what keeps its sessions: the
// log, the rows beside it and the stores of both. It has data and small interfaces, and
// nothing in it runs.
//
//   - [Event] is one entry of a log. Its payload is bytes or one of the structs in
//     event_payloads.go, by its [EventKind].
//   - [Record] is what a change adds to a log at once, all of it or nothing: events, and
//     rows for what is true now (creatures, channels, cursors, state, timers).
//   - [Storage] makes and opens stores, and cuts them when graphs merge and split;
//     [Store] keeps one session. Package storetest proves an implementation.
//   - [Replay] reads the events of a whole session directory from an [EventCursor] on.
//   - [Succession] says into which graph another one went.
package journal
