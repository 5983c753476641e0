package engine_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
)

// storePath is the file of a creature's graph.
func (w *world) storePath(c journal.CreatureID) string {
	w.t.Helper()
	status, err := w.Status(w.graph(c))
	if err != nil {
		w.t.Fatal(err)
	}
	return status[0].StorePath
}

func TestAStoreThatCannotBeReadIsNamedAndTheRestGoesOn(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a := s.apply(team(2))
	other := s.add("other", "sink")
	damaged := s.storePath(a.Creatures["creature.m0"])
	s.shut()
	content, err := os.ReadFile(damaged)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(damaged, []byte(strings.Repeat("rubble", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.open()
	if p := s.Problems(); len(p) != 1 || abi.CodeOf(p[0]) != abi.Storage || !strings.Contains(p[0].Error(), damaged) {
		t.Fatalf("problems %v, want one that names %s", p, damaged)
	}
	events := s.Subscribe(engine.Filter{Kinds: []journal.EventKind{journal.EventStoreSetAside}}, 0)
	again := s.apply(team(2))
	if len(again.Problems) != 1 || len(again.Created) != 2 {
		t.Errorf("applied with problems %v and created %v, want one problem and both creatures", again.Problems, again.Created)
	}
	graphs, problems, err := s.Restore(t.Context())
	if err != nil || len(problems) != 1 || len(graphs) != 1 {
		t.Errorf("Restore: %v, problems %v, %v", graphs, problems, err)
	}
	s.graph(other) // fails if other does not exist
	events.Close()
	var paths []string
	for ob := range events.All(t.Context()) {
		var detail struct{ Path, Code, Remedy string }
		if err := json.Unmarshal(ob.Event.Payload, &detail); err != nil || detail.Code != "storage" || detail.Remedy == "" {
			t.Errorf("event %s, %v", ob.Event.Payload, err)
		}
		paths = append(paths, detail.Path)
	}
	if !slices.Equal(paths, []string{damaged}) {
		t.Errorf("events name %v, want %s once", paths, damaged)
	}
	s.shut()

	// The store is restored from a backup, while the deployment that started over exists too.
	if err := os.WriteFile(damaged, content, 0o600); err != nil {
		t.Fatal(err)
	}
	s.open()
	before := s.Saved()
	_, err = s.Apply(context.Background(), team(2))
	if abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), damaged) {
		t.Errorf("Apply returns %v, want a conflict that names %s", err, damaged)
	}
	if after := s.Saved(); len(before) != 3 || len(after) != 3 {
		t.Errorf("%d saved graphs, then %d; want 3", len(before), len(after))
	}
}

func TestTheParentsOfASessionComeEldestFirst(t *testing.T) {
	for range 5 { // ids are random
		s := newSaved(t, engine.Options{})
		a, b := s.add("a", "sink"), s.add("b", "sink")
		var want []journal.SessionID
		for _, g := range s.status() {
			want = append(want, g.Session)
		}
		s.connect(b, a, "bridge")
		line, err := s.Lineage(t.Context(), string(s.graph(a)))
		if err != nil {
			t.Fatal(err)
		}
		if got := line[0].Parents; !slices.Equal(got, want) {
			t.Errorf("parents %v, want %v", got, want)
		}
		s.shut()
	}
}
