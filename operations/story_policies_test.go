package operations

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
)

// rationed is a recipe with two policies: one lets four messages through in the life of a
// graph, and one denies plans that remove something.
const rationed = `
channel "in" {}
channel "out" {}
creature "copy" {
  module = "builtin:relay"
  listen = { in = channel.in }
  send   = { out = channel.out }
}
creature "sink" {
  module = "builtin:relay"
  listen = [channel.out]
}
policy "send" "four" {
  channel = channel.out
  run     = <<-JS
    (event, ctx) => {
      ctx.state.n = (ctx.state.n || 0) + 1;
      if (ctx.state.n > 4) return deny("that was the fifth");
    }
  JS
}
policy "plan" "keep" {
  run = <<-JS
    (event, ctx) => {
      ctx.state.plans = (ctx.state.plans || 0) + 1;
      if (event.removed.length) return deny("nothing goes: " + event.removed);
      if (ctx.state.plans > 2) return deny("it was applied often enough");
    }
  JS
}
`

// passed returns how many messages have come through on a channel.
func (s *story) passed(ch terrarium.ChannelID) uint64 {
	s.t.Helper()
	graphs, err := s.Status("")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, g := range graphs {
		for _, c := range g.Channels {
			if c.ID == ch {
				return c.Head
			}
		}
	}
	s.t.Fatalf("there is no channel %s", ch)
	return 0
}

// op runs an operation, with ids in its arguments.
func (s *story) op(op, format string, ids ...any) {
	s.t.Helper()
	do(s.t, s.Terrarium, op, fmt.Sprintf(format, ids...))
}

// try is op for an operation that may be denied.
func (s *story) try(op, format string, ids ...any) error {
	_, err := Do(s.t.Context(), s.Terrarium, op, json.RawMessage(fmt.Sprintf(format, ids...)))
	return err
}

// resume resumes the deployments of the directory.
func (s *story) resume() *engine.Applied {
	s.t.Helper()
	resumed, err := s.Resume(s.t.Context(), terrarium.ResumeOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return resumed.Applied[0]
}

// What policies remember survives a restart, a merge, a split and resuming. A plan reads
// it, and does not change it.
func TestWhatPoliciesRememberIsResumed(t *testing.T) {
	s := newStory(t)
	team := s.recipe("team", rationed)
	in, out, copier := team.Channels["channel.in"], team.Channels["channel.out"], team.Creatures["creature.copy"]
	s.say(in, "one")
	s.again()
	for range 3 { // if plans counted, the policy would object the third time
		if plan, err := s.PlanResume(t.Context(), terrarium.ResumeOptions{}); err != nil || !plan.Empty() {
			t.Fatalf("the plan is %+v, %v", plan, err)
		}
	}
	s.resume()
	s.say(in, "two")
	do(t, s.Terrarium, "add_creature", `{"name": "other", "module": "builtin:relay"}`)
	do(t, s.Terrarium, "connect", `{"from": "copy", "to": "other"}`)
	s.say(in, "three")
	do(t, s.Terrarium, "disconnect", `{"from": "copy", "to": "other"}`)
	s.say(in, "four")
	s.say(in, "five")
	s.say(in, "six")
	if n := s.passed(out); n != 4 {
		t.Errorf("%d messages came through, want 4", n)
	}
	s.again()
	if _, err := s.PlanResume(t.Context(), terrarium.ResumeOptions{}); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "often enough") {
		t.Errorf("a plan of what the policy denies answers %v", err)
	}
	if _, err := s.Resume(t.Context(), terrarium.ResumeOptions{}); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "often enough") {
		t.Errorf("resuming what the policy denies answers %v", err)
	}
	if graphs, err := s.Status(""); err != nil || len(graphs) > 0 {
		t.Errorf("what was denied has brought back %v, %v", graphs, err)
	}
	if _, _, err := s.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PlanApply(t.Context(), recipePath(t, "team", rationed), terrarium.RecipeOptions{}); abi.CodeOf(err) != abi.Denied {
		t.Errorf("a plan for a graph that runs does not recall what Apply would: %v", err)
	}
	if g := graphOf(t, s.Terrarium, copier); len(g.Creatures) != 2 {
		t.Errorf("the graph has %v", g.Creatures)
	}
}

// recipePath writes a recipe to a file and returns its path.
func recipePath(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".hcl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A recipe that one of its own policies denies changes nothing: the previous recipe
// continues as if nothing had happened.
func TestADeniedResumeChangesNothing(t *testing.T) {
	s := newStory(t)
	team := s.recipe("team", rationed)
	in, out := team.Channels["channel.in"], team.Channels["channel.out"]
	s.say(in, "one")
	s.again()
	before, _, _ := strings.Cut(rationed, `creature "sink"`)
	_, after, _ := strings.Cut(rationed, "policy")
	edited := recipePath(t, "team", before+"policy"+after)
	moved := terrarium.ResumeOptions{Recipes: map[string]string{"team": edited}}
	for name, try := range map[string]func() error{
		"the plan": func() error { _, err := s.PlanResume(t.Context(), moved); return err },
		"resuming": func() error { _, err := s.Resume(t.Context(), moved); return err },
	} {
		if err := try(); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "policy keep (team.hcl:") || !strings.Contains(err.Error(), "creature.sink") {
			t.Errorf("%s answers %v", name, err)
		}
	}
	s.resume()
	s.say(in, "two")
	if n := s.passed(out); n != 2 {
		t.Errorf("%d messages came through, want 2", n)
	}
}

