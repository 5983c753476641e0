package replay

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/rehearsal"
	"github.com/seed47132306/terrarium/engine/tools"
)

// witness is between a guest and the turn that is run again. It answers calls that depend
// on other creatures from the record, and notes the first call whose answer the record
// lacks.
type witness struct {
	abi.Turn
	a        *actor
	t        *recorded
	delivery *rehearsal.Delivery
	handling bool            // false while the instance is created
	named    bool            // the sender's name is certain
	own      map[string]bool // keys that the turn has written
	calls    []journal.NotedCall
	reached  int // requests to capabilities so far
	gap      *gap
}

func newWitness(a *actor, t *recorded) *witness {
	w := &witness{a: a, t: t, named: true}
	sender := ""
	if t.message != nil {
		sender, w.named = a.stage.cast.nameThen(t.message.Creature, t.message.Time)
	}
	if t.notes.Sender != "" {
		sender, w.named = t.notes.Sender, true
	}
	w.delivery = t.asked(a.aliases[t.event.Channel], sender)
	return w
}

// handDelivery passes on the delivery.
func (w *witness) handDelivery() {
	for _, x := range w.t.notes.Timers {
		if x.Cancelled && !w.a.r.HasTimer(x.Name) {
			w.a.r.SetTimer(journal.NotedTimer{Name: x.Name}) // because it existed
		}
	}
	w.Turn, w.handling = w.a.r.Begin(w.delivery), true
}

func (w *witness) miss(reason Reason, detail string) {
	if w.gap == nil {
		w.gap = &gap{reason, detail}
	}
}

// Source implements [abi.Turn].
func (w *witness) Source(s abi.Source) ([]byte, abi.Code) {
	switch {
	case s == abi.SourceConfig && len(w.a.setting.Secret) > 0:
		w.miss(Secret, "")
	case w.handling:
		return w.surroundings(s)
	}
	return w.Turn.Source(s)
}

// surroundings returns a source of the delivery.
func (w *witness) surroundings(s abi.Source) ([]byte, abi.Code) {
	switch s {
	case abi.SourceSender:
		if !w.named {
			w.miss(SenderName, "")
		}
	case abi.SourceDetail:
		if !w.named && w.t.kind == abi.KindOutput {
			w.miss(SenderName, "")
		}
	case abi.SourceAwarenessJSON, abi.SourceAwarenessMarkdown:
		w.miss(Surrounding, "")
	case abi.SourceAwarenessRevision:
		if w.t.aware == 0 {
			w.miss(Surrounding, "")
		}
		return strconv.AppendUint(nil, w.t.aware, 10), abi.OK
	}
	return w.Turn.Source(s)
}

// Config implements [abi.Turn].
func (w *witness) Config(key []byte) ([]byte, abi.Code) {
	if slices.Contains(w.a.setting.Secret, string(key)) {
		w.miss(Secret, string(key))
	}
	return w.Turn.Config(key)
}

// StateGet implements [abi.Turn].
func (w *witness) StateGet(key []byte) ([]byte, abi.Code) {
	w.reads(key)
	return w.Turn.StateGet(key)
}

// StateDelete implements [abi.Turn].
func (w *witness) StateDelete(key []byte) (bool, abi.Code) {
	w.reads(key)
	return w.Turn.StateDelete(key)
}

// StateList implements [abi.Turn].
func (w *witness) StateList(prefix []byte, page func(keys []byte)) abi.Code {
	if !w.a.allKeys {
		w.miss(UnknownKey, "")
	}
	return w.Turn.StateList(prefix, page)
}

// StateSet implements [abi.Turn].
func (w *witness) StateSet(key, value []byte) abi.Code {
	if !w.a.allKeys {
		if w.own == nil {
			w.own = map[string]bool{}
		}
		w.own[string(key)] = true
	}
	return w.Turn.StateSet(key, value)
}

func (w *witness) reads(key []byte) {
	if !w.a.allKeys && !w.own[string(key)] && !w.a.observed[observedKey+string(key)] {
		w.miss(UnknownKey, string(key))
	}
}

// TimerCancel implements [abi.Turn].
func (w *witness) TimerCancel(name []byte) (bool, abi.Code) {
	existed, code := w.Turn.TimerCancel(name)
	if !existed && code == abi.OK && !w.a.allTimers && !w.a.observed[observedTimer+string(name)] {
		w.miss(UnknownName, string(name))
	}
	return existed, code
}

// SendTo implements [abi.Turn].
func (w *witness) SendTo(to, payload []byte) abi.Code {
	w.meet(to)
	return w.Turn.SendTo(to, payload)
}

