package journal

import (
	"encoding/json"
	"sync"
)

// Record is one entry in the queue of a graph's log: a whole turn, an outside message or
// a change of the topology. A store writes all of it or none.
//
// Once a record is passed to [Store.Append], the store owns it and everything that it points
// to. The caller must not modify any of this, and must no longer read the record, because
// the store may recycle it.
type Record struct {
	// Events are new events. Their ids have the store's origin. Their numbers increase by
	// one from event to event, and from record to record.
	Events []Event

	// The following rows are changed by the events. Each row has a key; a later row
	// replaces an earlier one with the same key.
	Cursors   []CursorRow
	State     []StateRow
	Producers []ProducerRow
	Creatures []CreatureRow
	Channels  []ChannelRow
	Heads     []HeadRow
	Edges     []EdgeRow
	Timers    []TimerRow
	Requests  []RequestRow
	Wires     []OutputWire // keyed by id; they are removed with their source
	Letters   []DeadLetterRow
	Meta      map[string]string // free metadata of the store, by key
	// Drop lists rows to remove. They are removed before the rows above are written.
	Drop Drop

	pooled bool // made by NewRecord
}

var recordPool = sync.Pool{New: func() any { return &Record{pooled: true} }}

// maxPooledRows prevents the pool from keeping the memory of a rare large record.
const maxPooledRows = 64

// NewRecord returns an empty record. Its lists may reuse the memory of recycled records.
func NewRecord() *Record { return recordPool.Get().(*Record) }

// Recycle makes the memory of a record available to [NewRecord]. A store calls it at most
// once, when it no longer uses the record. It has no effect on records that NewRecord did
// not make.
func (r *Record) Recycle() {
	if !r.pooled {
		return
	}
	fresh := Record{pooled: true}
	fresh.Events, fresh.Cursors, fresh.Heads = emptied(r.Events), emptied(r.Cursors), emptied(r.Heads)
	*r = fresh
	recordPool.Put(r)
}

// emptied returns the list with length 0, or nil if it is too large to keep. Its elements
// are cleared, so that they keep nothing alive.
func emptied[T any](list []T) []T {
	if cap(list) > maxPooledRows {
		return nil
	}
	clear(list)
	return list[:0]
}

// Size estimates how many bytes a record takes in memory or on disk. It is 0 for nil.
func (r *Record) Size() int64 {
	if r == nil {
		return 0
	}
	const event, row = 256, 128 // structs and the strings they point to
	n := row
	for i := range r.Events {
		n += event + len(r.Events[i].Payload) + len(r.Events[i].Headers)
	}
	for i := range r.State {
		n += row + len(r.State[i].Key) + len(r.State[i].Value)
	}
	for i := range r.Creatures {
		n += 2*row + len(r.Creatures[i].Spec)
	}
	for key, value := range r.Meta {
		n += row + len(key) + len(value)
	}
	for i := range r.Timers {
		n += row + len(r.Timers[i].Payload)
	}
	for i := range r.Wires {
		n += 2*row + len(r.Wires[i].Prompt)
	}
	for i := range r.Letters {
		n += 3*row + len(r.Letters[i].Payload) + len(r.Letters[i].Headers)
	}
	n += row * (len(r.Cursors) + len(r.Producers) + len(r.Channels) + len(r.Heads) + len(r.Edges) + len(r.Requests))
	return int64(n)
}

// Drop names live rows that a [Record] removes. The events about them stay: they are
// history.
type Drop struct {
	Creatures []CreatureID // with all of their rows, and their inbox
	Channels  []ChannelID  // with their cursors, producers and edges
	Edges     []EdgeRow    // keyed by creature, channel and direction
	Timers    []TimerRow   // keyed by creature and name
	Requests  []EventID
	Wires     []WireID
	Letters   []EventID
	Cursors   []CursorRow // keyed by reader, channel and until
}

// ReaderID identifies the reader of a channel: a creature (its id) or an outside reader
// ("reader:" and its name).
type ReaderID string

