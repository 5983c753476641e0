package operations

import (
	"context"
	"slices"
	"unicode/utf8"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/replay"
)

// ReplayTurnArgs are the arguments of replay_turn.
type ReplayTurnArgs struct {
	Turn    string `json:"turn" op:"required" doc:"id of the turn's event, turn_ended or turn_failed"`
	Graph   string `json:"graph,omitempty" doc:"only look in the history of this graph: any id it has had, or the name of a member"`
	Session string `json:"session,omitempty" doc:"only look in the history of this session, live or ended; without graph and session, every session of the directory is searched"`
	Module  string `json:"module,omitempty" doc:"run this module instead of the recorded one: a path, builtin:NAME, or sha256: and at least 8 digits of the hash of a creature's module; needs the scope admin"`
}

// ReplayTurnResult is the result of replay_turn.
type ReplayTurnResult struct {
	Turn     string               `json:"turn"` // id of the turn's event
	TS       string               `json:"ts"`   // RFC 3339, UTC: when it ended
	Session  terrarium.SessionID  `json:"session"`
	Graph    terrarium.GraphID    `json:"graph"`
	Creature terrarium.CreatureID `json:"creature"`
	Name     string               `json:"name"`              // name of the creature at that time
	Attempt  int                  `json:"attempt,omitempty"` // number of the attempt at the delivery, from 1
	Delivery ReplayDelivery       `json:"delivery"`          // what the turn handled
	Then     ReplaySide           `json:"then"`              // the turn as recorded
	Again    ReplaySide           `json:"again"`             // the turn as it was run again
	Same     bool                 `json:"same"`              // whether the outcome and all effects are the same
	First    int                  `json:"first"`             // index of the first row that differs, or -1
	Rows     []ReplayRow          `json:"rows"`              // effects of both sides, side by side
	More     int                  `json:"more,omitempty"`    // number of rows that were left out, because the answer is too large
}

// ReplayDelivery describes the delivery of a turn.
type ReplayDelivery struct {
	Kind    journal.DeliveryKind `json:"kind"`              // message, start, timer, …
	Message string               `json:"message,omitempty"` // absent for a start and for graph_changed
	Channel terrarium.ChannelID  `json:"channel,omitempty"`
	Alias   string               `json:"alias,omitempty"` // the creature's name for the channel; absent for the inbox
	Seq     uint64               `json:"seq,omitempty"`
	Sender  string               `json:"sender,omitempty"` // name of the creature that sent it, and its id
}

// ReplaySide describes how a turn ended.
type ReplaySide struct {
	Module string       `json:"module,omitempty"` // what was loaded
	SHA256 string       `json:"module_sha256"`    // SHA-256 of the module
	Fuel   int64        `json:"fuel"`             // fuel that the guest used; -1 if that is not known
	Error  *ErrorRecord `json:"error,omitempty"`  // why it failed, with the location in the module if that is known; absent if it succeeded
}

// ReplayRow contains an effect of the record and the corresponding new effect. An effect without
// a counterpart is alone.
type ReplayRow struct {
	Same  bool          `json:"same"`            // whether both sides have the same effect
	Then  *ReplayEffect `json:"then,omitempty"`  // effect of the record
	Again *ReplayEffect `json:"again,omitempty"` // effect of the turn as it was run again
}

// ReplayEffect is an effect of a turn.
type ReplayEffect struct {
	Kind replay.EffectKind `json:"kind"` // send, state, log, failed, …
	// alias of a channel, name of a creature or timer, key of the state, level of a log line, name of a tool, or code of a failure
	Target  string            `json:"target,omitempty"`
	Detail  string            `json:"detail,omitempty"` // further details, for example when a timer is due
	Headers map[string]string `json:"headers,omitempty"`
	Payload Payload           `json:"payload,omitempty"`
	Size    int               `json:"size,omitempty"`    // bytes of the payload
	Cut     bool              `json:"cut,omitempty"`     // whether headers and the rest of the payload were left out, because the answer is too large
	Hash    string            `json:"hash,omitempty"`    // hash of a message that a policy changed or left out
	Unknown bool              `json:"unknown,omitempty"` // whether it was recorded without its contents
}

// The bounds of an answer. A payload may be about as long as what a person reads, and all
// payloads together must stay below what a connection may hold.
const (
	maxReplayRows    = 1000
	maxReplayPayload = 64 << 10
	maxReplayBytes   = 1 << 20
)

