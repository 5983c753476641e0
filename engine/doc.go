// Package engine runs creatures. It keeps their graphs, environments and logs, gives them
// their deliveries one at a time, and applies the effects of a turn, completely or not at
// all.
//
// # Terms
//
// A creature runs a module in a graph. A turn handles one delivery; its effects are
// one record of the graph's log. A mailbox is the window on the logs that a creature
// reads. Its inbox is the log of the deliveries for that creature alone. A merge or
// split of graphs cuts their session stores. docs/reference/glossary.md defines these
// terms and all others.
//
// # State and its owners
//
// The mutation lock of an [Engine] guards the topology and the index of all creatures,
// channels and graphs; code that needs the lock takes a locked (lock.go). Each graph has
// its own critical section, which guards the environment: channels, cursors, mailboxes
// and the order of the log; code that needs it takes a section (graph.go). A running turn
// holds neither. The turn and its instance belong to one engine worker, which this
// package calls a worker. Locks are taken in one order: the mutation lock, then graphs by
// id.
//
// # Layers
//
// The types of this package form four layers. Each layer refers only to those below
// it:
//
//   - the [Engine], and what a call from outside does: batches, applying, restoring
//     and planning
//   - turns: turnWorker, turn and turnLog
//   - changes of the topology: change, storePlan and snapshot
//   - graphs with their members (graph, creature, channel, mailbox), the subscriptions
//     and readers, and what all of them need of the engine: core (core.go), and
//     locked, which is a core whose mutation lock is held
//
// A change calls the turn that makes it through an interface (restOfTurn).
//
// The files follow these layers. A type is in the file of its own layer. Functions that
// combine several parts are in files above all of these parts: carry_out.go for a change,
// serve.go for a turn, and start.go for the engine.
//
// # One delivery
//
//	publish ──► channel: next number ──► log (one record) ──► mailboxes
//	                                                             │
//	   effects applied ◄── commit ◄── creature_handle ◄── worker ┘
//
// A message gets its number and enters the log's queue in the critical section of its
// graph (publish.go). The same section offers the message to the mailbox of every
// listener (mailbox.go) and puts idle creatures on the run queue (package runqueue). A
// worker takes a creature, runs a turn on its instance (turn.go) and commits: cursor,
// sends, state and output become one record (commit.go). A turn that fails leaves only
// its log lines, and the supervisor (supervise.go) decides whether the delivery is tried
// again.
//
// # Mailboxes are windows
//
// A channel is a log, and each listener has a cursor in it. The mailbox holds the next
// few deliveries in memory. In a graph with a store, a listener that falls behind is no
// longer offered messages, and reads them from the store later. In a graph without a
// store, its [deploy.Overflow] policy applies.
//
// # Changes of the topology
//
// Every change is a list of operations of package topology. The operations are staged in
// a draft (package draft), which can be undone without a trace, and then applied together
// (carry_out.go). If no graph merged or split, the change is logged and the environment
// follows. Otherwise the graphs concerned are paused, their stores are cut (cut.go), and
// creatures, channels, mailboxes and cursors move to their new graphs. No creature
// restarts, and running turns continue. The changes that lead to a deployment are worked
// out in a draft as well (package reconcile).
//
// # Awareness
//
// The awareness document of a creature is a function of its graph (describe.go). A change
// of the graph does not make the document again: it only gives the shape of the graph a
// new number. When a creature reads its document, and the number differs from that of its
// last read, the engine makes the document again and compares the two
// (awareness_seen.go). The graph that a turn sees is fixed when the worker takes the
// delivery, in the critical section.
//
// # Policies
//
// Before the worker enters a critical section, it lets the policies judge messages, calls
// of tools and failed turns (policy_turn.go). Operations are judged while they are
// staged, under the mutation lock (package draft): a denied operation leaves no trace.
// The memory of policies is part of the graph (policy_memory.go). At the commit it is
// compared with the memory that the policies have used. If a policy asks an operator, the
// turn is put back and waits (approval.go).
//
// # Interfaces
//
// The engine consumes a Wasm host ([abi.Host]), session stores ([journal.Storage] and
// [journal.Store], with a test suite in storetest), policies ([deploy.Policy]) and a
// [Clock]. The data that it exchanges with them is defined in its own packages: journal
// (the log and its stores), deploy (what a deployment declares), outlook (what a creature
// can know), inspect (the present state) and diff (what a change would do).
//
// # Files
//
// The engine as a whole:
//
//   - engine.go: the engine and its options
//   - start.go: starting the engine
//   - core.go: the part of the engine that turns, changes and graphs need
//   - api.go: operations and batches from outside
//   - find.go: creatures, channels and graphs by name (internal/lookup)
//   - status.go: the state (package inspect) of graphs, creatures and channels
//   - package archive: events, sessions and lineage, read from the stores, and forks
//   - shutdown.go: Close
//   - internal/closing: how long Close waits, and what it leaves open
//   - internal/timing: the machine's clock, timers, rates and the pace of a creature
//   - internal/ids: drawing ids
//   - internal/errtext: texts of errors
//
// Graphs and channels:
//
//   - graph.go: one connected component: its environment, the order of its log, its
//     critical section, and the current graph of a creature or channel
//   - publish.go: messages enter the log and the mailboxes
//   - graph_log.go: logging events and rows
//   - internal/message: a message on its way to its listeners
//   - mailbox.go: the next deliveries of a listener
//   - internal/deque: the window of a mailbox
//   - mailbox_refill.go: filling a mailbox from a store, from which messages can be missing
//   - internal/refill: the order of the deliveries that were read
//   - aliases.go: the names by which a creature calls its channels
//
// Creatures:
//
//   - creature.go: a creature and its settings
//   - prepare.go: the module and the first instance of a creature
//   - internal/modules: compiled modules that creatures share, and creatures without a module
//   - internal/specs: checking and completing specifications, and what a store keeps of them
//   - hold.go: keeping a creature from starting another turn
//   - pace.go: limits on how fast a creature stores data
//   - supervise.go: failed turns and failing creatures
//   - internal/veil: removing the sensitive values of a creature from texts
//   - species.go: loading and spawning species
//   - internal/species: which species may be spawned, and how many creatures of each live
//
// Scheduling:
//
//   - worker.go: the workers, which are the goroutines that run turns
//   - serve.go: the work of a worker: one creature after another, one delivery after another
//   - internal/runqueue: the run queue, with a lane for each worker
//   - hibernate.go: taking the instances of idle creatures
//   - internal/hibernation: when to take these instances
//   - internal/idle: detecting that all work is done
//   - heap_watch.go: memory that is not accounted to any creature
//   - internal/heapwatch: finding the creature that holds such memory
//
// A turn:
//
//   - turn.go: the effects that hostcalls collect
//   - hostcalls.go: hostcalls that read the delivery, and sends
//   - internal/effects: effects that do not need the graph: state, output, log
//   - timers.go: the timers of a turn, and alarms
//   - request_turn.go: the requests and replies of a turn
//   - commit.go: the commit of a turn: its effects are written, and then landed
//   - turn_log.go: the effects of a turn, and the logs that they go to
//   - turn_change.go: a turn that changes the graph
//   - turn_notes.go: the inputs of a turn that the log records
//   - wire_delivery.go: delivering the output of a turn over output wires
//   - internal/outlets: the deliveries over wires, and why one is not possible
//   - outside.go: requests to capabilities, and their results
//   - internal/outbound: executing these requests, and what a creature can reach
//   - open_requests.go: inboxes, and requests that wait for an answer
//   - rehearsal.go: a turn without an engine, for replay (package rehearsal: its data)
//
// Messages from and to the outside:
//
//   - send.go: messages from outside
//   - send_judged.go: messages from outside that a policy has judged
//   - request.go: requests from outside
//   - caller_turn.go: the turn of a request, when the caller runs it
//   - internal/turnctx: the context of such a turn
//   - reader.go: readers with a durable cursor
//   - observe.go: subscribing, from now or from a moment in the past
//   - internal/observe: the subscriptions
//   - internal/ring: the events that a slow subscriber has not read yet
//
// Dead letters:
//
//   - dead_letter.go: deliveries that will not be handled
//   - internal/letterbox: the dead letters of a graph without a store
//   - letters.go: reading dead letters, and redelivering them
//   - letter_addressee.go: the creature that a redelivered letter goes to
//   - dead_backlog.go: deliveries and requests that still wait when a creature or channel
//     is removed
//
// Changes of the topology:
//
//   - change.go: a draft that is applied, with what it logs and the turn that makes it
//   - carry_out.go: applying a change, from sealing the draft to the end
//   - lock.go: the mutation lock, and what it guards
//   - draft_base.go: the engine as drafts see it, and new ids
//   - change_environment.go: the environment follows the topology
//   - parents.go: creatures that lose their parent
//   - redeclare.go: descriptions and addresses of channels
//   - output_wire.go: output wires
//   - wire_change.go: wires that a change makes, moves and removes
//   - internal/sorted: the contents of a map, in a fixed order
//   - root.go: roots, and members that join a deployment
//
// Stores and cuts:
//
//   - store_plan.go: which stores a change cuts
//   - internal/regroup: which graphs exchange members in a change
//   - cut.go: cutting stores, and stores between two cuts
//   - cut_first.go: the first record of a new store
//   - internal/cursors: the cursors in the first record
//   - snapshot.go: the content of a graph without a store, for its first store
//   - first_log.go: the changes in memory when a graph gets its first store
//   - retire_graph.go: the store of a graph that ends
//   - internal/serialstore: one change of the session directory at a time
//   - session_meta.go: the metadata of a session after a change
//   - internal/storemeta: that metadata as stores keep it
//
// Resuming sessions:
//
//   - restore.go: restoring saved graphs
//   - restore_saved.go: the graphs saved in a session directory
//   - internal/regrow: saved graphs, and the operations that rebuild one
//   - remembered.go: the deployments saved in a session directory
//
// Deployments:
//
//   - apply_all.go: applying several deployments together
//   - apply.go: applying one deployment, with package reconcile
//   - update.go: changing creatures between two turns
//   - replace.go: replacing the module of a creature
//   - plan.go: what applying would do
//   - internal/planstore: the storage of a plan, which keeps nothing
//
// Awareness:
//
//   - describe.go: what a creature can know of its graph
//   - awareness.go: the document of a creature
//   - awareness_seen.go: what a creature has seen, and when it is notified
//
// Policies:
//
//   - policy_turn.go: turns, calls and failures
//   - approval.go: turns that wait for the answers to questions of policies
//   - approval_decide.go: the answers
//   - internal/approval: the questions of a creature, and of a turn that is judged
//   - policy_view.go: the graph as policies see it
//   - policy_memory.go: what policies remember
//   - internal/recall: what the policies of one turn have recalled
//   - policy_refusal.go: errors for what policies refuse
//   - internal/failures: policies that failed
//   - stop_when.go: conditions under which the creatures of a recipe stop
//   - internal/stopping: counting for these conditions, and judging them
//
// Group tools:
//
//   - tools.go: a turn as the group tools (package tools) see it
//   - tool_job.go: calls from outside
package engine
