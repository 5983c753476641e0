// Package message defines messages on their way to listeners, and the details of those that
// the engine makes.
package message

import (
	"crypto/sha256"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Message is one message on its way: shared by the mailboxes of all listeners
// and read-only from the moment it is offered.
type Message struct {
	ID journal.EventID // as it was sent; guests know it by this
	// Logged is the id that the message got when its graph, which had no log before, got
	// one; nil if that has not happened. A graph that was split off may hold the message
	// too.
	Logged  atomic.Pointer[journal.EventID]
	Time    int64
	Kind    abi.Kind
	Channel journal.ChannelID
	Seq     uint64
	Sender  journal.CreatureID // empty: from outside
	// SenderName is the sender's name when it sent; it may be renamed later.
	SenderName string
	Payload    []byte
	Headers    []byte

	// Refs counts the mailboxes and turns that hold the message. Messages of a
	// graph without a store go back to a pool with the last one, so that
	// steady traffic allocates nothing; Pooled is false for all others.
	Refs   atomic.Int32
	Pooled bool

	borrowed bool // Payload and Headers belong to the caller that waits for the turn
}

var messagePool = sync.Pool{New: func() any { return new(Message) }}

// maxPooledBytes keeps a rare large message from staying in the pool forever.
const maxPooledBytes = 64 << 10

// NewPooled returns a message with own copies of payload and headers,
// holding one reference.
func NewPooled(payload, headers []byte) *Message {
	m := messagePool.Get().(*Message)
	m.Pooled = true
	m.Payload = append(m.Payload[:0], payload...)
	m.Headers = append(m.Headers[:0], headers...)
	m.Refs.Store(1)
	return m
}

var borrowedPool = sync.Pool{New: func() any { return new(Message) }}

// NewBorrowed returns a message with the given payload and headers themselves,
// holding one reference. They must stay as they are until the last reference is
// dropped, or Own was called. Like those of a pooled message, they are copied by
// everything that keeps them.
func NewBorrowed(payload, headers []byte) *Message {
	m := borrowedPool.Get().(*Message)
	m.Pooled, m.borrowed = true, true
	m.Payload, m.Headers = payload, headers
	m.Refs.Store(1)
	return m
}

// Own gives a message its own copies of what it has borrowed. Nothing else uses
// the message meanwhile.
func (m *Message) Own() {
	if m.borrowed {
		m.Payload, m.Headers, m.borrowed = slices.Clone(m.Payload), slices.Clone(m.Headers), false
	}
}

// NewCopied is NewPooled for a message that is not pooled.
func NewCopied(payload, headers []byte) *Message {
	own := make([]byte, 0, len(payload)+len(headers))
	own = append(append(own, payload...), headers...)
	return New(own[:len(payload):len(payload)], own[len(payload):])
}

// New returns a message that owns payload and headers.
func New(payload, headers []byte) *Message {
	m := &Message{Payload: payload, Headers: headers}
	m.Refs.Store(1)
	return m
}

// Retain adds a reference.
func (m *Message) Retain() { m.Refs.Add(1) }

// Release drops a reference.
func (m *Message) Release() {
	if m.Refs.Add(-1) != 0 || !m.Pooled {
		return
	}
	if m.borrowed {
		*m = Message{}
		borrowedPool.Put(m)
		return
	}
	if cap(m.Payload) > maxPooledBytes || cap(m.Headers) > maxPooledBytes {
		return
	}
	payload, headers := m.Payload[:0], m.Headers[:0]
	*m = Message{Payload: payload, Headers: headers}
	messagePool.Put(m)
}

// Size is the bytes of the message, as mailboxes count them.
func (m *Message) Size() int64 { return int64(len(m.Payload) + len(m.Headers)) }

// LogID is the id of m in the log of its graph, or none if it is in no log. It changes
// when the graph gets a log.
func (m *Message) LogID() journal.EventID {
	if m.Kind == abi.KindGraphChanged {
		return journal.EventID{}
	}
	if id := m.Logged.Load(); id != nil {
		return *id
	}
	return m.ID
}

// Event returns m as an event. The bytes are shared, so a pooled message's event must be
// cloned if it is kept.
func (m *Message) Event(g journal.GraphID) journal.Event {
	kind := journal.EventChannelMessage
	if journal.IsInbox(m.Channel) {
		kind = inboxKinds[m.Kind]
	}
	return journal.Event{
		ID: m.LogID(), Time: m.Time, Kind: kind, Graph: g, Creature: m.Sender,
		Channel: m.Channel, Seq: m.Seq, Headers: m.Headers, Payload: m.Payload,
	}
}

// inboxKinds are the kinds of event that messages in an inbox are logged as.
var inboxKinds = map[abi.Kind]journal.EventKind{
	abi.KindMessage: journal.EventDirectMessage,
	abi.KindTimer:   journal.EventTimer,
	abi.KindRequest: journal.EventRequest,
	abi.KindResult:  journal.EventResult,
	abi.KindOutput:  journal.EventWiredOutput,
}

// KindOf is the kind of delivery that a logged message is.
func KindOf(k journal.EventKind) abi.Kind {
	for kind, event := range inboxKinds {
		if event == k {
			return kind
		}
	}
	return abi.KindMessage
}

// The details of a delivery that the engine makes are in its headers, which the log
// keeps.
const (
	HeaderTimer    = "terrarium-timer"    // name of the timer
	HeaderReport   = "terrarium-report"   // kind of the event that a report to the root is about
	HeaderTag      = "terrarium-tag"      // of a request, in its result
	HeaderCode     = "terrarium-code"     // of a result: ok or the name of an error
	HeaderRequest  = "terrarium-request"  // id of the request that a result answers
	HeaderDeadline = "terrarium-deadline" // of a request, in milliseconds
	HeaderStatus   = "terrarium-status"   // of the result of a request to a capability
	HeaderWire     = "terrarium-wire"     // id of the wire over which an output came
	HeaderHops     = "terrarium-hops"     // number of wires in a row over which it came
	HeaderAlias    = "terrarium-alias"    // of the channel on which a message that is delivered again came first
)

// GuestHeaders are the headers as the guest gets them.
func (m *Message) GuestHeaders() []byte {
	if m.Kind != abi.KindMessage || !journal.IsInbox(m.Channel) || len(m.Headers) == 0 {
		return m.Headers
	}
	if _, from, to := journal.FindHeader(m.Headers, HeaderAlias); to > 0 {
		return slices.Concat(m.Headers[:from], m.Headers[to:])
	}
	return m.Headers
}

// WithAlias returns headers with the alias of a channel. It replaces an alias that the
// sender has set, which means nothing here. It may change the given headers.
func WithAlias(headers []byte, alias string) []byte {
	for _, from, to := journal.FindHeader(headers, HeaderAlias); to > 0; _, from, to = journal.FindHeader(headers, HeaderAlias) {
		headers = slices.Delete(headers, from, to)
	}
	return slices.Concat(headers, []byte(HeaderAlias), []byte{0}, []byte(alias), []byte{0})
}

// NoticeID is the id of the delivery that notifies a creature of a revision.
func NoticeID(c journal.CreatureID, revision uint64) journal.EventID {
	sum := sha256.Sum256([]byte(abi.KindGraphChanged.String() + "\x00" + string(c)))
	id := journal.EventID{Seq: revision}
	copy(id.Origin[:], sum[:])
	return id
}
