package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// Payloads of events that do not carry user bytes are JSON objects: these structs. The
// reference of events and its schema are generated from them and their field comments, so
// each payload is always encoded from the struct of its kind.

// eventPayloads are the types of payloads by kind. The payloads of all other kinds are
// bytes: those of a message or an output or, for state, what [DecodeStateEvent] reads.
var eventPayloads = map[EventKind]reflect.Type{
	EventTurnEnded:         reflect.TypeFor[TurnEndedPayload](),
	EventLog:               reflect.TypeFor[LogPayload](),
	EventDeadLetter:        reflect.TypeFor[DeadLetterPayload](),
	EventTurnFailed:        reflect.TypeFor[TurnFailedPayload](),
	EventInstanceStarted:   reflect.TypeFor[InstanceStartedPayload](),
	EventCreatureStarted:   reflect.TypeFor[CreatureStartedPayload](),
	EventCreatureStopped:   reflect.TypeFor[CreatureStoppedPayload](),
	EventCreatureFailed:    reflect.TypeFor[CreatureFailedPayload](),
	EventQuarantined:       reflect.TypeFor[QuarantinedPayload](),
	EventWireAdded:         reflect.TypeFor[WireAddedPayload](),
	EventWireRemoved:       reflect.TypeFor[WireRemovedPayload](),
	EventParentLinkChanged: reflect.TypeFor[ParentLinkPayload](),
	EventTopologyChanged:   reflect.TypeFor[TopologyChangedPayload](),
	EventSessionForked:     reflect.TypeFor[SessionCutPayload](),
	EventSessionMerged:     reflect.TypeFor[SessionCutPayload](),
	EventSessionAttached:   reflect.TypeFor[SessionAttachedPayload](),
	EventPolicyDenied:      reflect.TypeFor[PolicyPayload](),
	EventLagged:            reflect.TypeFor[LaggedPayload](),
	EventStoreSetAside:     reflect.TypeFor[StoreSetAsidePayload](),
	EventModuleReplaced:    reflect.TypeFor[ModuleReplacedPayload](),
	EventApprovalAsked:     reflect.TypeFor[ApprovalAskedPayload](),
	EventApprovalDecided:   reflect.TypeFor[ApprovalDecidedPayload](),
	EventBudgetChanged:     reflect.TypeFor[BudgetChangedPayload](),
	EventRecipeStopped:     reflect.TypeFor[RecipeStoppedPayload](),
	EventRecipeContinued:   reflect.TypeFor[RecipeContinuedPayload](),
}

// PayloadType returns the struct whose JSON form is the payload of events of a kind. It is
// nil if the payload is bytes.
func PayloadType(k EventKind) reflect.Type { return eventPayloads[k] }

// TurnEndedPayload is the payload of turn_ended.
type TurnEndedPayload struct {
	Kind   DeliveryKind `json:"kind"`             // kind of the delivery: start, message, timer, …
	Sends  int          `json:"sends,omitempty"`  // how many messages the turn sent
	Writes int          `json:"writes,omitempty"` // how many state values it wrote or deleted
	Tools  int          `json:"tools,omitempty"`  // how many calls to group tools changed the graph
	Fuel   int64        `json:"fuel,omitempty"`   // fuel that the guest used
	// the revision of the awareness document, if the turn read it or received it
	Awareness uint64     `json:"awareness,omitempty"`
	Notes     *TurnNotes `json:"notes,omitempty"` // what else a replay of the turn needs
}

// Encode returns the same as [JSON]. Every turn has this payload, so Encode makes a single
// allocation if there are no notes, or only a reply in plain ASCII.
func (p *TurnEndedPayload) Encode() []byte {
	if p.Notes != nil && !p.Notes.onlyReply() || strings.ContainsFunc(string(p.Kind), func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
		return JSON(p)
	}
	var room [160]byte
	b := room[:0]
	if p.Notes != nil {
		b = make([]byte, 0, len(room)+len(*p.Notes.Reply))
	}
	b = append(append(append(b, `{"kind":"`...), p.Kind...), '"')
	for _, field := range [...]struct {
		name string
		n    int64
	}{{`,"sends":`, int64(p.Sends)}, {`,"writes":`, int64(p.Writes)}, {`,"tools":`, int64(p.Tools)}, {`,"fuel":`, p.Fuel}} {
		if field.n != 0 {
			b = strconv.AppendInt(append(b, field.name...), field.n, 10)
		}
	}
	if p.Awareness != 0 {
		b = strconv.AppendUint(append(b, `,"awareness":`...), p.Awareness, 10)
	}
	if p.Notes != nil {
		b = append(p.Notes.Reply.appendJSON(append(b, `,"notes":{"reply":`...)), '}', '}')
		return b // which was made for this
	}
	return bytes.Clone(append(b, '}'))
}

