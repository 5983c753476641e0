package ids_test

import (
	"testing"

	"github.com/seed47132306/terrarium/engine/internal/ids"
)

// TestSource proves that a seed makes ids repeatable, and that two sources without a seed draw
// different ids.
func TestSource(t *testing.T) {
	seed := uint64(7)
	a, b, other := ids.New(&seed), ids.New(&seed), ids.New(nil)
	for range 10 {
		id := a.ID("c")
		if same := b.ID("c"); id != same || id[0] != 'c' {
			t.Errorf("ids of one seed: %s and %s", id, same)
		}
		if other.ID("c") == id || ids.New(nil).Origin() == other.Origin() {
			t.Error("two sources without a seed draw the same")
		}
	}
	if a.Origin() != b.Origin() {
		t.Error("the origins of one seed differ")
	}
}
