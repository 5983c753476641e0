package engine_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/tools"
)

// refusing denies one kind of event, and adds a warning and an audit.
func refusing(kind journal.PolicyKind) *judge {
	return &judge{kinds: []journal.PolicyKind{kind}, judge: func(*deploy.PolicyEvent) deploy.Decision {
		d := deploy.Decision{Words: denial("told to")}
		d.Warnings, d.Audits = []deploy.Verdict{word("mind", "odd")}, []deploy.Verdict{word("try", "no")}
		return d
	}}
}

// Every verdict on a refused operation is in the log, for every caller and every way of
// requesting it.
func TestWordsOnRefusedOperationsAreKept(t *testing.T) {
	want := []string{"denied cage told to", "audit try no", "warning mind odd"}
	for name, c := range map[string]struct {
		kind journal.PolicyKind
		do   func(s *saved, a *engine.Applied) error
	}{
		"an operation": {journal.JudgeSpawn, func(s *saved, a *engine.Applied) error {
			_, err := s.AddCreature(t.Context(), deploy.CreatureSpec{Name: "eve", Species: "scribe", Deployment: "own", Join: s.graph(a.Creatures["creature.lead"])})
			return err
		}},
		"a tool's operation": {journal.JudgeSpawn, func(s *saved, a *engine.Applied) error {
			_, err := s.Tool(t.Context(), a.Creatures["creature.lead"], "group_add_node", []byte(`{"species": "scribe"}`))
			return err
		}},
		"a tool": {journal.JudgeTool, func(s *saved, a *engine.Applied) error {
			_, err := s.Tool(t.Context(), a.Creatures["creature.lead"], "group_status", nil)
			return err
		}},
		"a guest's call": {journal.JudgeSpawn, func(s *saved, a *engine.Applied) error {
			reply := s.ask(a.Creatures["creature.lead"], toolCall{"group_add_node", args{"species": "scribe"}})[0]
			return &abi.Error{Code: map[string]abi.Code{"denied": abi.Denied}[reply.Code]}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSaved(t, engine.Options{Host: operators()})
			a := s.apply(crew("own", judgedBy(refusing(c.kind))))
			if err := c.do(s, a); abi.CodeOf(err) != abi.Denied {
				t.Fatalf("the operation returns %v, want denied", err)
			}
			got := s.said(a.Creatures["creature.lead"])
			slices.Sort(got)
			if sorted := slices.Sorted(slices.Values(want)); !slices.Equal(got, sorted) {
				t.Errorf("the log has %q, want %q", got, sorted)
			}
		})
	}
}

// If a policy changes what a tool sends in a call from outside, the original is kept like that
// of a guest's send.
func TestWhatPoliciesChangeOfAToolsSendIsKept(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	a := s.apply(crew("own", judgedBy(&judge{send: func(ev *deploy.SendEvent) deploy.SendDecision {
		return deploy.SendDecision{Mutated: true, Payload: []byte("clean")}
	}})))
	lead := a.Creatures["creature.lead"]
	result, err := s.Tool(t.Context(), lead, "send_channel", []byte(`{"channel": "work", "payload": "dirty"}`))
	var sent tools.SendChannelResult
	if err != nil || json.Unmarshal(result, &sent) != nil {
		t.Fatalf("%s: %v", result, err)
	}
	var kept []journal.NotedSend
	for _, ev := range s.events(lead, journal.EventTurnEnded) {
		var p journal.TurnEndedPayload
		if err := json.Unmarshal(ev.Payload, &p); err != nil {
			t.Fatal(err)
		}
		if p.Kind == "tool" && p.Notes != nil {
			kept = append(kept, p.Notes.Sends...)
		}
	}
	want := journal.NotedSend{Channel: a.Channels["channel.work"], Hash: journal.HashMessage([]byte("dirty"), map[string]string{"terrarium-message": sent.Message})}
	if len(kept) != 1 || !reflect.DeepEqual(kept[0], want) {
		t.Errorf("the event has %+v, want %+v", kept, want)
	}
}
