package draft

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// judging is the state of the policies' judgement of a draft. If the draft is
// undone, only the refusals in it matter.
type judging struct {
	call  string // the tool; empty if the operation itself names the call
	until int64  // when the policies' time is over

	memories map[Home]Memory
	words    []HomedWord // to be logged with the change
	settled  int         // how many of words are about operations without an objection
	refused  []HomedWord // to be logged although the operation does not happen
	// objections holds the denials of the operation being judged.
	objections []Objection
}

// maxJudging bounds the total time of the policies for one draft. Nothing else
// changes the [Base] meanwhile.
const maxJudging = 2 * time.Second

// Calling sets the tool that makes the next steps.
func (d *Draft) Calling(tool string) { d.judging.call = tool }

// Memories returns the memories that policies have used, by home.
func (d *Draft) Memories() map[Home]Memory { return d.judging.memories }

// judge asks the policies of every deployment concerned about an event, and
// collects their words; see objected. creature is the creature that creates
// the graph, if there is none yet.
func (d *Draft) judge(ctx context.Context, ev deploy.PolicyEvent, creature journal.CreatureID, deployments ...string) (all deploy.Decision) {
	asked := map[string]bool{"": true}
	for _, name := range deployments {
		if asked[name] {
			continue
		}
		asked[name] = true
		if of := d.Deployment(name); of != nil && of.Policy != nil && of.Policy.Judges(ev.Kind) {
			d.ask(ctx, of.Policy, ev, Home{ev.Graph, creature}, name, &all)
		}
	}
	return all
}

// objected returns an error if a policy has objected to the operation, which
// then must not happen. Interrupted policies fail, which is not an objection.
func (d *Draft) objected(ctx context.Context) error {
	j := &d.judging
	list := j.objections
	if j.objections = nil; len(list) == 0 {
		j.settled = len(j.words)
		return nil
	}
	if err := context.Cause(ctx); err != nil {
		j.words, j.refused = j.words[:j.settled], j.refused[:len(j.refused)-len(list)] // each denial is in both lists
		return &abi.Error{
			Code: abi.Unavailable, Op: list[0].Event.Call, Message: "the caller stopped waiting while the policies judged the operation",
			Remedy: "wait longer", Err: err,
		}
	}
	j.refused = append(j.refused, j.words[j.settled:]...) // includes the words of other policies
	j.words = j.words[:j.settled]
	return Refusal(list)
}

// ask asks the policies of one deployment.
func (d *Draft) ask(ctx context.Context, p deploy.Policy, ev deploy.PolicyEvent, home Home, deployment string, all *deploy.Decision) {
	if home.Graph != "" {
		home.Creature = ""
	}
	d.completeEvent(&ev, deployment)
	ev.Surroundings = deploy.Surroundings{Memory: d.memory(home).Of(deployment), View: func() *deploy.GraphView { return d.view(ev.Graph) }}
	now := d.live.Now()
	if d.judging.until == 0 {
		d.judging.until = now + int64(maxJudging)
	}
	var said deploy.Decision
	if now > d.judging.until {
		said.Denials = []deploy.Verdict{{Policy: deployment, Reason: fmt.Sprintf("the policies take longer than %v for this operation", maxJudging), Failed: true}}
	} else {
		said = p.Judge(ctx, &ev)
	}
	d.live.Heard(&said.Words)
	answer(d.Answer, &ev, &said.Words)
	for _, w := range WordsOf(&ev, &said.Words) {
		if w.Effect == journal.PolicyDenied {
			d.judging.refused = append(d.judging.refused, HomedWord{home, w})
		} else {
			d.judging.words = append(d.judging.words, HomedWord{home, w})
		}
	}
	for _, v := range said.Denials {
		d.judging.objections = append(d.judging.objections, Objection{&ev, v})
	}
	for name, how := range said.Settle {
		if all.Settle == nil {
			all.Settle = map[string]deploy.Collision{}
		}
		if _, settled := all.Settle[name]; !settled {
			all.Settle[name] = how
		}
	}
}

// answer turns the questions of policies into denials, except for those that are answered
// with an approval.
func answer(ask func(*deploy.PolicyEvent, deploy.Ask) *deploy.Verdict, ev *deploy.PolicyEvent, said *deploy.Words) {
	switch {
	case len(said.Asks) == 0 || len(said.Denials) > 0:
	case ask == nil:
		said.DenyAsks()
	default:
		for _, a := range said.Asks {
			if v := ask(ev, a); v != nil {
				said.Denials = append(said.Denials, *v)
			}
		}
	}
}

// completeEvent sets the fields that do not depend on the kind.
func (d *Draft) completeEvent(ev *deploy.PolicyEvent, deployment string) {
	ev.Deployment, ev.Caller = deployment, d.Caller
	if ev.Time = d.Now; ev.Time == 0 {
		ev.Time = d.live.Now()
	}
	if d.judging.call != "" {
		ev.Call = d.judging.call
	}
	h := fnv.New64a()
	for _, part := range []string{string(ev.Kind), string(ev.Graph), ev.Call, string(ev.Creature.ID), string(ev.From.ID), string(ev.To.ID), string(ev.Channel.ID)} {
		h.Write([]byte(part))
	}
	ev.Seed = h.Sum64() + uint64(ev.Time)
}

// memory returns the policies' memory in a graph, including values not stored
// yet.
func (d *Draft) memory(home Home) Memory {
	if m := d.judging.memories[home]; m != nil {
		return m
	}
	if d.judging.memories == nil {
		d.judging.memories = map[Home]Memory{}
	}
	m := d.live.Memory(home)
	d.judging.memories[home] = m
	return m
}

// judged reports whether any deployment has policies for a kind of event.
func (d *Draft) judged(kind journal.PolicyKind) bool {
	if d.Applying != nil || d.Unjudged {
		return false // a plan is judged as a whole
	}
	for of := range d.base.Deployments {
		if of.Policy != nil && of.Policy.Judges(kind) {
			return true
		}
	}
	return false
}

// JudgePlan asks the policy of the deployment being applied about the whole
// plan, once. ev lists what is created, resumed, changed and removed. first is
// the creature that the event is about, the root if there is one.
func (d *Draft) JudgePlan(ctx context.Context, ev deploy.PolicyEvent, first journal.CreatureID) error {
	p := d.Applying.Policy
	if p == nil || !p.Judges(journal.JudgePlan) {
		return nil
	}
	ev.Kind, ev.Call, ev.Graph = journal.JudgePlan, "apply", d.topo.GraphOf(first)
	var all deploy.Decision
	d.ask(ctx, p, ev, Home{ev.Graph, first}, d.Applying.Name, &all)
	return d.objected(ctx)
}