// CursorRow is the position of a reader in a channel. Key: reader, channel, until. A reader
// that listens again before it has drained its backlog has several cursors.
type CursorRow struct {
	Reader  ReaderID
	Channel ChannelID
	Seq     uint64 // the last message handled; 0 before the first
	// Until, if not 0, is the last message that the reader still has to read, because the
	// edge has been removed and the backlog is being drained.
	Until uint64
	// Alias is the creature's alias for the channel while it drains a backlog. It is empty
	// while the edge exists, because the edge has the alias.
	Alias string
}

// StateRow is one state value of a creature. Key: creature, key.
type StateRow struct {
	Creature CreatureID
	Key      string
	Value    []byte
	Deleted  bool
}

// ProducerRow is the position of an outside producer. Key: channel, producer.
type ProducerRow struct {
	Channel  ChannelID
	Producer string
	Offset   uint64 // the highest offset that has been accepted
}

// CreatureRow is a creature as its store keeps it. Key: id.
type CreatureRow struct {
	ID         CreatureID
	Name       string
	Deployment string // empty for a creature that no recipe declared
	Address    string // within the deployment, for example creature.reviewer["ann"]
	Born       uint64
	Parent     CreatureID
	Privileged bool
	Root       bool
	Stopped    bool
	Started    bool   // the start delivery has been handled
	Module     string // what to load: a path, or builtin:NAME
	SHA256     string // of the module's bytes when it was last loaded
	Spec       []byte // the rest of the specification, JSON
}

// State returns the state of the creature according to the row: running, stopped or
// paused. Whether it is paused is in Spec.
func (r *CreatureRow) State() CreatureState {
	if !r.Stopped {
		return Running
	}
	var spec struct {
		Paused bool `json:"paused"`
	}
	if json.Unmarshal(r.Spec, &spec) == nil && spec.Paused {
		return Paused
	}
	return Stopped
}

// ChannelRow is a channel as its store keeps it, without its head, which is a [HeadRow].
// Key: id.
type ChannelRow struct {
	ID          ChannelID
	Name        string
	Description string
	Deployment  string
	Address     string
	Born        uint64
	Report      bool
	Inbox       CreatureID // set for the inbox of a creature, which has no edges
}

// HeadRow is the number of the last message of a channel. Key: channel.
type HeadRow struct {
	Channel ChannelID
	Seq     uint64
}

// EdgeRow is one edge. Key: creature, channel, direction. Order is the order
// in which edges were added.
type EdgeRow struct {
	Creature  CreatureID
	Channel   ChannelID
	Direction Direction
	Alias     string
	Order     uint64
}

// TimerRow is a timer that a creature has set. Key: creature, name. It is removed with
// its creature.
type TimerRow struct {
	Creature CreatureID
	Name     string
	Due      int64 // nanoseconds since 1970
	Period   int64 // nanoseconds; 0: once
	Payload  []byte
}

// RequestRow is a request that has not been answered. Key: id. It is removed with its
// creature.
type RequestRow struct {
	ID       EventID    // of the request's message
	Creature CreatureID // the creature that sent it
	Tag      int64      // the creature's name for the request
	Deadline int64      // nanoseconds since 1970
}

// DeadLetterRow is a delivery that was not handled and that can be delivered again. Key:
// id. It is removed with its creature.
type DeadLetterRow struct {
	ID        EventID // of the dead_letter event
	Time      int64   // nanoseconds since 1970
	Creature  CreatureID
	Message   EventID   // zero if it was never in a log
	Kind      EventKind // of the message
	Channel   ChannelID
	Seq       uint64
	Sender    CreatureID
	Alias     string // the alias under which it was sent if no edge led anywhere (Seq is 0 then); otherwise the creature's alias for the channel
	Reason    DeadReason
	Attempts  int
	Error     string
	LastWords string // the guest's last log line
	Headers   []byte
	Payload   []byte
}
