package replay

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/rehearsal"
)

// recorded is a turn as recorded in the log.
type recorded struct {
	session  journal.SessionID
	creature journal.CreatureID
	event    journal.Event // turn_ended or turn_failed
	kind     abi.Kind      // 0 for a turn without a guest
	code     string        // of the failure; "" if it succeeded
	reason   string        // of the failure
	aware    uint64        // the revision of the awareness document
	sends    int
	fuel     int64 // that the guest used
	notes    journal.TurnNotes
	effects  []journal.Event // its other events, in order
	judged   bool
	before   journal.Position // begins with this turn
	message  *journal.Event   // the message that it handled; nil if there is none or it was not found
}

// read reads the event of a turn.
func (t *recorded) read(session journal.SessionID, ev *journal.Event) error {
	t.session, t.creature, t.event = session, ev.Creature, *ev
	var kind journal.DeliveryKind
	var notes *journal.TurnNotes
	if ev.Kind == journal.EventTurnFailed {
		var p journal.TurnFailedPayload
		if err := json.Unmarshal(ev.Payload, &p); err != nil {
			return damaged(ev, err)
		}
		kind, t.code, t.reason, t.aware, t.fuel, notes = p.Kind, p.Code, p.Error, p.Awareness, p.Fuel, p.Notes
	} else {
		var p journal.TurnEndedPayload
		if err := json.Unmarshal(ev.Payload, &p); err != nil {
			return damaged(ev, err)
		}
		kind, t.sends, t.aware, t.fuel, notes = p.Kind, p.Sends, p.Awareness, p.Fuel, p.Notes
	}
	if notes != nil {
		t.notes = *notes
	}
	for _, k := range abi.Kinds {
		if journal.DeliveryKind(k.Name) == kind {
			t.kind = k.Kind
		}
	}
	return nil
}

func damaged(ev *journal.Event, err error) error {
	return &abi.Error{
		Code: abi.Storage, Op: "replay", Message: "the payload of event " + ev.ID.String() + " cannot be read",
		Remedy: "check the session with terrarium session verify", IDs: map[string]string{"event": ev.ID.String()}, Err: err,
	}
}

// cause returns the log's id of the message.
func (t *recorded) cause() journal.EventID { return t.event.Cause }

// failed reports whether the turn had no effects except its log lines.
func (t *recorded) failed() bool { return t.code != "" }

// asked returns the delivery that the guest received.
func (t *recorded) asked(alias, sender string) *rehearsal.Delivery {
	d := &rehearsal.Delivery{
		Kind: t.kind, ID: t.cause(), Time: t.notes.Time, Channel: t.event.Channel, Seq: t.event.Seq,
		Alias: alias, Sender: sender, Attempt: t.event.Attempt, Revision: t.aware,
	}
	if m := t.message; m != nil {
		d.Time, d.Headers, d.Payload = m.Time, m.Headers, m.Payload
	}
	if !t.notes.Message.IsZero() {
		d.ID = t.notes.Message
	}
	return d
}

// did returns the recorded effects of the turn.
func (t *recorded) did(names *labels) []Effect {
	var out []Effect
	if !t.failed() {
		out = appendCalls(out, t.notes.Calls)
		out = append(out, t.sent(names)...)
		out = append(out, t.gave()...)
		for _, x := range t.notes.Timers {
			out = append(out, timerEffect(x))
		}
	}
	for i := range t.effects {
		var p journal.LogPayload
		if ev := &t.effects[i]; ev.Kind == journal.EventLog && json.Unmarshal(ev.Payload, &p) == nil && !p.Engine {
			out = append(out, logEffect(p))
		}
	}
	if t.failed() {
		out = append(out, failure(t.code, t.reason))
	}
	return out
}

// gave returns the turn's reply, output and state writes.
func (t *recorded) gave() []Effect {
	var out []Effect
	if t.notes.Reply != nil {
		out = append(out, Effect{Kind: EffectReply, Payload: Text(*t.notes.Reply)})
	}
	for i := range t.effects {
		ev := &t.effects[i]
		switch ev.Kind {
		case journal.EventResult:
			if h := journal.DecodeHeaders(ev.Headers); t.kind == abi.KindRequest && h["terrarium-code"] == abi.OK.String() && h["terrarium-request"] == t.cause().String() {
				out = append(out, Effect{Kind: EffectReply, Payload: Text(ev.Payload)})
			}
		case journal.EventDeadLetter:
			if t.kind == abi.KindRequest && engine.NotWaiting(letter(ev).Error) {
				out = append(out, Effect{Kind: EffectReply, Unknown: true})
			}
		}
	}
	for i := range t.effects {
		if ev := &t.effects[i]; ev.Kind == journal.EventOutput {
			out = append(out, Effect{Kind: EffectOutput, Payload: Text(ev.Payload)})
		}
	}
	for i := range t.effects {
		if ev := &t.effects[i]; ev.Kind == journal.EventState {
			out = append(out, stateEffect(journal.DecodeStateEvent(ev.Payload)))
		}
	}
	return out
}

