package conformance_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/seed47132306/terrarium/conformance/creatures"
	"github.com/seed47132306/terrarium/conformance/hosts"
	"github.com/seed47132306/terrarium/conformance/requirements"
	"github.com/seed47132306/terrarium/conformance/stores"
)

// proofs returns the checks of each suite by the rule that they prove.
func proofs(t *testing.T) (creature, host, store map[string][]string) {
	t.Helper()
	byRule := func(names []string, rules func(name string) []string) map[string][]string {
		out := map[string][]string{}
		for _, name := range names {
			for _, rule := range rules(name) {
				out[rule] = append(out[rule], name)
			}
		}
		return out
	}
	ofCreatures := creatures.Checks()
	creature = byRule(slices.Sorted(maps.Keys(ofCreatures)), func(name string) []string { return ofCreatures[name] })
	ofStores := stores.Checks()
	store = byRule(stores.Names(), func(name string) []string { return ofStores[name] })
	cases, err := hosts.Cases()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ofHosts := map[string][]string{}
	for _, c := range cases {
		names, ofHosts[c.Check] = append(names, c.Check), c.Proves
	}
	return creature, byRule(names, func(name string) []string { return ofHosts[name] }), store
}

// TestEveryRuleIsProven compares the sets of requirements with the pages that have the
// rules, and with the checks of the suites. -update writes them again, and keeps the
// reasons of rules that are not scored.
func TestEveryRuleIsProven(t *testing.T) {
	creature, host, store := proofs(t)
	t.Run("abi-1", func(t *testing.T) { everyRuleIsProven(t, "abi-1", creature, host, nil) })
	t.Run("store-1", func(t *testing.T) { everyRuleIsProven(t, "store-1", nil, nil, store) })
}

func everyRuleIsProven(t *testing.T, name string, creature, host, store map[string][]string) {
	set, err := requirements.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	var want []requirements.Requirement
	numbers := map[string]bool{}
	for _, path := range set.Pages {
		page, err := os.ReadFile("../" + path)
		if err != nil {
			t.Fatal(err)
		}
		rules := requirements.Rules(string(page))
		if len(rules) == 0 {
			t.Errorf("%s has no rules", path)
		}
		for _, rule := range rules {
			if numbers[rule.Number] {
				t.Errorf("two rules have the number %s", rule.Number)
			}
			numbers[rule.Number] = true
			q := requirements.Requirement{Rule: rule.Number, Words: rule.Words, Creature: creature[rule.Number], Host: host[rule.Number], Store: store[rule.Number]}
			for _, old := range set.Requirements {
				if old.Rule == rule.Number {
					q.NotScored = old.NotScored
				}
			}
			switch proven := len(q.Proofs()) > 0; {
			case proven && q.NotScored != "":
				t.Errorf("%s is proven by %v, and not scored because %s", q.Rule, q.Proofs(), q.NotScored)
			case !proven && q.NotScored == "" && !*update:
				t.Errorf("%s is proven by no check: %s", q.Rule, q.Words)
			}
			want = append(want, q)
		}
	}
	for _, known := range []map[string][]string{creature, host, store} {
		for rule, checks := range known {
			if !numbers[rule] {
				t.Errorf("%v prove %s, which %v do not have", checks, rule, set.Pages)
			}
		}
	}
	if *update {
		set.Requirements = want
		writeSet(t, "requirements/"+name+".yaml", set)
		return
	}
	for i := range max(len(want), len(set.Requirements)) {
		var got, expected requirements.Requirement
		if i < len(set.Requirements) {
			got = set.Requirements[i]
		}
		if i < len(want) {
			expected = want[i]
		}
		if text(t, got) != text(t, expected) {
			t.Fatalf("requirement %d differs from the page or the checks; go test ./conformance -run EveryRule -update writes it again\nhas\n%s\nwants\n%s", i+1, text(t, got), text(t, expected))
		}
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	var b strings.Builder
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func writeSet(t *testing.T, path string, set *requirements.Set) {
	t.Helper()
	const head = "# The requirements of one revision of the contract, and the checks that prove each. A published\n# revision does not change: a later one is another file.\n"
	if err := os.WriteFile(path, []byte(head+text(t, set)), 0o644); err != nil {
		t.Fatal(err)
	}
}
