package operations

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/fresh"
)

// In the middle of its task, a privileged node finds that it needs a specialist that
// does not exist yet. It spawns one, gives it work in the same turn, and removes it when
// the work is done. The session continues throughout, and nothing restarts.
func TestStoryAPrivilegedNodeSpawnsASpecialist(t *testing.T) {
	s := newStory(t)
	team := s.recipe("team", `
channel "tasks"   {}
channel "results" {}
creature "lead" {
  module     = "builtin:operator"
  privileged = true
  listen     = [channel.tasks]
}
creature "worker" {
  module = "builtin:operator"
  listen = [channel.tasks]
  send   = [channel.results]
  config = { stop_on_error = false }
}
species "counter" {
  module    = "builtin:tally"
  spawnable = 1
  config    = { every = 2 }
}
`)
	lead, worker := team.Creatures["creature.lead"], team.Creatures["creature.worker"]
	s.idle() // the lead has started, so another start would be noticed
	before := graphOf(t, s.Terrarium, lead)
	watching := s.watch(terrarium.Filter{Graphs: []terrarium.GraphID{before.ID}})

	// A worker of the same module gets nowhere, whatever it calls.
	s.refused("not_privileged", worker, "group_add_node", `{"species": "counter"}`)
	s.refused("not_privileged", worker, "group_channel", `{"action": "create", "name": "findings"}`)

	// In one turn, the lead makes a channel, spawns the specialist on it, and gives it
	// work.
	did := s.granted(lead,
		"group_channel", `{"action": "create", "name": "findings"}`,
		"group_channel", `{"action": "wire", "channel": "findings", "creature": "lead", "direction": "send"}`,
		"group_add_node", `{"species": "counter", "name": "specialist", "listen": [{"channel": "findings"}], "send": [{"channel": "results"}]}`,
		"send_channel", `{"channel": "findings", "payload": "frog"}`,
		"send_channel", `{"channel": "findings", "payload": "frog"}`)
	findings, specialist := did[0].Result.Channel, did[2].Result.Creature
	s.idle()

	// The watcher sees that the work was sent in the turn that spawned the specialist,
	// and then how the specialist starts and works.
	turn := watching.saw(watching.sees(journal.EventChannelMessage, lead).Turn)
	if turn.Creature != lead || payload[journal.TurnEndedPayload](t, turn).Tools != 3 {
		t.Errorf("the work comes from %+v", turn)
	}
	started := watching.sees(journal.EventCreatureStarted, specialist)
	report := watching.sees(journal.EventChannelMessage, specialist)
	if string(report.Payload) != `{"counts":{"frog":2},"total":2}` || report.Channel != team.Channels["channel.results"] {
		t.Errorf("the specialist reports %s on %s", report.Payload, report.Channel)
	}

	// It is a worker of the lead, in the same graph and session as before, and the earlier
	// creatures have not been restarted.
	after := graphOf(t, s.Terrarium, specialist)
	got := s.member(specialist)
	if after.ID != before.ID || after.Session != before.Session || got.Parent != lead || got.Privileged || got.Species != "counter" || !slices.Equal(got.Listen, []terrarium.ChannelID{findings}) {
		t.Errorf("in %s (%s) there is %+v", after.ID, after.Session, got)
	}
	if s.member(lead).InstanceStarts != before.Creatures[0].InstanceStarts && !fresh.Instances() {
		t.Error("the lead was restarted")
	}

	// The specialist has none of its parent's privileges, only one may exist, and the lead
	// cannot be removed.
	if _, err := s.Tool(t.Context(), specialist, "group_status", nil); abi.CodeOf(err) != abi.NotPrivileged {
		t.Errorf("the specialist asks for the status of its group: %v", err)
	}
	s.refused("limit", lead, "group_add_node", `{"species": "counter"}`)
	s.refused("not_found", lead, "group_add_node", `{"species": "dragon"}`)
	s.refused("not_privileged", worker, "group_remove_node", `{"creature": "specialist"}`)
	s.refused("not_privileged", lead, "group_remove_node", `{"creature": "lead"}`)

	// Its task is done, and it is removed. No other creature is.
	s.granted(lead, "group_remove_node", `{"creature": "specialist"}`, "group_channel", `{"action": "delete", "channel": "findings"}`)
	if gone := watching.sees(journal.EventCreatureStopped, specialist); payload[journal.CreatureStoppedPayload](t, gone).Reason != "removed" {
		t.Errorf("the specialist is gone: %s", gone.Payload)
	}
	if now := graphOf(t, s.Terrarium, lead); !reflect.DeepEqual(names(now), names(before)) || now.Session != before.Session {
		t.Errorf("there remain %v in %s", names(now), now.Session)
	}

	// The history has all of it, including the refusals, as turns that changed nothing.
	// It is the history of one session, which has no ancestors.
	if events := s.past(string(before.ID)); !slices.Contains(idsOf(events), report.ID) || !slices.Contains(idsOf(events), started.ID) {
		t.Error("the history lacks what was seen")
	}
	if from := s.session(before.Session); len(from.Parents) > 0 || !from.Live {
		t.Errorf("the session is %+v", from)
	}
	s.sound(lead)
}

// names returns the members of a graph and their channels.
func names(g inspect.GraphStatus) (out []string) {
	for _, c := range g.Creatures {
		out = append(out, fmt.Sprintf("%s %v %v", c.Name, c.Listen, c.Send))
	}
	return out
}