func letter(ev *journal.Event) (p journal.DeadLetterPayload) {
	if json.Unmarshal(ev.Payload, &p) != nil {
		return journal.DeadLetterPayload{}
	}
	return p
}

// sent returns the turn's messages as the guest sent them. The log has the result of each,
// in order, and the notes have those that policies changed or left out.
func (t *recorded) sent(names *labels) []Effect {
	noted := map[int]journal.NotedSend{}
	for _, n := range t.notes.Sends {
		noted[n.Index] = n
	}
	tags := t.notes.Requests
	var out []Effect
	left := t.posted()
	next := func() *journal.Event {
		if len(left) == 0 {
			return nil
		}
		ev := left[0]
		left = left[1:]
		return ev
	}
	for i := range t.sends {
		if n, ok := noted[i]; ok {
			if !n.Left || n.Reach != "" { // a denied request has its result at once
				next()
			}
			if n.Reach != "" {
				e := Effect{Kind: EffectReach, Target: n.Reach, Hash: n.Hash, Unknown: n.Hash == ""}
				if len(tags) > 0 {
					e.Detail, tags = tagged(tags[0]), tags[1:]
				}
				out = append(out, e)
				continue
			}
			out = append(out, Effect{Kind: EffectSend, Target: names.channel(n.Channel), Payload: Text(n.Payload), Headers: headers(n.Headers), Hash: n.Hash})
			continue
		}
		ev := next()
		if ev == nil {
			break
		}
		e := postEffect(ev, names)
		if e.Kind == EffectReach && len(tags) > 0 {
			tags = tags[1:]
		}
		if e.Kind == EffectRequest && len(tags) > 0 {
			e.Detail, tags = e.Detail+", "+tagged(tags[0]), tags[1:]
		}
		out = append(out, e)
	}
	return out
}

// posted returns the events of the messages that the turn sent.
func (t *recorded) posted() []*journal.Event {
	var out []*journal.Event
	for i := range t.effects {
		ev := &t.effects[i]
		switch ev.Kind {
		case journal.EventChannelMessage, journal.EventDirectMessage, journal.EventRequest, journal.EventOutboundRequest:
			out = append(out, ev)
		case journal.EventResult: // of a request that reached no creature
			if journal.DecodeHeaders(ev.Headers)["terrarium-request"] == t.event.ID.String() {
				out = append(out, ev)
			}
		case journal.EventDeadLetter:
			if p := letter(ev); p.Reason == journal.DeadNotConnected && p.Error == "" {
				out = append(out, ev)
			}
		}
	}
	return out
}

// postEffect returns the effect of a send from its event.
func postEffect(ev *journal.Event, names *labels) Effect {
	switch ev.Kind {
	case journal.EventChannelMessage:
		return Effect{Kind: EffectSend, Target: names.channel(ev.Channel), Payload: Text(ev.Payload), Headers: headers(ev.Headers)}
	case journal.EventDirectMessage:
		return Effect{Kind: EffectSendTo, Target: names.creature(journal.InboxOwner(ev.Channel)), Payload: Text(ev.Payload), Headers: headers(ev.Headers)}
	case journal.EventRequest:
		ms, _ := strconv.ParseInt(journal.DecodeHeaders(ev.Headers)["terrarium-deadline"], 10, 64)
		return Effect{Kind: EffectRequest, Target: names.creature(journal.InboxOwner(ev.Channel)), Payload: Text(ev.Payload), Detail: within(time.Duration(ms) * time.Millisecond)}
	case journal.EventOutboundRequest:
		r, _ := journal.OutboundOf(ev)
		return reachEffect(r.Capability, r.Head, r.Body, r.Tag)
	case journal.EventResult:
		return Effect{Kind: EffectRequest, Unknown: true}
	}
	if p := letter(ev); p.Alias != "" {
		return Effect{Kind: EffectSend, Target: p.Alias, Unknown: true}
	}
	return Effect{Kind: EffectSendTo, Target: names.creature(ev.Creature), Unknown: true}
}

// recipients returns the creatures to which the turn sent.
func (t *recorded) recipients() []journal.CreatureID {
	var out []journal.CreatureID
	for _, ev := range t.posted() {
		switch {
		case journal.InboxOwner(ev.Channel) != "" && ev.Kind != journal.EventResult:
			out = append(out, journal.InboxOwner(ev.Channel))
		case ev.Kind == journal.EventDeadLetter && letter(ev).Alias == "":
			out = append(out, ev.Creature)
		}
	}
	return out
}
