package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/replay"
)

const (
	// callBegin is the time of the first delivery, 2026-01-01 00:00 UTC in seconds since
	// 1970. The clock stands still except for --advance, so a call repeats exactly.
	callBegin = 1767225600
	// callDeadline is what a turn may take. Fuel bounds its work, so the deadline only has
	// to be long enough for a slow machine.
	callDeadline = time.Minute
	// maxFired is how many timers may fire in one call.
	maxFired = 10_000
	// callSubject is the name and the id of the creature that is called.
	callSubject = "subject"
)

// callStage is a creature outside of any graph that gets deliveries.
type callStage struct {
	module   abi.Module
	instance abi.Instance // nil before the first delivery and after a failed one
	r        *engine.Rehearsal
	sends    []journal.SettingEdge
	peers    []string
	fresh    bool

	now      int64             // nanoseconds since 1970
	last     uint64            // number of the last delivery
	seqs     map[string]uint64 // last number by alias
	revision uint64            // of the surroundings
	fired    int
	timers   map[string]*callTimer
	asked    []question
	state    map[string]operations.Payload
}

// callTimer is a timer that the creature has set.
type callTimer struct {
	Name    string             `json:"name"`
	InMS    int64              `json:"in_ms"`              // until it fires
	EveryMS int64              `json:"every_ms,omitempty"` // 0: once
	Payload operations.Payload `json:"payload"`
	due     int64
	period  int64
}

// question is a request of the creature without a result.
type question struct {
	id  journal.EventID
	tag int64
}

// callRecord is a delivery and what the creature did.
type callRecord struct {
	Kind    string                  `json:"kind"`
	Alias   string                  `json:"alias,omitempty"`
	Name    string                  `json:"name,omitempty"` // of a timer
	Payload operations.Payload      `json:"payload"`
	Headers map[string]string       `json:"headers,omitempty"`
	AtMS    int64                   `json:"at_ms"`  // since the first delivery
	Status  string                  `json:"status"` // ok, or the code of the error
	Fuel    int64                   `json:"fuel"`   // that the turn used
	Effects []replay.Effect         `json:"effects"`
	Error   *operations.ErrorRecord `json:"error,omitempty"`
	refused bool                    // no instance could be made
}

func (s *callStage) close(ctx context.Context) {
	if s.instance != nil {
		_ = s.instance.Close(ctx) // nothing in it is needed
		s.instance = nil
	}
}

// bystander answers the calls of a guest that need a graph.
type bystander struct {
	abi.Turn
	r *engine.Rehearsal
}

// Tool implements [abi.Turn].
func (b *bystander) Tool(name, args []byte) ([]byte, abi.Code) {
	if code := b.r.MayCallTool(name, args); code != abi.OK {
		return nil, code
	}
	return nil, b.r.Refuse(abi.NotPrivileged, "group tools need a graph, and a called creature has none: run it in a recipe")
}

