package journal

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Origin identifies one period in which a log is open for writing. Origins are never
// reused: a log that is opened again gets a new one, so no two writers ever assign the
// same [EventID].
type Origin [16]byte

// String returns 32 lower-case hexadecimal digits.
func (o Origin) String() string { return hex.EncodeToString(o[:]) }

// IsZero reports whether o is the zero origin, which no log has.
func (o Origin) IsZero() bool { return o == Origin{} }

// ParseOrigin reads what [Origin.String] writes.
func ParseOrigin(s string) (Origin, error) {
	var o Origin
	if len(s) != 2*len(o) {
		return o, fmt.Errorf("an origin has 32 hexadecimal digits, not %d characters", len(s))
	}
	_, err := hex.Decode(o[:], []byte(s))
	return o, err
}

// EventID identifies an event permanently and across all stores: its origin, and its
// number under that origin, counted from 1. Ids never change; a copy of an event in
// another store keeps its id.
type EventID struct {
	Origin Origin
	Seq    uint64
}

// IsZero reports whether id is the zero id, which no event has.
func (id EventID) IsZero() bool { return id.Seq == 0 && id.Origin.IsZero() }

// String returns origin and number, joined by a hyphen, or "" for the zero id.
func (id EventID) String() string {
	if id.IsZero() {
		return ""
	}
	var b [33 + 20]byte
	hex.Encode(b[:32], id.Origin[:])
	b[32] = '-'
	return string(strconv.AppendUint(b[:33], id.Seq, 10))
}

