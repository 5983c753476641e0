package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/diff"
	"github.com/seed47132306/terrarium/engine/journal"
)

// token is a recipe's value of one attribute of a configuration.
type token struct {
	value  string // empty: without the attribute
	secret bool
}

// bearing gives the second member of the team an attribute, beside one that stays.
func bearing(k token) func(*deploy.Deployment) {
	return func(d *deploy.Deployment) {
		c := &d.Creatures[1]
		if c.Config = json.RawMessage(`{"open":1}`); k.value != "" {
			c.Config = json.RawMessage(fmt.Sprintf(`{"open":1,"token":%q}`, k.value))
		}
		if k.secret {
			c.Secret = []string{"token"}
		}
	}
}

var tokens = []token{{}, {"hush-a", false}, {"hush-a", true}, {"hush-b", true}}

// settingsOf returns the changes of a configuration in a plan, without the values of an
// open one.
func settingsOf(c diff.CreaturePlan) []diff.PlanChange {
	var out []diff.PlanChange
	for _, change := range c.Changes {
		if change.What == "config" && change.Of == "" {
			change.Before, change.After = "open", "open"
		}
		out = append(out, change)
	}
	return out
}

// changesOf returns what a plan says about a token that changes from was to is, while the
// creature runs.
func changesOf(was, is token) (out []diff.PlanChange) {
	visible := func(k token) string {
		if k.secret {
			return ""
		}
		return k.value
	}
	hidden := func(k token) string {
		if k.secret {
			return deploy.HiddenValue
		}
		return ""
	}
	if visible(was) != visible(is) {
		out = append(out, diff.PlanChange{What: "config", Before: "open", After: "open"})
	}
	if (was.secret || is.secret) && was != is {
		out = append(out, diff.PlanChange{What: "config", Of: "token", Before: hidden(was), After: hidden(is)})
	}
	return out
}

// TestAPlanTellsThatSensitiveValuesChange tries all values of an attribute before and after, in
// a running creature. The plan shows a change if and only if Apply then changes the creature,
// and never shows a value that is sensitive before and after.
func TestAPlanTellsThatSensitiveValuesChange(t *testing.T) {
	for _, was := range tokens {
		for _, is := range tokens {
			t.Run(fmt.Sprint(was, is), func(t *testing.T) {
				s := newSaved(t, engine.Options{})
				s.apply(team(3, bearing(was)))
				plan, err := s.Plan(t.Context(), team(3, bearing(is)))
				if err != nil {
					t.Fatal(err)
				}
				c := planned(t, plan, "creature.m1")
				if diff := cmp.Diff(changesOf(was, is), settingsOf(c)); diff != "" || len(c.Unknown) > 0 {
					t.Errorf("want (-), planned (+):\n%s\nunknown are %v", diff, c.Unknown)
				}
				if text := string(toJSON(t, plan)); strings.Contains(text, "hush") && was.secret && is.secret {
					t.Errorf("the plan shows a sensitive value: %s", text)
				}
				if changed := s.apply(team(3, bearing(is))).Changed; slices.Contains(changed, "creature.m1") == plan.Empty() {
					t.Errorf("Apply has changed %v, but the plan is empty: %v", changed, plan.Empty())
				}
			})
		}
	}
}

// TestAPlanSaysWhichSensitiveValuesAreNotKnown covers a session that does not run: no
// store has sensitive values, so the plan cannot say whether they are the same.
func TestAPlanSaysWhichSensitiveValuesAreNotKnown(t *testing.T) {
	for _, is := range tokens[2:] {
		s := newSaved(t, engine.Options{})
		s.apply(team(3, bearing(tokens[2])))
		s.rest()
		plan, err := s.Plan(t.Context(), team(3, bearing(is)))
		if err != nil {
			t.Fatal(err)
		}
		c := planned(t, plan, "creature.m1")
		if !slices.Equal(c.Unknown, []string{"token"}) || len(c.Changes) > 0 || !plan.Empty() {
			t.Errorf("planned: %+v, empty: %v", c, plan.Empty())
		}
		if other := planned(t, plan, "creature.m0"); len(other.Unknown) > 0 {
			t.Errorf("unknown for a creature without sensitive values: %v", other.Unknown)
		}
		if text := string(toJSON(t, plan)); strings.Contains(text, "hush") {
			t.Errorf("the plan shows a sensitive value: %s", text)
		}
	}
}

// TestPoliciesOnPlansSeeNoChangeOfTheSameSecrets compares what a policy sees when a deployment
// is planned and when it is applied: a creature whose sensitive values stay the same is not
// among those that change.
func TestPoliciesOnPlansSeeNoChangeOfTheSameSecrets(t *testing.T) {
	var seen [][]string
	watching := judgedBy(&judge{kinds: []journal.PolicyKind{journal.JudgePlan}, judge: func(e *deploy.PolicyEvent) deploy.Decision {
		seen = append(seen, e.Changed)
		return deploy.Decision{}
	}})
	s := newSaved(t, engine.Options{})
	s.apply(team(3, bearing(tokens[2])))
	for _, is := range tokens[2:] {
		d := team(3, bearing(is), watching)
		if _, err := s.Plan(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		s.apply(d)
	}
	want := [][]string{nil, nil, {"creature.m1"}, {"creature.m1"}}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("want (-), the policy has seen (+):\n%s", diff)
	}
}

func toJSON(t *testing.T, v any) []byte {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
