package serve

import (
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
)

// Turns are no longer measured when their engine has been closed, even if the handler has not.
func TestMeasuringEndsWithTheEngine(t *testing.T) {
	tr, err := terrarium.New(t.Context(), terrarium.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := NewHandler(tr, Options{})
	if text := string(h.turns.text(t.Context())); !strings.Contains(text, "terrarium_turn_duration_seconds_count 0") {
		t.Errorf("the metrics are\n%s", text)
	}
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.turns.measuring.Wait() // otherwise the test takes minutes, and all of a processor
	h.End()
}
