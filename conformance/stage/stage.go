// Package stage gives deliveries to one creature that is outside of any graph, and records
// what the creature does. The clock moves only when the caller advances it.
package stage

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/rehearsal"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/replay"
)

const (
	// Begin is the time of the first delivery, 2026-01-01 00:00 UTC in seconds since
	// 1970. The clock stands still except for [Creature.Advance], so everything repeats
	// exactly.
	Begin = 1767225600
	// Deadline is what a turn may take. Fuel bounds its work, so the deadline only has
	// to be long enough for a slow machine.
	Deadline = time.Minute
	// maxFired is how many timers of a creature may fire.
	maxFired = 10_000
	// maxStopped is how many of them may run until a limit stops them: each may take a
	// second.
	maxStopped = 10
	// Subject is the name and the id of the creature that is called.
	Subject = "subject"
)

// Creature is a creature outside of any graph that gets deliveries.
type Creature struct {
	module   abi.Module
	instance abi.Instance // nil before the first delivery and after a failed one
	r        *engine.Rehearsal
	sends    []journal.SettingEdge
	o        Options
	made     int // instances so far

	now      int64             // nanoseconds since 1970
	last     uint64            // number of the last delivery
	seqs     map[string]uint64 // last number by alias
	revision uint64            // of the awareness document
	digest   string            // of the document at this revision
	fired    int               // timers
	stopped  int               // of them, those that a limit has stopped
	timers   map[string]*Timer
	asked    []question
	state    map[string]operations.Payload
}

// Options describes a creature.
type Options struct {
	Name   string // its id as well; empty: [Subject]
	Config string // a JSON object; empty: {}
	// Send lists the aliases of the channels that it may send on, in this order.
	Send []string
	// Listen lists the aliases of the channels that it listens on. Only the awareness
	// document shows them: a message can come on any alias.
	Listen []string
	// Peers are the names of the other creatures that it can name.
	Peers []string
	// Privileged shows it the other members of its graph in the awareness document, and all
	// group tools.
	Privileged bool
	// Tools are group tools that the document names besides those that a creature may call
	// in an engine. What all of them do is up to Tool.
	Tools  []string
	Limits abi.Limits // without a deadline it is [Deadline]
	Grants journal.Grants
	// Lacks are features that the creature finds missing.
	Lacks []abi.Feature
	// Tool answers the calls of group tools; nil refuses them all.
	Tool func(name, args []byte) ([]byte, *abi.Error)
	// Fresh gives every turn an instance of its own.
	Fresh bool
}

// New makes a creature of a module, which the caller closes after it. The error is about
// the options.
func New(module abi.Module, o Options) (*Creature, error) {
	o.Name = cmp.Or(o.Name, Subject)
	o.Limits.Deadline = cmp.Or(o.Limits.Deadline, Deadline)
	s := &Creature{
		module: module, r: engine.NewRehearsal(journal.CreatureID(o.Name)), o: o, now: Begin * int64(time.Second),
		seqs: map[string]uint64{}, timers: map[string]*Timer{}, state: map[string]operations.Payload{},
	}
	for _, alias := range o.Send {
		edge := journal.SettingEdge{Alias: alias, Channel: journal.ChannelID("send " + alias)}
		if !slices.Contains(s.sends, edge) {
			s.sends = append(s.sends, edge)
		}
	}
	return s, s.r.Become(&journal.Setting{Name: o.Name, Config: o.Config, Sends: s.sends, Limits: o.Limits, Grants: o.Grants})
}

// Instances returns how many instances were made so far.
func (s *Creature) Instances() int { return s.made }

// Now returns the time of the next delivery, in nanoseconds since 1970.
func (s *Creature) Now() int64 { return s.now }

// State returns the state of the creature. The caller must not modify it.
func (s *Creature) State() map[string]operations.Payload { return s.state }

// Timer is a timer that the creature has set.
type Timer struct {
	Name    string             `json:"name"`
	InMS    int64              `json:"in_ms"`              // until it fires
	EveryMS int64              `json:"every_ms,omitempty"` // 0: once
	Payload operations.Payload `json:"payload"`
	due     int64
	period  int64
}

// Due returns when the timer fires, in nanoseconds since 1970.
func (t *Timer) Due() int64 { return t.due }

// question is a request of the creature without a result.
type question struct {
	id  journal.EventID
	tag int64
}

// Record is a delivery and what the creature did.
type Record struct {
	Kind    KindName                `json:"kind"`
	Alias   string                  `json:"alias,omitempty"`
	Name    string                  `json:"name,omitempty"` // of a timer
	Payload operations.Payload      `json:"payload"`
	Headers map[string]string       `json:"headers,omitempty"`
	AtMS    int64                   `json:"at_ms"`  // since the first delivery
	Status  string                  `json:"status"` // ok, or the code of the error
	Fuel    int64                   `json:"fuel"`   // that the turn used
	Effects []replay.Effect         `json:"effects"`
	Error   *operations.ErrorRecord `json:"error,omitempty"`
	Refused bool                    `json:"-"` // no instance could be made
	Asked   []Asked                 `json:"-"` // its requests, in their order
	Timers  []journal.NotedTimer    `json:"-"` // that it set or cancelled
	// Starting are the lines that creature_init logged; Effects has them too.
	Starting []journal.LogPayload `json:"-"`
}

