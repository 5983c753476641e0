package recipes

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/recipes/policy"
	"github.com/zclconf/go-cty/cty"
)

var decidingEvents = func() []string {
	var out []string
	for _, kind := range journal.PolicyKinds() {
		out = append(out, string(kind))
	}
	return out
}()

// ServePolicies runs policies for the process at the other end of the pipes, until in
// ends; see [Options.PolicyProcess].
func ServePolicies(in io.Reader, out io.Writer) error { return policy.Serve(in, out) }

// policyName identifies a policy: policies on different events can have the same name.
type policyName struct {
	on   journal.PolicyKind
	name string
}

// scripts decodes the policies and predicates of one recipe.
type scripts struct {
	*evaluator
	opts    *settings
	species map[string]string // their names in the deployment, by address
}

// compilePolicies compiles the policies of all recipes for the deployment.
func compilePolicies(all []*scripts, d *deploy.Deployment) {
	var policies []policy.Policy
	found := map[policyName]*script{}
	for _, sc := range all {
		for _, decl := range sc.ordered["policy"] {
			p, s, ok := sc.policy(decl)
			if !ok {
				continue
			}
			sc.confine(&p)
			found[policyName{p.On, p.Name}] = s
			policies = append(policies, p)
		}
	}
	if len(policies) == 0 {
		return
	}
	all[0].isolate(all, policies)
	set, faults := policy.New(policies, policy.Options{Command: all[0].opts.PolicyProcess})
	for _, f := range faults {
		found[policyName{f.On, f.Policy}].fault(f)
	}
	if set != nil {
		d.Policy = set
	}
}

// compilePredicates compiles the predicates of all recipes for the deployment.
func compilePredicates(all []*scripts, d *deploy.Deployment) {
	var sources []policy.PredicateSource
	found := map[string]*script{}
	for _, sc := range all {
		for _, decl := range sc.ordered["predicate"] {
			s := scope{title: decl.title}
			timeout := sc.timeout(s, decl, "an output")
			sc.checkDescription(s, decl)
			source, ok := sc.script(s, decl)
			if !ok {
				continue
			}
			found[sc.names+decl.name] = source
			sources = append(sources, policy.PredicateSource{Name: sc.names + decl.name, Source: source.text, File: source.name, Line: source.line, Timeout: timeout})
		}
	}
	if len(sources) == 0 {
		return
	}
	made, faults := policy.NewPredicates(sources)
	for _, f := range faults {
		found[f.Policy].fault(f)
	}
	d.Predicates = made
}

func (sc *scripts) policy(d *declaration) (policy.Policy, *script, bool) {
	s := scope{title: d.title}
	if !slices.Contains(decidingEvents, d.event) {
		sc.otherEvent(s, d)
		return policy.Policy{}, nil, false
	}
	p := policy.Policy{Name: d.name, On: journal.PolicyKind(d.event)}
	sc.checkDescription(s, d)
	sc.mode(s, d, &p)
	switch then, _ := sc.choiceAttr(s, d, "on_error"); then {
	case "warn":
		p.OnError = policy.WarnOnError
	case "allow":
		p.OnError = policy.AllowOnError
	}
	enforce, _ := sc.choiceAttr(s, d, "enforce")
	p.Audit = enforce == "audit"
	sc.record(s, d, &p)
	p.Timeout = sc.timeout(s, d, "an event")
	sc.isolation(s, d, &p)
	sc.judged(s, d, &p)
	sc.match(s, d, &p)
	source, ok := sc.script(s, d)
	if !ok {
		return p, nil, false
	}
	p.Source, p.File, p.Line = source.text, source.name, source.line
	return p, source, true
}

// mode reads the mode of a policy. Only messages and merges can be changed.
func (sc *scripts) mode(s scope, d *declaration, p *policy.Policy) {
	mode, ok := sc.choiceAttr(s, d, "mode")
	if !ok || mode != "mutate" {
		return
	}
	if p.On != journal.JudgeSend && p.On != journal.JudgeMerge && p.On != journal.JudgeCapability {
		sc.fault(s, d.attr("mode").Expr, "Nothing to change", fmt.Sprintf("A policy on %q can only allow and deny: the event has nothing to change.", d.event),
			`Remove mode. Only policies on "send", "merge" and "capability" support the mode "mutate".`)
		return
	}
	p.Mode = policy.Mutate
}

// record reads how a session keeps messages that the policy changes or drops.
func (sc *scripts) record(s scope, d *declaration, p *policy.Policy) {
	kept, ok := sc.choiceAttr(s, d, "record")
	if ok && p.On != journal.JudgeSend {
		sc.fault(s, d.attr("record").Expr, "Nothing to keep", fmt.Sprintf("A policy on %q does not change messages.", d.event), "Remove record.")
		return
	}
	p.Original = kept == "original"
}