// TurnFailedPayload is the payload of turn_failed.
type TurnFailedPayload struct {
	Kind  DeliveryKind `json:"kind"`           // kind of the delivery
	Fuel  int64        `json:"fuel,omitempty"` // fuel that the guest used
	Code  string       `json:"code"`           // code of the error
	Error string       `json:"error"`          // what happened
	// the revision of the awareness document that the turn received
	Awareness uint64     `json:"awareness,omitempty"`
	Notes     *TurnNotes `json:"notes,omitempty"` // what else a replay of the turn needs
}

// LogPayload is the payload of log.
type LogPayload struct {
	Level  string `json:"level"`            // debug, info, warn or error
	Text   string `json:"text"`             // the line
	Engine bool   `json:"engine,omitempty"` // written by the engine, not by the creature
}

// DeadLetterPayload is the payload of dead_letter.
type DeadLetterPayload struct {
	Message   EventID    `json:"message,omitzero"`     // id of the message that was not handled; absent if it never entered the log
	Reason    DeadReason `json:"reason"`               // see the table
	Creature  CreatureID `json:"creature,omitempty"`   // the creature that should have received it, or that sent it
	Reader    string     `json:"reader,omitempty"`     // the outside reader that should have received it
	Channel   ChannelID  `json:"channel,omitempty"`    // the channel on which it came
	Seq       uint64     `json:"seq,omitempty"`        // its number in that channel
	Alias     string     `json:"alias,omitempty"`      // the alias it was sent under, if no edge led anywhere; otherwise the creature's alias for the channel
	Attempts  int        `json:"attempts,omitempty"`   // how often it was tried
	Error     string     `json:"error,omitempty"`      // error of the last attempt
	LastWords string     `json:"last_words,omitempty"` // the last line that the creature logged
}

// InstanceStartedPayload is the payload of instance_started.
type InstanceStartedPayload struct {
	Reason       StartReason `json:"reason"`           // first, replaced or retry
	ModuleSHA256 string      `json:"module_sha256"`    // SHA-256 of its module
	Engine       abi.Engine  `json:"engine,omitempty"` // what runs the module: compiler, interpreter or translation
	Count        uint64      `json:"count"`            // how many instances the creature has had in this run of the engine
}

// CreatureStartedPayload is the payload of creature_started.
type CreatureStartedPayload struct {
	Name string `json:"name"` // name of the creature
	Attribution
}

// CreatureStoppedPayload is the payload of creature_stopped.
type CreatureStoppedPayload struct {
	Name   string     `json:"name"`             // name of the creature
	Reason StopReason `json:"reason,omitempty"` // removed or paused; absent if the creature was stopped
	Attribution
}

// CreatureFailedPayload is the payload of creature_failed.
type CreatureFailedPayload struct {
	Kind  DeliveryKind `json:"kind"`  // kind of the delivery
	Code  string       `json:"code"`  // error code of the last attempt
	Error string       `json:"error"` // error of the last attempt
}

// QuarantinedPayload is the payload of creature_quarantined.
type QuarantinedPayload struct {
	Kind  DeliveryKind `json:"kind"`  // quarantine
	Code  string       `json:"code"`  // error code of the last attempt
	Error string       `json:"error"` // error of the last attempt
}

// ParentLinkPayload is the payload of parent_link_changed.
type ParentLinkPayload struct {
	Child  CreatureID   `json:"child"`  // the creature that has lost its parent
	Old    CreatureID   `json:"old"`    // the former parent
	New    CreatureID   `json:"new"`    // the parent now: always empty
	Reason UnlinkReason `json:"reason"` // split or removed
	Attribution
}

