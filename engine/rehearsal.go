package engine

import (
	"context"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine/internal/effects"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/internal/specs"
	"github.com/seed47132306/terrarium/engine/internal/timing"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/outlook"
	"github.com/seed47132306/terrarium/engine/rehearsal"
)

// Rehearsal is a creature outside of any engine, to which recorded deliveries are delivered again.
// The guest's calls are checked and limited, and return the same results, as in an engine, but
// they have no effect: [Rehearsal.Effects] returns what the effect would have been.
//
// It knows no other creatures: the caller introduces those that the guest may name, and
// provides the results that depend on the graph (group tools, awareness documents). It
// must be used by one goroutine at a time.
type Rehearsal struct {
	turn turn
	c    *creature
	g    *graph
}

// NewRehearsal makes a creature with an empty state and no settings yet: call
// [Rehearsal.Become] before its first turn.
func NewRehearsal(id journal.CreatureID) *Rehearsal {
	e := &core{clock: timing.NewSteady(timing.Real{}, false)}
	r := &Rehearsal{g: newGraph(e, "", 0)}
	r.turn.e = e
	r.c = &creature{id: id, memory: memory{state: &effects.State{}}, glance: glance{reads: true, beheld: outlook.NewView(&outlook.Awareness{})}}
	r.c.home.store(r.g)
	r.c.limits = specs.Limits(abi.Limits{})
	r.c.wiring.Store(noWiring)
	r.c.facing = noWiring
	return r
}

// Become sets the creature's settings for the turns that follow. State and timers stay.
func (r *Rehearsal) Become(s *journal.Setting) error {
	texts, err := specs.Config(s.Name, []byte(s.Config))
	if err != nil {
		return err
	}
	r.c.spec.Config, r.c.configText = []byte(s.Config), texts
	r.c.limits, r.c.spec.Grants = specs.Limits(s.Limits), s.Grants
	w := &wiring{name: s.Name, byAlias: map[string]*channel{}}
	for _, edge := range s.Sends {
		ch := &channel{id: edge.Channel}
		w.sends = append(w.sends, sendEdge{edge.Alias, ch})
		w.byAlias[edge.Alias] = ch
	}
	r.c.wiring.Store(w)
	r.c.facing = w
	return nil
}

// Limits returns the limits of the creature, with defaults filled in.
func (r *Rehearsal) Limits() abi.Limits { return *r.c.limits }

// Write changes the state as a recorded turn did.
func (r *Rehearsal) Write(key string, value []byte, deleted bool) {
	r.c.stateSize += effects.ChangeState(r.c.state, key, value, deleted)
}

// Keys returns the number of keys in the state.
func (r *Rehearsal) Keys() int { return r.c.state.Len() }

// Has reports whether the state has a key.
func (r *Rehearsal) Has(key string) bool {
	_, ok := r.c.state.Get(key)
	return ok
}

// SetTimer sets or cancels a timer as a recorded turn did.
func (r *Rehearsal) SetTimer(x journal.NotedTimer) {
	if x.Cancelled {
		delete(r.c.timers, x.Name)
		return
	}
	if r.c.timers == nil {
		r.c.timers = map[string]*alarm{}
	}
	row := journal.TimerRow{Creature: r.c.id, Name: x.Name, Period: x.Period, Payload: x.Payload}
	r.c.timers[x.Name] = &alarm{row: row}
}

// Rang notes that a timer has fired: a timer that does not repeat is removed.
func (r *Rehearsal) Rang(name string) {
	if a := r.c.timers[name]; a != nil && a.row.Period == 0 {
		delete(r.c.timers, name)
	}
}

// HasTimer reports whether a timer is set.
func (r *Rehearsal) HasTimer(name string) bool { return r.c.timers[name] != nil }

// Timers returns the number of timers that are set.
func (r *Rehearsal) Timers() int { return len(r.c.timers) }

// Asked notes that a request was sent.
func (r *Rehearsal) Asked(request journal.EventID) {
	if r.c.questions == nil {
		r.c.questions = map[journal.EventID]*question{}
	}
	r.c.questions[request] = &question{key: request}
}

// Answered notes that a request has been answered.
func (r *Rehearsal) Answered(request journal.EventID) { delete(r.c.questions, request) }

