package recipes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// A policy of a sub-recipe judges events and calls of its members and of creatures
// spawned from its species, and graphs that have them.
func TestPoliciesOfSubRecipesOnAllEvents(t *testing.T) {
	var desk strings.Builder
	desk.WriteString(`
channel "feed" {}
creature "c" {
  module = "builtin:relay"
  listen = [channel.feed]
}
species "clerk" {
  module    = "builtin:relay"
  spawnable = 2
}
policy "spawn" "clerks" {
  species = species.clerk
  run     = "() => warn('no')"
}
`)
	for _, kind := range decidingEvents {
		if kind != "send" {
			fmt.Fprintf(&desk, "policy %q %q { run = \"() => warn('no')\" }\n", kind, kind)
		}
	}
	r := mustLoad(t, writeAll(t, map[string]string{
		"desk/desk.hcl": desk.String(),
		"team.hcl": `
creature "outside" { module = "builtin:relay" }
recipe "a" { source = "./desk" }
recipe "b" { source = "./desk" }
`,
	}), Options{})
	party := func(address, species string) deploy.Party {
		return deploy.Party{Name: "x", Address: address, Species: species, Deployment: "team"}
	}
	a, b, outside := party("recipe.a.creature.c", ""), party("recipe.b.creature.c", ""), party("creature.outside", "")
	clerk := party("", "a.clerk")
	stranger := deploy.Party{Name: "x", Address: "recipe.a.creature.c", Deployment: "other"}
	graph := func(all ...deploy.Party) *deploy.GraphView {
		g := &deploy.GraphView{}
		for _, p := range all {
			g.Creatures = append(g.Creatures, deploy.CreatureView{Address: p.Address, Species: p.Species, Deployment: p.Deployment})
		}
		return g
	}
	for _, test := range []struct {
		name  string
		event deploy.PolicyEvent
		want  []string
	}{
		{"a member spawned", deploy.PolicyEvent{Kind: journal.JudgeSpawn, Creature: clerk}, []string{"a.clerks", "a.spawn"}},
		{"a member that spawns", deploy.PolicyEvent{Kind: journal.JudgeSpawn, Caller: b}, []string{"b.spawn"}},
		{"a member's child", deploy.PolicyEvent{Kind: journal.JudgeSpawn, Parent: b}, []string{"b.spawn"}},
		{"another creature spawned", deploy.PolicyEvent{Kind: journal.JudgeSpawn, Creature: outside}, nil},
		{"another deployment's", deploy.PolicyEvent{Kind: journal.JudgeRemove, Creature: stranger}, nil},
		{"removed", deploy.PolicyEvent{Kind: journal.JudgeRemove, Creature: a}, []string{"a.remove"}},
		{"failed", deploy.PolicyEvent{Kind: journal.JudgeFail, Creature: clerk}, []string{"a.fail"}},
		{"a tool", deploy.PolicyEvent{Kind: journal.JudgeTool, Caller: clerk}, []string{"a.tool"}},
		{"connected with each other", deploy.PolicyEvent{Kind: journal.JudgeConnect, From: a, To: b}, []string{"a.connect", "b.connect"}},
		{"a channel", deploy.PolicyEvent{Kind: journal.JudgeDisconnect, From: outside, Channel: deploy.PolicyChannel{Address: "recipe.a.channel.feed", Deployment: "team"}}, []string{"a.disconnect"}},
		{"another deployment's channel", deploy.PolicyEvent{Kind: journal.JudgeConnect, From: outside, Channel: deploy.PolicyChannel{Address: "recipe.a.channel.feed", Deployment: "other"}}, nil},
		{"wired", deploy.PolicyEvent{Kind: journal.JudgeWire, From: outside, To: b}, []string{"b.wire"}},
		{"planned", deploy.PolicyEvent{Kind: journal.JudgePlan, PlannedChanges: deploy.PlannedChanges{Created: []string{"creature.outside", "recipe.b.creature.c"}}}, []string{"b.plan"}},
		{"merged", deploy.PolicyEvent{Kind: journal.JudgeMerge, Graphs: []*deploy.GraphView{graph(outside), graph(clerk)}}, []string{"a.merge"}},
		{"merged without", deploy.PolicyEvent{Kind: journal.JudgeMerge, Graphs: []*deploy.GraphView{graph(outside), graph(stranger)}}, nil},
		{"split", deploy.PolicyEvent{Kind: journal.JudgeSplit, Surroundings: deploy.Surroundings{View: func() *deploy.GraphView { return graph(b, outside) }}}, []string{"b.split"}},
	} {
		test.event.Deployment = "team"
		if test.event.View == nil {
			test.event.View = func() *deploy.GraphView { return graph() }
		}
		var got []string
		for _, v := range r.Deployment().Policy.Judge(t.Context(), &test.event).Warnings {
			got = append(got, v.Policy)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
