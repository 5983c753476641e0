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

// desks is a recipe with a privileged lead, a clerk that passes on questions, and an
// archive that counts them. All its sessions use the same names.
func desks(merge string) string {
	return fmt.Sprintf(`
session { merge = %q }
channel "questions" {}
channel "filed"     {}
creature "lead" {
  module     = "builtin:operator"
  privileged = true
  listen     = [channel.questions]
}
creature "clerk" {
  module = "builtin:relay"
  listen = [channel.questions]
  send   = [channel.filed]
}
creature "archive" {
  module = "builtin:tally"
  listen = [channel.filed]
}
`, merge)
}

// Two sessions run side by side, until one needs the help of the other. They become one
// conversation, with the history of both and without clashing names, and only the helper
// notices.
func TestStoryTwoSessionsMerge(t *testing.T) {
	s := newStory(t)
	north, south := s.recipe("north", desks("allow")), s.recipe("south", desks("allow"))
	closed := s.recipe("closed", desks("deny"))
	lead, helper := north.Creatures["creature.lead"], south.Creatures["creature.archive"]
	questions := [2]terrarium.ChannelID{north.Channels["channel.questions"], south.Channels["channel.questions"]}
	s.say(questions[0], "where?")
	s.say(questions[1], "when?")
	before := [2]inspect.GraphStatus{graphOf(t, s.Terrarium, lead), graphOf(t, s.Terrarium, helper)}
	past := [2][]terrarium.Event{s.past(string(before[0].ID)), s.past(string(before[1].ID))}
	watching := s.watch(terrarium.Filter{Graphs: []terrarium.GraphID{before[1].ID}})

	// No creature reaches another graph by mistake, or one that allows no merges, and a
	// clerk reaches none at all.
	help := `{"action": "wire", "channel": "questions", "creature": %q, "direction": "listen", "alias": "help"%s}`
	s.refused("not_found", lead, "group_channel", fmt.Sprintf(help, helper, ""))
	s.refused("denied", lead, "group_channel", fmt.Sprintf(help, closed.Creatures["creature.archive"], `, "merge": true`))
	s.refused("denied", closed.Creatures["creature.lead"], "group_channel", fmt.Sprintf(help, helper, `, "merge": true`))
	_, err := s.Tool(t.Context(), north.Creatures["creature.clerk"], "group_channel", fmt.Appendf(nil, help, helper, `, "merge": true`))
	if abi.CodeOf(err) != abi.NotPrivileged {
		t.Errorf("the clerk merges two sessions: %v", err)
	}

	// North's lead asks south's archive to listen to its questions.
	delta := s.granted(lead, "group_channel", fmt.Sprintf(help, helper, `, "merge": true`))[0].Result.Delta
	now := graphOf(t, s.Terrarium, lead)
	if delta.Kind != "merge" || !slices.Equal(delta.OldGraphs, []terrarium.GraphID{before[0].ID, before[1].ID}) || !slices.Equal(delta.NewGraphs, []terrarium.GraphID{now.ID}) {
		t.Errorf("the delta is %+v", delta)
	}
	if now.ID != before[0].ID || now.ID != graphOf(t, s.Terrarium, helper).ID || now.Session == before[0].Session || now.Session == before[1].Session {
		t.Errorf("of %s and %s came %s with the session %s", before[0].ID, before[1].ID, now.ID, now.Session)
	}
	if old, err := s.FindGraph(t.Context(), string(before[1].ID)); err != nil || old != now.ID {
		t.Errorf("south's old id answers %s, %v", old, err)
	}
	oneConversation(t, s, now, before, past)
	seenFromSouth(t, s, watching, delta, now.Session, before)

	// South's members have new names, and continue nevertheless.
	if got, want := members(now), []string{"lead", "clerk", "archive", "lead~2", "clerk~2", "archive~2"}; !reflect.DeepEqual(got, want) {
		t.Errorf("the members are %v, want %v", got, want)
	}
	s.say(questions[0], "why?")
	s.say(questions[1], "who?")
	for _, c := range []struct {
		id   terrarium.CreatureID
		want map[string]any
	}{
		{north.Creatures["creature.archive"], map[string]any{"count/where?": "1", "count/why?": "1"}},
		{helper, map[string]any{"count/when?": "1", "count/why?": "1", "count/who?": "1"}},
	} {
		if got := counted(t, s.Terrarium, c.id); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s has counted %v, want %v", s.member(c.id).Name, got, c.want)
		}
		if starts := s.member(c.id).InstanceStarts; starts != 1 && !fresh.Instances() {
			t.Errorf("%s has had %d instances", s.member(c.id).Name, starts)
		}
	}
	s.sound(lead, closed.Creatures["creature.lead"])
}

// oneConversation checks that a merged session has the histories of both its parents,
// that it names them, and that their own histories are unchanged.
func oneConversation(t *testing.T, s *story, now inspect.GraphStatus, before [2]inspect.GraphStatus, past [2][]terrarium.Event) {
	t.Helper()
	have := map[journal.EventID]int{}
	for _, e := range s.past(string(now.Session)) {
		have[e.ID]++
	}
	for i, old := range before {
		for _, e := range past[i] {
			if have[e.ID] != 1 {
				t.Errorf("the new session has %s of %s %d times", e.Kind, old.ID, have[e.ID])
			}
		}
		if again := s.past(string(old.Session)); len(again) < len(past[i]) || !reflect.DeepEqual(again[:len(past[i])], past[i]) {
			t.Errorf("the history of %s is not what it was", old.Session)
		}
		if info := s.session(old.Session); info.Live {
			t.Errorf("%s is still written to", old.Session)
		}
	}
	info := s.session(now.Session)
	if !info.Live || info.MergedAt == 0 || info.SplitAt != 0 || !slices.Equal(info.Parents, []terrarium.SessionID{before[0].Session, before[1].Session}) {
		t.Errorf("the new session is %+v", info)
	}
}

// seenFromSouth checks what a watcher of the absorbed graph saw.
func seenFromSouth(t *testing.T, s *story, w *watcher, delta journal.Delta, session terrarium.SessionID, before [2]inspect.GraphStatus) {
	t.Helper()
	merged := payload[journal.SessionCutPayload](t, w.sees(journal.EventSessionMerged, ""))
	if merged.Session != session || !slices.Equal(merged.Parents, []terrarium.SessionID{before[0].Session, before[1].Session}) {
		t.Errorf("it is seen that %+v", merged)
	}
	if got := payload[journal.Delta](t, w.sees(journal.EventTopologyChanged, "")); !reflect.DeepEqual(got, delta) {
		t.Errorf("the change is seen as %+v, want %+v", got, delta)
	}
	var moved []terrarium.CreatureID
	for _, c := range before[1].Creatures {
		moved = append(moved, c.ID)
	}
	slices.Sort(moved)
	if got := slices.Sorted(slices.Values(delta.Affected)); !slices.Equal(got, moved) {
		t.Errorf("the change is said to concern %v, want %v", got, moved)
	}
}

func members(g inspect.GraphStatus) (out []string) {
	for _, c := range g.Creatures {
		out = append(out, c.Name)
	}
	return out
}
