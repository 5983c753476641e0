package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// ApprovalDecision is how a question of a policy ended. It is stable, and empty while the
// question waits.
type ApprovalDecision string

// The decisions.
const (
	Approved  ApprovalDecision = "approved"
	Denied    ApprovalDecision = "denied"
	Withdrawn ApprovalDecision = "withdrawn" // what the question is about will no longer happen
)

// Bounds of approvals. A question that exceeds a bound is denied.
const (
	MaxCreatureApprovals = 64      // waiting questions of one creature
	MaxGraphApprovals    = 1024    // waiting questions of all creatures of a graph
	MaxApprovalContent   = 8 << 10 // bytes kept of the content of a question, with the headers of a message
	// MaxCreatureContent bounds these bytes for all questions of a creature, because each
	// answer writes them again. Later questions keep less content, or none.
	MaxCreatureContent = 64 << 10
	MaxApprovalText    = 1 << 10 // bytes of the name and of the reason of a decision
)

// ApprovalRow is an open question of a policy about a turn of a creature, or a question whose
// answer the turn has not used yet. It is kept with the row of its creature.
type ApprovalRow struct {
	ID       EventID      `json:"id"`                // of the approval_asked event
	Time     int64        `json:"time"`              // nanoseconds since 1970
	Deadline int64        `json:"deadline"`          // nanoseconds since 1970
	Allow    bool         `json:"allow,omitempty"`   // the deadline approves rather than denies
	Message  EventID      `json:"message,omitzero"`  // whose delivery the turn handles
	Delivery DeliveryKind `json:"delivery"`          // the kind of the delivery
	Channel  ChannelID    `json:"channel,omitempty"` // of a message that would be sent

	Event      PolicyKind `json:"event"` // what was judged: send, tool, spawn, …
	Call       string     `json:"call,omitempty"`
	Subject    string     `json:"subject"` // what the question is about, in words
	Deployment string     `json:"deployment"`
	Policy     string     `json:"policy"`
	Where      string     `json:"where,omitempty"`
	Grounds    string     `json:"reason"` // of the policy, in words

	Hash    string     `json:"hash"`              // of everything that the answer covers
	Content NotedBytes `json:"content,omitempty"` // the message, or what would happen as JSON; at most MaxApprovalContent bytes, fewer if MaxCreatureContent is reached
	Size    int        `json:"size"`              // of the whole content, in bytes
	// ContentHash is the SHA-256 of the whole content, if Content is not all of it.
	ContentHash string `json:"content_hash,omitempty"`
	// Headers are the headers of a message that fit into the room that Content leaves.
	// MoreHeaders is the number of headers that do not fit.
	Headers     map[string]string `json:"headers,omitempty"`
	MoreHeaders int               `json:"more_headers,omitempty"`

	Decision ApprovalDecision `json:"decision,omitempty"`
	By       string           `json:"by,omitempty"`
	Because  string           `json:"because,omitempty"` // the reason of the decision
}

// Show keeps as much of the question's content as fits into room, in bytes, and records how
// much it has left out.
func (r *ApprovalRow) Show(content []byte, headers map[string]string, room int) {
	room = max(min(room, MaxApprovalContent), 0)
	r.Content, r.Size = bytes.Clone(content[:min(len(content), room)]), len(content)
	if len(r.Content) < len(content) {
		sum := sha256.Sum256(content)
		r.ContentHash = hex.EncodeToString(sum[:])
	}
	room -= len(r.Content)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if need := len(name) + len(headers[name]); need <= room {
			if r.Headers == nil {
				r.Headers = map[string]string{}
			}
			r.Headers[name] = headers[name]
			room -= need
		} else {
			r.MoreHeaders++
		}
	}
}

// Shown returns the number of bytes that [ApprovalRow.Show] has kept.
func (r *ApprovalRow) Shown() int {
	n := len(r.Content)
	for name, value := range r.Headers {
		n += len(name) + len(value)
	}
	return n
}

// Waits reports whether the question has no answer yet.
func (r *ApprovalRow) Waits() bool { return r.Decision == "" }

