package policy

import (
	"context"
	"fmt"
	"time"

	"github.com/seed47132306/terrarium/engine"
)

// Mode says what a policy may do.
type Mode uint8

// The modes.
const (
	Validate Mode = iota // object to a message
	Mutate               // also change or drop it
)

// OnError says what happens when a policy fails to decide.
type OnError uint8

// The ways to go on.
const (
	DenyOnError  OnError = iota // the failure is a denial
	WarnOnError                 // the failure is a warning
	AllowOnError                // the failure is ignored
)

// The bounds of a policy's time for one event. It is time on the clock, so the
// default leaves room for a busy machine.
const (
	DefaultTimeout = 250 * time.Millisecond
	MaxTimeout     = time.Second
)

// Policy is one policy on the event send.
type Policy struct {
	Name   string
	Mode   Mode
	Source string // one JavaScript function: (event, ctx) => …
	File   string // where Source stands, for errors and verdicts
	Line   int    // of its first line; 0 means 1
	// Channels are the addresses of the channels it judges; nil means all.
	Channels []string
	// Match skips the script where it is false; nil means that it never is. It
	// may be called from any goroutine.
	Match   func(*engine.SendEvent) (bool, error)
	Timeout time.Duration // 0 means DefaultTimeout, and at most MaxTimeout is used
	OnError OnError
	Audit   bool // only record what it would do
}

// Set is the policies of one deployment. It implements [engine.Policy]; its
// methods may be called from any goroutine.
type Set struct {
	policies []*compiled // those that mutate, then those that validate
	// byChannel has the policies for each channel that some policy names, and
	// everywhere those for all other channels, both in the order of policies.
	byChannel  map[string][]*compiled
	everywhere []*compiled
	*pool
}

var _ engine.Policy = (*Set)(nil)

// New compiles policies. It tells every script that cannot be used.
func New(policies []Policy) (*Set, []*ScriptError) {
	limitMatching()
	s := &Set{}
	var faults []*ScriptError
	for _, mode := range []Mode{Mutate, Validate} {
		for _, p := range policies {
			if p.Mode != mode {
				continue
			}
			c, err := compile(p, len(s.policies))
			if err != nil {
				faults = append(faults, err)
				continue
			}
			s.policies = append(s.policies, &c)
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	s.pool = newPool(len(s.policies))
	s.index()
	return s, nil
}

// index sorts the policies by channel, so that a message costs nothing for
// policies that do not concern it.
func (s *Set) index() {
	s.byChannel = map[string][]*compiled{}
	for _, p := range s.policies {
		for channel := range p.channels {
			s.byChannel[channel] = nil
		}
	}
	for _, p := range s.policies {
		if p.channels != nil {
			for channel := range p.channels {
				s.byChannel[channel] = append(s.byChannel[channel], p)
			}
			continue
		}
		s.everywhere = append(s.everywhere, p)
		for channel := range s.byChannel {
			s.byChannel[channel] = append(s.byChannel[channel], p)
		}
	}
}

func (s *Set) judging(channel string) []*compiled {
	if list, ok := s.byChannel[channel]; ok {
		return list
	}
	return s.everywhere
}

// JudgesSend implements [engine.Policy].
func (s *Set) JudgesSend(channel string) bool {
	return len(s.judging(channel)) > 0
}

// Send implements [engine.Policy]. It blocks for as long as the scripts run,
// each at most for its timeout.
func (s *Set) Send(ctx context.Context, event *engine.SendEvent) engine.SendDecision {
	j := judgement{set: s, event: event}
	for _, p := range s.judging(event.ChannelAddress) {
		j.policy(ctx, p)
		if j.decision.Dropped != nil {
			break // what is not sent needs no further judging
		}
	}
	j.release()
	return j.decision
}

// judgement is the course of one decision.
type judgement struct {
	set      *Set
	event    *engine.SendEvent // as mutated so far
	isolate  *isolate          // from the first script that runs
	decision engine.SendDecision
}

func (j *judgement) policy(ctx context.Context, p *compiled) {
	defer func() {
		// Neither a condition nor a defect of the interpreter may take the
		// engine down.
		if r := recover(); r != nil {
			j.failed(p, clip(fmt.Sprintf("it panicked: %v", r)), p.Line)
		}
	}()
	if err := ctx.Err(); err != nil {
		j.failed(p, fmt.Sprintf("the caller gave up: %v", err), p.Line)
		return
	}
	if p.Match != nil {
		ok, err := p.Match(j.event)
		if err != nil {
			j.failed(p, "match: "+err.Error(), p.Line)
			return
		}
		if !ok {
			return
		}
	}
	if j.isolate == nil {
		var err error
		if j.isolate, err = j.set.acquire(); err != nil {
			j.failed(p, err.Error(), p.Line)
			return
		}
	}
	v, err := j.isolate.judge(p, j.event)
	if err != nil {
		j.failed(p, err.Message, err.Line)
		j.retire()
		return
	}
	j.verdict(p, v)
}

// failed handles a policy that did not decide.
func (j *judgement) failed(p *compiled, message string, line int) {
	v := p.word(message, line)
	switch {
	case p.OnError == AllowOnError:
	case p.OnError == WarnOnError:
		j.decision.Warnings = append(j.decision.Warnings, v)
	default:
		j.deny(p, v)
	}
}

func (j *judgement) deny(p *compiled, v engine.Verdict) {
	if p.Audit {
		j.decision.Audits = append(j.decision.Audits, v)
	} else {
		j.decision.Denials = append(j.decision.Denials, v)
	}
}

func (j *judgement) verdict(p *compiled, v *verdict) {
	if v == nil || v.kind == kindAllow {
		return
	}
	word := p.word(v.reason, v.line)
	switch {
	case v.kind == kindDeny:
		j.deny(p, word)
	case v.kind == kindWarn:
		j.decision.Warnings = append(j.decision.Warnings, word)
	case p.Mode != Mutate:
		j.failed(p, fmt.Sprintf("%s() needs mode = \"mutate\"", v.kind), v.line)
	case p.Audit:
		word.Reason = fmt.Sprintf("would have called %s(%s)", v.kind, v.reason)
		j.decision.Audits = append(j.decision.Audits, word)
	case v.kind == kindDrop:
		j.decision.Dropped = &word
	default:
		j.patch(v)
	}
}

// patch changes the event for the policies to come.
func (j *judgement) patch(v *verdict) {
	e := *j.event // the caller's stays as it is
	j.event = &e
	if v.payload != nil {
		j.event.Payload = v.payload
	}
	if v.headers != nil {
		j.event.Headers = *v.headers
	}
	j.decision.Mutated = true
	j.decision.Payload, j.decision.Headers = j.event.Payload, j.event.Headers
}

// retire gives up the runtime after a failure that may have left it in any
// state.
func (j *judgement) retire() {
	if j.isolate.spoilt {
		j.isolate = nil
	}
}

func (j *judgement) release() {
	if j.isolate != nil {
		j.isolate.forget()
		j.set.release(j.isolate)
	}
}
