package engine

import (
	"context"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/internal/recall"
	"github.com/seed47132306/terrarium/engine/journal"
)

// policyOf is the policy of an applied deployment that judges events of a kind; nil if
// there is none. It needs no lock.
func (e *core) policyOf(deployment string, kind journal.PolicyKind) deploy.Policy {
	p, _ := e.policies.Load(deployment)
	if policy, ok := p.(deploy.Policy); ok && policy.Judges(kind) {
		return policy
	}
	return nil
}

// policySeed is the random seed of a decision about the turn.
func (t *turn) policySeed(what uint64) uint64 { return message.Seed(t.d.msg.ID, t.c.id, what) }

// judgeTool asks the policies about a call of a group tool. The call's effect on the
// graph is also judged as an operation of its own, and again when the turn commits.
func (t *turn) judgeTool(name string, args []byte) error {
	p := t.e.policyOf(t.c.deployment, journal.JudgeTool)
	if p == nil {
		return nil
	}
	r := &t.tools.recalled
	r.Home = t.c.home.memories
	ev := deploy.PolicyEvent{
		Kind: journal.JudgeTool, Call: name, Called: deploy.Called{Tool: name, Arguments: args}, Caller: t.c.party(), Graph: graphID(&t.c.home),
		Deployment: t.c.deployment, Time: t.d.msg.Time, Seed: t.policySeed(1<<32 | uint64(t.tools.Calls)),
		Surroundings: deploy.Surroundings{View: t.c.home.view(), Memory: r.Of(t.c.deployment)},
	}
	before := r.Now
	r.Now = maps.Clone(before)
	d := p.Judge(t.ctx, &ev)
	t.e.failed.Heard(&d.Words)
	t.answerCall(&ev, &d.Words)
	t.verdicts = append(t.verdicts, draft.WordsOf(&ev, &d.Words)...)
	if len(d.Denials) == 0 {
		return nil
	}
	r.Now = before // the call does not happen
	list := make([]draft.Objection, len(d.Denials))
	for i, v := range d.Denials {
		list[i] = draft.Objection{Event: &ev, Verdict: v}
	}
	return draft.Refusal(list)
}

// judge lets predicates decide where the turn's output goes, and policies decide about what the
// turn sends. Both run outside of critical sections, before any message gets a number.
func (w *turnWorker) judge(ctx context.Context) {
	t := &w.turn
	if t.HasOutput && t.wiring.outlets != nil {
		w.leadOut(ctx)
	}
	w.judgeSends(ctx)
}

// judgeSends asks the policies about everything that the turn sends on channels.
func (w *turnWorker) judgeSends(ctx context.Context) {
	t := &w.turn
	for i := range t.sends {
		s := &t.sends[i]
		if s.reach != nil {
			w.judgeReach(ctx, s, 3<<32|uint64(i))
		}
		if s.ch == nil {
			continue
		}
		policy := s.ch.policy.Load()
		if policy == nil {
			continue
		}
		t.recalled.Home = t.c.home.memories
		event := &deploy.SendEvent{
			Graph: graphID(&t.c.home), Time: t.now, Seed: t.policySeed(uint64(i)), Deployment: s.ch.deployment,
			ChannelName: s.alias, ChannelAddress: s.ch.place().address,
			SenderName: t.wiring.name, SenderAddress: t.c.spec.Address, SenderSpecies: t.c.spec.Species, SenderDeployment: t.wiring.deployment,
			Payload: t.Bytes(s.payload), Headers: journal.DecodeHeaders(t.Bytes(s.headers)),
			Surroundings: deploy.Surroundings{View: t.c.home.view(), Memory: t.recalled.Of(s.ch.deployment)},
		}
		verdict := (*policy).Send(ctx, event)
		w.e.failed.Heard(&verdict.Words)
		t.answerSend(s, event, &verdict)
		w.apply(s, &verdict)
	}
}

// judgeAgain is judgeSends for the case that the policies' recollections are out of date.
func (w *turnWorker) judgeAgain(ctx context.Context) {
	t := &w.turn
	t.recalled.Forget()
	t.asking.ForgetSends()
	t.verdicts = slices.DeleteFunc(t.verdicts, func(v draft.Word) bool { return v.Judged == journal.JudgeSend || v.Judged == journal.JudgeCapability })
	for i := range t.sends {
		s := &t.sends[i]
		s.left, s.keep, s.mutated, s.mutatedPayload, s.mutatedHeaders = false, false, false, nil, nil
	}
	w.judgeSends(ctx)
}

