package replay_test

import (
	"encoding/json"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/tools"
	"github.com/seed47132306/terrarium/replay"
)

// TestMessagesOfTools replays a turn that spawns a worker with its first message, and whose
// messages answer others.
func TestMessagesOfTools(t *testing.T) {
	w := newWorld(t, map[string]behaviour{"leads": func(t abi.Turn, kind abi.Kind, _ *int) error {
		if kind != abi.KindMessage {
			return nil
		}
		var added tools.AddNodeResult
		b, code := t.Tool([]byte("group_add_node"), []byte(`{"species": "helper", "two_way": true, "description": "helps", "task": "first"}`))
		if err := json.Unmarshal(b, &added); code != abi.OK || err != nil {
			return t2err(t, false)
		}
		for _, call := range [][2]string{
			{"group_send", `{"creature": "` + string(added.Creature) + `", "payload": "second", "reply_to": "` + added.Message + `"}`},
			{"send_channel", `{"channel": "` + string(added.Channel) + `", "payload": "third", "headers": {"z": "1"}, "reply_to": "` + added.Message + `"}`},
		} {
			if _, code := t.Tool([]byte(call[0]), []byte(call[1])); code != abi.OK {
				return t2err(t, false)
			}
		}
		return nil
	}, "sink": asking(nil)})
	applied, err := w.Apply(t.Context(), &deploy.Deployment{
		Name:      "crew",
		Creatures: []deploy.CreatureSpec{{Address: "creature.lead", Name: "lead", Module: "leads", Privileged: true}},
		Species:   []deploy.SpeciesSpec{{Name: "helper", Spec: deploy.CreatureSpec{Module: "sink"}, Spawnable: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.tell(applied.Creatures["creature.lead"], "go")
	w.wait()
	same(t, w.replay(replay.Options{}), 6)
}

// TestMessagesOfEarlierVersions proves that a message in a log without ids has no header.
func TestMessagesOfEarlierVersions(t *testing.T) {
	m, err := (&tools.SendChannelArgs{Payload: journal.Payload("x"), Headers: map[string]string{"a": "b"}}).Message("")
	if h := journal.DecodeHeaders(m.Headers); err != nil || len(h) != 1 || h["a"] != "b" {
		t.Errorf("the headers are %v: %v", h, err)
	}
}
