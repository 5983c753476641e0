package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/tools"
	"github.com/seed47132306/terrarium/engine/topology"
)

// onMessage is a behaviour that handles messages only.
func onMessage(f func(t abi.Turn) error) behaviour {
	return func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			return nil
		}
		return f(t)
	}
}

func TestAStagedOperationIsCheckedAgainAtTheCommit(t *testing.T) {
	d := newOnDisk(t)
	var lead, bob journal.CreatureID
	var removals []abi.Code
	d.host.on("lead", onMessage(func(t abi.Turn) error {
		if _, code := t.Tool([]byte("group_channel"), []byte(`{"action": "create", "name": "one"}`)); code != abi.OK {
			return codeErr(t, code)
		}
		_, code := t.Tool([]byte("group_remove_node"), []byte(`{"creature": "bob"}`))
		if removals = append(removals, code); len(removals) == 1 {
			d.change(topology.RemoveCreature{ID: bob}) // another change is faster
		}
		return nil
	}))
	lead, bob = d.add("lead", "lead", privileged), d.add("bob", "sink")
	d.connect(lead, bob)
	d.sendTo(lead, "go")
	d.serve()
	if fmt.Sprint(removals) != fmt.Sprint([]abi.Code{abi.OK, abi.NotFound}) {
		t.Errorf("the removals returned %v, want ok and, in the second run, not_found", removals)
	}
	if _, err := d.FindChannel(d.graphOf(lead), "one"); err != nil {
		t.Error(err)
	}
}

