package engine_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// However many large tool calls a turn makes, refused or not, the event that notes the
// calls is bounded by the limit send_bytes, and calls beyond it are refused.
func TestNotesOfToolCallsAreBounded(t *testing.T) {
	const calls, size = 64, 900 << 10
	h := operators()
	args := []byte(`{"creature": "nobody", "payload": "` + string(bytes.Repeat([]byte("x"), size)) + `"}`)
	codes := map[abi.Code]int{}
	h.on("noisy", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			return nil
		}
		for range calls {
			_, code := t.Tool([]byte("group_send"), args)
			codes[code]++
		}
		return nil
	})
	s := newSaved(t, engine.Options{Host: h})
	a := s.apply(crew("crew", func(d *deploy.Deployment) {
		d.Creatures[2].Module, d.Creatures[2].Wasm = "noisy", []byte("noisy")
	}))
	bob := a.Creatures["creature.bob"]
	s.tell(bob, "go")
	if codes[abi.OK] != 0 || codes[abi.LimitExceeded] == 0 || codes[abi.LimitExceeded] == calls {
		t.Errorf("the calls returned the codes %v", codes)
	}
	largest, noted := 0, 0
	for _, ev := range s.events(bob, journal.EventTurnEnded) {
		var p journal.TurnEndedPayload
		if err := json.Unmarshal(ev.Payload, &p); err != nil {
			t.Fatal(err)
		}
		largest = max(largest, len(ev.Payload))
		if p.Notes != nil {
			noted += len(p.Notes.Calls)
		}
	}
	if most := int(abi.DefaultLimits.SendBytes) + 64<<10; largest > most || noted == 0 {
		t.Errorf("the event of the turn has %d bytes and %d calls, want %d bytes at most", largest, noted, most)
	}
}
