package journal

import "strconv"

// OutboundRequest is a request of a creature to a capability. It is the content of an
// [EventOutboundRequest]. The [RequestRow] of the request has the id of this event, and
// exists until the request has its result.
type OutboundRequest struct {
	Capability string // its kind and name, such as http.alerts
	Tag        int64
	Head, Body []byte
	// Key identifies the request outside of the engine: the first id of the event. The
	// event gets another id if the request was made in a graph without a log, and the
	// graph now has one.
	Key string
}

// The headers of the event.
const (
	outboundCapability = "terrarium-capability"
	outboundTag        = "terrarium-tag"
	outboundHead       = "terrarium-head"
	outboundKey        = "terrarium-key"
)

// Event returns the event of the request, for a creature.
func (o *OutboundRequest) Event(id EventID, creature CreatureID) Event {
	h := map[string]string{outboundCapability: o.Capability, outboundTag: strconv.FormatInt(o.Tag, 10)}
	if len(o.Head) > 0 {
		h[outboundHead] = string(o.Head)
	}
	if o.Key != id.String() {
		h[outboundKey] = o.Key
	}
	headers, _ := EncodeHeaders(h) // the head has no NUL
	return Event{ID: id, Kind: EventOutboundRequest, Creature: creature, Headers: headers, Payload: o.Body}
}

// OutboundOf reads what [OutboundRequest.Event] writes.
func OutboundOf(ev *Event) (o OutboundRequest, ok bool) {
	if ev.Kind != EventOutboundRequest {
		return o, false
	}
	h := DecodeHeaders(ev.Headers)
	o = OutboundRequest{Capability: h[outboundCapability], Body: ev.Payload, Key: h[outboundKey]}
	if head := h[outboundHead]; head != "" {
		o.Head = []byte(head)
	}
	if o.Key == "" {
		o.Key = ev.ID.String()
	}
	var err error
	o.Tag, err = strconv.ParseInt(h[outboundTag], 10, 64)
	return o, err == nil
}

// HashRequest returns what the log keeps of a request to a capability that policies have
// changed or denied. It is like [HashMessage] for messages.
func HashRequest(head, body []byte) string {
	var headers map[string]string
	if len(head) > 0 {
		headers = map[string]string{"head": string(head)}
	}
	return HashMessage(append([]byte{}, body...), headers)
}

// ReachNote is the result of a hostcall that made a request to a capability. If the turn is
// run again, the hostcall gets the same result without the capability.
type ReachNote struct {
	Capability string `json:"capability,omitempty"` // that granted it
	Code       string `json:"code,omitempty"`       // of the error, if it was refused
	Error      string `json:"error,omitempty"`
}

// WithReached adds the results of requests to capabilities.
func (n *TurnNotes) WithReached(list []ReachNote) *TurnNotes {
	if len(list) == 0 {
		return n
	}
	if n == nil {
		n = &TurnNotes{}
	}
	n.Reached = list
	return n
}
