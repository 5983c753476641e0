package operations

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Payload is the JSON form of bytes: a string if they are UTF-8, otherwise
// {"base64": "…"}.
type Payload []byte

// MarshalJSON implements json.Marshaler.
func (p Payload) MarshalJSON() ([]byte, error) {
	if utf8.Valid(p) {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(string(p)); err != nil {
			return nil, err
		}
		return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
	}
	return json.Marshal(map[string]string{"base64": base64.StdEncoding.EncodeToString(p)})
}

var errPayload = errors.New(`a payload is a JSON string or {"base64": "…"}`)

// UnmarshalJSON implements json.Unmarshaler.
func (p *Payload) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	if len(b) > 0 && b[0] == '"' {
		var s string
		err := json.Unmarshal(b, &s)
		*p = []byte(s)
		return err
	}
	var encoded struct {
		Base64 *string `json:"base64"`
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&encoded); err != nil || encoded.Base64 == nil {
		return errPayload
	}
	decoded, err := base64.StdEncoding.DecodeString(*encoded.Base64)
	if err != nil {
		return errPayload
	}
	*p = decoded
	return nil
}

// EventRecord is the JSON form of an event. Fields that do not apply are absent.
type EventRecord struct {
	ID       string             `json:"id,omitempty"`       // id of the event; absent if it is not in a log
	Seq      uint64             `json:"seq,omitempty"`      // number in the channel; for a subscription, number of the observed event
	TS       string             `json:"ts"`                 // RFC 3339, UTC
	Kind     journal.EventKind  `json:"kind"`               // kind of the event
	Graph    journal.GraphID    `json:"graph,omitempty"`    // graph in which it happened
	Creature journal.CreatureID `json:"creature,omitempty"` // for a message, the sender
	Turn     string             `json:"turn,omitempty"`     // id of the `turn_ended` event of the turn that caused it
	Attempt  int                `json:"attempt,omitempty"`  // number of the attempt at the delivery, from 1
	Channel  journal.ChannelID  `json:"channel,omitempty"`  // channel of a message
	// number in the channel, if seq is the number in the subscription
	ChannelSeq uint64            `json:"channel_seq,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"` // headers of a message
	Payload    any               `json:"payload,omitempty"` // bytes as in requests, or an object for structured events
	Cause      string            `json:"cause,omitempty"`   // id of the message whose delivery caused it
	// cursor of the event: subscribe takes it as after, to continue after the event
	Cursor journal.EventCursor `json:"cursor,omitempty"`
	// how long the turn took, in nanoseconds, for turn_ended and turn_failed in a subscription
	TookNS int64 `json:"took_ns,omitempty"`
	// how long its delivery had waited since its message was sent, in nanoseconds
	WaitedNS int64 `json:"waited_ns,omitempty"`
}

// NewEventRecord returns the JSON form of an event.
func NewEventRecord(ev *journal.Event) EventRecord {
	r := EventRecord{
		ID: ev.ID.String(), Seq: ev.Seq, TS: time.Unix(0, ev.Time).UTC().Format(time.RFC3339Nano), Kind: ev.Kind,
		Graph: ev.Graph, Creature: ev.Creature, Turn: ev.Turn.String(), Attempt: ev.Attempt,
		Channel: ev.Channel, Headers: journal.DecodeHeaders(ev.Headers), Cause: ev.Cause.String(),
	}
	switch {
	case ev.Kind.IsMessage(), ev.Kind == journal.EventOutput:
		r.Payload = Payload(ev.Payload) // bytes from a creature
	case ev.Kind == journal.EventState:
		r.Payload = newStateRecord(ev.Payload)
	case len(ev.Payload) > 0:
		r.Payload = json.RawMessage(ev.Payload)
	}
	return r
}

// NewObservedRecord returns the JSON form of the event that a subscription returned last,
// with its cursor.
func NewObservedRecord(sub *engine.Subscription, ob *engine.Observed) EventRecord {
	r := NewEventRecord(&ob.Event)
	r.Seq, r.ChannelSeq = ob.Seq, ob.Event.Seq
	r.TookNS, r.WaitedNS = int64(ob.Took), int64(ob.Waited)
	if !ob.Event.ID.IsZero() {
		r.Cursor = sub.Cursor()
	}
	return r
}

// contentMembers are the members of structured payloads that contain what creatures and
// senders have written, or configurations.
var contentMembers = []string{"notes", "last_words", "original", "content", "headers"}

// WithoutContent returns the record without what creatures and senders have written: the
// headers and payloads of messages, outputs, values of state, log lines, and the notes with
// which a turn can be replayed.
func (r EventRecord) WithoutContent() EventRecord {
	r.Headers = nil
	switch {
	case r.Kind.IsMessage(), r.Kind == journal.EventOutput, r.Kind == journal.EventLog:
		r.Payload = nil
	case r.Kind == journal.EventState:
		if state, ok := r.Payload.(StateRecord); ok {
			state.Value = nil
			r.Payload = state
		}
	default:
		if raw, ok := r.Payload.(json.RawMessage); ok {
			r.Payload = withoutMembers(raw)
		}
	}
	return r
}

// withoutMembers returns a JSON object without its members of contents.
func withoutMembers(raw json.RawMessage) json.RawMessage {
	if !slices.ContainsFunc(contentMembers, func(name string) bool { return bytes.Contains(raw, []byte(`"`+name+`"`)) }) {
		return raw
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil
	}
	for _, name := range contentMembers {
		delete(members, name)
	}
	rest, err := json.Marshal(members)
	if err != nil {
		return nil
	}
	return rest
}

// StateRecord is the payload of an event of the kind state.
type StateRecord struct {
	Key     string  `json:"key"`               // key that was written
	Value   Payload `json:"value,omitempty"`   // its new value
	Deleted bool    `json:"deleted,omitempty"` // whether it was deleted
}

func newStateRecord(b []byte) StateRecord {
	key, value, deleted := journal.DecodeStateEvent(b)
	return StateRecord{key, value, deleted}
}
