package journal

import (
	"context"

	"github.com/seed47132306/terrarium/engine/topology"
)

// Rememberer is a [Store] that can describe removed creatures.
type Rememberer interface {
	// Was returns the last row of a creature. known is false if the log no longer has it.
	// It may be called by any goroutine.
	Was(ctx context.Context, creature CreatureID) (row CreatureRow, known bool, err error)
}

// The names of the topology, which are used throughout.
type (
	CreatureID = topology.CreatureID
	ChannelID  = topology.ChannelID
	GraphID    = topology.GraphID
	Direction  = topology.Direction
)

// The directions of an edge.
const (
	Listen = topology.Listen
	Send   = topology.Send
)

// SessionID names one session store. Every cut makes new ones.
type SessionID string

// Durability is what a store promises once [Store.Wait] has returned.
type Durability uint8

// The durabilities, weakest first.
const (
	Volatile Durability = iota // no store at all
	Normal                     // survives a killed process; a power loss leaves a consistent prefix
	Full                       // survives power loss
)

// String returns "none", "normal" or "full".
func (d Durability) String() string {
	return [...]string{"none", "normal", "full"}[d]
}

// ParseDurability reads what [Durability.String] writes.
func ParseDurability(s string) (Durability, bool) {
	switch s {
	case "none":
		return Volatile, true
	case "normal":
		return Normal, true
	case "full":
		return Full, true
	}
	return 0, false
}

// Storage keeps the session stores of one engine: a session directory. An engine opens,
// creates and cuts stores through it. While an engine uses it, nothing else may use it.
//
// The methods that change something, Saved and Close are called by one goroutine at a
// time. The methods that read sessions may be called by any goroutine at any time, and
// must not block the others.
type Storage interface {
	// Saved lists the live stores: the graphs as they were when the directory was last
	// used. A store that cannot be opened is set aside and named in the second result;
	// the others are returned. The problems have one of three ids: [UnreadableID] names a
	// live store that cannot be read, [CutShortID] a store that lacks only the end of its
	// log, and [LeftOutID] a file that may be a store but belongs to no session.
	Saved(ctx context.Context) (graphs []SavedGraph, problems []error, err error)
	// Open opens the live store of a saved graph for writing. The store starts
	// a new origin.
	Open(ctx context.Context, session SessionID) (Store, error)
	// Create makes the stores of new graphs, in one step: all of them, each with its
	// first record, or none. The stores are durable once Create returns.
	Create(ctx context.Context, specs ...StoreSpec) ([]Store, error)
	// Cut turns live parents into children, in one atomic step. There are no parents if
	// only graphs without a store take part. Cut drains and stops the writers of the
	// parents, gives every child the live rows of its members, and then closes the parents.
	// The cut may become durable later; until then Wait does not return for a child with
	// the durability [Full]. A child can read the whole history of its parents at once; its
	// own file may get that history later ([SessionInfo].Complete). On an error nothing has
	// changed, and the parents continue.
	Cut(ctx context.Context, cut Cut) ([]Store, error)
	// Retire ends a live store whose graph has ended. Its history stays readable, and its
	// rows are no longer live.
	Retire(ctx context.Context, session SessionID) error

	// Sessions lists every session of the directory, oldest first. Sessions that one cut
	// made are listed in the order of its children.
	Sessions(ctx context.Context) ([]SessionInfo, error)
	// History reads a session, live or ended; see [Store.History].
	History(ctx context.Context, session SessionID, q HistoryQuery) ([]Event, error)
	// Lineage returns the session itself, and then its ancestors, generation by
	// generation, back to the first sessions.
	Lineage(ctx context.Context, session SessionID) ([]SessionInfo, error)
	// Verify checks a session, live or ended: the file itself, that its log has every
	// event once, and that every channel is in order.
	Verify(ctx context.Context, session SessionID) (VerifyReport, error)

	// Problems lists current problems of the directory that do not stop it from working.
	// It may be called by any goroutine.
	Problems() []error

	// Close closes the directory. All stores must have been closed.
	Close() error
}

