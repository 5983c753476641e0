package operations

import (
	"fmt"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
)

const patrol = `
channel "paths"     {}
channel "sightings" {}
creature "scout" {
  module = "builtin:relay"
  listen = [channel.paths]
  send   = [channel.sightings]
}
creature "camp" {
  module = "builtin:operator"
  listen = [channel.sightings]
}
species "runner" {
  module    = "builtin:tally"
  spawnable = 1
}
`

// A team is watched, and no creature in it can notice. An observer of one creature
// follows it into every graph and under every name, does not confuse it with another one,
// and can leave and return without missing anything.
func TestStoryObservedFromOutside(t *testing.T) {
	s := newStory(t)
	near, far := s.recipe("near", patrol), s.recipe("far", patrol)
	scout, twin := far.Creatures["creature.scout"], near.Creatures["creature.scout"]
	home, paths := graphOf(t, s.Terrarium, scout).ID, far.Channels["channel.paths"]

	// Being watched changes nothing that a creature in the team can see.
	unwatched := s.surroundings(far)
	eyes := s.watch(terrarium.Filter{Creatures: []terrarium.CreatureID{scout}, Kinds: []journal.EventKind{journal.EventChannelMessage, journal.EventCreatureStopped}})
	all := s.watch(terrarium.Filter{Graphs: []terrarium.GraphID{home}, Kinds: []journal.EventKind{journal.EventChannelMessage, journal.EventTopologyChanged, journal.EventCreatureStarted}})
	if watched := s.surroundings(far); watched != unwatched {
		t.Errorf("watched, the team sees\n%s\nand unwatched\n%s", watched, unwatched)
	}
	if _, err := s.Tool(t.Context(), far.Creatures["creature.camp"], "group_status", nil); abi.CodeOf(err) != abi.NotPrivileged {
		t.Errorf("a worker looks around as if it were the owner: %v", err)
	}
	s.say(paths, "at home")

	// The other team's larger graph absorbs the scout's. There the scout gets another
	// name, because a twin has the same. Then the graphs part again.
	add(t, s.Terrarium, "guide", "builtin:relay")
	whole(t, s.Terrarium, "connect", fmt.Sprintf(`{"from":"guide","to":%q,"channel":"met"}`, twin))
	link := fmt.Sprintf(`{"creature":%q,"channel":%q,"on":%%t}`, scout, near.Channels["channel.paths"])
	whole(t, s.Terrarium, "set_listen", fmt.Sprintf(link, true))
	away := s.member(scout)
	if name := away.Name; name != "scout~2" || graphOf(t, s.Terrarium, scout).ID == home {
		t.Errorf("in %s it is called %s", graphOf(t, s.Terrarium, scout).ID, name)
	}
	s.say(paths, "abroad")
	s.say(near.Channels["channel.paths"], "heard by both")
	whole(t, s.Terrarium, "set_listen", fmt.Sprintf(link, false))
	s.say(paths, "back")

	// The watcher of the scout always saw where the scout was, and saw nothing of its
	// twin.
	graphs := map[terrarium.GraphID]bool{}
	for _, want := range []string{"at home", "abroad", "heard by both", "back"} {
		e := eyes.sees(journal.EventChannelMessage, scout)
		if graphs[e.Graph] = true; string(e.Payload) != want || e.Creature != scout {
			t.Errorf("seen of the scout: %s in %s, want %s", e.Payload, e.Graph, want)
		}
	}
	if len(graphs) < 2 || slices.ContainsFunc(eyes.seen, func(e terrarium.Event) bool { return e.Creature != scout }) {
		t.Errorf("it was seen in %v", graphs)
	}
	// The watcher of the scout's graph saw that graph become another, and saw the
	// creatures that joined.
	if d := payload[journal.Delta](t, all.sees(journal.EventTopologyChanged, "")); d.Kind != "merge" || !slices.Contains(d.OldGraphs, home) {
		t.Errorf("seen of the graph: %+v", d)
	}
	if e := all.sees(journal.EventChannelMessage, twin); string(e.Payload) != "heard by both" {
		t.Errorf("seen of the twin: %s", e.Payload)
	}
	comingAndGoing(t, s, eyes, scout, far)
	s.sound(twin, far.Creatures["creature.camp"])
}

// comingAndGoing makes the watcher leave, and watch again in another run. Meanwhile,
// creatures have come and gone, one of them under the name of the watched one.
func comingAndGoing(t *testing.T, s *story, eyes *watcher, scout terrarium.CreatureID, far *engine.Applied) {
	t.Helper()
	cursor, paths := eyes.Cursor(), far.Channels["channel.paths"]
	eyes.Close()
	s.say(paths, "unseen")
	whole(t, s.Terrarium, "remove_creature", fmt.Sprintf(`{"creature":%q}`, scout))
	camp := far.Creatures["creature.camp"]
	impostor := do(t, s.Terrarium, "add_creature", fmt.Sprintf(`{"name":"scout","module":"builtin:relay","join":%q,"listen":[%q]}`, camp, far.Channels["channel.sightings"]))
	s.idle()
	s.again()
	if _, problems, err := s.Restore(t.Context()); err != nil || len(problems) > 0 {
		t.Fatalf("Restore: %v, %v", problems, err)
	}
	sub, err := s.SubscribeAfter(t.Context(), terrarium.Filter{Creatures: []terrarium.CreatureID{scout}, Kinds: []journal.EventKind{journal.EventChannelMessage, journal.EventCreatureStopped}}, cursor, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	again := &watcher{t: t, Subscription: sub}
	if e := again.sees(journal.EventChannelMessage, ""); string(e.Payload) != "unseen" {
		t.Errorf("missed of the scout: %s", e.Payload)
	}
	again.sees(journal.EventCreatureStopped, scout)
	if len(again.seen) != 2 || impostor["creature"] == string(scout) {
		t.Errorf("seen after coming back: %v", again.seen)
	}
}

// surroundings returns all that the members of a team can know of their surroundings.
func (s *story) surroundings(team *engine.Applied) string {
	s.t.Helper()
	var text []byte
	for _, address := range []string{"creature.scout", "creature.camp"} {
		view, err := s.Awareness(team.Creatures[address])
		if err != nil {
			s.t.Fatal(err)
		}
		text = fmt.Appendf(append(text, view.JSON()...), " revision %d\n", view.Revision())
	}
	return string(text)
}