// apply records on a send what the policies decided.
func (w *turnWorker) apply(s *sendEffect, d *deploy.SendDecision) {
	t := &w.turn
	if len(d.Denials) > 0 {
		s.left = true
	} else if d.Dropped != nil {
		s.left = true
		t.verdicts = append(t.verdicts, draft.Word{Effect: journal.PolicyDropped, Judged: journal.JudgeSend, Channel: s.ch.id, Verdict: *d.Dropped})
	}
	t.verdicts = append(t.verdicts, draft.WordsOf(&deploy.PolicyEvent{Kind: journal.JudgeSend, Channel: deploy.PolicyChannel{ID: s.ch.id}}, &d.Words)...)
	if d.Mutated && !s.left {
		headers, ok := journal.EncodeHeaders(d.Headers)
		if !ok {
			headers = nil
		}
		s.mutated, s.mutatedPayload, s.mutatedHeaders = true, d.Payload, headers
	}
	s.keep = d.Original
	t.judged = t.judged || s.left || s.mutated
}

// failure is what policies decide about a failed turn.
type failure struct {
	deploy.Decision
	event    deploy.PolicyEvent
	recalled recall.Recollection
}

// judgeFailure asks the policies what to do about a failed turn. The caller is in no
// critical section.
func (w *turnWorker) judgeFailure(ctx context.Context, c *creature, d delivery, kind abi.Kind, cause error) *failure {
	p := w.e.policyOf(c.deployment, journal.JudgeFail)
	if p == nil {
		return nil
	}
	f := &failure{}
	f.recalled.Home = c.home.memories
	f.event = deploy.PolicyEvent{
		Kind: journal.JudgeFail, Call: "turn", Graph: graphID(&c.home), Deployment: c.deployment, Creature: c.party(),
		Time: w.e.wallClock(), Seed: message.Seed(d.msg.ID, c.id, 2<<32|uint64(c.attempt)),
		FailedTurn: deploy.FailedTurn{
			Code: abi.CodeOf(cause).String(), Error: errtext.Clip(cause.Error()), Delivery: kind.String(),
			Attempt: c.attempt + 1, Attempts: c.restart().Attempts, Failures: c.failures(w.e.wallClock()) + 1,
		},
		Surroundings: deploy.Surroundings{View: c.home.view(), Memory: f.recalled.Of(c.deployment)},
	}
	f.Decision = p.Judge(ctx, &f.event)
	w.e.failed.Heard(&f.Words)
	return f
}

// failures is how many of the creature's turns have failed within the period of its
// restart policy.
func (c *creature) failures(now int64) int {
	g := c.home.enter()
	if g.none() {
		return 0
	}
	defer g.leave()
	n := 0
	for _, at := range c.attempts {
		if at >= now-int64(c.restart().Within) {
			n++
		}
	}
	return n
}

// ruling is the decision of the policies, if there is one.
func (f *failure) ruling() deploy.Ruling {
	if f == nil {
		return deploy.RuleNothing
	}
	return f.Ruling
}

// log logs what the policies have said, and updates the graph's memory.
func (f *failure) log(g section, rec *journal.Record, about journal.Event) {
	if f == nil {
		return
	}
	for _, v := range draft.WordsOf(&f.event, &f.Words) {
		g.logVerdict(rec, about, v)
	}
	if w, ruled := draft.RulingOf(&f.event, &f.Decision); ruled {
		g.logVerdict(rec, about, w)
	}
	f.recalled.Keep(&g.memory, rec)
}

// enterFailed judges a failed turn and enters the critical section of the creature's graph, while
// the policies' recollections are still up to date. wall is the time of the failure.
func (w *turnWorker) enterFailed(ctx context.Context, wall int64, c *creature, d delivery, kind abi.Kind, cause error) (section, *failure) {
	if w.caller != nil {
		ctx = w.caller.workers // a caller that leaves now does not change what policies decide
	}
	for {
		f := w.judgeFailure(ctx, c, d, kind, cause)
		g := c.home.enterAt(wall)
		if g.none() || f == nil || f.recalled.Current(g.memory) {
			return g, f
		}
		g.leave()
	}
}

// PolicyFailures returns the policies that have failed to decide since the engine
// started, by name: scripts that threw or took too long. A denial is not a failure, and
// failures that a policy is set to ignore are not counted. Each is an [abi.Error] with
// the ids policy, where (the place of the first failure) and failures (their number).
func (e *Engine) PolicyFailures() []error { return e.core.failed.List() }

// Deployment returns a deployment as it was last applied, or nil. It is not to be modified.
func (e *Engine) Deployment(name string) *deploy.Deployment {
	l := e.core.rlock()
	defer l.runlock()
	return l.deployments[name]
}
