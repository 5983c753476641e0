package terrarium

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// A guest that neither its fuel nor its deadline ends in time is ended by the time of the call.
func TestReplayTurnHasATime(t *testing.T) {
	tr, err := New(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tr.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	added, err := tr.AddCreature(t.Context(), CreatureSpec{Name: "newt", Module: "builtin:echo", Limits: abi.Limits{Fuel: 1 << 60, Deadline: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	turns, err := tr.History(t.Context(), string(added.Graph), journal.HistoryQuery{Kinds: []journal.EventKind{journal.EventTurnEnded}})
	if err != nil || len(turns) == 0 {
		t.Fatal(turns, err)
	}
	tr.replayTurnTime = 10 * time.Millisecond // the loop does not end by itself
	_, err = tr.ReplayTurn(t.Context(), ReplayTurnOptions{Turn: turns[0].ID, Module: filepath.Join("host", "testdata", "start_loops.wasm")})
	if abi.CodeOf(err) != abi.Deadline || !strings.Contains(err.Error(), "terrarium replay --turn") {
		t.Errorf("a loop ends with %v", err)
	}
	tr.replayTurnTime = time.Hour
	if c, err := tr.ReplayTurn(t.Context(), ReplayTurnOptions{Turn: turns[0].ID}); err != nil || c.First != -1 {
		t.Errorf("afterwards: %+v, %v", c, err)
	}
}
