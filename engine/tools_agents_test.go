package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/tools"
)

// TestAnAnswerNamesItsMessage lets one creature send a message, and another one answer it by
// the id in its headers. If the message is passed on with its headers, the id is left out.
func TestAnAnswerNamesItsMessage(t *testing.T) {
	h := operators()
	h.on("answers", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			return nil
		}
		b, _ := t.Source(abi.SourceHeaders)
		headers := slices.Clone(b)
		id := journal.DecodeHeaders(headers)["terrarium-message"]
		if _, code := t.Tool([]byte("group_send"), []byte(`{"creature": "lead", "payload": "done", "reply_to": "`+id+`"}`)); code != abi.OK {
			return codeErr(t, code)
		}
		if n := t.Send(t.Channel([]byte("orders")), []byte("passed on"), headers); n < 0 {
			return codeErr(t, abi.Code(-n))
		}
		return nil
	})
	s := newSaved(t, engine.Options{Host: h})
	a := s.apply(crew("crew", func(d *deploy.Deployment) {
		d.Creatures[2].Module, d.Creatures[2].Wasm = "answers", []byte("answers")
		d.Creatures[0].Listen = nil
	}))
	lead := a.Creatures["creature.lead"]
	sent := answer[tools.SendChannelResult](t, s.ask(lead, toolCall{"send_channel", args{"channel": "work", "payload": "dig", "headers": args{"z": "1"}}})[0])
	var got []string
	for _, ev := range s.events(lead, journal.EventChannelMessage, journal.EventDirectMessage) {
		headers := journal.DecodeHeaders(ev.Headers)
		switch string(ev.Payload) {
		case "dig":
			if headers["terrarium-message"] != sent.Message || headers["z"] != "1" || len(headers) != 2 {
				t.Errorf("the message arrives with the headers %v, but its id is %s", headers, sent.Message)
			}
		case "done":
			if headers["terrarium-reply-to"] != sent.Message || headers["terrarium-message"] == "" || headers["terrarium-message"] == sent.Message {
				t.Errorf("the answer arrives with the headers %v, want a reply to %s", headers, sent.Message)
			}
		case "passed on":
			if len(headers) != 1 || headers["z"] != "1" {
				t.Errorf("the message that was passed on has the headers %v", headers)
			}
		default:
			continue
		}
		got = append(got, string(ev.Payload))
	}
	if !slices.Equal(got, []string{"dig", "done", "passed on"}) {
		t.Errorf("the messages in the log are %v", got)
	}
}

// TestASpawnWithItsTask adds a worker, a channel in both directions and a first message in one
// call. All of them still exist after a restart.
func TestASpawnWithItsTask(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	lead := s.apply(crew("crew")).Creatures["creature.lead"]
	r := answer[tools.AddNodeResult](t, s.ask(lead, toolCall{"group_add_node", args{"species": "scribe", "name": "eve", "two_way": true, "task": "write"}})[0])
	var task journal.Event
	for _, ev := range s.events(lead, journal.EventDirectMessage) {
		if ev.Channel == journal.InboxOf(r.Creature) {
			task = ev
		}
	}
	if string(task.Payload) != "write" || journal.DecodeHeaders(task.Headers)["terrarium-message"] != r.Message || task.Creature != lead && task.Turn.IsZero() {
		t.Errorf("the task is %+v, and the result %+v", task, r)
	}
	for range 2 {
		if got := s.state(r.Creature, "heard"); !strings.HasSuffix(got, ":write\n") {
			t.Errorf("eve has heard %q", got)
		}
		c, _ := s.creatureIn(lead)
		if eve, _ := s.creatureIn(r.Creature); !slices.Contains(c.Listen, r.Channel) || !slices.Contains(c.Send, r.Channel) || !slices.Contains(eve.Listen, r.Channel) || !slices.Contains(eve.Send, r.Channel) {
			t.Errorf("the direct channel %s connects %+v with %+v", r.Channel, c, eve)
		}
		s.reopen()
	}
}

// TestASpawnWhoseTaskIsRefused proves that nothing is added: not for the rest of the turn, and
// not when the turn is committed.
func TestASpawnWhoseTaskIsRefused(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	lead := s.apply(crew("crew", func(d *deploy.Deployment) { d.Creatures[0].Limits.Sends = 1 })).Creatures["creature.lead"]
	replies := s.ask(lead,
		toolCall{"send_channel", args{"channel": "work", "payload": "dig"}},
		toolCall{"group_add_node", args{"species": "scribe", "name": "eve", "two_way": true, "task": "write"}},
		toolCall{"group_status", nil},
	)
	if replies[1].Code != "limit" {
		t.Errorf("the reply to the spawn is %q %s, want limit", replies[1].Code, replies[1].Error)
	}
	if got := answer[tools.GroupStatus](t, replies[2]); len(got.Creatures) != 3 || len(got.Channels) != 2 || got.Creatures[0].Listen[0].Alias != "orders" {
		t.Errorf("the turn sees %+v", got)
	}
	if _, g := s.creatureIn(lead); len(g.Creatures) != 3 || len(g.Channels) != 2 {
		t.Errorf("after the turn, the graph is %+v", g)
	}
}
