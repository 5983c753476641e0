package deploy_test

import (
	"context"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// scripted is a policy that returns the decisions that a test has set.
type scripted struct {
	send  func(*deploy.SendEvent) deploy.SendDecision
	judge func(*deploy.PolicyEvent) deploy.Decision
}

func (p *scripted) Judges(journal.PolicyKind) bool { return p.judge != nil }
func (p *scripted) JudgesSend(string) bool         { return p.send != nil }
func (p *scripted) Send(_ context.Context, e *deploy.SendEvent) deploy.SendDecision {
	return p.send(e)
}
func (p *scripted) Judge(_ context.Context, e *deploy.PolicyEvent) deploy.Decision { return p.judge(e) }

func denies(name string) deploy.Words {
	return deploy.Words{Denials: []deploy.Verdict{{Policy: name}}}
}

func TestPoliciesOnMessages(t *testing.T) {
	appends := func(text string) *scripted {
		return &scripted{send: func(e *deploy.SendEvent) deploy.SendDecision {
			return deploy.SendDecision{Mutated: true, Payload: append([]byte(nil), string(e.Payload)+text...), Headers: e.Headers, ChangedBy: []deploy.Verdict{{Policy: text}}}
		}}
	}
	seen := ""
	last := &scripted{send: func(e *deploy.SendEvent) deploy.SendDecision {
		seen = string(e.Payload)
		return deploy.SendDecision{Words: denies("last"), Original: true}
	}}
	event := &deploy.SendEvent{Payload: []byte("a")}
	d := deploy.Policies(nil, appends("b"), &scripted{}, appends("c"), last).Send(t.Context(), event)
	if seen != "abc" || string(d.Payload) != "abc" || !d.Mutated || len(d.ChangedBy) != 2 || !d.Original || len(d.Denials) != 1 {
		t.Errorf("the last policy saw %q, and together they decided %+v", seen, d)
	}
	if string(event.Payload) != "a" {
		t.Errorf("the event became %q", event.Payload)
	}
	seen = ""
	drops := &scripted{send: func(*deploy.SendEvent) deploy.SendDecision {
		return deploy.SendDecision{Dropped: &deploy.Verdict{Policy: "drops"}}
	}}
	if d := deploy.Policies(drops, last).Send(t.Context(), event); d.Dropped == nil || seen != "" {
		t.Errorf("a dropped message was judged again: %+v", d)
	}
	if deploy.Policies(nil, nil) != nil {
		t.Error("no policies became one")
	}
}

func TestPoliciesOnEvents(t *testing.T) {
	says := func(d deploy.Decision) *scripted {
		return &scripted{judge: func(*deploy.PolicyEvent) deploy.Decision { return d }}
	}
	p := deploy.Policies(
		says(deploy.Decision{Ruling: deploy.RuleDrop, By: deploy.Verdict{Policy: "one"}, Settle: map[string]deploy.Collision{"x": deploy.Rename}}),
		says(deploy.Decision{Ruling: deploy.RuleRestart, By: deploy.Verdict{Policy: "two"}, Settle: map[string]deploy.Collision{"x": deploy.Unify, "y": deploy.Unify}, Words: denies("two")}),
	)
	d := p.Judge(t.Context(), &deploy.PolicyEvent{Kind: journal.JudgeMerge})
	if d.Ruling != deploy.RuleDrop || d.By.Policy != "one" || d.Settle["x"] != deploy.Rename || d.Settle["y"] != deploy.Unify || len(d.Denials) != 1 {
		t.Errorf("together they decided %+v", d)
	}
}

func TestPolicyPanics(t *testing.T) {
	text := strings.Repeat("long", 1000)
	p := deploy.Policies(&scripted{
		send:  func(*deploy.SendEvent) deploy.SendDecision { panic(text) },
		judge: func(*deploy.PolicyEvent) deploy.Decision { panic(text) },
	})
	sent := p.Send(t.Context(), &deploy.SendEvent{})
	if len(sent.Denials) != 1 || !sent.Denials[0].Failed || len(sent.Denials[0].Reason) > 300 {
		t.Errorf("a message was decided %+v", sent)
	}
	if d := p.Judge(t.Context(), &deploy.PolicyEvent{Kind: journal.JudgeSpawn}); len(d.Denials) != 1 || !d.Denials[0].Failed {
		t.Errorf("spawn was decided %+v", d)
	}
	if d := p.Judge(t.Context(), &deploy.PolicyEvent{Kind: journal.JudgeFail}); len(d.Denials) != 0 || len(d.Warnings) != 1 {
		t.Errorf("fail was decided %+v", d)
	}
}