// A turn can write to a creature that it adds and send it requests at once, by id and by
// name.
func TestATurnReachesWhomItAdds(t *testing.T) {
	host := operators()
	heard := make(chan string, 8)
	host.on("helper", func(t abi.Turn, kind abi.Kind) error {
		payload, _ := t.Source(abi.SourcePayload)
		heard <- fmt.Sprintf("%v %s", kind, payload)
		if kind == abi.KindRequest {
			return codeErr(t, t.Reply([]byte("pong")))
		}
		return nil
	})
	host.on("hirer", func(t abi.Turn, kind abi.Kind) error {
		if kind == abi.KindResult {
			payload, _ := t.Source(abi.SourcePayload)
			heard <- "answer " + string(payload)
		}
		if kind != abi.KindMessage {
			return nil
		}
		if code := t.SendTo([]byte("eve"), []byte("early")); code != abi.NotFound {
			return fmt.Errorf("eve is there before she is added: %v", code)
		}
		if _, code := t.Tool([]byte("group_add_node"), []byte(`{"species": "helper", "name": "eve"}`)); code != abi.OK {
			return codeErr(t, code)
		}
		if code := t.SendTo([]byte("eve"), []byte("hello")); code != abi.OK {
			return codeErr(t, code)
		}
		return codeErr(t, t.Request([]byte("eve"), []byte("ping"), time.Hour, 7))
	})
	w := newWorld(t, engine.Options{Host: host})
	on := []deploy.WireSpec{{Channel: "orders"}}
	applied, err := w.Apply(t.Context(), &deploy.Deployment{
		Name: "crew", Channels: []deploy.ChannelSpec{{Address: "orders", Name: "orders"}},
		Creatures: []deploy.CreatureSpec{{Address: "lead", Name: "lead", Module: "hirer", Wasm: []byte("hirer"), Listen: on, Privileged: true}},
		Species:   []deploy.SpeciesSpec{{Name: "helper", Spec: deploy.CreatureSpec{Module: "helper", Wasm: []byte("helper")}, Spawnable: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Send(t.Context(), applied.Channels["orders"], engine.Outgoing{Payload: []byte("go")}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"start ", "message hello", "request ping", "answer pong"} {
		if got := <-heard; got != want {
			t.Errorf("heard %q, want %q", got, want)
		}
	}
}

func (d *onDisk) graphOf(c journal.CreatureID) journal.GraphID {
	d.Helper()
	g, err := d.FindGraph(string(c))
	if err != nil {
		d.Fatal(err)
	}
	return g
}

func TestAStartThatEditsTheGraphIsTriedAgainWhenItsCutFails(t *testing.T) {
	d := newOnDisk(t)
	d.host.on("starter", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindStart {
			return nil
		}
		_, code := t.Tool([]byte("group_remove_node"), []byte(`{"creature": "bridge"}`))
		return codeErr(t, code)
	})
	starter := d.add("starter", "starter", privileged, stopped)
	bridge, far := d.add("bridge", "sink"), d.add("far", "sink")
	d.connect(starter, bridge)
	d.connect(bridge, far)
	d.disk.FailCuts = 1
	d.change(topology.SetStopped{ID: starter})
	d.serve()
	if d.graphOf(starter) != d.graphOf(far) {
		t.Fatal("the first attempt has cut the graph, although the storage refused")
	}
	d.clock.Advance(time.Minute)
	d.Ring()
	d.serve()
	if d.graphOf(starter) == d.graphOf(far) {
		t.Error("the bridge is still there: the start was not handled again")
	}
}

func TestATurnThatWasRunAloneDoesNotLeaveItsCreatureAlone(t *testing.T) {
	d := newOnDisk(t)
	runs := 0
	var lead journal.CreatureID
	d.host.on("lead", onMessage(func(t abi.Turn) error {
		t.Tool([]byte("group_status"), nil)
		if runs++; runs <= 3 {
			if _, err := d.AddChannel(context.Background(), d.graphOf(lead), fmt.Sprint("c", runs), ""); err != nil {
				return err
			}
		}
		t.Tool([]byte("group_status"), nil)
		return nil
	}))
	lead = d.add("lead", "lead", privileged)
	d.sendTo(lead, "go")
	d.serve()
	if n := d.ConflictsInARow(lead); runs != 4 || n != 0 {
		t.Errorf("%d runs, want 4; then %d conflicts still count for the creature", runs, n)
	}
}

// denier is a policy that denies every send on one channel.
type denier string

func (p denier) Judges(journal.PolicyKind) bool { return false }

func (p denier) Judge(context.Context, *deploy.PolicyEvent) deploy.Decision { return deploy.Decision{} }

func (p denier) JudgesSend(address string) bool { return address == string(p) }

func (p denier) Send(context.Context, *deploy.SendEvent) deploy.SendDecision {
	return deploy.SendDecision{Words: deploy.Words{Denials: []deploy.Verdict{{Policy: "no"}}}}
}

func TestPoliciesJudgeSendsOnChannelsThatTheTurnWires(t *testing.T) {
	h := operators()
	w := newWorld(t, engine.Options{Host: h})
	a := w.apply(crew("crew", func(d *deploy.Deployment) {
		d.Policy = denier("channel.work")
		d.Creatures[0].Send = nil
		d.Creatures[0].Listen = append(d.Creatures[0].Listen, deploy.WireSpec{Channel: "channel.work"})
	}))
	lead := a.Creatures["creature.lead"]
	replies := w.ask(lead,
		toolCall{"group_channel", args{"action": "wire", "channel": "work", "creature": "lead", "direction": "send"}},
		toolCall{"send_channel", args{"channel": "work", "payload": "secret"}},
	)
	answer[tools.SendChannelResult](t, replies[1])
	if got := w.state(a.Creatures["creature.ann"], "heard"); strings.Contains(got, "secret") {
		t.Errorf("ann heard %q, which a policy denies", got)
	}
	if c, _ := w.creature(lead); c.Counters.Denied != 1 {
		t.Errorf("%d sends were denied, want 1", c.Counters.Denied)
	}
}

// TestATurnOfAVolatileGraphThatMergesHasItsCause lets a creature whose graph has no store join
// a graph with one. The turn of that creature is the first in the log, so the message that it
// handled must be there.
func TestATurnOfAVolatileGraphThatMergesHasItsCause(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	none := journal.Volatile
	a := s.apply(crew("own", allowMerge, func(d *deploy.Deployment) { d.Session.Durability = &none }))
	b := s.apply(crew("other", allowMerge))
	lead := a.Creatures["creature.lead"]
	r := s.ask(lead, toolCall{"group_channel", args{
		"action": "wire", "channel": string(b.Channels["channel.work"]), "creature": "ann", "direction": "listen", "merge": true,
	}})[0]
	if r.Code != "" {
		t.Fatalf("%s: %s", r.Code, r.Error)
	}
	var causes []journal.EventID
	logged := map[journal.EventID]bool{}
	for _, ev := range s.events(lead) {
		logged[ev.ID] = true
		if ev.Kind == journal.EventTurnEnded && ev.Creature == lead {
			causes = append(causes, ev.Cause)
		}
	}
	if len(causes) != 1 || !logged[causes[0]] {
		t.Errorf("the turns of the creature were caused by %v, want one of the %d logged events", causes, len(logged))
	}
}