// Introduce lets the guest name a creature, by its id or by a name.
func (r *Rehearsal) Introduce(id journal.CreatureID, name string) {
	peer := r.g.creatures[id]
	if peer == nil {
		peer = &creature{id: id}
		r.g.creatures[id] = peer
	}
	r.g.names[name] = peer
}

// Starting returns the turn to start a new instance with.
func (r *Rehearsal) Starting() abi.Turn {
	r.turn.reset()
	r.c.handles = &handles{index: map[string]int32{}}
	r.turn.begin(context.Background(), r.c, delivery{msg: bootMessage}, 0, true)
	return &r.turn
}

// Begin hands over a delivery: until the next call of Begin or Starting, the guest's
// calls belong to it.
func (r *Rehearsal) Begin(d *rehearsal.Delivery) abi.Turn {
	clear(r.g.creatures)
	clear(r.g.names)
	r.turn.reset()
	m := message.New(d.Payload, d.Headers)
	m.ID, m.Time, m.Kind, m.Channel, m.Seq, m.SenderName = d.ID, d.Time, d.Kind, d.Channel, d.Seq, d.Sender
	if d.Kind == abi.KindGraphChanged {
		m.ID = message.NoticeID(r.c.id, d.Revision)
	}
	r.c.attempt = d.Attempt - 1
	if r.c.beheld.Revision() != d.Revision {
		r.Behold(&outlook.Awareness{Revision: d.Revision})
	}
	r.turn.begin(context.Background(), r.c, delivery{msg: m, feed: &feed{id: d.Channel, alias: d.Alias}}, d.Kind, false)
	return &r.turn
}

// Behold sets the awareness document of the next turns, which must not be changed afterwards.
// [Rehearsal.Begin] replaces it by an empty one if its delivery has another revision.
func (r *Rehearsal) Behold(doc *outlook.Awareness) { r.c.beheld = outlook.NewView(doc) }

// MayCallTool returns what an engine would return without looking at the graph: whether
// the call is one too many, or too large.
func (r *Rehearsal) MayCallTool(name, args []byte) abi.Code { return r.turn.mayCallTool(name, args) }

// Refuse leaves the text of a failed call for the guest, and returns the code.
func (r *Rehearsal) Refuse(code abi.Code, text string) abi.Code {
	r.turn.Fault = effects.Fault{Code: code, Text: text}
	return code
}

// RefuseReach is Refuse for a request to a capability, which counts as one of the turn.
func (r *Rehearsal) RefuseReach(code abi.Code, text string) abi.Code {
	r.turn.asked++
	return r.Refuse(code, text)
}

// MayReach returns what an engine would return for a request to a capability without looking
// at what is granted.
func (r *Rehearsal) MayReach() abi.Code { return r.turn.mayReach() }

// Reach adds a request to the capability of that id, which granted it.
func (r *Rehearsal) Reach(id string, request capability.Request, tag int64) abi.Code {
	return r.turn.collect(reach{id: id}, request, tag)
}

// SendFor adds a message sent by a group tool: on a channel, or to a creature.
func (r *Rehearsal) SendFor(ch journal.ChannelID, to journal.CreatureID, payload, headers []byte) {
	s := sendEffect{payload: r.turn.Keep(payload), headers: r.turn.Keep(headers)}
	if to != "" {
		s.to = &creature{id: to}
	} else {
		s.ch = &channel{id: ch}
	}
	r.turn.sends = append(r.turn.sends, s)
}

// Effects returns the effects that the guest has requested since Begin.
func (r *Rehearsal) Effects() rehearsal.Effects {
	t := &r.turn
	out := t.Rehearsed(r.c.id)
	for i := range t.sends {
		out.Sends = append(out.Sends, t.rehearsed(&t.sends[i]))
	}
	if t.replied {
		out.Reply = append([]byte{}, t.Bytes(t.reply)...)
	}
	return out
}

func (t *turn) rehearsed(s *sendEffect) rehearsal.Send {
	out := rehearsal.Send{Payload: slices.Clone(t.Bytes(s.payload)), Headers: slices.Clone(t.Bytes(s.headers))}
	if s.ch != nil {
		out.Channel = s.ch.id
	}
	if s.to != nil {
		out.To = s.to.id
	}
	if s.ask != nil {
		out.Request, out.Deadline, out.Tag = true, s.ask.deadline, s.ask.tag
	}
	if s.reach != nil {
		out.Reach = s.reach.id
	}
	return out
}
