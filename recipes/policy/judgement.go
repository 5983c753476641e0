package policy

import (
	"context"
	"fmt"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Send implements [deploy.Policy]. It blocks while the scripts run, each for at most its
// timeout.
func (s *Set) Send(ctx context.Context, event *deploy.SendEvent) deploy.SendDecision {
	var d deploy.SendDecision
	j := judgement{set: s, subject: subject{send: event}, words: &d.Words, sent: &d}
	for _, p := range s.judging(event.ChannelAddress) {
		j.policy(ctx, p)
		if d.Dropped != nil {
			break // a message that is not sent needs no further judgement
		}
	}
	j.release()
	return d
}

// Judge implements [deploy.Policy]. It blocks like Send.
func (s *Set) Judge(ctx context.Context, event *deploy.PolicyEvent) deploy.Decision {
	var d deploy.Decision
	j := judgement{set: s, subject: subject{event: event}, words: &d.Words, decided: &d}
	for _, p := range s.byKind[event.Kind] {
		j.policy(ctx, p)
	}
	j.release()
	return d
}

// judgement is the state of one decision. Either sent or decided is set.
type judgement struct {
	set     *Set
	subject subject  // as mutated so far
	isolate *isolate // set when the first script runs
	words   *deploy.Words
	sent    *deploy.SendDecision
	decided *deploy.Decision
}

func (j *judgement) policy(ctx context.Context, p *compiled) {
	defer func() {
		// Neither a condition nor a panic of the interpreter may stop the engine.
		if r := recover(); r != nil {
			j.failed(p, clip(fmt.Sprintf("it panicked: %v", r)), p.Line)
		}
	}()
	if err := ctx.Err(); err != nil {
		j.undecided(p, p.word(fmt.Sprintf("the caller cancelled: %v", err), p.Line))
		return
	}
	ok, err := p.concerns(&j.subject)
	if err != nil {
		j.failed(p, "match: "+err.Error(), p.Line)
		return
	}
	if !ok {
		return
	}
	a, fault := j.run(p)
	if fault != nil {
		j.failed(p, fault.Message, fault.Line)
		return
	}
	if a.remembers {
		j.subject.surroundings().Memory.Remember(p.memory, a.memory)
	}
	j.verdict(p, a.verdict)
}

// run runs a script, in this process or in another.
func (j *judgement) run(p *compiled) (answer, *ScriptError) {
	if p.Process {
		if j.set.children == nil {
			return answer{}, p.fault(1, 1, "it needs another process, but the program that applied the recipe starts none", "")
		}
		return j.set.children.judge(p, &j.subject)
	}
	if j.isolate == nil {
		var err error
		if j.isolate, err = j.set.acquire(); err != nil {
			return answer{}, p.fault(1, 1, err.Error(), "")
		}
	}
	a, fault := j.isolate.judge(p, &j.subject)
	if fault != nil && j.isolate.spoilt {
		j.isolate = nil // its state is unknown
	}
	return a, fault
}

// concerns reports whether the policy judges a subject.
func (p *compiled) concerns(s *subject) (bool, error) {
	if p.parties != nil && !p.isParty(s) {
		return false, nil
	}
	switch {
	case s.send != nil && p.Match != nil:
		return p.Match(s.send)
	case s.event == nil:
		return true, nil
	case p.channels != nil && !p.isOn(s.event):
		return false, nil
	case p.MatchEvent != nil:
		return p.MatchEvent(s.event)
	}
	return true, nil
}

// isOn reports whether the policy judges the channel of the event.
func (p *compiled) isOn(e *deploy.PolicyEvent) bool {
	return e.Channel.Deployment == e.Deployment && p.channels[e.Channel.Address]
}

// isParty reports whether the policy judges any creature in the event. In a graph of
// several deployments, addresses and species of other deployments may be the same.
func (p *compiled) isParty(s *subject) bool {
	if e := s.send; e != nil {
		return e.SenderDeployment == e.Deployment && p.isAbout(e.SenderAddress, e.SenderSpecies)
	}
	e := s.event
	for _, party := range []*deploy.Party{&e.Creature, &e.From, &e.To, &e.Caller} {
		if party.Deployment == e.Deployment && p.isAbout(party.Address, party.Species) {
			return true
		}
	}
	return false
}

func (p *compiled) isAbout(address, species string) bool {
	return address != "" && p.parties[address] || species != "" && p.parties[species]
}

// failed handles a policy that failed.
func (j *judgement) failed(p *compiled, message string, line int) {
	v := p.word(message, line)
	v.Failed = true
	j.undecided(p, v)
}

// undecided handles a policy that did not decide.
func (j *judgement) undecided(p *compiled, v deploy.Verdict) {
	switch {
	case p.OnError == AllowOnError:
	case p.OnError == WarnOnError, p.On == journal.JudgeFail: // the failure has happened: the restart policy decides
		j.words.Warnings = append(j.words.Warnings, v)
	default:
		j.deny(p, v)
	}
}

func (j *judgement) deny(p *compiled, v deploy.Verdict) {
	if p.Audit {
		j.words.Audits = append(j.words.Audits, v)
	} else {
		j.words.Denials = append(j.words.Denials, v)
		j.keepOriginal(p)
	}
}

// keepOriginal logs the original of a message that the policy changes or drops, if the
// policy requests it.
func (j *judgement) keepOriginal(p *compiled) {
	if p.Original && j.sent != nil {
		j.sent.Original = true
	}
}

func (j *judgement) verdict(p *compiled, v *verdict) {
	if v == nil || v.kind == kindAllow {
		return
	}
	if reason := p.unfit(v); reason != "" {
		j.failed(p, reason, v.line)
		return
	}
	word := p.word(v.reason, v.line)
	switch {
	case v.kind == kindDeny:
		j.deny(p, word)
	case v.kind == kindWarn:
		j.words.Warnings = append(j.words.Warnings, word)
	case v.kind == kindAsk && !p.Audit:
		j.words.Asks = append(j.words.Asks, deploy.Ask{Verdict: word, Within: v.terms.Within, Allow: v.terms.Allow})
	case p.Audit:
		word.Reason = fmt.Sprintf("would have called %s(%s)", v.kind, v.reason)
		j.words.Audits = append(j.words.Audits, word)
	case p.On == journal.JudgeFail:
		if r := rulings[v.kind]; r > j.decided.Ruling {
			j.decided.Ruling, j.decided.By = r, word
		}
	case v.kind == kindDrop:
		j.sent.Dropped = &word
		j.keepOriginal(p)
	case p.On == journal.JudgeMerge:
		j.settleNames(v)
	case p.On == journal.JudgeCapability:
		j.amend(v)
		j.decided.ChangedBy = append(j.decided.ChangedBy, word)
	default:
		j.patch(v)
		j.sent.ChangedBy = append(j.sent.ChangedBy, word)
		j.keepOriginal(p)
	}
}

// rulings are the answers that decide about a failed turn.
var rulings = map[kind]deploy.Ruling{
	kindRestart: deploy.RuleRestart, kindDrop: deploy.RuleDrop, kindQuarantine: deploy.RuleQuarantine,
}

// unfit says why the event or the mode does not allow a verdict, or returns "".
func (p *compiled) unfit(v *verdict) string {
	_, ruling := rulings[v.kind]
	onSend, onFail, onMerge, onReach := p.On == journal.JudgeSend, p.On == journal.JudgeFail, p.On == journal.JudgeMerge, p.On == journal.JudgeCapability
	switch {
	case v.kind == kindWarn, onFail && ruling:
		return ""
	case onFail:
		return fmt.Sprintf("%s() cannot be used on the event fail, because the failure has already happened", v.kind)
	case v.kind == kindDeny, v.kind == kindAsk && p.On != journal.JudgePlan:
		return ""
	case !(v.kind == kindPatch && (onSend || onMerge || onReach)) && !(v.kind == kindDrop && onSend):
		return fmt.Sprintf("%s() cannot be used on the event %s", v.kind, p.On)
	case p.Mode != Mutate:
		return fmt.Sprintf("%s() needs mode = \"mutate\"", v.kind)
	case v.kind == kindPatch && (onMerge != (v.names != nil) || onReach != (v.request != nil)), !onSend && (v.payload != nil || v.headers != nil):
		return "patch takes names for a merge, request for a capability, and payload, base64 and headers for a message"
	}
	return ""
}

// settleNames decides about names that collide in a merge. The first answer for a name
// counts.
func (j *judgement) settleNames(v *verdict) {
	if j.decided.Settle == nil {
		j.decided.Settle = map[string]deploy.Collision{}
	}
	for name, how := range v.names {
		if _, settled := j.decided.Settle[name]; !settled {
			j.decided.Settle[name] = how
		}
	}
}

// patch changes the message for the following policies.
func (j *judgement) patch(v *verdict) {
	e := *j.subject.send // the caller's message stays unchanged
	if v.payload != nil {
		e.Payload = v.payload
	}
	if v.headers != nil {
		e.Headers = *v.headers
	}
	j.subject.send = &e
	j.sent.Mutated = true
	j.sent.Payload, j.sent.Headers = e.Payload, e.Headers
}

// amend changes a request to a capability for the following policies.
func (j *judgement) amend(v *verdict) {
	j.decided.Request = (&deploy.PolicyEvent{Called: deploy.Called{Request: j.decided.Request}}).With(v.request).Request
	j.subject.event = j.subject.event.With(v.request) // the caller's event stays unchanged
}

func (j *judgement) release() {
	if j.isolate != nil {
		j.isolate.dropEvent()
		j.set.release(j.isolate)
	}
}
