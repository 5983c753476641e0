package engine

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// judging is what policies have to do with a change. Nothing of it matters if the
// change does not happen, but for what they have refused.
type judging struct {
	caller deploy.Party
	call   string // the tool; empty: the operation says by itself
	now    int64  // 0: the clock says
	until  time.Time

	memories map[memoryHome]*recollection
	words    []policyWord // to be logged with the change
	settled  int          // how many of them are about operations that nobody has objected to
	refused  []policyWord // to be logged because it does not happen
	// objections are the denials of the operation that is being judged.
	objections []objection
}

// objection is a denial of an event.
type objection struct {
	event *deploy.PolicyEvent
	deploy.Verdict
}

// memoryHome says whose memory is meant: that of a graph or, if it is yet to be
// made, of the one that a creature will be in.
type memoryHome struct {
	graph    journal.GraphID
	creature journal.CreatureID
}

// policyWord is a verdict on something other than a message.
type policyWord struct {
	home memoryHome
	policyVerdict
}

// maxJudging bounds how long the policies may take for one operation in all. The
// mutation lock is held meanwhile.
const maxJudging = 2 * time.Second

// judge asks every deployment concerned about an event, and collects what they
// say; see objected. creature is who makes the graph, if there is none yet.
func (x *change) judge(ev deploy.PolicyEvent, creature journal.CreatureID, deployments ...string) (all deploy.Decision) {
	asked := map[string]bool{"": true}
	for _, name := range deployments {
		if asked[name] {
			continue
		}
		asked[name] = true
		if d := x.deployment(name); d != nil && d.Policy != nil && d.Policy.Judges(ev.Kind) {
			x.ask(d.Policy, ev, memoryHome{ev.Graph, creature}, name, &all)
		}
	}
	return all
}

// objected answers an error if anybody has objected to the operation, which must
// not happen then.
func (x *change) objected() error {
	j := &x.judging
	list := j.objections
	if j.objections = nil; len(list) == 0 {
		j.settled = len(j.words)
		return nil
	}
	j.refused = append(j.refused, j.words[j.settled:]...) // who did not object may have said something
	j.words = j.words[:j.settled]
	return refusal(list)
}

// ask asks the policies of one deployment.
func (x *change) ask(p deploy.Policy, ev deploy.PolicyEvent, home memoryHome, deployment string, all *deploy.Decision) {
	if home.graph != "" {
		home.creature = ""
	}
	x.completeEvent(&ev, deployment)
	memory := x.memory(home)
	ev.Surroundings = deploy.Surroundings{Memory: memory.of(deployment), View: func() *deploy.GraphView { return x.view(ev.Graph) }}
	var d deploy.Decision
	if x.judging.until.IsZero() {
		x.judging.until = time.Now().Add(maxJudging)
	}
	if time.Now().After(x.judging.until) {
		d.Denials = []deploy.Verdict{{Policy: deployment, Reason: fmt.Sprintf("the policies take longer than %v for this operation", maxJudging), Failed: true}}
	} else {
		d = p.Judge(context.Background(), &ev)
	}
	x.e.heard(&d.Words)
	for _, v := range wordsOf(&ev, &d.Words) {
		w := policyWord{home, v}
		if v.effect == effectDenied {
			x.judging.refused = append(x.judging.refused, w)
		} else {
			x.judging.words = append(x.judging.words, w)
		}
	}
	for _, v := range d.Denials {
		x.judging.objections = append(x.judging.objections, objection{&ev, v})
	}
	for name, how := range d.Settle {
		if all.Settle == nil {
			all.Settle = map[string]deploy.Collision{}
		}
		if _, settled := all.Settle[name]; !settled {
			all.Settle[name] = how
		}
	}
}

// completeEvent fills in what does not depend on the kind.
func (x *change) completeEvent(ev *deploy.PolicyEvent, deployment string) {
	ev.Deployment, ev.Caller = deployment, x.judging.caller
	if ev.Time = x.judging.now; ev.Time == 0 {
		ev.Time = x.e.wallClock()
	}
	if x.judging.call != "" {
		ev.Call = x.judging.call
	}
	h := fnv.New64a()
	for _, part := range []string{string(ev.Kind), string(ev.Graph), ev.Call, string(ev.Creature.ID), string(ev.From.ID), string(ev.To.ID), string(ev.Channel.ID)} {
		h.Write([]byte(part))
	}
	ev.Seed = h.Sum64() + uint64(ev.Time)
}

// memory is what policies remember in a graph, as the change has it.
func (x *change) memory(home memoryHome) *recollection {
	if r := x.judging.memories[home]; r != nil {
		return r
	}
	if x.judging.memories == nil {
		x.judging.memories = map[memoryHome]*recollection{}
	}
	r := &recollection{home: func() *graph {
		g := x.e.graphs[home.graph]
		if g != nil {
			g.mu.Lock()
		}
		return g
	}}
	x.judging.memories[home] = r
	return r
}

// judged reports whether any deployment has events of a kind judged.
func (x *change) judged(kind journal.PolicyKind) bool {
	if x.applying != nil || x.hold {
		return false // a plan is judged as a whole
	}
	for _, d := range x.e.deployments {
		if d.Policy != nil && d.Policy.Judges(kind) {
			return true
		}
	}
	return false
}
