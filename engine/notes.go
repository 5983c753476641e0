package engine

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
)

// TurnNotes is what the event of a turn says for whoever repeats the turn (see
// [Rehearsal]), as far as no other event says it. Most turns need none.
type TurnNotes struct {
	// What the creature was: with its first turn in each run of the engine, with the
	// first after a change, and now and then.
	Setting *Setting `json:"setting,omitempty"`
	// Under which the creature hears the channel, if that was not noted since the
	// last setting.
	Alias   string      `json:"alias,omitempty"`
	Time    int64       `json:"time,omitempty"`   // of the delivery, if that is in no log
	Message EventID     `json:"message,omitzero"` // how the creature knows the message, if the log has it under another id
	Sender  string      `json:"sender,omitempty"` // the sender's id, if the creature was told that: it was in another graph when the store was read
	Calls   []NotedCall `json:"calls,omitempty"`  // of group tools
	// Sends that policies have changed or left out, as the creature made them; and all, if
	// its channels have changed under the turn.
	Sends    []NotedSend  `json:"sends,omitempty"`
	Requests []int64      `json:"requests,omitempty"` // the tags of its requests
	Timers   []NotedTimer `json:"timers,omitempty"`   // that it set or cancelled
	Reply    *NotedBytes  `json:"reply,omitempty"`    // to a request from outside
}

// Setting is what a creature was when it handled a delivery, but for its state.
type Setting struct {
	Name   string        `json:"name"`
	Module string        `json:"module,omitempty"` // what to load: a path, or builtin:NAME
	SHA256 string        `json:"sha256"`           // of the module's bytes
	Config string        `json:"config,omitempty"` // JSON, without the secret attributes
	Secret []string      `json:"secret,omitempty"` // attributes of the configuration that no store keeps
	Limits abi.Limits    `json:"limits,omitzero"`  // as far as they are not the defaults
	Grants Grants        `json:"grants,omitzero"`
	Sends  []SettingEdge `json:"sends,omitempty"` // the channels that it may send on, in order
	// How many there were before the turn: keys of the state, timers, and requests
	// without an answer. They tell whether somebody who adds up the log has seen all.
	Keys     int `json:"keys,omitempty"`
	Timers   int `json:"timers,omitempty"`
	Requests int `json:"requests,omitempty"`
}

// SettingEdge is a channel that a creature may send on.
type SettingEdge struct {
	Alias   string    `json:"alias"`
	Channel ChannelID `json:"channel"`
}

// NotedCall is a call of a group tool and what it answered.
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
	Hash    string     `json:"hash,omitempty"`    // instead of payload and headers; see [HashMessage]
	Left    bool       `json:"left,omitempty"`    // it was not sent
}

// NotedMessage is a message from outside before policies changed it.
type NotedMessage struct {
	Payload NotedBytes `json:"payload,omitempty"`
	Headers NotedBytes `json:"headers,omitempty"` // in the form of the ABI
	Hash    string     `json:"hash,omitempty"`    // instead of payload and headers; see [HashMessage]
}

// noteMessage notes a message as it was, or a hash of it.
func noteMessage(payload, headers []byte, original bool) NotedMessage {
	if original {
		return NotedMessage{Payload: payload, Headers: headers}
	}
	return NotedMessage{Hash: HashMessage(payload, DecodeHeaders(headers))}
}

