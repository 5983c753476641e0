package journal

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
)

// TurnNotes are what a repetition of the turn needs (see [engine.Rehearsal]) and no other
// event records. Most turns have none.
type TurnNotes struct {
	// The setting of the creature: recorded with its first turn in each run of the
	// engine, with the first turn after a change, and now and then.
	Setting *Setting `json:"setting,omitempty"`
	// The creature's name for the channel, if it was not noted since the last setting.
	Alias   string      `json:"alias,omitempty"`
	Time    int64       `json:"time,omitempty"`   // of the delivery, if it is in no log
	Message EventID     `json:"message,omitzero"` // the id of the message that the creature sees, if it has another id in the log
	Sender  string      `json:"sender,omitempty"` // the sender's id, if the creature received it: it was in another graph when the store was read
	Calls   []NotedCall `json:"calls,omitempty"`  // of group tools
	// Sends that policies have changed or dropped, as the creature made them; all sends,
	// if its channels changed during the turn.
	Sends    []NotedSend  `json:"sends,omitempty"`
	Requests []int64      `json:"requests,omitempty"` // the tags of its requests
	Timers   []NotedTimer `json:"timers,omitempty"`   // that it set or cancelled
	Reply    *NotedBytes  `json:"reply,omitempty"`    // to a request from outside
	Reached  []ReachNote  `json:"reached,omitempty"`  // results of requests to capabilities, in order
}

// onlyReply reports whether a reply is the only note.
func (n *TurnNotes) onlyReply() bool {
	return n.Reply != nil && n.Setting == nil && n.Alias == "" && n.Time == 0 && n.Message.IsZero() && n.Sender == "" &&
		len(n.Calls)+len(n.Sends)+len(n.Requests)+len(n.Timers)+len(n.Reached) == 0
}

// Setting is everything that a turn of a creature depends on besides its delivery and its
// state.
type Setting struct {
	Name   string        `json:"name"`
	Module string        `json:"module,omitempty"` // what to load: a path, or builtin:NAME
	SHA256 string        `json:"sha256"`           // of the module's bytes
	Config string        `json:"config,omitempty"` // JSON, without the secret attributes
	Secret []string      `json:"secret,omitempty"` // attributes of the configuration that no store keeps
	Limits abi.Limits    `json:"limits,omitzero"`  // those that are not the defaults
	Grants Grants        `json:"grants,omitzero"`
	Sends  []SettingEdge `json:"sends,omitempty"` // the channels that it may send on, in order
	// The numbers of keys of the state, of timers, and of requests without an answer
	// before the turn. A reader that rebuilds these from the log can tell whether its log
	// is complete.
	Keys     int `json:"keys,omitempty"`
	Timers   int `json:"timers,omitempty"`
	Requests int `json:"requests,omitempty"`
}

// SettingEdge is a channel that a creature may send on.
type SettingEdge struct {
	Alias   string    `json:"alias"`
	Channel ChannelID `json:"channel"`
}

// NotedCall is a call of a group tool and its result.
type NotedCall struct {
	Tool   string     `json:"tool"`
	Args   NotedBytes `json:"args"`
	Result NotedBytes `json:"result,omitempty"`
	Code   string     `json:"code,omitempty"` // of the error, if the call failed
	Error  string     `json:"error,omitempty"`
}

// NotedSend is a send as a creature made it, before policies.
type NotedSend struct {
	Index   int        `json:"index"` // among the sends of the turn, from 0
	Channel ChannelID  `json:"channel"`
	Payload NotedBytes `json:"payload,omitempty"`
	Headers NotedBytes `json:"headers,omitempty"` // in the form of the ABI
	Hash    string     `json:"hash,omitempty"`    // instead of payload and headers; see [HashMessage] and [HashRequest]
	Left    bool       `json:"left,omitempty"`    // whether it was left out
	Reach   string     `json:"reach,omitempty"`   // for a request to a capability: its id; Channel is then empty
}

// NotedMessage is a message from outside before policies changed it.
type NotedMessage struct {
	Payload NotedBytes `json:"payload,omitempty"`
	Headers NotedBytes `json:"headers,omitempty"` // in the form of the ABI
	Hash    string     `json:"hash,omitempty"`    // instead of payload and headers; see [HashMessage]
}

// NoteMessage returns a note of the original message or, unless original is set, of its hash.
func NoteMessage(payload, headers []byte, original bool) NotedMessage {
	if original {
		return NotedMessage{Payload: payload, Headers: headers}
	}
	return NotedMessage{Hash: HashMessage(payload, DecodeHeaders(headers))}
}

// HashMessage returns what the log keeps of a message that policies have changed or
// dropped: the SHA-256, in hexadecimal, of a JSON object with its payload in base64 and its
// headers. The hash shows whether a given message was the original, so anyone who can guess
// the message can also confirm the guess.
func HashMessage(payload []byte, headers map[string]string) string {
	if len(headers) == 0 {
		headers = nil
	}
	sum := sha256.Sum256(JSON(struct {
		Payload []byte            `json:"payload"`
		Headers map[string]string `json:"headers,omitempty"`
	}{payload, headers}))
	return hex.EncodeToString(sum[:])
}

// NotedTimer is a timer that a turn has set or cancelled.
type NotedTimer struct {
	Name      string     `json:"name"`
	Delay     int64      `json:"delay,omitempty"`  // nanoseconds
	Period    int64      `json:"period,omitempty"` // nanoseconds; 0: once
	Payload   NotedBytes `json:"payload,omitempty"`
	Cancelled bool       `json:"cancelled,omitempty"`
}

// NotedBytes are bytes in JSON: a string if they are UTF-8, else {"base64": "…"}.
type NotedBytes []byte

// MarshalJSON implements json.Marshaler.
func (b NotedBytes) MarshalJSON() ([]byte, error) {
	if utf8.Valid(b) {
		return json.Marshal(string(b))
	}
	return json.Marshal(map[string]string{"base64": base64.StdEncoding.EncodeToString(b)})
}

// appendJSON appends what MarshalJSON returns.
func (b NotedBytes) appendJSON(to []byte) []byte {
	for _, c := range b {
		if c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			encoded, _ := b.MarshalJSON() // of a string, which cannot fail
			return append(to, encoded...)
		}
	}
	return append(append(append(to, '"'), b...), '"')
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *NotedBytes) UnmarshalJSON(text []byte) error { return (*Payload)(b).UnmarshalJSON(text) }

// WithCalls adds the results of group tools.
func (n *TurnNotes) WithCalls(calls []NotedCall) *TurnNotes {
	if len(calls) == 0 {
		return n
	}
	if n == nil {
		n = &TurnNotes{}
	}
	n.Calls = calls
	return n
}
