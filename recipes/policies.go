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

// decidingEvents are the events that policies judge.
var decidingEvents = func() []string {
	var out []string
	for _, kind := range journal.PolicyKinds() {
		out = append(out, string(kind))
	}
	return out
}()

// ServePolicies runs policies for the process at the other end of the pipes, until
// in ends; see [Options.PolicyProcess].
func ServePolicies(in io.Reader, out io.Writer) error { return policy.Serve(in, out) }

// policyName tells a policy from others: those on other events may have its name.
type policyName struct {
	on   journal.PolicyKind
	name string
}

// policies compiles the policies of all recipes and hands them to the deployment.
func (l *loader) policies(all []*loader, d *deploy.Deployment) {
	var policies []policy.Policy
	scripts := map[policyName]*script{}
	for _, l := range all {
		for _, decl := range l.ordered["policy"] {
			p, s, ok := l.policy(decl)
			if !ok {
				continue
			}
			l.confine(&p)
			scripts[policyName{p.On, p.Name}] = s
			policies = append(policies, p)
		}
	}
	if len(policies) == 0 {
		return
	}
	l.isolate(all, policies)
	set, faults := policy.New(policies, policy.Options{Command: l.opts.PolicyProcess})
	for _, f := range faults {
		s := scripts[policyName{f.On, f.Policy}]
		s.in.scriptFault(s, f)
	}
	if set != nil {
		d.Policy = set
	}
}

func (l *loader) policy(d *declaration) (policy.Policy, *script, bool) {
	s := scope{title: d.title}
	if !slices.Contains(decidingEvents, d.event) {
		l.otherEvent(s, d)
		return policy.Policy{}, nil, false
	}
	p := policy.Policy{Name: d.name, On: journal.PolicyKind(d.event)}
	l.checkDescription(s, d)
	l.mode(s, d, &p)
	switch then, _ := l.choiceAttr(s, d, "on_error"); then {
	case "warn":
		p.OnError = policy.WarnOnError
	case "allow":
		p.OnError = policy.AllowOnError
	}
	enforce, _ := l.choiceAttr(s, d, "enforce")
	p.Audit = enforce == "audit"
	l.record(s, d, &p)
	p.Timeout = l.timeout(s, d, "an event")
	l.isolation(s, d, &p)
	l.judged(s, d, &p)
	l.match(s, d, &p)
	source, ok := l.script(s, d)
	if !ok {
		return p, nil, false
	}
	p.Source, p.File, p.Line = source.text, source.name, source.line
	return p, source, true
}

// mode reads what a policy may do. There is something to change about messages
// and merges only.
func (l *loader) mode(s scope, d *declaration, p *policy.Policy) {
	mode, ok := l.choiceAttr(s, d, "mode")
	if !ok || mode != "mutate" {
		return
	}
	if p.On != journal.JudgeSend && p.On != journal.JudgeMerge {
		l.fault(s, d.attr("mode").Expr, "Nothing to change", fmt.Sprintf("A policy on %q can allow and deny; there is nothing for it to change.", d.event),
			`Leave mode out. Policies on "send" and "merge" can be in the mode "mutate".`)
		return
	}
	p.Mode = policy.Mutate
}

// record reads what is kept of messages that the policy changes or leaves out.
func (l *loader) record(s scope, d *declaration, p *policy.Policy) {
	kept, ok := l.choiceAttr(s, d, "record")
	if ok && p.On != journal.JudgeSend {
		l.fault(s, d.attr("record").Expr, "Nothing to keep", fmt.Sprintf("A policy on %q changes no message.", d.event), "Leave record out.")
		return
	}
	p.Original = kept == "original"
}

