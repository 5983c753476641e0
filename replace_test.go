package terrarium_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// newTerrarium starts a terrarium that ends with the test.
func newTerrarium(t *testing.T, o terrarium.Options) *terrarium.Terrarium {
	t.Helper()
	tr, err := terrarium.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return tr
}

// addChannel adds a channel on which a creature listens or sends.
func addChannel(t *testing.T, tr *terrarium.Terrarium, c terrarium.CreatureID, as journal.Direction) terrarium.ChannelID {
	t.Helper()
	status, err := tr.Status("")
	if err != nil || len(status) != 1 {
		t.Fatal(status, err)
	}
	ch, err := tr.AddChannel(t.Context(), status[0].ID, "lines", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Change(t.Context(), topology.SetEdge{Creature: c, Channel: ch.Channel, Direction: as, On: true}); err != nil {
		t.Fatal(err)
	}
	return ch.Channel
}

func addGate(t *testing.T, tr *terrarium.Terrarium) terrarium.CreatureID {
	t.Helper()
	added, err := tr.AddCreature(t.Context(), deploy.CreatureSpec{
		Name: "gate", Module: "builtin:gate", Config: []byte(`{"match": "frog"}`), Limits: abi.Limits{Deadline: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	return added.Creature
}

// TestReplaceModuleChecks checks modules against a record, and against none.
func TestReplaceModuleChecks(t *testing.T) {
	tr := newTerrarium(t, terrarium.Options{Dir: t.TempDir()})
	c := addGate(t, tr)
	addChannel(t, tr, c, journal.Send)
	if _, err := tr.ReplaceModule(t.Context(), c, terrarium.ReplaceOptions{Module: "builtin:gate", Check: 3}); err != nil {
		t.Errorf("before its first turn: %v", err)
	}
	for i := range 4 {
		if _, err := tr.SendTo(t.Context(), c, engine.Outgoing{Payload: fmt.Append(nil, "message ", i), Durable: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tr.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	for check, turns := range map[int]int{2: 2, 100: 5, terrarium.AllTurns: 5} { // the start is a turn too
		out, err := tr.ReplaceModule(t.Context(), c, terrarium.ReplaceOptions{Module: "builtin:gate", Check: check})
		if err != nil || out.Check.Turns != turns || !out.Check.Same() {
			t.Errorf("check %d: %+v, %v", check, out, err)
		}
	}
	o := terrarium.ReplaceOptions{Module: "builtin:echo", Check: 2} // which passes on everything
	_, err := tr.ReplaceModule(t.Context(), c, o)
	var failed *terrarium.CheckFailed
	if abi.CodeOf(err) != abi.Conflict || !errors.As(err, &failed) || failed.Report.Turns != 1 || len(failed.Report.Differences) != 1 {
		t.Errorf("another module: %v", err)
	}
	o.Force = true
	out, err := tr.ReplaceModule(t.Context(), c, o)
	if err != nil || out.Module != "builtin:echo" || out.Former != "builtin:gate" || out.Check.Differ != 1 {
		t.Errorf("by force: %+v, %v", out, err)
	}
}

// TestReplaceModuleWithoutRecord asks for a check in a graph that keeps nothing.
func TestReplaceModuleWithoutRecord(t *testing.T) {
	tr := newTerrarium(t, terrarium.Options{})
	c := addGate(t, tr)
	if _, err := tr.ReplaceModule(t.Context(), c, terrarium.ReplaceOptions{Module: "builtin:gate", Check: 1}); abi.CodeOf(err) != abi.Unsupported {
		t.Errorf("with a check: %v", err)
	}
	if _, err := tr.ReplaceModule(t.Context(), c, terrarium.ReplaceOptions{Module: "builtin:gate"}); err != nil {
		t.Errorf("without: %v", err)
	}
	if _, err := tr.ReplaceModule(t.Context(), "c00000000000000", terrarium.ReplaceOptions{Module: "builtin:gate", Check: 1}); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("no such creature: %v", err)
	}
}

// TestCheckModule compares modules with the record of a creature that runs, and of one that
// is only saved. Nothing is replaced.
func TestCheckModule(t *testing.T) {
	dir := t.TempDir()
	tr, err := terrarium.New(t.Context(), terrarium.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	c := addGate(t, tr)
	addChannel(t, tr, c, journal.Send)
	for range 3 {
		if _, err := tr.SendTo(t.Context(), c, engine.Outgoing{Payload: []byte("newt"), Durable: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tr.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	check := func(state string, tr *terrarium.Terrarium) {
		for module, differ := range map[string]int{"builtin:gate": 0, "builtin:echo": 3} {
			wasm, err := terrarium.LoadModule(t.Context(), module)
			if err != nil {
				t.Fatal(err)
			}
			report, err := tr.CheckModule(t.Context(), c, wasm, terrarium.AllTurns, true)
			if err != nil || report.Turns != 4 || report.Differ != differ {
				t.Errorf("%s, %s: %+v, %v", state, module, report, err)
			}
		}
	}
	check("running", tr)
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	saved := newTerrarium(t, terrarium.Options{Dir: dir})
	check("saved", saved)
	if len(saved.Saved()) != 1 {
		t.Error("the check has restored the graph")
	}
}

// TestReplaceModuleUnderLoad replaces a module while messages arrive. Each is handled once.
func TestReplaceModuleUnderLoad(t *testing.T) {
	tr := newTerrarium(t, terrarium.Options{Dir: t.TempDir()})
	added, err := tr.AddCreature(t.Context(), deploy.CreatureSpec{
		Name: "tally", Module: "builtin:tally", Config: []byte(`{"key": "field:1"}`), Limits: abi.Limits{Deadline: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := added.Creature
	ch := addChannel(t, tr, c, journal.Listen)
	wasm, err := terrarium.LoadModule(t.Context(), "builtin:tally")
	if err != nil {
		t.Fatal(err)
	}
	const lines, senders = 400, 2
	var sending sync.WaitGroup
	for range senders {
		sending.Go(func() {
			for range lines {
				if _, err := tr.Send(t.Context(), ch, engine.Outgoing{Payload: []byte("frog")}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 20 {
		version := append(slices.Clone(wasm), 0, 3, 1, 'v', byte(i)) // a custom section
		out, err := tr.ReplaceModule(t.Context(), c, terrarium.ReplaceOptions{Module: "builtin:tally", Wasm: version})
		if err != nil || out.SHA256 == out.FormerSHA256 {
			t.Errorf("%+v, %v", out, err)
		}
	}
	sending.Wait()
	if err := tr.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	state, err := tr.State(t.Context(), c, "count/")
	if err != nil || len(state) != 1 || string(state[0].Value) != fmt.Sprint(lines*senders) {
		t.Errorf("the tally has %+v, want %d frogs: %v", state, lines*senders, err)
	}
}