// ApprovalAskedPayload is the payload of approval_asked.
type ApprovalAskedPayload struct {
	Event     PolicyKind       `json:"event"`            // kind of the event that was judged: send, tool, spawn, …
	Call      string           `json:"call,omitempty"`   // the tool that requested it
	Subject   string           `json:"subject"`          // what the question is about
	Policy    string           `json:"policy"`           // name of the policy that asks
	Grounds   string           `json:"reason,omitempty"` // reason that the policy returned
	Where     string           `json:"where,omitempty"`  // its position in the recipe
	Deadline  string           `json:"deadline"`         // RFC 3339, UTC: from then on the answer in otherwise applies
	Otherwise ApprovalDecision `json:"otherwise"`        // the decision if the deadline passes: approved or denied
	Size      int              `json:"size"`             // size of the message, or of the description of what would happen, in bytes
	Hash      string           `json:"hash"`             // SHA-256 of what the answer covers
	// The whole message, or description of what would happen, if the list of approvals shows only
	// a part of it.
	Content NotedBytes        `json:"content,omitempty"`
	Headers map[string]string `json:"headers,omitempty"` // headers of the message, if the list shows only some of them
}

// ApprovalContent is everything that a question is about.
type ApprovalContent struct {
	Content []byte
	Headers map[string]string
}

// ApprovalDecidedPayload is the payload of approval_decided.
type ApprovalDecidedPayload struct {
	Approval EventID          `json:"approval"`           // id of the approval_asked event
	Decision ApprovalDecision `json:"decision"`           // approved, denied or withdrawn
	By       string           `json:"by,omitempty"`       // name of the operator, if it is known
	Because  string           `json:"reason,omitempty"`   // reason of the operator, or why the question was withdrawn
	Deadline bool             `json:"deadline,omitempty"` // whether the deadline decided
	Policy   string           `json:"policy"`             // name of the policy that asked
	Event    PolicyKind       `json:"event"`              // kind of the event that was judged
}

// Otherwise returns the decision that is made when the deadline passes.
func (r *ApprovalRow) Otherwise() ApprovalDecision {
	if r.Allow {
		return Approved
	}
	return Denied
}

// Asked is the event of the question, about the creature that waits. The event contains the
// parts of whole that the row lacks, because rows are written again and again, but events
// only once.
func (r *ApprovalRow) Asked(c CreatureID, whole ApprovalContent) Event {
	payload := ApprovalAskedPayload{
		Event: r.Event, Call: r.Call, Subject: r.Subject, Policy: r.Policy, Grounds: r.Grounds, Where: r.Where,
		Deadline: time.Unix(0, r.Deadline).UTC().Format(time.RFC3339Nano), Otherwise: r.Otherwise(), Size: r.Size, Hash: r.Hash,
	}
	if r.ContentHash != "" {
		payload.Content = whole.Content
	}
	if r.MoreHeaders > 0 {
		payload.Headers = whole.Headers
	}
	return Event{ID: r.ID, Time: r.Time, Kind: EventApprovalAsked, Creature: c, Channel: r.Channel, Cause: r.Message, Payload: JSON(payload)}
}

// Whole is everything that the question is about: the content of the row and, beyond that,
// the payload of its event. It also reports whether this is complete. It is not if an older
// version logged the event.
func (r *ApprovalRow) Whole(payload []byte) (whole ApprovalContent, all bool) {
	whole = ApprovalContent{Content: r.Content, Headers: r.Headers}
	if r.ContentHash == "" && r.MoreHeaders == 0 {
		return whole, true
	}
	var asked ApprovalAskedPayload
	if json.Unmarshal(payload, &asked) != nil {
		return whole, false
	}
	if r.ContentHash != "" {
		whole.Content = asked.Content
	}
	if r.MoreHeaders > 0 {
		whole.Headers = asked.Headers
	}
	return whole, len(whole.Content) == r.Size && len(whole.Headers) == len(r.Headers)+r.MoreHeaders
}

// Decided is the event of the decision, without its id and time.
func (r *ApprovalRow) Decided(c CreatureID, byDeadline bool) Event {
	return Event{
		Kind: EventApprovalDecided, Creature: c, Channel: r.Channel, Cause: r.Message,
		Payload: JSON(ApprovalDecidedPayload{
			Approval: r.ID, Decision: r.Decision, By: r.By, Because: r.Because, Deadline: byDeadline, Policy: r.Policy, Event: r.Event,
		}),
	}
}