// Asked is what a request has in addition to a send.
type Asked struct {
	Tag      int64
	Deadline time.Duration
}

// Close closes the instance. The next delivery gets a new one.
func (s *Creature) Close(ctx context.Context) {
	if s.instance != nil {
		_ = s.instance.Close(ctx) // nothing in it is needed
		s.instance = nil
	}
}

// bystander answers the calls of a guest that need a graph.
type bystander struct {
	abi.Turn
	r     *engine.Rehearsal
	o     *Options
	calls []journal.NotedCall // of group tools
}

// HasFeature implements [abi.Turn].
func (b *bystander) HasFeature(f abi.Feature) bool {
	return !slices.Contains(b.o.Lacks, f) && b.Turn.HasFeature(f)
}

// Tool implements [abi.Turn].
func (b *bystander) Tool(name, args []byte) ([]byte, abi.Code) {
	if code := b.r.MayCallTool(name, args); code != abi.OK {
		return nil, code
	}
	b.calls = append(b.calls, journal.NotedCall{Tool: string(name), Args: bytes.Clone(args)})
	if b.o.Tool != nil {
		result, err := b.o.Tool(name, args)
		if err != nil {
			return nil, b.r.Refuse(err.Code, err.Message)
		}
		return result, abi.OK
	}
	return nil, b.r.Refuse(abi.NotPrivileged, "group tools need a graph, and a called creature has none: run it in a recipe")
}

