package recipes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed47132306/terrarium/engine"
)

// A policy of a sub-recipe judges what happens to its members and to what is
// spawned from its species, what they do, and graphs that they are in.
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
	party := func(address, species string) engine.Party {
		return engine.Party{Name: "x", Address: address, Species: species, Deployment: "team"}
	}
	a, b, outside := party("recipe.a.creature.c", ""), party("recipe.b.creature.c", ""), party("creature.outside", "")
	clerk := party("", "a.clerk")
	stranger := engine.Party{Name: "x", Address: "recipe.a.creature.c", Deployment: "other"}
	graph := func(all ...engine.Party) *engine.GraphView {
		g := &engine.GraphView{}
		for _, p := range all {
			g.Creatures = append(g.Creatures, engine.CreatureView{Address: p.Address, Species: p.Species, Deployment: p.Deployment})
		}
		return g
	}
	for _, test := range []struct {
		name  string
		event engine.PolicyEvent
		want  []string
	}{
		{"a member spawned", engine.PolicyEvent{Kind: engine.JudgeSpawn, Creature: clerk}, []string{"a.clerks", "a.spawn"}},
		{"a member that spawns", engine.PolicyEvent{Kind: engine.JudgeSpawn, Caller: b}, []string{"b.spawn"}},
		{"a member's child", engine.PolicyEvent{Kind: engine.JudgeSpawn, Parent: b}, []string{"b.spawn"}},
		{"somebody else spawned", engine.PolicyEvent{Kind: engine.JudgeSpawn, Creature: outside}, nil},
		{"another deployment's", engine.PolicyEvent{Kind: engine.JudgeRemove, Creature: stranger}, nil},
		{"removed", engine.PolicyEvent{Kind: engine.JudgeRemove, Creature: a}, []string{"a.remove"}},
		{"failed", engine.PolicyEvent{Kind: engine.JudgeFail, Creature: clerk}, []string{"a.fail"}},
		{"a tool", engine.PolicyEvent{Kind: engine.JudgeTool, Caller: clerk}, []string{"a.tool"}},
		{"connected with each other", engine.PolicyEvent{Kind: engine.JudgeConnect, From: a, To: b}, []string{"a.connect", "b.connect"}},
		{"a channel", engine.PolicyEvent{Kind: engine.JudgeDisconnect, From: outside, Channel: engine.PolicyChannel{Address: "recipe.a.channel.feed", Deployment: "team"}}, []string{"a.disconnect"}},
		{"another deployment's channel", engine.PolicyEvent{Kind: engine.JudgeConnect, From: outside, Channel: engine.PolicyChannel{Address: "recipe.a.channel.feed", Deployment: "other"}}, nil},
		{"wired", engine.PolicyEvent{Kind: engine.JudgeWire, From: outside, To: b}, []string{"b.wire"}},
		{"planned", engine.PolicyEvent{Kind: engine.JudgePlan, Created: []string{"creature.outside", "recipe.b.creature.c"}}, []string{"b.plan"}},
		{"merged", engine.PolicyEvent{Kind: engine.JudgeMerge, Graphs: []*engine.GraphView{graph(outside), graph(clerk)}}, []string{"a.merge"}},
		{"merged without", engine.PolicyEvent{Kind: engine.JudgeMerge, Graphs: []*engine.GraphView{graph(outside), graph(stranger)}}, nil},
		{"split", engine.PolicyEvent{Kind: engine.JudgeSplit, Surroundings: engine.Surroundings{View: func() *engine.GraphView { return graph(b, outside) }}}, []string{"b.split"}},
	} {
		test.event.Deployment = "team"
		if test.event.View == nil {
			test.event.View = func() *engine.GraphView { return graph() }
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