// Pacer is implemented by a [Storage] that has work to do in the background after cuts.
type Pacer interface {
	// Behind reports whether cuts are made faster than that work is done. Then the engine
	// delays the next turn of a creature that has changed its graph.
	Behind() bool
	// Pace waits while the storage is behind, for a bounded time, and returns an error only if
	// ctx ends. The engine calls it before a change from outside, while no graph waits for
	// the caller.
	Pace(ctx context.Context) error
}

// Exporter is implemented by a [Storage] whose sessions are files.
type Exporter interface {
	// Export writes a session, live or ended, to a new file that needs no other.
	Export(ctx context.Context, session SessionID, path string) error
	// Fork makes a new directory with one live session that has the history and the live
	// rows of the given one, and continues independently.
	Fork(ctx context.Context, session SessionID, dir string) (SessionID, error)
	// ForkAt forks the session as it was at a mark in its own log. It also returns the
	// last event in the fork.
	ForkAt(ctx context.Context, session SessionID, at Mark, dir string) (SessionID, EventID, error)
}

// StoreSpec describes a store to be created.
type StoreSpec struct {
	Graph      GraphID
	Born       uint64 // creation number of the graph
	Durability Durability
	At         int64             // time of creation, nanoseconds since 1970; 0 is now. A cut ignores it and has its own
	Meta       map[string]string // free metadata: recipe path, recipe text, deployment, …
	// First builds the first record of the store's log, which is written together with
	// the store. It is called once, with the store's origin. Nil, or a nil record, means
	// none.
	First func(origin Origin) *Record
}

// SavedGraph is a graph as its live store keeps it.
type SavedGraph struct {
	Session    SessionID
	Graph      GraphID
	Born       uint64
	Durability Durability
	Path       string
	Creatures  []CreatureRow
	Channels   []ChannelRow // inboxes included
	Heads      []HeadRow
	Edges      []EdgeRow
	Cursors    []CursorRow
	Producers  []ProducerRow
	Timers     []TimerRow
	Requests   []RequestRow
	Wires      []OutputWire
	Meta       map[string]string
	LastTime   int64 // of the last event, nanoseconds since 1970; 0 if there is none
}

// Cut describes a merge, a split, or in general the division of live stores
// into new ones.
type Cut struct {
	Kind     CutKind // a merge, a split or a rearrangement
	At       int64   // nanoseconds since 1970: after all events of the parents, before all others of the children
	Parents  []Store
	Children []CutChild
}

// CutChild describes one child of a [Cut].
type CutChild struct {
	StoreSpec
	// Parents are the sessions whose history the child gets, those of older graphs first.
	// All are among Cut.Parents.
	Parents []SessionID
	// VolatileParents counts the graphs without a store that became a part of the child.
	// The lineage names each as "volatile".
	VolatileParents int
	// Creatures and Channels own the live rows that the child takes over from its
	// parents: state and dead letters of its creatures, and the producers and cursors of
	// outside readers of its channels. Dead letters of creatures that are in no child go
	// where [Cut.LetterSuccessors] says. (Creature, channel, head and edge rows and the
	// cursors, timers, requests and wires of creatures come with First, because the cut
	// may change them.)
	Creatures []CreatureID
	Channels  []ChannelID // inboxes included
}

// SessionInfo describes one session.
type SessionInfo struct {
	Session    SessionID
	Graph      GraphID
	Path       string // "" once an ended session's history is only in its descendants
	Live       bool
	Complete   bool // its own file contains its whole history
	Durability Durability
	Created    int64       // nanoseconds since 1970
	Parents    []SessionID // "volatile" for one without a store
	MadeBy     CutKind     // its parents; "" if it has none
	MergedAt   int64       // when a merge made it, else 0
	SplitAt    int64       // when a split made it, else 0
	Bytes      int64       // size on disk
	Events     int64       // -1 if they would have to be counted
	Meta       map[string]string
}

