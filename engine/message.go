package engine

import (
	"sync"
	"sync/atomic"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// message is one message on its way: shared by the mailboxes of all listeners
// and read-only from the moment it is offered.
type message struct {
	id journal.EventID // as it was sent; guests know it by this
	// logged is the id under which it entered a log later, with a graph that had
	// none; nil if it has not. A graph that parted from that one may hold it too.
	logged  atomic.Pointer[journal.EventID]
	time    int64
	kind    abi.Kind
	channel journal.ChannelID
	seq     uint64
	sender  journal.CreatureID // empty: from outside
	// senderName is the sender's name when it sent; it may be renamed later.
	senderName string
	payload    []byte
	headers    []byte

	// refs counts the mailboxes and turns that hold the message. Messages of a
	// graph without a store go back to a pool with the last one, so that
	// steady traffic allocates nothing; pooled is false for all others.
	refs   atomic.Int32
	pooled bool
}

var messagePool = sync.Pool{New: func() any { return new(message) }}

// maxPooledBytes keeps a rare large message from staying in the pool for ever.
const maxPooledBytes = 64 << 10

// newPooledMessage returns a message with own copies of payload and headers,
// holding one reference.
func newPooledMessage(payload, headers []byte) *message {
	m := messagePool.Get().(*message)
	m.pooled = true
	m.payload = append(m.payload[:0], payload...)
	m.headers = append(m.headers[:0], headers...)
	m.refs.Store(1)
	return m
}

// newMessage returns a message that owns payload and headers.
func newMessage(payload, headers []byte) *message {
	m := &message{payload: payload, headers: headers}
	m.refs.Store(1)
	return m
}

func (m *message) retain() { m.refs.Add(1) }

func (m *message) release() {
	if m.refs.Add(-1) != 0 || !m.pooled {
		return
	}
	if cap(m.payload) > maxPooledBytes || cap(m.headers) > maxPooledBytes {
		return
	}
	payload, headers := m.payload[:0], m.headers[:0]
	*m = message{payload: payload, headers: headers}
	messagePool.Put(m)
}

// size is the bytes of the message, as mailboxes count them.
func (m *message) size() int64 { return int64(len(m.payload) + len(m.headers)) }

// logID is the id of m in the log of its graph, or none if it is in no log. The
// caller holds mu.
func (m *message) logID() journal.EventID {
	if m.kind == abi.KindGraphChanged {
		return journal.EventID{}
	}
	if id := m.logged.Load(); id != nil {
		return *id
	}
	return m.id
}

// event returns m as an event, to a caller that holds mu. The bytes are shared, so a pooled message's
// event must be cloned if it is kept.
func (m *message) event(g journal.GraphID) journal.Event {
	kind := journal.EventChannelMessage
	if journal.IsInbox(m.channel) {
		kind = inboxKinds[m.kind]
	}
	return journal.Event{
		ID: m.logID(), Time: m.time, Kind: kind, Graph: g, Creature: m.sender,
		Channel: m.channel, Seq: m.seq, Headers: m.headers, Payload: m.payload,
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

// kindOf is the kind of delivery that a logged message is.
func kindOf(k journal.EventKind) abi.Kind {
	for kind, event := range inboxKinds {
		if event == k {
			return kind
		}
	}
	return abi.KindMessage
}
