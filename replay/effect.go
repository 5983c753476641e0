package replay

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/rehearsal"
)

// EffectKind is the kind of an effect. It is stable.
type EffectKind string

// The kinds of effects, in the order in which a turn's effects are listed.
const (
	EffectTool    EffectKind = "tool"
	EffectSend    EffectKind = "send"
	EffectSendTo  EffectKind = "send to"
	EffectRequest EffectKind = "request"
	EffectReach   EffectKind = "request to a capability"
	EffectReply   EffectKind = "reply"
	EffectOutput  EffectKind = "output"
	EffectState   EffectKind = "state"
	EffectTimer   EffectKind = "timer"
	EffectLog     EffectKind = "log"
	EffectFailed  EffectKind = "failed"
)

// Effect is an effect of a turn. The effects of a turn are listed by kind, and those of a
// kind in their order.
type Effect struct {
	Kind EffectKind `json:"kind"`
	// Target is the alias of a channel, the name of a creature or timer, a key of the
	// state, the level of a log line, the name of a tool, or the code of a failure.
	Target  string            `json:"target,omitempty"`
	Detail  string            `json:"detail,omitempty"` // further details
	Headers map[string]string `json:"headers,omitempty"`
	Payload Text              `json:"payload,omitempty"`
	// Hash replaces the headers and payload of a recorded message or request that a policy
	// has changed or left out; see [journal.HashMessage] and [journal.HashRequest].
	Hash string `json:"hash,omitempty"`
	// Unknown says that the effect was recorded without its contents. It equals every
	// other effect of its kind.
	Unknown bool `json:"unknown,omitempty"`
}

// Text holds bytes. In JSON it is a string if they are UTF-8, otherwise {"base64": "…"}.
type Text []byte

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) { return json.Marshal(journal.NotedBytes(t)) }

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, (*journal.NotedBytes)(t)) }

// same compares the known parts of two effects. The text of a failure may name a place in
// another module, so only its code counts.
func (e *Effect) same(other *Effect) bool {
	switch {
	case e.Kind != other.Kind:
		return false
	case (e.Kind == EffectRequest || e.Kind == EffectReach) && (e.Unknown || other.Unknown), e.Kind == EffectReply && (e.Unknown || other.Unknown):
		return true
	case e.Target != other.Target:
		return false
	case e.Kind == EffectFailed || e.Unknown || other.Unknown:
		return true
	}
	if e.Hash != "" || other.Hash != "" {
		return e.Detail == other.Detail && e.hash() == other.hash()
	}
	return e.Detail == other.Detail && maps.Equal(e.Headers, other.Headers) && bytes.Equal(e.Payload, other.Payload)
}

// hash returns the hash of the sent message or request.
func (e *Effect) hash() string {
	switch {
	case e.Hash != "":
		return e.Hash
	case e.Kind == EffectReach:
		return journal.HashRequest([]byte(e.Headers["head"]), e.Payload)
	}
	return journal.HashMessage(e.Payload, e.Headers)
}

// firstDifference returns the index of the first effects that differ, or -1.
func firstDifference(recorded, replayed []Effect) int {
	for i := range min(len(recorded), len(replayed)) {
		if !recorded[i].same(&replayed[i]) {
			return i
		}
	}
	if len(recorded) != len(replayed) {
		return min(len(recorded), len(replayed))
	}
	return -1
}

// labels gives the names of channels and creatures in effects.
type labels struct {
	setting *journal.Setting
	cast    *cast
}

// channel returns the creature's send alias of a channel, or the channel's id.
func (l *labels) channel(id journal.ChannelID) string {
	at := slices.IndexFunc(l.setting.Sends, func(e journal.SettingEdge) bool { return e.Channel == id })
	if at < 0 {
		return string(id)
	}
	return l.setting.Sends[at].Alias
}

// creature returns the present name of a creature and its id, because names change.
func (l *labels) creature(id journal.CreatureID) string {
	if m := l.cast.members[id]; m != nil && m.name != "" {
		return m.name + " (" + string(id) + ")"
	}
	return string(id)
}

// EffectsOf returns the effects of a turn of a rehearsal, with the calls of group tools that
// it made. sends are the channels that its creature may send on; a creature in the effects
// has its id.
func EffectsOf(e *rehearsal.Effects, calls []journal.NotedCall, sends []journal.SettingEdge) []Effect {
	return would(e, calls, &labels{&journal.Setting{Sends: sends}, &cast{}})
}