// TopologyChangedPayload is the payload of topology_changed.
type TopologyChangedPayload struct {
	Delta
	Attribution
}

// WireAddedPayload is the payload of output_wire_added.
type WireAddedPayload struct {
	OutputWire
	Attribution
}

// WireRemovedPayload is the payload of output_wire_removed.
type WireRemovedPayload struct {
	OutputWire
	Reason UnwireReason `json:"reason,omitempty"` // see the table
	Attribution
}

// ModuleReplacedPayload is the payload of module_replaced.
type ModuleReplacedPayload struct {
	ModuleReplaced
	Attribution
}

// ModuleReplaced describes the replacement of a creature's module.
type ModuleReplaced struct {
	Name         string `json:"name"`             // name of the creature
	Module       string `json:"module,omitempty"` // the new module
	SHA256       string `json:"module_sha256"`    // SHA-256 of the new module
	Former       string `json:"former,omitempty"` // the former module
	FormerSHA256 string `json:"former_sha256"`    // SHA-256 of the former module
}

// SessionCutPayload is the payload of session_merged and session_forked.
type SessionCutPayload struct {
	Session SessionID   `json:"session"` // the new session
	Parents []SessionID `json:"parents"` // the former sessions; volatile stands for a graph without a store
}

// SessionAttachedPayload is the payload of creature_session_attached.
type SessionAttachedPayload struct {
	Session SessionID `json:"session"` // the session of the creature from now on
}

// PolicyPayload is the payload of policy_denied.
type PolicyPayload struct {
	Effect PolicyEffect `json:"effect"`           // denied, dropped, changed, audit, warning or ruled
	Event  PolicyKind   `json:"event"`            // kind of the event that was judged: send, spawn, …
	Call   string       `json:"call,omitempty"`   // the operation or tool that requested it
	Policy string       `json:"policy"`           // name of the policy
	Reason string       `json:"reason,omitempty"` // reason that the policy returned
	Where  string       `json:"where,omitempty"`  // its position in the recipe
	// The message as it was sent from outside, before policies changed it. If several
	// policies changed it, only the event of the first has this member.
	Original *NotedMessage `json:"original,omitempty"`
}

// LaggedPayload is the payload of lagged.
type LaggedPayload struct {
	Missed uint64      `json:"missed"`           // how many events were left out
	Cursor EventCursor `json:"cursor,omitempty"` // cursor from which to catch up; absent without a session directory
}

// StoreSetAsidePayload is the payload of store_set_aside.
type StoreSetAsidePayload struct {
	Path   string `json:"path,omitempty"`   // path of the store
	Code   string `json:"code"`             // code of the error
	Error  string `json:"error"`            // why it was set aside
	Remedy string `json:"remedy,omitempty"` // what can be done
}

// StoreSetAside is the payload for a store that was set aside because of an error.
func StoreSetAside(why error) StoreSetAsidePayload {
	p := StoreSetAsidePayload{Code: abi.CodeOf(why).String(), Error: why.Error()}
	var typed *abi.Error
	if errors.As(why, &typed) {
		p.Path, p.Remedy = typed.IDs["path"], typed.Remedy
	}
	return p
}

// JSON encodes a payload or another struct of the engine. Encoding these structs cannot
// fail. If it ever does, the result names the type and the error, because a log is permanent.
func JSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		b, _ = json.Marshal(struct {
			Unencodable string `json:"unencodable"`
		}{fmt.Sprintf("%T: %v", v, err)})
	}
	return b
}

// List returns list, or an empty list instead of nil, so that it is never null in JSON.
func List[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// BudgetChangedPayload is the payload of budget_changed. Amounts are by unit. The cause of the
// event is the request.
type BudgetChangedPayload struct {
	Capability string           `json:"capability"` // its kind and name
	Change     map[string]int64 `json:"change"`     // before an attempt, the amount that is reserved; after it, the amount that it has used minus the reserved amount
	Creature   map[string]int64 `json:"creature"`   // what the creature has used with it
	Graph      map[string]int64 `json:"graph"`      // what all creatures of the graph have used with it
}
