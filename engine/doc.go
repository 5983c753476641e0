// Package engine runs creatures: it keeps their graphs, environments and logs,
// hands them their deliveries one at a time, and applies what a turn did, all
// of it or nothing.
//
// # Terms
//
// A creature runs a module in a graph. A turn handles one delivery; its effects are
// one record of the graph's log. A mailbox is the window on the logs a creature reads,
// its inbox the log of what is for it alone. A merge or split of graphs cuts their
// session stores. docs/reference/glossary.md defines these terms and all others.
//
// # State and its owners
//
// The mutation lock of an [Engine] owns the topology and the index of what
// exists; code that needs the lock takes a locked (lock.go). Each graph has a
// critical section of its own, which owns the environment: channels, cursors,
// mailboxes and the order of the log. A running turn holds neither; it belongs to
// one worker, and so does its instance.
// Locks are taken in one order: the mutation lock, then graphs by id.
//
// # Layers
//
// The types of this package form four layers, and each refers only to those below it:
//
//   - the [Engine], and what a call from outside does: batches, applying, restoring
//     and planning
//   - turns: turnWorker, turn and turnLog
//   - changes of the topology: change, storePlan and snapshot
//   - graphs with their members (graph, creature, channel, mailbox), the subscriptions
//     and readers, and what all of them need of the engine: core (core.go), and
//     locked, which is a core whose mutation lock is held
//
// A change calls the turn that makes it through an interface (change_turn.go).
//
// # One delivery
//
//	publish ──► channel: next number ──► log (one record) ──► mailboxes
//	                                                             │
//	   effects applied ◄── commit ◄── creature_handle ◄── worker ┘
//
// A message gets its number and enters the log's queue in the critical section
// of its graph (graph.go); the same section offers it to the mailbox of every
// listener (mailbox.go) and puts idle creatures on the run queue (package runqueue). A
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
// Every change is a list of operations of package topology, staged in a draft
// (package draft), which can be undone without a trace, and then carried out as one
// (change.go). If no graph merged or split, the change is logged and the
// environment follows. Otherwise the graphs concerned are paused, their stores
// are cut (cut.go), and creatures, channels, mailboxes and cursors move to
// their new graphs; no creature restarts and running turns go on.
// What applying a deployment changes is worked out in a draft as well (package
// reconcile).
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
// staged, under the mutation lock (package draft): what is denied was never done.
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
//
// # Files
//
// The engine as a whole:
//
//   - engine.go: the engine, its options, its start and its end
//   - core.go: what turns, changes and graphs need of it
//   - api.go: operations and batches from outside
//   - find.go: creatures, channels and graphs by name
//   - status.go: what graphs, creatures and channels are like
//   - history.go: events, sessions and lineage, read from the stores
//   - fork_at.go: a fork of a session at a moment
//   - shutdown.go: Close, and what it has to leave open
//   - internal/timing: the clock of the machine, what is due later, and rates
//   - internal/ids: drawing them
//   - outcome.go: errors about outcomes that are not known
//
// Graphs and channels:
//
//   - graph.go: one connected component: its environment and the order of its log
//   - graph_log.go: how it logs events and rows
//   - graph_pointer.go: the graph in which something lives at the moment
//   - internal/message: a message on its way to its listeners
//   - mailbox.go: the next deliveries of a listener
//   - mailbox_gap.go: messages that are missing from a store
//   - aliases.go: what a creature calls its channels
//
// Creatures:
//
//   - creature.go: a creature and its settings
//   - prepare.go: its module and first instance
//   - internal/modules: one compiled module of many creatures, and of creatures that lack it
//   - internal/specs: checking and completing what it is made from
//   - hold.go: keeping a creature from beginning another turn
//   - pace.go: keeping it from storing too much
//   - supervise.go: what becomes of a failed turn, and of a creature that fails
//   - internal/veil: taking its sensitive values out of texts
//   - species.go: species, and how many of each live
//
// Scheduling:
//
//   - worker.go: the goroutines that run turns
//   - internal/runqueue: the run queue, with a lane for each of them
//   - idleness.go: waking creatures
//   - internal/idle: knowing that all is done
//   - heap_watch.go: what is accounted to creatures, and what becomes of one that keeps more
//   - internal/heapwatch: finding a suspect among the creatures, and trying it
//
// A turn:
//
//   - turn.go: what hostcalls collect
//   - internal/effects: those of them that need no look at a graph: state, output, log
//   - timers.go: its timers, and alarms
//   - request_turn.go: its requests and replies
//   - commit.go: the commit of a turn: what it leaves is written, and then landed
//   - turn_log.go: what that is, and where it goes
//   - turn_change.go: a turn that changes the graph
//   - turn_notes.go: what the log notes of its inputs
//   - wire_delivery.go: its output, over output wires
//   - open_requests.go: inboxes, and requests that wait for an answer
//   - rehearsal.go: a turn without an engine, for replay
//
// Messages from and to the outside:
//
//   - send.go: messages from outside
//   - send_judged.go: the same, as policies leave them
//   - request.go: requests from outside
//   - reader.go: readers with a durable cursor
//   - observe.go: subscribing, from now on or from a moment in the past
//   - internal/observe: the subscriptions
//   - internal/ring: the events that a slow subscriber has not read yet
//
// Dead letters:
//
//   - letters.go: dead letters, and redelivering them
//   - letter_addressee.go: the creature that gets a letter now
//   - dead_backlog.go: what is left unhandled when a creature or channel is removed
//   - dead_requests.go: the requests among that
//
// Changes of the topology:
//
//   - change.go: a draft being carried out, from sealing to its end
//   - change_turn.go: the turn that makes it
//   - lock.go: the mutation lock, and what it guards
//   - draft_base.go: what drafts see of the engine, and new ids
//   - change_environment.go: the environment follows the topology
//   - parents.go: creatures that lose their parent
//   - redescribe.go: descriptions of channels
//   - output_wire.go: output wires
//   - wire_change.go: wires that a change makes, moves and removes
//   - root.go: roots, and what comes into a deployment
//
// Stores and cuts:
//
//   - cut.go: which stores a change cuts, and cutting them
//   - cut_first.go: the first record of a new store
//   - snapshot.go: what a graph without a store hands to its first one
//   - first_log.go: the same in memory
//   - interim_store.go: a store between two cuts
//   - retire_graph.go: the store of a graph that ends
//   - internal/serialstore: one change of the session directory at a time
//   - session_meta.go: the metadata of a session after a change
//   - internal/storemeta: that metadata, as stores have it
//
// Resuming sessions:
//
//   - restore.go: bringing graphs back
//   - restore_saved.go: which graphs a directory has
//   - internal/regrow: the operations that lead to one of them
//   - remembered.go: the deployments of a directory
//
// Deployments:
//
//   - apply_all.go: several deployments at a time
//   - apply.go: one of them, as package reconcile compares it with what exists
//   - update.go: changing creatures between two turns
//   - plan.go: what applying would do
//   - internal/planstore: the storage of a plan, which keeps nothing
//
// Awareness:
//
//   - describe.go: what a creature can know of its graph
//   - awareness.go: its document
//   - awareness_seen.go: what it has seen, and when it is told
//
// Policies:
//
//   - policy_turn.go: turns, calls and failures
//   - policy_view.go: the graph as policies see it
//   - policy_memory.go: what they remember
//   - internal/recall: what of that those of one turn have recalled
//   - policy_refusal.go: errors of what they refuse
//   - internal/failures: policies that failed
//
// Group tools:
//
//   - tools.go: a turn as the group tools (package tools) see it
//   - tool_job.go: calls from outside
package engine
