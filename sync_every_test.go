package terrarium_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/topology"
)

// TestSyncEveryIsRefusedWhereItMeansNothing sets the time between syncs for sessions that are
// not kept, and for sessions that are synced anyway.
func TestSyncEveryIsRefusedWhereItMeansNothing(t *testing.T) {
	for name, o := range map[string]terrarium.Options{
		"nothing is kept": {SyncEvery: time.Second},
		"full":            {SyncEvery: time.Second, Dir: t.TempDir(), Durability: terrarium.Full},
		"too short":       {SyncEvery: 1, Dir: t.TempDir()},
	} {
		if _, err := terrarium.New(t.Context(), o); abi.CodeOf(err) != abi.InvalidArgument {
			t.Errorf("%s: %v, want invalid_argument", name, err)
		}
	}
	kept, err := terrarium.New(t.Context(), terrarium.Options{SyncEvery: time.Second, Dir: t.TempDir(), Durability: terrarium.Normal})
	if err != nil {
		t.Fatal(err)
	}
	if err := kept.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The recipe says after which time what its sessions write is synced, by the clock of the
// terrarium. An option takes precedence, and the shortest time applies to a graph of several
// deployments. A session remembers it.
func TestSyncEveryOfRecipes(t *testing.T) {
	dir := t.TempDir()
	recipe := func(name, settings string) string {
		return "terrarium { name = \"" + name + "\" }\nsession {" + settings + "}\nchannel \"lines\" {}\n" +
			"creature \"" + name + "\" {\n  module = \"builtin:tally\"\n  listen = [channel.lines]\n  config = { every = 1000 }\n}\n"
	}
	writeFiles(t, dir, map[string]string{
		"ten.hcl": recipe("one", `sync_every = "10s"`), "five.hcl": recipe("one", `sync_every = "5s"`), "never.hcl": recipe("one", ""),
		"full.hcl": recipe("one", `durability = "full"`),
	})
	session := t.TempDir()
	for _, c := range []struct {
		recipe, session string // "": restored without one
		every           time.Duration
		durability      terrarium.Durability
		want            time.Duration // 0: never
	}{
		{recipe: "ten.hcl", session: session, want: 10 * time.Second},
		{session: session, want: 10 * time.Second},
		{recipe: "five.hcl", session: session, want: 5 * time.Second},
		{recipe: "five.hcl", session: session, every: 30 * time.Second, want: 30 * time.Second},
		{recipe: "never.hcl", session: session},
		{session: session},
		{session: session, every: time.Minute, want: time.Minute},
		{recipe: "ten.hcl", session: t.TempDir(), durability: terrarium.Full},
		{recipe: "full.hcl", session: t.TempDir(), every: time.Minute},
	} {
		clock := terrarium.NewManualClock(time.Date(2030, 1, 1, 6, 0, 0, 0, time.UTC))
		x := opened(t, terrarium.Options{Dir: c.session, SyncEvery: c.every, Durability: c.durability, Clock: clock, NoSearchIndex: true})
		var err error
		if c.recipe == "" {
			_, _, err = x.Restore(t.Context())
		} else {
			_, err = x.Apply(t.Context(), filepath.Join(dir, c.recipe), terrarium.RecipeOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Advance(t.Context(), 24*time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := send(t, x, "lines", "frog"); err != nil {
			t.Fatal(err)
		}
		if wait, ok := x.Directory().SyncDue(t.Context()); wait != c.want && ok || ok != (c.want > 0) {
			t.Errorf("%+v: the next sync is in %v, %v", c, wait, ok)
		}
		if err := x.Advance(t.Context(), c.want); err != nil {
			t.Fatal(err)
		}
		if wait, ok := x.Directory().SyncDue(t.Context()); ok {
			t.Errorf("%+v: after a sync, the next one is in %v", c, wait)
		}
		closed(t, x)
	}
}

// Graphs of recipes with different times merge, and have the shorter one.
func TestSyncEveryOfMergedGraphs(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{}
	for name, every := range map[string]string{"one": "10s", "two": "2s"} {
		files[name+".hcl"] = "terrarium { name = \"" + name + "\" }\nsession { sync_every = \"" + every + "\" }\nchannel \"" + name + "\" {}\n" +
			"creature \"" + name + "\" {\n  module = \"builtin:tally\"\n  listen = [channel." + name + "]\n}\n"
	}
	writeFiles(t, dir, files)
	x := opened(t, terrarium.Options{Dir: t.TempDir(), Clock: terrarium.NewManualClock(time.Date(2030, 1, 1, 6, 0, 0, 0, time.UTC)), NoSearchIndex: true})
	var creature terrarium.CreatureID
	for _, name := range []string{"one", "two"} {
		applied, err := x.Apply(t.Context(), filepath.Join(dir, name+".hcl"), terrarium.RecipeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		creature = applied.Creatures["creature."+name]
	}
	one, err := x.FindChannel("", "one")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Change(t.Context(), topology.SetEdge{Creature: creature, Channel: one, Alias: "one", Direction: topology.Listen, On: true}); err != nil {
		t.Fatal(err)
	}
	if err := x.Advance(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := send(t, x, "one", "frog"); err != nil {
		t.Fatal(err)
	}
	if wait, ok := x.Directory().SyncDue(t.Context()); !ok || wait != 2*time.Second {
		t.Errorf("the next sync is in %v, %v", wait, ok)
	}
	closed(t, x)
}

// The figures of a session directory are those that the directory reports.
func TestMetricsOfDirectory(t *testing.T) {
	x := opened(t, terrarium.Options{Dir: t.TempDir(), Durability: terrarium.Full, NoSearchIndex: true})
	if _, err := x.Apply(t.Context(), "testdata/count.hcl", terrarium.RecipeOptions{}); err != nil {
		t.Fatal(err)
	}
	before := x.Directory().Wear()
	for range 3 {
		if err := send(t, x, "lines", "INFO"); err != nil {
			t.Fatal(err)
		}
	}
	figures, err := x.Metrics()
	if err != nil {
		t.Fatal(err)
	}
	after := x.Directory().Wear()
	for _, m := range figures {
		switch {
		case m.Name == "terrarium_store_syncs_total" && (m.Value <= float64(before.Syncs) || m.Value > float64(after.Syncs)),
			m.Name == "terrarium_store_written_bytes_total" && (m.Value <= float64(before.WrittenBytes) || m.Value > float64(after.WrittenBytes)):
			t.Errorf("%s is %v, between %+v and %+v", m.Name, m.Value, before, after)
		}
	}
	closed(t, x)
}
