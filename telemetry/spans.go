package telemetry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
)

// maxMessages bounds the messages that are remembered, as they may still be handled. One that
// is forgotten costs a span its parent.
const maxMessages = 100_000

// traceID and spanID are hexadecimal, as JSON has them.
type traceID string
type spanID string

// parent is where the span of a turn belongs.
type parent struct {
	trace traceID
	span  spanID // "" for the first of a trace
}

// tracer makes spans from events. One goroutine uses it.
type tracer struct {
	messages *recent[journal.EventID, parent]  // by the id of the message
	turns    *recent[journal.EventID, traceID] // by the id of the turn
	name     func(journal.CreatureID) string
}

func newTracer(name func(journal.CreatureID) string) *tracer {
	return &tracer{
		messages: newRecent[journal.EventID, parent](maxMessages), turns: newRecent[journal.EventID, traceID](maxMessages),
		name: name,
	}
}

// kinds are the events that the tracer needs.
var kinds = []journal.EventKind{
	journal.EventTurnEnded, journal.EventTurnFailed, journal.EventChannelMessage, journal.EventDirectMessage,
	journal.EventTimer, journal.EventRequest, journal.EventResult, journal.EventWiredOutput,
}

// take takes the next event. It returns a span if a turn has ended.
func (t *tracer) take(ob *engine.Observed) (s span, ok bool) {
	switch ev := &ob.Event; {
	case ev.Kind.IsMessage():
		t.messages.put(ev.ID, t.parentOf(ev))
	case ev.Kind == journal.EventTurnEnded, ev.Kind == journal.EventTurnFailed:
		return t.end(ob), true
	}
	return s, false
}

// parentOf returns where the turn belongs that will handle a message.
func (t *tracer) parentOf(ev *journal.Event) parent {
	if !ev.Turn.IsZero() {
		if trace, ok := t.turns.get(ev.Turn); ok {
			return parent{trace, spanOf(ev.Turn)}
		}
		return parent{traceOf(ev.ID), spanOf(ev.Turn)}
	}
	if p, ok := traceParent(ev.Headers); ok {
		return p
	}
	return parent{trace: traceOf(ev.ID)}
}

// end returns the span of a turn that has ended.
func (t *tracer) end(ob *engine.Observed) span {
	ev := &ob.Event
	p, ok := t.messages.get(ev.Cause)
	if !ok { // it was started by a timer, or the message is forgotten
		p = parent{trace: traceOf(firstOf(ev.Cause, ev.ID))}
	}
	t.turns.put(ev.ID, p.trace)
	var about struct { // of both kinds of events
		Kind  string `json:"kind"`
		Fuel  int64  `json:"fuel"`
		Sends int64  `json:"sends"`
		Code  string `json:"code"`
		Error string `json:"error"`
	}
	_ = json.Unmarshal(ev.Payload, &about) // the engine wrote it
	name := t.name(ev.Creature)
	s := span{
		TraceID: p.trace, SpanID: spanOf(ev.ID), ParentSpanID: p.span, Kind: kindConsumer,
		Name: about.Kind + " " + name, Start: ev.Time - int64(ob.Took), End: ev.Time,
		Attributes: []attribute{
			text("terrarium.creature.name", name), text("terrarium.creature.id", string(ev.Creature)), text("terrarium.graph.id", string(ev.Graph)),
			text("terrarium.event.id", ev.ID.String()), text("terrarium.delivery.kind", about.Kind),
			number("terrarium.fuel", about.Fuel), number("terrarium.sends", about.Sends), number("terrarium.attempt", int64(ev.Attempt)),
			number("terrarium.waited_ns", int64(ob.Waited)),
		},
	}
	if ev.Kind == journal.EventTurnFailed {
		s.Status = &status{Code: statusError, Message: about.Code}
		s.Attributes = append(s.Attributes, text("error.type", about.Code))
	}
	return s
}

func firstOf(ids ...journal.EventID) journal.EventID {
	for _, id := range ids {
		if !id.IsZero() {
			return id
		}
	}
	return journal.EventID{}
}

// traceOf and spanOf make ids from the id of an event. Hashes are used because parts of
// the ids are equal for all events of a store.
func traceOf(id journal.EventID) traceID { return traceID(hashed("trace", id, 16)) }
func spanOf(id journal.EventID) spanID   { return spanID(hashed("span", id, 8)) }

func hashed(what string, id journal.EventID, size int) string {
	sum := sha256.Sum256(append(append([]byte(what), id.Origin[:]...), strconv.FormatUint(id.Seq, 10)...))
	return hex.EncodeToString(sum[:size])
}

// traceParent reads the header traceparent of a message.
func traceParent(headers []byte) (parent, bool) {
	if len(headers) == 0 {
		return parent{}, false
	}
	// version-trace-span-flags; later versions may have more behind that.
	h := journal.DecodeHeaders(headers)["traceparent"]
	if len(h) < 55 || len(h) > 55 && (h[:2] == "00" || h[55] != '-') || h[:2] == "ff" || h[2] != '-' || h[35] != '-' || h[52] != '-' {
		return parent{}, false
	}
	trace, span := h[3:35], h[36:52]
	if !lowerHex(trace) || !lowerHex(span) || !lowerHex(h[:2]) || !lowerHex(h[53:55]) || zeros(trace) || zeros(span) {
		return parent{}, false
	}
	return parent{traceID(trace), spanID(span)}, true
}

func lowerHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func zeros(s string) bool {
	for i := range len(s) {
		if s[i] != '0' {
			return false
		}
	}
	return true
}

// recent is a map that forgets the oldest half of what was put into it.
type recent[K comparable, V any] struct {
	most     int
	now, old map[K]V
}

func newRecent[K comparable, V any](most int) *recent[K, V] {
	return &recent[K, V]{most: most / 2, now: map[K]V{}}
}

func (r *recent[K, V]) put(k K, v V) {
	if len(r.now) >= r.most {
		r.old, r.now = r.now, map[K]V{}
	}
	r.now[k] = v
}

func (r *recent[K, V]) get(k K) (V, bool) {
	if v, ok := r.now[k]; ok {
		return v, true
	}
	v, ok := r.old[k]
	return v, ok
}
