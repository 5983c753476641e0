// Package engine runs creatures: it keeps their graphs, environments and logs,
// hands them their deliveries one at a time, and applies what a turn did, all
// of it or nothing.
//
// # State and its owners
//
// The mutation lock of an [Engine] owns the topology and the index of what
// exists. Each graph has a critical section of its own, which owns the
// environment: channels, cursors, mailboxes and the order of the log. A running
// turn holds neither; it belongs to one worker, and so does its instance.
// Locks are taken in one order: the mutation lock, then graphs by id.
//
// # One delivery
//
//	publish ──► channel: next number ──► log (one record) ──► mailboxes
//	                                                             │
//	   effects applied ◄── commit ◄── creature_handle ◄── worker ┘
//
// A message gets its number and enters the log's queue in the critical section
// of its graph (graph.go); the same section offers it to the mailbox of every
// listener (mailbox.go) and puts idle creatures on the run queue (sched.go). A
// worker takes a creature, runs a turn on its instance (turn.go) and commits:
// cursor, sends, state and output become one record (commit.go). A turn that
// fails leaves nothing but its log lines, and the supervisor (supervise.go)
// decides whether it is tried again.
//
// # Mailboxes are windows
//
// A channel is a log and a listener a cursor on it. The mailbox holds the next
// few deliveries in memory. In a graph with a store, a listener that falls
// behind stops being offered messages and reads them from the store later; in
// a graph without one, its [deploy.Overflow] policy holds.
//
// # Changes of the topology
//
// Every change is a list of operations of package topology, applied as one
// (change.go). If no graph merged or split, the change is logged and the
// environment follows. Otherwise the graphs concerned are paused, their stores
// are cut (cut.go), and creatures, channels, mailboxes and cursors move to
// their new graphs; no creature restarts and running turns go on.
//
// # Awareness
//
// What a creature can know of its surroundings is a function of its graph
// (describe.go). A change of the graph computes none of it: it gives the graph
// another shape, a number, and a creature that looks at another shape than last
// time makes the document anew and compares (awareness_seen.go). What a turn sees is fixed
// when the worker takes the delivery, in the critical section.
//
// # Policies
//
// Messages, calls of tools and failed turns are judged by the worker, before it
// enters a critical section (policy_turn.go). Operations are judged while they are
// staged, under the mutation lock (policy_ops.go): what is denied was never done.
// What policies remember is part of the graph (policy_memory.go), and is compared
// at the commit with what they have recalled.
//
// # Interfaces
//
// The engine consumes a Wasm host ([abi.Host]), session stores ([journal.Storage] and
// [journal.Store], with a test suite in storetest), policies ([deploy.Policy]) and a
// [Clock]. What it exchanges with them is data of its own packages: journal (the log
// and its stores), deploy (what is to exist), outlook (what a creature can know) and
// diff (what a change would do).
package engine