// MarshalText encodes ids as strings in JSON.
func (id EventID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (id *EventID) UnmarshalText(b []byte) (err error) {
	*id, err = ParseEventID(string(b))
	return err
}

// ParseEventID reads what [EventID.String] writes.
func ParseEventID(s string) (id EventID, err error) {
	if s == "" {
		return EventID{}, nil
	}
	origin, seq, ok := strings.Cut(s, "-")
	if !ok {
		return id, fmt.Errorf("%q is not an event id: it has no hyphen", s)
	}
	if id.Origin, err = ParseOrigin(origin); err != nil {
		return EventID{}, fmt.Errorf("%q is not an event id: %w", s, err)
	}
	if id.Seq, err = strconv.ParseUint(seq, 10, 64); err != nil {
		return EventID{}, fmt.Errorf("%q is not an event id: %w", s, err)
	}
	return id, nil
}

// EventKind says what happened. The numbers are stored and never change.
type EventKind uint8

// The kinds of event.
const (
	EventChannelMessage    EventKind = 1
	EventTurnEnded         EventKind = 2
	EventOutput            EventKind = 3
	EventState             EventKind = 4
	EventLog               EventKind = 5
	EventDeadLetter        EventKind = 6
	EventTurnStarted       EventKind = 7 // observed only, never stored
	EventTurnFailed        EventKind = 8
	EventInstanceStarted   EventKind = 9
	EventCreatureStarted   EventKind = 10
	EventCreatureStopped   EventKind = 11
	EventCreatureFailed    EventKind = 12
	EventQuarantined       EventKind = 13
	EventWireAdded         EventKind = 14
	EventWireRemoved       EventKind = 15
	EventParentLinkChanged EventKind = 16
	EventTopologyChanged   EventKind = 17
	EventSessionForked     EventKind = 18
	EventSessionMerged     EventKind = 19
	EventSessionAttached   EventKind = 20
	EventPolicyDenied      EventKind = 21
	EventLagged            EventKind = 22 // observed only, never stored
	EventDirectMessage     EventKind = 23 // a message in a creature's inbox
	EventTimer             EventKind = 24 // a timer that fired, in the inbox of its creature
	EventRequest           EventKind = 25 // a request, in the inbox of its receiver
	EventResult            EventKind = 26 // the answer to a request, in the inbox of its sender
	EventStoreSetAside     EventKind = 27 // observed only, never stored
	EventWiredOutput       EventKind = 28 // an output that came over a wire, in the inbox of its target
	EventModuleReplaced    EventKind = 29
	EventApprovalAsked     EventKind = 30 // a policy asks, and a turn waits for the answer
	EventApprovalDecided   EventKind = 31
	EventOutboundRequest   EventKind = 32 // a creature makes a request to a capability
	EventBudgetChanged     EventKind = 33 // a creature uses a part of the budget of a capability, or gets it back
	EventRecipeStopped     EventKind = 34 // a stop_when block of a recipe holds, and its creatures stop
	EventRecipeContinued   EventKind = 35 // no stop_when block holds any longer, after the recipe was applied
	NumEventKinds                    = 36
)

var eventKindNames = [NumEventKinds]string{
	EventChannelMessage:    "channel_message",
	EventTurnEnded:         "turn_ended",
	EventOutput:            "output",
	EventState:             "state",
	EventLog:               "log",
	EventDeadLetter:        "dead_letter",
	EventTurnStarted:       "turn_started",
	EventTurnFailed:        "turn_failed",
	EventInstanceStarted:   "instance_started",
	EventCreatureStarted:   "creature_started",
	EventCreatureStopped:   "creature_stopped",
	EventCreatureFailed:    "creature_failed",
	EventQuarantined:       "creature_quarantined",
	EventWireAdded:         "output_wire_added",
	EventWireRemoved:       "output_wire_removed",
	EventParentLinkChanged: "parent_link_changed",
	EventTopologyChanged:   "topology_changed",
	EventSessionForked:     "session_forked",
	EventSessionMerged:     "session_merged",
	EventSessionAttached:   "creature_session_attached",
	EventPolicyDenied:      "policy_denied",
	EventLagged:            "lagged",
	EventDirectMessage:     "direct_message",
	EventTimer:             "timer",
	EventRequest:           "request",
	EventResult:            "result",
	EventStoreSetAside:     "store_set_aside",
	EventWiredOutput:       "wired_output",
	EventModuleReplaced:    "module_replaced",
	EventApprovalAsked:     "approval_asked",
	EventApprovalDecided:   "approval_decided",
	EventOutboundRequest:   "outbound_request",
	EventBudgetChanged:     "budget_changed",
	EventRecipeStopped:     "recipe_stopped",
	EventRecipeContinued:   "recipe_continued",
}

// String returns the stable name, for example "channel_message".
func (k EventKind) String() string {
	if int(k) < len(eventKindNames) && eventKindNames[k] != "" {
		return eventKindNames[k]
	}
	return "kind_" + strconv.Itoa(int(k))
}

// MarshalText encodes kinds as strings in JSON.
func (k EventKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (k *EventKind) UnmarshalText(b []byte) error {
	kind, known := ParseEventKind(string(b))
	if !known {
		return fmt.Errorf("there is no kind of event %q", b)
	}
	*k = kind
	return nil
}

// IsMessage reports whether events of the kind are messages: they have a
// channel (or inbox) and a number in it, and are delivered.
func (k EventKind) IsMessage() bool {
	switch k {
	case EventChannelMessage, EventDirectMessage, EventTimer, EventRequest, EventResult, EventWiredOutput:
		return true
	}
	return false
}

// EventKinds returns every kind in numeric order.
func EventKinds() []EventKind {
	var out []EventKind
	for k, name := range eventKindNames {
		if name != "" {
			out = append(out, EventKind(k))
		}
	}
	return out
}

// ParseEventKind returns the kind with the given stable name.
func ParseEventKind(name string) (EventKind, bool) {
	for k, n := range eventKindNames {
		if n == name && n != "" {
			return EventKind(k), true
		}
	}
	return 0, false
}

// Event is one entry of a graph's log, or an observation that is not logged. Fields that do
// not apply are zero.
type Event struct {
	ID       EventID
	Time     int64 // nanoseconds since 1970, a hybrid logical clock: strictly increasing within a log
	Kind     EventKind
	Graph    GraphID
	Creature CreatureID // the creature it is about; for a message, the sender (empty: from outside)
	Turn     EventID    // the turn_ended event of the turn that caused it
	Attempt  int        // of the turn, from 1
	Channel  ChannelID  // for messages; an inbox has the channel id of InboxOf
	Seq      uint64     // in the channel, from 1
	Headers  []byte     // in the form of the ABI; see EncodeHeaders
	Payload  []byte     // a message's or output's bytes as they are; JSON for everything else
	Cause    EventID    // the message whose delivery caused it
}

// Size is the number of bytes of the payload and the headers.
func (ev *Event) Size() int64 { return int64(len(ev.Payload) + len(ev.Headers)) }
