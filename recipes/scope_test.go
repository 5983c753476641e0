package recipes

import (
	"testing"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// A policy can be limited to creatures and species: one, a list, or all instances of a
// for_each.
func TestPoliciesAreAboutSome(t *testing.T) {
	const source = `
channel "in" {}
species "scribe" {
  module    = "builtin:relay"
  spawnable = 2
}
creature "a" {
  for_each = toset(["x", "y"])
  module   = "builtin:relay"
  listen   = [channel.in]
}
creature "b" {
  module = "builtin:relay"
  listen = [channel.in]
}
policy "remove" "one" {
  creature = creature.a["x"]
  run      = "() => warn('one')"
}
policy "remove" "all" {
  creature = creature.a
  run      = "() => warn('all')"
}
policy "remove" "either" {
  creature = [creature.b]
  species  = species.scribe
  match    = event.species == "scribe" || contains(["b"], event.creature)
  run      = "() => warn('either')"
}
`
	p := mustLoad(t, write(t, source), Options{Builtins: builtins{"relay"}}).Deployment().Policy
	if !p.Judges(journal.JudgeRemove) || p.Judges(journal.JudgeSpawn) || p.JudgesSend("channel.in") {
		t.Error("it judges other events than the recipe says")
	}
	for _, c := range []struct {
		who  deploy.Party
		want []string
	}{
		{deploy.Party{Name: "x", Address: `creature.a["x"]`}, []string{"one", "all"}},
		{deploy.Party{Name: "y", Address: `creature.a["y"]`}, []string{"all"}},
		{deploy.Party{Name: "b", Address: "creature.b"}, []string{"either"}},
		{deploy.Party{Name: "scribe-1", Species: "scribe"}, []string{"either"}},
		{deploy.Party{Name: "stranger"}, nil},
	} {
		var got []string
		for _, v := range p.Judge(t.Context(), &deploy.PolicyEvent{Kind: journal.JudgeRemove, Creature: c.who}).Warnings {
			got = append(got, v.Reason)
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", c.who.Name, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %v, want %v", c.who.Name, got, c.want)
			}
		}
	}
}