// Request implements [abi.Turn].
func (w *witness) Request(to, payload []byte, deadline time.Duration, tag int64) abi.Code {
	if bytes.HasPrefix(to, []byte(engine.ReachPrefix)) {
		return w.reach(capability.Request{Body: payload}, tag)
	}
	w.meet(to)
	return w.Turn.Request(to, payload, deadline, tag)
}

// HTTP implements [abi.Turn].
func (w *witness) HTTP(request, body []byte, tag int64) abi.Code {
	return w.reach(capability.Request{Head: request, Body: body}, tag)
}

// reach answers a request to a capability as it was answered. A request that the recorded
// turn did not make differs anyway.
func (w *witness) reach(request capability.Request, tag int64) abi.Code {
	r := w.a.r
	if code := r.MayReach(); code != abi.OK {
		return code
	}
	note := journal.ReachNote{Code: abi.Unavailable.String(), Error: "the recorded turn did not make this request"}
	if w.reached < len(w.t.notes.Reached) {
		note = w.t.notes.Reached[w.reached]
	}
	w.reached++
	if note.Code == "" {
		return r.Reach(note.Capability, request, tag)
	}
	code, ok := abi.ParseCode(note.Code)
	if !ok {
		w.miss(Outside, note.Code)
	}
	return r.RefuseReach(code, note.Error)
}

// meet introduces the creature that the guest names: a recipient of the turn, or otherwise a
// creature of its graph.
func (w *witness) meet(ref []byte) {
	name, cast := string(ref), w.a.stage.cast
	for _, id := range w.t.recipients() {
		if m := cast.members[id]; string(id) == name || m != nil && m.name == name {
			w.a.r.Introduce(id, name)
			return
		}
	}
	if id := cast.find(w.t.event.Graph, name); id != "" {
		w.a.r.Introduce(id, name)
	} else if cast.late {
		w.miss(Peers, name)
	}
}

// Tool implements [abi.Turn]. As long as the guest makes the recorded calls, it gets the
// recorded answers. Otherwise the turn differs anyway.
func (w *witness) Tool(name, args []byte) ([]byte, abi.Code) {
	r := w.a.r
	if code := r.MayCallTool(name, args); code != abi.OK {
		return nil, code
	}
	call := journal.NotedCall{Tool: string(name), Args: slices.Clone(args)}
	w.calls = append(w.calls, call)
	at := len(w.calls) - 1
	if at >= len(w.t.notes.Calls) || w.t.notes.Calls[at].Tool != call.Tool || !bytes.Equal(w.t.notes.Calls[at].Args, args) {
		return nil, r.Refuse(abi.Unavailable, "the recorded turn did not make this call")
	}
	answer := &w.t.notes.Calls[at]
	if answer.Code != "" {
		code, ok := abi.ParseCode(answer.Code)
		if !ok {
			w.miss(Tools, answer.Code)
		}
		return nil, r.Refuse(code, answer.Error)
	}
	w.sendFor(answer)
	return answer.Result, abi.OK
}

// sendFor makes the sends of tools that send.
func (w *witness) sendFor(call *journal.NotedCall) {
	switch call.Tool {
	case "send_channel":
		var args tools.SendChannelArgs
		var result tools.SendChannelResult
		if read(call, &args, &result) {
			m, _ := args.Message(result.Message)
			w.a.r.SendFor(result.Channel, "", m.Payload, m.Headers)
		}
	case "group_send":
		var args tools.GroupSendArgs
		var result tools.GroupSendResult
		if read(call, &args, &result) {
			m, _ := args.Message(result.Message)
			w.a.r.SendFor("", result.Creature, m.Payload, m.Headers)
		}
	case "group_add_node":
		var args tools.AddNodeArgs
		var result tools.AddNodeResult
		if read(call, &args, &result) && args.Task != nil {
			m, _ := args.Message(result.Message)
			w.a.r.SendFor("", result.Creature, m.Payload, m.Headers)
		}
	}
}

func read(call *journal.NotedCall, args, result any) bool {
	return json.Unmarshal(call.Args, args) == nil && json.Unmarshal(call.Result, result) == nil
}

// Now implements [abi.Turn].
func (w *witness) Now() int64 {
	if w.a.setting.Grants.Clock {
		w.miss(RealClock, "")
	}
	return w.Turn.Now()
}

// Random implements [abi.Turn].
func (w *witness) Random(p []byte) {
	if w.a.setting.Grants.Random {
		w.miss(RealRandom, "")
	}
	w.Turn.Random(p)
}