// isolate has policies run in processes of their own that come from somebody else.
func (l *loader) isolate(all []*loader, policies []policy.Policy) {
	why := ""
	for _, part := range all {
		if why == "" {
			why = part.folder.foreign
		}
	}
	switch {
	case l.opts.Isolation == IsolateAll:
		why = "all policies are to be isolated"
	case l.opts.Isolation == IsolateNone, why == "":
		return
	}
	for i := range policies {
		policies[i].Process = true
	}
	if len(l.opts.PolicyProcess) == 0 {
		l.add(Diagnostic{Severity: Error, Summary: "No process to run policies in", Range: Range{File: l.folder.shown},
			Detail: fmt.Sprintf("The policies of the recipe are run in processes of their own: %s. This program has not been told how to start one.", why),
			Remedy: "Run the recipe with the command terrarium, set RecipeOptions.PolicyProcess, or make the files your own once you have read them."})
	}
}

// isolation reads where the script is to run.
func (l *loader) isolation(s scope, d *declaration, p *policy.Policy) {
	if text, _ := l.choiceAttr(s, d, "isolation"); text != "process" {
		return
	}
	if p.Process = true; len(l.opts.PolicyProcess) == 0 {
		l.fault(s, d.attr("isolation").Expr, "No process to run it in", "This program has not been told how to start a process for policies.",
			"Run the recipe with the command terrarium, or set RecipeOptions.PolicyProcess.")
	}
}

// timeout is how long a script may take for what; 0 if the recipe does not say.
func (l *loader) timeout(s scope, d *declaration, what string) time.Duration {
	timeout, ok := l.durationAttr(s, d, "timeout")
	if ok && timeout > policy.MaxTimeout {
		l.fault(s, d.attr("timeout").Expr, "Timeout too long", fmt.Sprintf("A %s may take at most %v for %s.", d.kind, policy.MaxTimeout, what), "")
	}
	return timeout
}

func (l *loader) otherEvent(s scope, d *declaration) {
	if d.event == "capability" {
		l.add(l.at(s, d.at, Diagnostic{Summary: "Not supported by this version",
			Detail: "Policies on \"capability\" are to judge outbound requests, and creatures cannot make any yet.",
			Remedy: "Remove the policy, or use a later version."}))
		return
	}
	l.add(l.at(s, d.at, Diagnostic{Summary: "Unknown event", Detail: fmt.Sprintf("Policies on %q do not exist.", d.event),
		Suggestion: nearest(d.event, decidingEvents), Remedy: fmt.Sprintf("There are %s.", enumerate(decidingEvents))}))
}

// judged reads what a policy is about: channels, creatures and species, each one
// of them or a list; without an attribute all.
func (l *loader) judged(s scope, d *declaration, p *policy.Policy) {
	onEdges := p.On == journal.JudgeSend || p.On == journal.JudgeConnect || p.On == journal.JudgeDisconnect
	if a := d.attr("channel"); a != nil && !onEdges {
		l.fault(s, a.Expr, "No channel", fmt.Sprintf("The event %q has no channel.", d.event), "Leave the attribute out.")
		return
	}
	p.Channels = l.scopeAttr(s, d, "channel")
	for _, name := range []string{"creature", "species"} {
		if a := d.attr(name); a != nil && (p.On == journal.JudgePlan || p.On == journal.JudgeMerge || p.On == journal.JudgeSplit) {
			l.fault(s, a.Expr, "No creature", fmt.Sprintf("The event %q is about whole graphs.", d.event), "Leave the attribute out, and look at the event in the script.")
			return
		}
	}
	p.Creatures = l.scopeAttr(s, d, "creature")
	for _, address := range l.scopeAttr(s, d, "species") {
		if of := l.species[address]; of != nil {
			p.Species = append(p.Species, of.name)
		}
	}
}

// scopeAttr reads the addresses of what a policy is about; nil without the
// attribute.
func (l *loader) scopeAttr(s scope, d *declaration, kind string) []string {
	a := d.attr(kind)
	if a == nil {
		return nil
	}
	out := []string{}
	v, ok := l.eval(s, a.Expr)
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
			l.wrongReference(s, a.Expr, e, kind)
			continue
		}
		out = append(out, address)
	}
	return out
}
