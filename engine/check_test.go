package engine_test

import (
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/topology"
)

func TestNamesAndLimitsThatMakeNoSenseAreRefused(t *testing.T) {
	w := newWorld(t, engine.Options{})
	a := w.add("a", "sink")
	g := w.graph(a)
	for _, name := range []string{"", "a\nb", "a\x00", "\xff", "a\u202eb", "a\u2028b", "a\u200bb", strings.Repeat("x", 257)} {
		_, err := w.AddCreature(t.Context(), engine.CreatureSpec{Name: name, Wasm: []byte("sink")})
		if abi.CodeOf(err) != abi.InvalidArgument {
			t.Errorf("a creature named %q: %v, want invalid_argument", name, err)
		}
		if _, err := w.AddChannel(t.Context(), g, name, ""); abi.CodeOf(err) != abi.InvalidArgument {
			t.Errorf("a channel named %q: %v, want invalid_argument", name, err)
		}
		if _, err := w.Change(t.Context(), topology.Connect{From: a, To: a, Name: name}); name != "" && abi.CodeOf(err) != abi.InvalidArgument {
			t.Errorf("connecting on %q: %v, want invalid_argument", name, err)
		}
	}
	for what, limits := range map[string]abi.Limits{
		"mailbox": {Mailbox: 1 << 62}, "memory": {Memory: 1 << 40}, "sends": {Sends: -1}, "deadline": {Deadline: -1}, "message": {Message: 1 << 40},
	} {
		_, err := w.AddCreature(t.Context(), engine.CreatureSpec{Name: "b", Wasm: []byte("sink"), Limits: limits})
		if abi.CodeOf(err) != abi.InvalidArgument || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v, want invalid_argument naming it", what, err)
		}
	}
}