// isolate makes policies that another user may have written run in separate processes.
func (sc *scripts) isolate(all []*scripts, policies []policy.Policy) {
	why := ""
	for _, part := range all {
		if why == "" {
			why = part.folder.foreign
		}
	}
	switch {
	case sc.opts.Isolation == IsolateAll:
		why = "the program isolates all policies"
	case sc.opts.Isolation == IsolateNone, why == "":
		return
	}
	for i := range policies {
		policies[i].Process = true
	}
	if len(sc.opts.PolicyProcess) == 0 {
		sc.add(Diagnostic{Severity: Error, Summary: "No process to run policies in", Range: Range{File: sc.folder.shown},
			Detail: fmt.Sprintf("The policies of the recipe must run in separate processes: %s. This program does not know how to start one.", why),
			Remedy: "Run the recipe with the command terrarium, set RecipeOptions.PolicyProcess, or take ownership of the files after you have read them."})
	}
}

func (sc *scripts) isolation(s scope, d *declaration, p *policy.Policy) {
	if text, _ := sc.choiceAttr(s, d, "isolation"); text != "process" {
		return
	}
	if p.Process = true; len(sc.opts.PolicyProcess) == 0 {
		sc.fault(s, d.attr("isolation").Expr, "No process to run it in", "This program does not know how to start a process for policies.",
			"Run the recipe with the command terrarium, or set RecipeOptions.PolicyProcess.")
	}
}

// timeout reads the time limit of a script; 0 means the default.
func (sc *scripts) timeout(s scope, d *declaration, what string) time.Duration {
	timeout, ok := sc.durationAttr(s, d, "timeout")
	if ok && timeout > policy.MaxTimeout {
		sc.fault(s, d.attr("timeout").Expr, "Timeout too long", fmt.Sprintf("A %s may take at most %v for %s.", d.kind, policy.MaxTimeout, what), fmt.Sprintf("Give at most %v, or leave timeout out.", policy.MaxTimeout))
	}
	return timeout
}

// otherWords are words for events that no spelling leads to.
var otherWords = map[string]string{
	"message": string(journal.JudgeSend), "messages": string(journal.JudgeSend), "publish": string(journal.JudgeSend), "emit": string(journal.JudgeSend),
	"wire": string(journal.JudgeConnect), "unwire": string(journal.JudgeDisconnect), "http": string(journal.JudgeCapability), "llm": string(journal.JudgeCapability),
}

func (sc *scripts) otherEvent(s scope, d *declaration) {
	meant := otherWords[d.event]
	if meant == "" {
		meant = nearest(d.event, decidingEvents)
	}
	sc.report(s, d.at, Diagnostic{Summary: "Unknown event", Detail: fmt.Sprintf("There is no event %q for policies.", d.event),
		Suggestion: meant, Remedy: fmt.Sprintf("The events are %s.", enumerate(decidingEvents))})
}

// judged reads the channels, creatures and species that a policy is limited to.
func (sc *scripts) judged(s scope, d *declaration, p *policy.Policy) {
	onEdges := p.On == journal.JudgeSend || p.On == journal.JudgeConnect || p.On == journal.JudgeDisconnect
	if a := d.attr("channel"); a != nil && !onEdges {
		sc.fault(s, a.Expr, "No channel", fmt.Sprintf("The event %q has no channel.", d.event), "Remove the attribute.")
		return
	}
	p.Channels = sc.scopeAttr(s, d, "channel")
	for _, name := range []string{"creature", "species"} {
		if a := d.attr(name); a != nil && (p.On == journal.JudgePlan || p.On == journal.JudgeMerge || p.On == journal.JudgeSplit) {
			sc.fault(s, a.Expr, "No creature", fmt.Sprintf("The event %q is about whole graphs.", d.event), "Remove the attribute, and inspect the event in the script.")
			return
		}
	}
	p.Creatures = sc.scopeAttr(s, d, "creature")
	for _, address := range sc.scopeAttr(s, d, "species") {
		if name := sc.species[address]; name != "" {
			p.Species = append(p.Species, name)
		}
	}
}

// scopeAttr reads the addresses that a policy is limited to; nil without the attribute.
func (sc *scripts) scopeAttr(s scope, d *declaration, kind string) []string {
	a := d.attr(kind)
	if a == nil {
		return nil
	}
	out := []string{}
	v, ok := sc.eval(s, a.Expr)
	if !ok {
		return out
	}
	v, _ = v.UnmarkDeep()
	if v.IsNull() || v.Type().Equals(referenceType) || !v.CanIterateElements() {
		v = cty.TupleVal([]cty.Value{v})
	}
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		address, ok := refAddress(e, kind)
		if !ok {
			sc.wrongReference(s, a.Expr, e, kind)
			continue
		}
		out = append(out, address)
	}
	return out
}
