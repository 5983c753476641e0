package engine_test

import (
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/tools"
	"github.com/seed47132306/terrarium/engine/topology"
)

// TestADirectChannelGoesWithItsCreature removes a creature whose direct channel was
// the only connection of its two senders, with a delivery waiting.
func TestADirectChannelGoesWithItsCreature(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	boss := s.add("boss", "operator", privileged)
	worker := s.add("worker", "record", s.below(boss))
	other := s.add("other", "relay")
	direct, err := s.FindChannel(s.graph(boss), "worker")
	if err != nil {
		t.Fatal(err)
	}
	s.change(topology.SetEdge{Creature: other, Channel: direct, Direction: journal.Send, On: true})
	s.change(topology.SetStopped{ID: worker, Stopped: true})
	s.tell(other, "dig")
	seen := s.watch(journal.EventDeadLetter, journal.EventTopologyChanged)
	d := answer[tools.DeltaResult](t, s.ask(boss, toolCall{"group_remove_node", args{"creature": "worker"}})[0]).Delta
	if d.Kind != "split" || len(d.NewGraphs) != 2 {
		t.Errorf("the delta is %+v, want one split in two", d)
	}
	if n := len(seen()); n < 2 {
		t.Errorf("%d events, want those of a dead letter and of a split", n)
	}
	for _, when := range []string{"at once", "after a restart"} {
		if _, g := s.creatureIn(boss); len(g.Channels) != 0 || s.graph(other) == g.ID {
			t.Errorf("%s: the channels are %+v", when, g.Channels)
		}
		if c, g := s.creatureIn(other); len(c.Send) != 0 || len(g.Channels) != 0 {
			t.Errorf("%s the other sender sends on %+v; the channels of its graph are %+v", when, c.Send, g.Channels)
		}
		var letters []journal.DeadLetterRow
		for _, c := range []journal.CreatureID{boss, other} {
			letters = append(letters, s.letters(c)...)
		}
		if len(letters) != 1 || string(letters[0].Payload) != "dig" || letters[0].Creature != worker || letters[0].Reason != "creature_removed" {
			t.Errorf("%s the dead letters are %+v", when, letters)
		}
		s.reopen()
	}
}

// TestADirectChannelThatOthersHearStays removes a creature on whose direct channel another one
// listens: that channel is not removed.
func TestADirectChannelThatOthersHearStays(t *testing.T) {
	w := newWorld(t, engine.Options{})
	boss := w.add("boss", "relay")
	worker, eaves := w.add("worker", "sink", w.below(boss)), w.add("eaves", "record", w.below(boss))
	direct, err := w.FindChannel(w.graph(boss), "worker")
	if err != nil {
		t.Fatal(err)
	}
	w.change(topology.SetEdge{Creature: eaves, Channel: direct, Direction: journal.Listen, On: true})
	w.change(topology.RemoveCreature{ID: worker})
	w.send(direct, "still here")
	w.wait()
	if got := w.state(eaves, "heard"); got != "worker:still here\n" {
		t.Errorf("the other listener received %q", got)
	}
	w.change(topology.RemoveCreature{ID: eaves})
	if _, err := w.FindChannel(w.graph(boss), "eaves"); err == nil {
		t.Error("the direct channel of the other listener was not removed")
	}
}

// TestDirectChannelsGoWithWorkers removes a creature together with its workers.
func TestDirectChannelsGoWithWorkers(t *testing.T) {
	w := newWorld(t, engine.Options{})
	top := w.add("top", "sink")
	boss := w.add("boss", "sink", takesWorkers, w.below(top))
	helper := w.add("helper", "sink", w.below(boss))
	w.add("second", "sink", w.below(helper))
	w.change(topology.RemoveCreature{ID: boss})
	if c, g := w.creatureIn(top); len(g.Channels) != 0 || len(c.Send) != 0 {
		t.Errorf("the channels are %+v, and top sends on %+v", g.Channels, c.Send)
	}
}

// TestARecipeThatDropsACreatureDropsTheDirectChannels is about a worker that is removed because
// its parent is no longer in the recipe of a running session.
func TestARecipeThatDropsACreatureDropsTheDirectChannels(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	takes := func(d *deploy.Deployment) { d.Creatures[0].Workers = deploy.WorkersRemove }
	a := s.apply(crew("crew", takes))
	lead, ann := a.Creatures["creature.lead"], a.Creatures["creature.ann"]
	eve := answer[tools.AddNodeResult](t, s.ask(lead, toolCall{"group_add_node", args{"species": "scribe", "name": "eve"}})[0])
	s.change(topology.SetEdge{Creature: ann, Channel: eve.Channel, Direction: journal.Send, On: true})
	s.reopen()
	b := s.apply(crew("crew", takes, func(d *deploy.Deployment) {
		d.Creatures = d.Creatures[1:]
	}))
	var removed []string
	for _, r := range b.Removed {
		removed = append(removed, r.Address)
	}
	if !slices.Equal(removed, []string{"creature.lead", "eve"}) {
		t.Errorf("removed are %v", removed)
	}
	for _, g := range s.status() {
		for _, ch := range g.Channels {
			if ch.ID == eve.Channel {
				t.Errorf("the direct channel was not removed: %+v", ch)
			}
		}
	}
}
