package engine

import (
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// settingEvery is the number of turns after which a creature's setting is noted again, so
// that turns can be repeated from there on after the beginning of the history was pruned.
const settingEvery = 1024

// inputNotes returns the notes on the input of a turn. The setting counts as noted from
// then on, so it is called only for turns that are logged.
func (c *creature) inputNotes(g section, w *wiring, d delivery, cause journal.EventID) *journal.TurnNotes {
	src := d.feed
	n := journal.TurnNotes{}
	noted := false
	if p := &c.portrait; p.wiring != w || p.turns >= settingEvery {
		*p = portrait{wiring: w, number: p.number + 1}
		n.Setting, noted = c.setting(g, w), true
	}
	c.portrait.turns++
	if src != nil && src.portrait != c.portrait.number {
		src.portrait = c.portrait.number
		n.Alias, noted = src.alias, true
	}
	switch {
	case cause.IsZero():
		n.Time, noted = d.msg.Time, true
	case cause != d.msg.ID:
		n.Message, noted = d.msg.ID, true
	}
	if m := d.msg; m.Sender != "" && m.SenderName == string(m.Sender) {
		n.Sender, noted = m.SenderName, true
	}
	if !noted {
		return nil
	}
	kept := n // most turns have none, so that only this is allocated
	return &kept
}

// setting is the current setting of the creature.
func (c *creature) setting(_ section, w *wiring) *journal.Setting {
	s := &journal.Setting{
		Name: w.name, Module: c.spec.Module, SHA256: c.module.Info().SHA256, Config: string(c.config()),
		Secret: c.spec.Secret, Limits: c.spec.Limits, Grants: c.spec.Grants,
		Timers: len(c.timers), Requests: len(c.questions),
	}
	if len(s.Secret) > 0 {
		s.Config = string(deploy.WithoutSecrets(&c.spec))
	}
	for _, e := range w.sends {
		s.Sends = append(s.Sends, journal.SettingEdge{Alias: e.alias, Channel: e.ch.id})
	}
	if c.state != nil {
		s.Keys = c.state.Len()
	}
	return s
}

// notes are the notes in the event of a turn that succeeded. moved says that its sends
// may lead elsewhere by now.
func (t *turn) notes(g section, cause journal.EventID, moved bool) *journal.TurnNotes {
	if t.kind == kindTool {
		return t.toolNotes()
	}
	n := t.c.inputNotes(g, t.wiring, t.d, cause)
	outside := t.replied && t.d.msg.Sender == ""
	if len(t.Timers) == 0 && t.asked == 0 && len(t.reached) == 0 && !outside && !t.judged && t.tools == nil && !moved {
		return n
	}
	if n == nil {
		n = &journal.TurnNotes{}
	}
	if outside {
		reply := journal.NotedBytes(t.givenReply())
		n.Reply = &reply
	}
	for i := range t.Timers {
		n.Timers = append(n.Timers, t.Timers[i].Noted())
	}
	if t.tools != nil {
		n.Calls = t.tools.log
	}
	t.noteSends(n, moved)
	return n.WithReached(slices.Clone(t.reached))
}

// toolNotes are the notes of a tool call from outside. There is no guest's turn to
// repeat, but what policies have changed in a message is kept nevertheless.
func (t *turn) toolNotes() *journal.TurnNotes {
	if !t.judged {
		return nil
	}
	n := &journal.TurnNotes{}
	t.noteSends(n, false)
	return n
}

func (t *turn) noteSends(n *journal.TurnNotes, all bool) {
	for i := range t.sends {
		s := &t.sends[i]
		if s.ask != nil {
			n.Requests = append(n.Requests, s.ask.tag)
		}
		if s.reach != nil && (s.left || s.mutated) {
			n.Sends = append(n.Sends, journal.NotedSend{Index: i, Reach: s.reach.id, Hash: journal.HashRequest(t.Bytes(s.headers), t.Bytes(s.payload)), Left: s.left})
			continue
		}
		if s.ch == nil || !s.left && !s.mutated && !all {
			continue
		}
		m := journal.NoteMessage(t.Bytes(s.payload), t.Bytes(s.headers), s.keep || !s.left && !s.mutated)
		n.Sends = append(n.Sends, journal.NotedSend{Index: i, Channel: s.ch.id, Payload: m.Payload, Headers: m.Headers, Hash: m.Hash, Left: s.left})
	}
}

// noteCall notes the result of a tool. Calls beyond the limit are refused in any case, so
// it keeps no more than that.
func (t *turn) noteCall(name, args, result []byte, code abi.Code) {
	call := journal.NotedCall{Tool: string(name), Args: slices.Clone(args), Result: result}
	if code != abi.OK {
		call.Code, call.Error = code.String(), t.LastError()
	}
	t.tools.log = append(t.tools.log, call)
}
