package engine_test

import (
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// A turn that sends to a worker and removes it counts the dead letter, as one does
// that does not change the graph.
func TestATurnThatChangesTheGraphCountsItsDeadLetters(t *testing.T) {
	h := newFakeHost()
	h.on("lead", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			return nil
		}
		if code := t.SendTo([]byte("worker"), []byte("dig")); code != abi.OK {
			return codeErr(t, code)
		}
		_, code := t.Tool([]byte("group_remove_node"), []byte(`{"creature": "worker"}`))
		return codeErr(t, code)
	})
	w := newWorld(t, engine.Options{Host: h})
	lead := w.add("lead", "lead", func(c *deploy.CreatureSpec) { c.Privileged = true })
	w.connect(lead, w.add("worker", "sink"), "work")
	if _, err := w.SendTo(t.Context(), lead, engine.Outgoing{}); err != nil {
		t.Fatal(err)
	}
	w.wait()
	for _, c := range w.status()[0].Creatures {
		if c.ID == lead && (c.Counters.DeadLetters != 1 || c.Counters.Sent != 0) {
			t.Errorf("the lead has counted %+v, want one dead letter", c.Counters)
		}
	}
	if n := w.DeadLetterCount(); n != 1 {
		t.Errorf("%d dead letters, want 1", n)
	}
}
