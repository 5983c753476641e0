package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/tools"
	"github.com/seed47132306/terrarium/engine/topology"
)

// settled is a saved session in which the lead has made a channel and spawned two workers: a
// scribe, which listens on that channel, and a clerk with a direct channel. Each has a backlog
// of two messages.
func settled(t *testing.T) (s *saved, lead, scribe, clerk journal.CreatureID) {
	s = newSaved(t, engine.Options{Host: operators()})
	lead = s.apply(crew("crew")).Creatures["creature.lead"]
	wire := args{"action": "wire", "channel": "notes", "creature": "lead", "direction": "send"}
	replies := s.ask(lead,
		toolCall{"group_channel", args{"action": "create", "name": "notes"}},
		toolCall{"group_add_node", args{"species": "scribe", "name": "scribe", "listen": []args{{"channel": "notes"}}}},
		toolCall{"group_channel", wire}, // the scribe subscribes to it
		toolCall{"group_add_node", args{"species": "clerk", "name": "clerk"}},
	)
	scribe = answer[tools.AddNodeResult](t, replies[1]).Creature
	clerk = answer[tools.AddNodeResult](t, replies[3]).Creature
	s.change(topology.SetStopped{ID: scribe, Stopped: true})
	s.change(topology.SetStopped{ID: clerk, Stopped: true})
	s.note(lead, "one")
	s.note(lead, "two")
	return s, lead, scribe, clerk
}

// note makes the lead write to the scribe and the clerk.
func (s *saved) note(lead journal.CreatureID, text string) {
	s.t.Helper()
	for _, r := range s.ask(lead,
		toolCall{"send_channel", args{"channel": "notes", "payload": text}},
		toolCall{"send_channel", args{"channel": "clerk", "payload": `"` + text + `"`}},
	) {
		answer[json.RawMessage](s.t, r)
	}
}

// TestARecipeLeavesRestoredWorkersAlone restores a session and applies its recipe:
// spawned workers stay, with their backlog, and can still be reached.
func TestARecipeLeavesRestoredWorkersAlone(t *testing.T) {
	s, lead, scribe, clerk := settled(t)
	for round := range 2 {
		s.reopen()
		a := s.apply(crew("crew"))
		if len(a.Removed) != 0 || a.Creatures["creature.lead"] != lead {
			t.Errorf("round %d: removed are %+v", round, a.Removed)
		}
		if n := len(s.status()); n != 1 {
			t.Fatalf("round %d: %d graphs", round, n)
		}
	}
	s.note(lead, "three")
	s.change(topology.SetStopped{ID: scribe})
	s.change(topology.SetStopped{ID: clerk})
	s.wait()
	if got := s.state(scribe, "heard"); got != "notes:one\nnotes:two\nnotes:three\n" {
		t.Errorf("the scribe heard %q", got)
	}
	if got := s.state(clerk, "heard"); got != `"three"` {
		t.Errorf("the clerk heard %q last", got)
	}
	if l := s.letters(lead); len(l) != 0 {
		t.Errorf("dead letters: %+v", l)
	}
	// The workers still belong to their species, and count for its limit.
	if r := s.ask(lead, toolCall{"group_add_node", args{"species": "clerk"}})[0]; r.Code != abi.LimitExceeded.String() {
		t.Errorf("another clerk: %+v", r)
	}
}

// TestARecipeAloneReportsWhatItRemoves resumes a session by its recipe: spawned workers
// are removed, and their whole backlog is reported, and becomes dead letters.
func TestARecipeAloneReportsWhatItRemoves(t *testing.T) {
	s, lead, scribe, clerk := settled(t)
	s.shut()
	s.open()
	a := s.apply(crew("crew"))
	removed := map[string]uint64{}
	for _, r := range a.Removed {
		removed[r.Address] = r.Pending
	}
	if len(removed) != 3 || removed["scribe"] != 2 || removed["clerk"] != 2 || removed["notes"] != 0 {
		t.Errorf("removed are %v", removed)
	}
	if !s.creatureGone(scribe) || !s.creatureGone(clerk) {
		t.Error("a spawned worker still exists")
	}
	if l := s.letters(lead); len(l) != 4 {
		t.Errorf("%d dead letters, want 4: %+v", len(l), l)
	}
}

// TestAChannelThatARecipeDropsReportsWhatWaits covers a channel with messages that a
// remaining creature has not handled.
func TestAChannelThatARecipeDropsReportsWhatWaits(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	a := s.apply(crew("crew"))
	ann := a.Creatures["creature.ann"]
	s.change(topology.SetStopped{ID: ann, Stopped: true})
	s.send(a.Channels["channel.work"], "dig")
	s.wait()
	s.shut()
	s.open()
	b := s.apply(crew("crew", func(d *deploy.Deployment) {
		d.Channels = d.Channels[:1]
		d.Creatures[0].Send, d.Creatures[1].Listen, d.Creatures[2].Listen = nil, d.Creatures[0].Listen, nil
	}))
	if len(b.Removed) != 1 || b.Removed[0] != (engine.RemovedAddress{Address: "channel.work", Pending: 1}) {
		t.Errorf("removed are %+v", b.Removed)
	}
	if l := s.letters(ann); len(l) != 1 || l[0].Reason != "channel_removed" {
		t.Errorf("the dead letters are %+v", l)
	}
}
