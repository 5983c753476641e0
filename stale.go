package terrarium

import (
	"bytes"
	"cmp"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/diff"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/recipes"
)

// maxStaleNamed bounds how many differences an error names.
const maxStaleNamed = 5

// stale returns the error for a plan that must no longer be applied.
func (p *SavedPlan) stale(reasons []string) error {
	if more := len(reasons) - maxStaleNamed; more > 0 {
		reasons = append(slices.Clone(reasons[:maxStaleNamed]), fmt.Sprintf("and %d more", more))
	}
	return &abi.Error{
		Code: abi.Conflict, Op: "apply", Message: "the saved plan is stale: " + strings.Join(reasons, "; "),
		Remedy: "plan again, and apply the new plan", IDs: map[string]string{"deployment": p.Deployment},
	}
}

// CheckRecipe refuses a recipe that is not the same as at the time of the plan.
// [Terrarium.ApplyPlanned] calls it.
func (p *SavedPlan) CheckRecipe(r *recipes.Recipe) error {
	d := r.Deployment()
	var reasons []string
	if d.Name != p.Deployment {
		reasons = append(reasons, fmt.Sprintf("the recipe is named %s now, and was named %s", d.Name, p.Deployment))
	}
	reasons = append(reasons, differing("the file ", inputWords, p.Files, hashesOf(d.Source.Files))...)
	reasons = append(reasons, differing("the module ", inputWords, p.Modules, modulesOf(r))...)
	reasons = append(reasons, differing("the variable ", inputWords, compact(p.Variables), compact(d.Source.Variables))...)
	secret, err := p.secretsDiffer(r)
	if err != nil {
		return err
	}
	if reasons = append(reasons, secret...); len(reasons) > 0 {
		return p.stale(reasons)
	}
	return nil
}

// differenceWords say how a part of a plan differs from what it was.
type differenceWords struct{ added, removed, changed string }

var (
	inputWords  = differenceWords{"is new", "is missing", "has changed"}
	changeWords = differenceWords{"would change too", "would no longer change", "would change in another way"}
)

// differing describes the differences between two sets of hashes, values or changes.
func differing(what string, words differenceWords, before, now map[string]string) (out []string) {
	all := map[string]string{}
	maps.Copy(all, before)
	maps.Copy(all, now)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, had := before[name]
		is, has := now[name]
		switch {
		case !had:
			out = append(out, what+name+" "+words.added)
		case !has:
			out = append(out, what+name+" "+words.removed)
		case was != is:
			out = append(out, what+name+" "+words.changed)
		}
	}
	return out
}

func compact(values map[string]json.RawMessage) map[string]string {
	out := make(map[string]string, len(values))
	for name, v := range values {
		var b bytes.Buffer
		if json.Compact(&b, v) != nil {
			b.Reset()
		}
		out[name] = b.String()
	}
	return out
}

// secretsDiffer compares the sensitive values. The plan has one hash for all of them.
func (p *SavedPlan) secretsDiffer(r *recipes.Recipe) ([]string, error) {
	var was []string
	if p.Sensitive != nil {
		was = p.Sensitive.Names
	}
	is := slices.Sorted(maps.Keys(r.Secrets()))
	if !slices.Equal(was, is) {
		return []string{"the recipe has other sensitive variables"}, nil
	}
	if len(is) == 0 {
		return nil, nil
	}
	hash, err := hashSecrets(r.Secrets(), p.Sensitive.Salt)
	if err != nil || subtle.ConstantTimeCompare(hash, p.Sensitive.Hash) == 1 {
		return nil, err
	}
	if len(is) == 1 {
		return []string{fmt.Sprintf("the sensitive variable %s has another value", is[0])}, nil
	}
	return []string{fmt.Sprintf("one of the sensitive variables %s has another value", strings.Join(is, ", "))}, nil
}

// checkSessions refuses a session directory other than that of the plan. Sessions may have
// ended or begun since, as far as the changes remain the same.
func (p *SavedPlan) checkSessions(now []journal.SessionInfo) error {
	known := map[SessionID]bool{}
	for i := range now {
		known[now[i].Session] = true
	}
	for _, s := range p.Sessions {
		if !known[s] {
			return p.stale([]string{fmt.Sprintf("the session directory has no session %s: it is another directory, or has started over", s)})
		}
	}
	return nil
}

// checkChanges refuses a plan that would be different now.
func (p *SavedPlan) checkChanges(plan *diff.Plan) error {
	plan = plan.About(p.Deployment)
	was, now := p.Changes.lines(), plannedIn(plan).lines()
	if maps.Equal(was, now) {
		return nil
	}
	before := diff.Plan{Declared: p.Changes.Declared, Creatures: p.Changes.Creatures, Channels: p.Changes.Channels, Graphs: p.Changes.Graphs}
	if plan.Empty() && !before.Empty() {
		return &abi.Error{
			Code: abi.Conflict, Op: "apply", Message: "the saved plan has already been applied: nothing that it would change is left",
			Remedy: "there is nothing to do; to change more, plan again", IDs: map[string]string{"deployment": p.Deployment},
		}
	}
	return p.stale(differing("", changeWords, was, now))
}

// lines returns the changes as texts, by what they change.
func (c PlannedChanges) lines() map[string]string {
	out := map[string]string{}
	add := func(deployment, name string, change any) {
		if deployment != "" {
			name = deployment + ": " + name
		}
		data, err := json.Marshal(change)
		if err != nil {
			data = []byte(err.Error())
		}
		out[name] += string(data)
	}
	for i := range c.Declared {
		add(c.Declared[i].Deployment, c.Declared[i].Address, &c.Declared[i])
	}
	for i := range c.Creatures {
		x := &c.Creatures[i]
		add(x.Deployment, cmp.Or(x.Address, x.Name), x)
	}
	for i := range c.Channels {
		x := &c.Channels[i]
		add(x.Deployment, cmp.Or(x.Address, x.Name), x)
	}
	for i := range c.Graphs {
		add("", "the graphs", &c.Graphs[i])
	}
	return out
}