// would returns the effects of a turn that was run again.
func would(e *rehearsal.Effects, calls []journal.NotedCall, names *labels) []Effect {
	out := appendCalls(nil, calls)
	for i := range e.Sends {
		out = append(out, sendEffect(&e.Sends[i], names))
	}
	if e.Reply != nil {
		out = append(out, Effect{Kind: EffectReply, Payload: e.Reply})
	}
	if e.Output != nil {
		out = append(out, Effect{Kind: EffectOutput, Payload: e.Output})
	}
	for _, w := range e.Writes {
		out = append(out, stateEffect(w.Key, w.Value, w.Deleted))
	}
	for _, x := range e.Timers {
		out = append(out, timerEffect(x))
	}
	return append(out, said(e)...)
}

// said returns the log lines of a turn, which are kept even if the turn fails.
func said(e *rehearsal.Effects) []Effect {
	var out []Effect
	for _, line := range e.Logs {
		out = append(out, logEffect(line))
	}
	return out
}

func sendEffect(s *rehearsal.Send, names *labels) Effect {
	out := Effect{Kind: EffectSend, Payload: s.Payload}
	switch {
	case s.Reach != "":
		return reachEffect(s.Reach, s.Headers, s.Payload, s.Tag)
	case s.Request:
		out.Kind, out.Target = EffectRequest, names.creature(s.To)
		out.Detail = within(s.Deadline) + ", " + tagged(s.Tag)
	case s.To != "":
		out.Kind, out.Target, out.Headers = EffectSendTo, names.creature(s.To), headers(s.Headers)
	default:
		out.Target, out.Headers = names.channel(s.Channel), headers(s.Headers)
	}
	return out
}

func tagged(tag int64) string { return "tag " + strconv.FormatInt(tag, 10) }

// reachEffect is a request to a capability.
func reachEffect(id string, head, body []byte, tag int64) Effect {
	out := Effect{Kind: EffectReach, Target: id, Payload: Text(body), Detail: tagged(tag)}
	if len(head) > 0 {
		out.Headers = map[string]string{"head": string(head)}
	}
	return out
}

func within(d time.Duration) string { return "within " + d.Truncate(time.Millisecond).String() }

func headers(b []byte) map[string]string { return journal.DecodeHeaders(b) }

func stateEffect(key string, value []byte, deleted bool) Effect {
	out := Effect{Kind: EffectState, Target: key, Payload: value}
	if deleted {
		out.Detail = "deleted"
	}
	return out
}

func timerEffect(x journal.NotedTimer) Effect {
	out := Effect{Kind: EffectTimer, Target: x.Name, Payload: Text(x.Payload), Detail: "in " + time.Duration(x.Delay).String()}
	if x.Period > 0 {
		out.Detail += ", every " + time.Duration(x.Period).String()
	}
	if x.Cancelled {
		out.Detail = "cancelled"
	}
	return out
}

func logEffect(p journal.LogPayload) Effect {
	return Effect{Kind: EffectLog, Target: p.Level, Payload: Text(p.Text)}
}

func failure(code, text string) Effect {
	return Effect{Kind: EffectFailed, Target: code, Payload: Text(text)}
}

func appendCalls(out []Effect, calls []journal.NotedCall) []Effect {
	for _, c := range calls {
		out = append(out, Effect{Kind: EffectTool, Target: c.Tool, Payload: Text(c.Args)})
	}
	return out
}

// String returns the effect on one line. Long parts are clipped, with a note.
func (e Effect) String() string {
	var b strings.Builder
	b.WriteString(string(e.Kind))
	for _, part := range []string{e.Target, e.Detail} {
		if part != "" {
			b.WriteString(" " + part)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		fmt.Fprintf(&b, " [%s: %s]", name, Text(e.Headers[name]))
	}
	switch {
	case e.Unknown:
		b.WriteString(" (its contents were not recorded)")
	case e.Hash != "":
		b.WriteString(" (a policy changed it or left it out; hash " + e.Hash + ")")
	case len(e.Payload) > 0 || e.Kind != "state" && e.Kind != "timer":
		b.WriteString(" " + e.Payload.String())
	}
	return b.String()
}

// shownBytes is the number of payload bytes that are shown.
const shownBytes = 400

// String quotes UTF-8 and writes other bytes in hexadecimal digits. Long texts are clipped,
// with a note.
func (t Text) String() string {
	shown, note := t, ""
	if len(t) > shownBytes {
		shown, note = t[:shownBytes], fmt.Sprintf("… (%d bytes)", len(t))
	}
	if utf8.Valid(t) {
		for !utf8.Valid(shown) {
			shown = shown[:len(shown)-1]
		}
		return strconv.Quote(string(shown)) + note
	}
	return hex.EncodeToString(shown) + note
}