// The name of a policy may have a slash, if its sub-recipe's key has.
func TestMemoryOfAPolicyWithASlashInItsName(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"team.hcl":      "terrarium { name = \"a/b\" }\nrecipe \"desk\" {\n  source   = \"./desk\"\n  for_each = toset([\"x/y%2F\"])\n}\n",
		"desk/desk.hcl": rationed,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := newStory(t)
	team, err := s.Apply(t.Context(), dir, terrarium.RecipeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	in, out := team.Channels[`recipe.desk["x/y%2F"].channel.in`], team.Channels[`recipe.desk["x/y%2F"].channel.out`]
	for range 3 {
		s.say(in, "x")
	}
	s.again()
	if list := s.Remembered(); len(list) != 1 {
		t.Errorf("the directory remembers %d deployments, want 1", len(list))
	}
	s.resume()
	for range 3 {
		s.say(in, "x")
	}
	if n := s.passed(out); n != 4 {
		t.Errorf("%d messages came through, want 4", n)
	}
}

const twins = `
channel "in" {}
channel "out" {}
creature "lead" {
  module = "builtin:relay"
  listen = { in = channel.in }
  send   = { out = channel.out }
}
creature "sink" {
  module = "builtin:relay"
  listen = [channel.out]
}
`

// In a graph of two deployments whose members have the same names, each policy judges the
// members of its own deployment.
func TestPoliciesKnowTheirOwnMembers(t *testing.T) {
	s := newStory(t)
	own := s.recipe("own", twins+`
policy "send" "lead" {
  creature = creature.lead
  run      = "() => deny('of my lead')"
}
policy "connect" "edges" {
  channel = channel.out
  run     = "() => deny('on my channel')"
}
policy "remove" "sinks" {
  creature = creature.sink
  run      = "() => deny('of my sink')"
}
`)
	other := s.recipe("other", twins)
	lead, stranger := own.Creatures["creature.lead"], other.Creatures["creature.lead"]
	s.op("connect", `{"from": "%s", "to": "%s", "channel": "bridge"}`, lead, stranger)

	s.say(own.Channels["channel.in"], "x")
	if n := s.passed(own.Channels["channel.out"]); n != 0 {
		t.Errorf("%d messages of its own lead came through", n)
	}
	s.op("set_send", `{"creature": "%s", "channel": "%s", "on": false}`, stranger, other.Channels["channel.out"])
	if err := s.try("set_send", `{"creature": "%s", "channel": "%s", "on": true, "alias": "out"}`, stranger, own.Channels["channel.out"]); abi.CodeOf(err) != abi.Denied {
		t.Errorf("an edge to its own channel: %v", err)
	}
	s.op("set_listen", `{"creature": "%s", "channel": "%s", "on": true}`, lead, other.Channels["channel.out"])
	if err := s.try("remove_creature", `{"creature": "%s"}`, own.Creatures["creature.sink"]); abi.CodeOf(err) != abi.Denied {
		t.Errorf("removing its own sink: %v", err)
	}
	s.op("remove_creature", `{"creature": "%s"}`, other.Creatures["creature.sink"])
}

// A message that a creature of one deployment sends on a channel of another is judged by
// the policy of the channel's deployment, as a message of a stranger.
func TestPoliciesDoNotTakeOthersForTheirOwn(t *testing.T) {
	s := newStory(t)
	own := s.recipe("own", twins+`
policy "send" "lead" {
  creature = creature.lead
  run      = "(event) => deny('of my lead')"
}
policy "send" "all" {
  channel = channel.out
  run     = "(event) => warn(event.deployment + ' hears ' + event.sender_address)"
}
`)
	other := s.recipe("other", twins)
	stranger := other.Creatures["creature.lead"]
	s.op("set_send", `{"creature": "%s", "channel": "%s", "on": false}`, stranger, other.Channels["channel.out"])
	s.op("set_send", `{"creature": "%s", "channel": "%s", "on": true, "alias": "out"}`, stranger, own.Channels["channel.out"])
	s.say(other.Channels["channel.in"], "x")
	if n := s.passed(own.Channels["channel.out"]); n != 1 {
		t.Errorf("%d messages of the other's lead came through, want 1", n)
	}
	var reasons []string
	for _, e := range s.past(string(graphOf(t, s.Terrarium, stranger).ID), journal.EventPolicyDenied) {
		reasons = append(reasons, payload[journal.PolicyPayload](t, e).Reason)
	}
	if len(reasons) != 1 || reasons[0] != "own hears creature.lead" {
		t.Errorf("the policies said %q", reasons)
	}
}