func replayTurn(ctx context.Context, s *client, a *ReplayTurnArgs) (*ReplayTurnResult, error) {
	if a.Module != "" {
		if err := s.allow("replay_turn", Admin); err != nil {
			return nil, err
		}
	}
	id, err := journal.ParseEventID(a.Turn)
	if err != nil {
		return nil, &abi.Error{Code: abi.InvalidArgument, Op: "replay_turn", Message: "turn is not the id of an event", Remedy: "use the id of a turn_ended or turn_failed event; history lists them", Err: err}
	}
	o := terrarium.ReplayTurnOptions{Turn: id, Module: a.Module}
	if a.Graph != "" || a.Session != "" {
		if o.Of, err = graphOrSession(ctx, s, "replay_turn", a.Graph, a.Session); err != nil {
			return nil, err
		}
	}
	c, err := s.t.ReplayTurn(ctx, o)
	if err != nil {
		return nil, err
	}
	out := NewReplayTurnResult(c)
	if a.Module != "" {
		out.Again.Module = a.Module
	}
	out.bound()
	return out, nil
}

// NewReplayTurnResult returns the JSON form of a comparison.
func NewReplayTurnResult(c *replay.Comparison) *ReplayTurnResult {
	out := &ReplayTurnResult{
		Turn: c.Turn.String(), TS: stamp(c.Ended.UnixNano()), Session: c.Session, Graph: c.Graph, Creature: c.Creature, Name: c.Name, Attempt: c.Attempt,
		Delivery: ReplayDelivery{Kind: c.Delivery.Kind, Message: c.Delivery.Message.String(), Channel: c.Delivery.Channel, Alias: c.Delivery.Alias, Seq: c.Delivery.Seq, Sender: c.Delivery.Sender},
		Then:     newReplaySide(&c.Then), Again: newReplaySide(&c.Again), Same: c.First < 0, Rows: []ReplayRow{},
	}
	for _, p := range c.Pairs() {
		out.Rows = append(out.Rows, ReplayRow{Same: p.Same, Then: newReplayEffect(p.Then), Again: newReplayEffect(p.Again)})
	}
	out.First = slices.IndexFunc(out.Rows, func(r ReplayRow) bool { return !r.Same })
	return out
}

func newReplaySide(p *replay.Performed) ReplaySide {
	out := ReplaySide{Module: p.Module, SHA256: p.SHA256, Fuel: p.Fuel}
	if p.Code != "" {
		out.Error = &ErrorRecord{Code: p.Code, Message: cut(p.Error)}
	}
	return out
}

func newReplayEffect(e *replay.Effect) *ReplayEffect {
	if e == nil {
		return nil
	}
	return &ReplayEffect{
		Kind: e.Kind, Target: e.Target, Detail: e.Detail, Headers: e.Headers, Payload: Payload(e.Payload), Size: len(e.Payload), Hash: e.Hash, Unknown: e.Unknown,
	}
}

// bound shortens payloads, and leaves out rows, of an answer that is too large. The first
// difference stays.
func (r *ReplayTurnResult) bound() {
	if n := len(r.Rows); n > maxReplayRows {
		from := min(max(0, r.First-maxReplayRows/2), n-maxReplayRows)
		r.Rows, r.More = r.Rows[from:from+maxReplayRows], n-maxReplayRows
		if r.First >= 0 {
			r.First -= from
		}
	}
	left := maxReplayBytes
	shorten := func(row *ReplayRow) {
		for _, e := range []*ReplayEffect{row.Then, row.Again} {
			if e != nil {
				left -= e.shorten(max(0, min(left, maxReplayPayload)))
			}
		}
	}
	if r.First >= 0 {
		shorten(&r.Rows[r.First])
	}
	for i := range r.Rows {
		if i != r.First {
			shorten(&r.Rows[i])
		}
	}
}

// shorten bounds the headers and the payload, and returns how many bytes are left of them.
func (e *ReplayEffect) shorten(most int) int {
	size := len(e.Target) + len(e.Detail)
	for name, value := range e.Headers {
		size += len(name) + len(value)
	}
	if size > most {
		e.Headers, e.Cut, size = nil, true, len(e.Target)+len(e.Detail)
	}
	if room := max(0, most-size); len(e.Payload) > room {
		e.Payload, e.Cut = beginning(e.Payload, room), true
	}
	return size + len(e.Payload)
}

// beginning returns at most so many bytes of a payload. Text stays text.
func beginning(p Payload, most int) Payload {
	if utf8.Valid(p) {
		for most > 0 && !utf8.RuneStart(p[most]) {
			most--
		}
	}
	return p[:most]
}

// hideContent implements withoutContent. What stays is what the events of a turn show
// without contents.
func (r *ReplayTurnResult) hideContent() {
	for i := range r.Rows {
		for _, e := range []*ReplayEffect{r.Rows[i].Then, r.Rows[i].Again} {
			if e != nil {
				e.hideContent()
			}
		}
	}
}

func (e *ReplayEffect) hideContent() {
	if e.Kind == replay.EffectFailed { // the event turn_failed has the text
		return
	}
	e.Headers, e.Payload, e.Detail, e.Hash = nil, nil, "", ""
	if e.Kind == replay.EffectTool || e.Kind == replay.EffectTimer { // these are only in the notes of a turn
		e.Target, e.Size = "", 0
	}
}