// Deliver hands a delivery to the creature. The error is only about ctx.
func (s *Creature) Deliver(ctx context.Context, d *Delivery) (*Record, error) {
	kind := d.KindNumber()
	out := &Record{
		Kind: d.Kind, Alias: d.Alias, Name: d.Name, Payload: d.Payload, Headers: d.Headers,
		AtMS: (s.now - Begin*int64(time.Second)) / int64(time.Millisecond), Status: abi.OK.String(), Effects: []replay.Effect{},
	}
	s.move(d)
	s.look(kind == abi.KindGraphChanged)
	w := &bystander{r: s.r, o: &s.o}
	logs, err := s.ready(ctx, w)
	out.Starting = logs
	if out.Refused = err != nil; out.Refused && kind == abi.KindTimer {
		s.rang(d.Name) // an engine does not keep it either
	}
	if err == nil {
		w.Turn = s.r.Begin(s.rehearsed(d, kind))
		for _, name := range append([]string{s.o.Name}, s.o.Peers...) {
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
		done, w.calls = rehearsal.Effects{Logs: done.Logs}, nil
	}
	if !out.Refused {
		done.Logs = append(logs, done.Logs...)
	} else {
		done.Logs = logs
	}
	out.Effects = append(out.Effects, replay.EffectsOf(&done, w.calls, s.sends)...)
	s.apply(&done)
	out.Timers = done.Timers
	for i := range done.Sends {
		if x := &done.Sends[i]; x.Request {
			out.Asked = append(out.Asked, Asked{x.Tag, x.Deadline})
		}
	}
	if err != nil || s.o.Fresh {
		s.Close(ctx)
	}
	return out, nil
}

// ready makes an instance unless there is one, and returns what it logged.
func (s *Creature) ready(ctx context.Context, w *bystander) ([]journal.LogPayload, error) {
	if s.instance != nil {
		return nil, nil
	}
	limits := s.r.Limits()
	w.Turn = s.r.Starting()
	instance, err := s.module.Instantiate(ctx, &limits, w)
	if err != nil {
		return s.r.Effects().Logs, err
	}
	s.instance = instance
	s.made++
	return s.r.Effects().Logs, nil
}

// rehearsed describes a delivery as an engine would.
func (s *Creature) rehearsed(d *Delivery, kind abi.Kind) *rehearsal.Delivery {
	s.last++
	out := &rehearsal.Delivery{Kind: kind, Time: s.now, Attempt: cmp.Or(d.Attempt, 1), Payload: d.Payload, Sender: d.Sender, Revision: s.revision}
	switch kind {
	case abi.KindStart, abi.KindGraphChanged:
		return out
	}
	s.seqs[d.Alias]++
	out.ID, out.Seq, out.Alias = journal.EventID{Origin: journal.Origin{1}, Seq: cmp.Or(d.Message, s.last)}, s.seqs[d.Alias], d.Alias
	out.Channel = journal.ChannelID("listen " + d.Alias)
	if d.Alias == "" {
		out.Channel = journal.InboxOf(journal.CreatureID(s.o.Name))
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
func (s *Creature) rang(name string) {
	s.r.Rang(name)
	if t := s.timers[name]; t != nil {
		if t.period == 0 {
			delete(s.timers, name)
		}
		t.due += t.period
	}
}

func (s *Creature) answered(tag int64) {
	at := slices.IndexFunc(s.asked, func(q question) bool { return q.tag == tag })
	if at >= 0 {
		s.r.Answered(s.asked[at].id)
		s.asked = slices.Delete(s.asked, at, at+1)
	}
}

// apply makes the effects of a turn part of what the next one finds.
func (s *Creature) apply(done *rehearsal.Effects) {
	for _, w := range done.Writes {
		s.Write(w.Key, w.Value, w.Deleted)
	}
	for _, x := range done.Timers {
		s.r.SetTimer(x)
		if x.Cancelled {
			delete(s.timers, x.Name)
			continue
		}
		s.timers[x.Name] = &Timer{Name: x.Name, Payload: operations.Payload(x.Payload), due: s.now + x.Delay, period: x.Period}
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

// Write changes the state, as an earlier turn might have.
func (s *Creature) Write(key string, value []byte, deleted bool) {
	s.r.Write(key, value, deleted)
	if deleted {
		delete(s.state, key)
	} else {
		s.state[key] = value
	}
}

// The errors of [Creature.Advance] over more timers than it fires, and over timers whose
// turns do not end by themselves.
var (
	ErrManyTimers  = fmt.Errorf("more than %d timers fire: advance by less", maxFired)
	ErrManyStopped = fmt.Errorf("%d turns of timers ran until a limit stopped them: advance by less", maxStopped)
)

// Spun reports whether a turn did not end until it was stopped.
func (r *Record) Spun() bool {
	switch r.Status {
	case abi.OutOfFuel.String(), abi.Deadline.String():
		return true
	case abi.LimitExceeded.String():
		return r.Error != nil && strings.Contains(r.Error.Message, "the limit calls")
	}
	return false
}

// Advance moves the clock and delivers the timers that come due, each at its time. It ends
// early, with the clock at the last of them, when each returns false.
func (s *Creature) Advance(ctx context.Context, by time.Duration, each func(*Record) (more bool)) error {
	end := s.now + int64(by)
	for {
		next := s.Next()
		if next == nil || next.due > end {
			s.now = end
			return nil
		}
		if s.fired++; s.fired > maxFired {
			return ErrManyTimers
		}
		if s.stopped >= maxStopped {
			return ErrManyStopped
		}
		s.now = max(s.now, next.due)
		rec, err := s.Deliver(ctx, &Delivery{Kind: TimerFired, Name: next.Name, Payload: next.Payload})
		if err != nil {
			return err
		}
		if rec.Spun() {
			s.stopped++
		}
		if !each(rec) {
			return nil
		}
	}
}

// Next returns the timer that comes due first, or nil. Of several at the same time it is
// the one whose name comes first.
func (s *Creature) Next() *Timer {
	var first *Timer
	for _, name := range slices.Sorted(maps.Keys(s.timers)) {
		if t := s.timers[name]; first == nil || t.due < first.due {
			first = t
		}
	}
	return first
}

// Waiting returns the timers that are set, by name.
func (s *Creature) Waiting() []*Timer {
	out := []*Timer{}
	for _, name := range slices.Sorted(maps.Keys(s.timers)) {
		t := s.timers[name]
		t.InMS, t.EveryMS = (t.due-s.now)/int64(time.Millisecond), t.period/int64(time.Millisecond)
		out = append(out, t)
	}
	return out
}

// Perform hands out all deliveries.
func (s *Creature) Perform(ctx context.Context, list []Delivery) ([]*Record, error) {
	records := []*Record{}
	for i := range list {
		d := &list[i]
		if d.Advance != "" {
			s.move(d) // for the turns of timers
			err := s.Advance(ctx, d.Step(), func(r *Record) bool { records = append(records, r); return true })
			if err != nil {
				return nil, err
			}
			continue
		}
		r, err := s.Deliver(ctx, d)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
		if r.Refused {
			break
		}
	}
	return records, nil
}

// Set moves the clock to a time after Begin, in nanoseconds, without firing timers.
func (s *Creature) Set(after int64) { s.now = Begin*int64(time.Second) + after }

// Know adds the name of another creature to those that the creature can name.
func (s *Creature) Know(name string) { s.o.Peers = append(s.o.Peers, name) }

// Start makes an instance unless there is one, and returns what creature_init logged.
func (s *Creature) Start(ctx context.Context) ([]journal.LogPayload, error) {
	s.look(false)
	return s.ready(ctx, &bystander{r: s.r, o: &s.o})
}

// Stop runs creature_stop, closes the instance and returns what was logged.
func (s *Creature) Stop(ctx context.Context) ([]journal.LogPayload, error) {
	if s.instance == nil {
		return nil, nil
	}
	defer s.Close(ctx)
	w := &bystander{Turn: s.r.Starting(), r: s.r, o: &s.o}
	err := s.instance.Stop(ctx, w)
	return s.r.Effects().Logs, err
}