// HashMessage is what the log keeps of a message that policies have changed or left
// out: the SHA-256, in hexadecimal, of a JSON object with its payload in base64 and
// its headers. It tells whether a message was that one, and whoever can guess what was
// in it can also find out that this was so.
func HashMessage(payload []byte, headers map[string]string) string {
	if len(headers) == 0 {
		headers = nil
	}
	sum := sha256.Sum256(mustJSON(struct {
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

// UnmarshalJSON implements json.Unmarshaler.
func (b *NotedBytes) UnmarshalJSON(text []byte) error { return (*ToolPayload)(b).UnmarshalJSON(text) }

// settingEvery is how many turns a creature may have before its setting is noted
// once more: so the turns of a history whose beginning has been given up can be
// repeated from there on.
const settingEvery = 1024

// portrait is the setting of a creature that was noted last. The worker that has
// the creature owns it.
type portrait struct {
	wiring *wiring // nil: it has to be noted anew
	number uint64  // how many were noted
	turns  int     // since then
}

// inputNotes notes what the turn was given. It counts as noted from now on, so it
// is called for turns that are logged only.
func (c *creature) inputNotes(w *wiring, d delivery, cause EventID) *TurnNotes {
	src := d.src
	n := TurnNotes{}
	noted := false
	if p := &c.portrait; p.wiring != w || p.turns >= settingEvery {
		*p = portrait{wiring: w, number: p.number + 1}
		n.Setting, noted = c.setting(w), true
	}
	c.portrait.turns++
	if src != nil && src.portrait != c.portrait.number {
		src.portrait = c.portrait.number
		n.Alias, noted = src.alias, true
	}
	switch {
	case cause.IsZero():
		n.Time, noted = d.msg.time, true
	case cause != d.msg.id:
		n.Message, noted = d.msg.id, true
	}
	if m := d.msg; m.sender != "" && m.senderName == string(m.sender) {
		n.Sender, noted = m.senderName, true
	}
	if !noted {
		return nil
	}
	return &n
}

// withCalls adds what group tools have answered.
func (n *TurnNotes) withCalls(calls []NotedCall) *TurnNotes {
	if len(calls) == 0 {
		return n
	}
	if n == nil {
		n = &TurnNotes{}
	}
	n.Calls = calls
	return n
}

// setting is what the creature is now. The caller holds mu, or the mutation lock
// while the graph is paused.
func (c *creature) setting(w *wiring) *Setting {
	s := &Setting{
		Name: w.name, Module: c.spec.Module, SHA256: c.module.Info().SHA256, Config: string(c.config),
		Secret: c.spec.Secret, Limits: c.spec.Limits, Grants: c.spec.Grants,
		Timers: len(c.timers), Requests: len(c.questions),
	}
	if len(s.Secret) > 0 {
		s.Config = string(withoutSecrets(&c.spec))
	}
	for _, e := range w.sends {
		s.Sends = append(s.Sends, SettingEdge{e.alias, e.ch.id})
	}
	if c.state != nil {
		s.Keys = c.state.Len()
	}
	return s
}

// notes are what the event of a turn that succeeded notes.
func (t *turn) notes(cause EventID) *TurnNotes {
	if t.kind == kindTool {
		return t.toolNotes()
	}
	n := t.c.inputNotes(t.wiring, t.d, cause)
	outside := t.replied && t.d.msg.sender == ""
	moved := t.c.wiring.Load() != t.wiring
	if len(t.timers) == 0 && t.asked == 0 && !outside && !t.judged && t.tools == nil && !moved {
		return n
	}
	if n == nil {
		n = &TurnNotes{}
	}
	if outside {
		reply := NotedBytes(t.bytes(t.reply))
		n.Reply = &reply
	}
	for i := range t.timers {
		n.Timers = append(n.Timers, t.timers[i].noted())
	}
	if t.tools != nil {
		n.Calls = t.tools.log
	}
	t.noteSends(n, moved)
	return n
}

// toolNotes are those of a tool that was called from outside. There is no turn of a
// guest to repeat, but what policies have made of a message is kept all the same.
func (t *turn) toolNotes() *TurnNotes {
	if !t.judged {
		return nil
	}
	n := &TurnNotes{}
	t.noteSends(n, false)
	return n
}

func (t *turn) noteSends(n *TurnNotes, all bool) {
	for i := range t.sends {
		s := &t.sends[i]
		if s.ask != nil {
			n.Requests = append(n.Requests, s.ask.tag)
		}
		if s.ch == nil || !s.left && !s.mutated && !all {
			continue
		}
		m := noteMessage(t.bytes(s.payload), t.bytes(s.headers), s.keep || !s.left && !s.mutated)
		n.Sends = append(n.Sends, NotedSend{Index: i, Channel: s.ch.id, Payload: m.Payload, Headers: m.Headers, Hash: m.Hash, Left: s.left})
	}
}

func (x *timerEffect) noted() NotedTimer {
	return NotedTimer{Name: x.name, Delay: int64(x.delay), Period: int64(x.period), Payload: x.payload, Cancelled: x.cancel}
}

// noteCall remembers what a tool answered. Calls beyond the limit are refused
// whatever they are, so it keeps no more than that.
func (t *turn) noteCall(name, args, result []byte, code abi.Code) {
	call := NotedCall{Tool: string(name), Args: slices.Clone(args), Result: result}
	if code != abi.OK {
		call.Code, call.Error = code.String(), t.LastError()
	}
	t.tools.log = append(t.tools.log, call)
}