// deliver hands a delivery to the creature. The error is only about ctx.
func (s *callStage) deliver(ctx context.Context, d *callDelivery) (*callRecord, error) {
	kind := d.kind()
	out := &callRecord{
		Kind: d.Kind, Alias: d.Alias, Name: d.Name, Payload: d.Payload, Headers: d.Headers,
		AtMS: (s.now - callBegin*int64(time.Second)) / int64(time.Millisecond), Status: abi.OK.String(), Effects: []replay.Effect{},
	}
	w := &bystander{r: s.r}
	logs, err := s.ready(ctx, w)
	if out.refused = err != nil; err == nil {
		w.Turn = s.r.Begin(s.rehearsed(d, kind))
		for _, name := range s.peers {
			s.r.Introduce(journal.CreatureID(name), name)
		}
		err = s.instance.Handle(ctx, w, kind, len(d.Payload))
		out.Fuel = max(s.instance.FuelUsed(), 0)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	done := s.r.Effects()
	if err != nil { // only its log lines are kept
		out.Status, out.Error = abi.CodeOf(err).String(), operations.NewErrorRecord(err)
		done = engine.Effects{Logs: done.Logs}
	}
	done.Logs = append(logs, done.Logs...)
	out.Effects = append(out.Effects, replay.EffectsOf(&done, s.sends)...)
	s.apply(&done)
	if err != nil || s.fresh {
		s.close(ctx)
	}
	return out, nil
}

// ready makes an instance unless there is one, and returns what it logged.
func (s *callStage) ready(ctx context.Context, w *bystander) ([]journal.LogPayload, error) {
	if s.instance != nil {
		return nil, nil
	}
	limits := s.r.Limits()
	w.Turn = s.r.Starting()
	instance, err := s.module.Instantiate(ctx, &limits, w)
	if err != nil {
		return nil, err
	}
	s.instance = instance
	return s.r.Effects().Logs, nil
}

// rehearsed describes a delivery as an engine would.
func (s *callStage) rehearsed(d *callDelivery, kind abi.Kind) *engine.RehearsedDelivery {
	s.last++
	out := &engine.RehearsedDelivery{Kind: kind, Time: s.now, Attempt: 1, Payload: d.Payload, Sender: d.Sender, Revision: s.revision}
	switch kind {
	case abi.KindStart:
		return out
	case abi.KindGraphChanged:
		s.revision++
		out.Revision = s.revision
		return out
	}
	s.seqs[d.Alias]++
	out.ID, out.Seq, out.Alias = journal.EventID{Origin: journal.Origin{1}, Seq: s.last}, s.seqs[d.Alias], d.Alias
	out.Channel = journal.ChannelID("listen " + d.Alias)
	if d.Alias == "" {
		out.Channel = journal.InboxOf(callSubject)
	}
	headers := maps.Clone(d.Headers)
	if headers == nil {
		headers = map[string]string{}
	}
	own := func(name, value string) {
		if value != "" {
			headers[journal.ReservedPrefix+name] = value
		}
	}
	switch kind {
	case abi.KindTimer:
		own("timer", d.Name)
		s.rang(d.Name)
	case abi.KindOutput:
		own("wire", cmp.Or(d.Wire, "wire"))
	case abi.KindRequest:
		own("deadline", strconv.FormatInt(d.deadline().Milliseconds(), 10))
	case abi.KindResult:
		own("tag", strconv.FormatInt(d.Tag, 10))
		own("code", cmp.Or(d.Code, abi.OK.String()))
		s.answered(d.Tag)
	}
	out.Headers, _ = journal.EncodeHeaders(headers) // they were checked when they were read
	return out
}

// rang notes that a timer has fired.
func (s *callStage) rang(name string) {
	s.r.Rang(name)
	if t := s.timers[name]; t != nil {
		if t.period == 0 {
			delete(s.timers, name)
		}
		t.due += t.period
	}
}

func (s *callStage) answered(tag int64) {
	at := slices.IndexFunc(s.asked, func(q question) bool { return q.tag == tag })
	if at >= 0 {
		s.r.Answered(s.asked[at].id)
		s.asked = slices.Delete(s.asked, at, at+1)
	}
}

// apply makes the effects of a turn part of what the next one finds.
func (s *callStage) apply(done *engine.Effects) {
	for _, w := range done.Writes {
		s.write(w.Key, w.Value, w.Deleted)
	}
	for _, x := range done.Timers {
		s.r.SetTimer(x)
		if x.Cancelled {
			delete(s.timers, x.Name)
			continue
		}
		s.timers[x.Name] = &callTimer{Name: x.Name, Payload: operations.Payload(x.Payload), due: s.now + x.Delay, period: x.Period}
	}
	for i := range done.Sends {
		if x := &done.Sends[i]; x.Request {
			s.last++
			q := question{id: journal.EventID{Origin: journal.Origin{1}, Seq: s.last}, tag: x.Tag}
			s.r.Asked(q.id)
			s.asked = append(s.asked, q)
		}
	}
}

func (s *callStage) write(key string, value []byte, deleted bool) {
	s.r.Write(key, value, deleted)
	if deleted {
		delete(s.state, key)
	} else {
		s.state[key] = value
	}
}

var errManyTimers = fmt.Errorf("more than %d timers fire: advance by less", maxFired)

// advance moves the clock and delivers the timers that come due, each at its time.
func (s *callStage) advance(ctx context.Context, by time.Duration, each func(*callRecord)) error {
	end := s.now + int64(by)
	for {
		next := s.next()
		if next == nil || next.due > end {
			s.now = end
			return nil
		}
		if s.fired++; s.fired > maxFired {
			return failWith(exitUsage, errManyTimers)
		}
		s.now = max(s.now, next.due)
		rec, err := s.deliver(ctx, &callDelivery{Kind: abi.KindTimer.String(), Name: next.Name, Payload: next.Payload})
		if err != nil {
			return err
		}
		each(rec)
	}
}

// next returns the timer that comes due first, or nil. Of several at the same time it is
// the one whose name comes first.
func (s *callStage) next() *callTimer {
	var first *callTimer
	for _, name := range slices.Sorted(maps.Keys(s.timers)) {
		if t := s.timers[name]; first == nil || t.due < first.due {
			first = t
		}
	}
	return first
}

// waiting returns the timers that are set, by name.
func (s *callStage) waiting() []*callTimer {
	out := []*callTimer{}
	for _, name := range slices.Sorted(maps.Keys(s.timers)) {
		t := s.timers[name]
		t.InMS, t.EveryMS = (t.due-s.now)/int64(time.Millisecond), t.period/int64(time.Millisecond)
		out = append(out, t)
	}
	return out
}

// perform hands out all deliveries.
func (s *callStage) perform(ctx context.Context, list []callDelivery) ([]*callRecord, error) {
	records := []*callRecord{}
	for i := range list {
		d := &list[i]
		if d.Advance != "" {
			err := s.advance(ctx, d.advance(), func(r *callRecord) { records = append(records, r) })
			if err != nil {
				return nil, err
			}
			continue
		}
		r, err := s.deliver(ctx, d)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
		if r.refused {
			break
		}
	}
	return records, nil
}
