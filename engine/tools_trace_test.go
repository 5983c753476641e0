package engine_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// TestWhatToolsChangeHasItsCause makes a creature edit its graph, and checks that the events of
// the changes have the message that it handled as their cause.
func TestWhatToolsChangeHasItsCause(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	lead := s.apply(crew("own")).Creatures["creature.lead"]
	for _, r := range s.ask(lead,
		toolCall{"group_add_node", args{"species": "scribe", "name": "eve"}},
		toolCall{"group_wire", args{"action": "add", "from": "bob", "to": "eve"}},
		toolCall{"group_stop_node", args{"creature": "ann"}},
	) {
		if r.Code != "" {
			t.Fatalf("%s: %s", r.Code, r.Error)
		}
	}
	var asked journal.EventID
	causes := map[journal.EventKind]journal.EventID{}
	for _, ev := range s.events(lead) {
		switch {
		case ev.Kind == journal.EventDirectMessage:
			asked = ev.ID
		case !asked.IsZero():
			causes[ev.Kind] = ev.Cause
		}
	}
	for _, kind := range []journal.EventKind{
		journal.EventCreatureStarted, journal.EventSessionAttached, journal.EventWireAdded, journal.EventCreatureStopped, journal.EventTopologyChanged,
	} {
		if causes[kind] != asked {
			t.Errorf("%s was caused by %q, want %q", kind, causes[kind], asked)
		}
	}
}

// TestACutTellsWhereCreaturesGoOn merges two sessions. The creature whose graph has changed is
// then attached to the resulting session.
func TestACutTellsWhereCreaturesGoOn(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a, b := s.add("a", "record"), s.add("b", "record")
	s.connect(a, b, "link")
	want := s.session(a)
	attached := map[journal.CreatureID][]journal.SessionID{}
	for _, ev := range s.events(a) {
		var p journal.SessionAttachedPayload
		if ev.Kind != journal.EventSessionAttached {
			continue
		}
		if err := json.Unmarshal(ev.Payload, &p); err != nil {
			t.Fatal(err)
		}
		attached[ev.Creature] = append(attached[ev.Creature], p.Session)
	}
	if len(attached[a]) != 1 || len(attached[b]) != 2 || attached[b][1] != want {
		t.Errorf("the creatures were attached to %v, want b in %s in the end", attached, want)
	}
}

// TestASessionRemembersThatItMayBeMerged restores sessions without their recipes.
func TestASessionRemembersThatItMayBeMerged(t *testing.T) {
	for name, c := range map[string]struct {
		other func(*deploy.Deployment)
		want  string
	}{"both allow it": {allowMerge, ""}, "one does not": {func(*deploy.Deployment) {}, "denied"}} {
		t.Run(name, func(t *testing.T) {
			s := newSaved(t, engine.Options{Host: operators()})
			a, b := s.apply(crew("own", allowMerge)), s.apply(crew("other", c.other))
			s.reopen()
			s.restore()
			r := s.ask(a.Creatures["creature.lead"], toolCall{"group_channel", args{
				"action": "wire", "channel": string(b.Channels["channel.work"]), "creature": "ann", "direction": "listen", "merge": true,
			}})[0]
			if r.Code != c.want {
				t.Errorf("%q (%s), want %q", r.Code, r.Error, c.want)
			}
		})
	}
}

// TestARequestToWhoIsRemovedIsAnswered removes a creature that has not answered its requests,
// with and without a cut, and checks the results that the senders get.
func TestARequestToWhoIsRemovedIsAnswered(t *testing.T) {
	onStorages(t, func(t *testing.T, o engine.Options) {
		h := newFakeHost()
		h.on("asker", asker)
		h.on("answerer", answerer)
		o.Host = h
		w := newWorld(t, o)
		b := w.add("b", "answerer")
		a := w.add("a", "asker", func(s *deploy.CreatureSpec) { s.Config = json.RawMessage(`{"ask":"b"}`) })
		c := w.add("c", "answerer")
		w.connect(a, b, "link")
		w.connect(b, c, "other") // so that the removal splits
		w.change(topology.SetStopped{ID: b, Stopped: true})
		if _, err := w.SendTo(t.Context(), a, engine.Outgoing{Payload: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		w.wait()
		call, err := w.Ask(t.Context(), b, engine.Outgoing{}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		w.change(topology.RemoveCreature{ID: b})
		w.wait()
		if got, want := w.state(a, "heard"), "1 not_connected the creature that was asked has been removed\n"; got != want {
			t.Errorf("a noted %q, want %q", got, want)
		}
		if _, err := call.Reply(t.Context()); abi.CodeOf(err) != abi.NotConnected {
			t.Errorf("the caller from outside got %v, want not_connected", err)
		}
	})
}
