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
)

// proofs returns the checks of each suite by the rule that they prove.
func proofs(t *testing.T) (creature, host map[string][]string) {
	t.Helper()
	creature, host = map[string][]string{}, map[string][]string{}
	checks := creatures.Checks()
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		for _, rule := range checks[name] {
			creature[rule] = append(creature[rule], name)
		}
	}
	cases, err := hosts.Cases()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		for _, rule := range c.Proves {
			host[rule] = append(host[rule], c.Check)
		}
	}
	return creature, host
}

// TestEveryRuleIsProven compares the set of requirements with the page that has the rules,
// and with the checks of the suites. -update writes it anew, and keeps the reasons of rules
// that are not scored.
func TestEveryRuleIsProven(t *testing.T) {
	set, err := requirements.Load("abi-1")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../" + set.Page)
	if err != nil {
		t.Fatal(err)
	}
	creature, host := proofs(t)
	var want []requirements.Requirement
	numbers := map[string]bool{}
	for _, rule := range requirements.Rules(string(page)) {
		numbers[rule.Number] = true
		q := requirements.Requirement{Rule: rule.Number, Words: rule.Words, Creature: creature[rule.Number], Host: host[rule.Number]}
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
	for _, known := range []map[string][]string{creature, host} {
		for rule, checks := range known {
			if !numbers[rule] {
				t.Errorf("%v prove %s, which %s does not have", checks, rule, set.Page)
			}
		}
	}
	if *update {
		set.Requirements = want
		writeSet(t, "requirements/abi-1.yaml", set)
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
			t.Fatalf("requirement %d differs from the page or the checks; go test ./conformance -run EveryRule -update writes it anew\nhas\n%s\nwants\n%s", i+1, text(t, got), text(t, expected))
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