// Store is the log and the live rows of one graph.
//
// Append is called by one goroutine at a time (the engine calls it in the
// critical section of the graph); every other method may be called from any
// goroutine.
type Store interface {
	// Info describes the session. It is cheap: Events is -1 and Bytes is 0;
	// [Storage].Sessions has both.
	Info() SessionInfo
	// Origin returns the origin that the ids of appended events must have. It does not
	// change while the store is open.
	Origin() Origin
	// Append queues a record. It neither blocks nor fails. Records are written in the
	// order in which they were appended, without gaps. If writing fails, queued records
	// stay queued and are tried again; see Err.
	Append(r *Record)
	// Room waits until the queue has fewer unwritten bytes than its bound. The engine calls
	// it before a commit, outside of critical sections. If ctx has ended, it returns at
	// once, with an error if there is no room.
	Room(ctx context.Context) error
	// Wait waits until every event up to seq of the store's origin is as durable as
	// promised. If writing fails, it returns the code storage; the event may still become
	// durable later.
	Wait(ctx context.Context, seq uint64) error
	// Durable returns the highest seq for which Wait returns at once. Notify sets a
	// function, or nil for none, that the writer calls whenever Durable has risen or
	// writing has begun to fail. The function must not block.
	Durable() uint64
	Notify(func())
	// Err returns the reason why writing currently fails, or nil.
	Err() error

	// Missing returns the reason why a part of the history cannot be read, such as a
	// missing file. It returns nil if all of it can be read. Reads return the rest.
	// Messages that the store never had do not count as missing.
	Missing() error

	// State returns a creature's state. It sees every record that was
	// appended before the call.
	State(ctx context.Context, creature CreatureID) (map[string][]byte, error)
	// Messages returns messages of a channel in order, with numbers above after and up to
	// until (0: the head). It returns at most limit messages, and no more once their
	// payloads and headers have reached the given number of bytes (0: no bound). It sees
	// every record that was appended before the call.
	Messages(ctx context.Context, channel ChannelID, after, until uint64, limit int, bytes int64) ([]Event, error)
	// History returns events in an order that respects causes. It sees every
	// record that was appended before the call.
	History(ctx context.Context, q HistoryQuery) ([]Event, error)

	// DeadLetters returns dead letters in the order of their ids, origin by origin, after
	// the given id. If a creature is given, it returns only those of that creature. It
	// returns at most limit dead letters (0: 1,000), and sees every record that was
	// appended before the call.
	DeadLetters(ctx context.Context, creature CreatureID, after EventID, limit int) ([]DeadLetterRow, error)

	// Close writes what is queued, as durably as promised, and closes the store. It waits
	// for the writer to end. If writing fails, it tries once more and then returns the
	// error.
	Close(ctx context.Context) error
}

// HistoryQuery selects events. Empty fields do not restrict the result. An event must meet
// all restrictions.
type HistoryQuery struct {
	Kinds    []EventKind
	Creature CreatureID
	Channel  ChannelID
	Turn     EventID
	// Own selects only events that the session wrote itself, not those that it inherited
	// from its parents.
	Own bool
	// After selects the events that History lists after this event.
	After EventID
	// Behind selects the events after a place, even if the event at this place was pruned
	// or lost in a crash.
	Behind Mark
	Limit  int // 0: 1,000
	// Bytes ends the list with the event at which payloads and headers reach this number
	// of bytes; 0: no bound.
	Bytes int64
	// Newest selects the last Limit events instead of the first, still in order.
	Newest bool
}

// VerifyReport is the result of [Storage.Verify]. An intact session has empty lists.
type VerifyReport struct {
	Session SessionID
	Events  int64
	// Missing are events that should be present: gaps in the numbers of an origin, and
	// gaps in the numbers of a channel.
	Missing []string
	// Duplicate are numbers of a channel that occur twice.
	Duplicate []string
	// OutOfOrder are messages whose numbers in their channel are not in the order of their
	// times.
	OutOfOrder []string
	// IncompleteFrom are the ancestors whose files still contain a part of the history,
	// because it has not been copied yet. This is not a fault.
	IncompleteFrom []SessionID
	// Damage lists faults of the file and of live rows, such as a cursor beyond the head
	// of its channel, or an edge without its creature.
	Damage []string
}
