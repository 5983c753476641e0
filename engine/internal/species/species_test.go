package species_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/species"
)

// openModule is a module that counts how often it is closed.
type openModule struct {
	abi.Module
	closed int
}

func (m *openModule) Close(context.Context) error { m.closed++; return nil }

// load loads a deployment with one species for each name, of modules that start.
func load(t *testing.T, deployment string, names ...string) ([]*species.Template, []*openModule) {
	t.Helper()
	d := &deploy.Deployment{Name: deployment}
	for _, name := range names {
		d.Species = append(d.Species, deploy.SpeciesSpec{Name: name, Spawnable: 2, Spec: deploy.CreatureSpec{Module: name, Config: []byte(`{"a":1,"b":1}`), Secret: []string{"a"}}})
	}
	var all []*openModule
	list, err := species.Load(d, func(*deploy.CreatureSpec) (abi.Module, error) {
		m := &openModule{}
		all = append(all, m)
		return m, nil
	}, func(*species.Template) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return list, all
}

// TestASpawnIsCompletedFromItsSpecies completes specifications. It refuses those that set what
// the species determines or that the species does not allow.
func TestASpawnIsCompletedFromItsSpecies(t *testing.T) {
	table := species.NewTable()
	list, modules := load(t, "d", "ant", "bee")
	more, _ := load(t, "e", "ant")
	table.Replace("d", list)
	table.Replace("e", more)
	applied := map[string]*deploy.Deployment{"d": {}, "e": {}}

	spec, m, err := table.Complete(deploy.CreatureSpec{Name: "maja", Species: "bee", Config: []byte(`{"b":2}`), Secret: []string{"b"}, Privileged: true}, applied)
	if err != nil {
		t.Fatal(err)
	}
	if spec.Name != "maja" || spec.Deployment != "d" || spec.Module != "bee" || string(spec.Config) != `{"a":1,"b":2}` || !spec.Privileged || !slices.Equal(spec.Secret, []string{"a", "b"}) {
		t.Errorf("the completed specification is %+v", spec)
	}
	species.Close(t.Context(), slog.New(slog.NewTextHandler(io.Discard, nil)), table.Replace("d", nil))
	if modules[0].closed != 1 || modules[1].closed != 0 {
		t.Errorf("the modules were closed %d and %d times, while a bee still has the second", modules[0].closed, modules[1].closed)
	}
	if err := errors.Join(m.Close(t.Context()), m.Close(t.Context())); err != nil || modules[1].closed != 1 {
		t.Errorf("the module of the bee was closed %d times, want once; %v", modules[1].closed, err)
	}
	again, _ := load(t, "d", "ant", "bee")
	table.Replace("d", again)
	for name, c := range map[string]struct {
		spec deploy.CreatureSpec
		code abi.Code
		says string
	}{
		"of two deployments":      {deploy.CreatureSpec{Species: "ant"}, abi.Ambiguous, "2 deployments have a species ant"},
		"of no deployment":        {deploy.CreatureSpec{Species: "wasp"}, abi.NotFound, "these may be spawned: ant, bee"},
		"of another deployment":   {deploy.CreatureSpec{Species: "bee", Deployment: "e"}, abi.NotFound, "these may be spawned: ant"},
		"of one that is not here": {deploy.CreatureSpec{Species: "ant", Deployment: "f"}, abi.NotFound, "applied: d, e"},
		"with an address":         {deploy.CreatureSpec{Species: "bee", Address: "x"}, abi.InvalidArgument, "no address"},
		"with limits":             {deploy.CreatureSpec{Species: "bee", Limits: abi.Limits{Fuel: 1}}, abi.InvalidArgument, "are those of the species"},
		"with an invalid config":  {deploy.CreatureSpec{Species: "bee", Config: []byte(`{`)}, abi.InvalidArgument, ""},
	} {
		if _, _, err := table.Complete(c.spec, applied); abi.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want the code %v and %q", name, err, c.code, c.says)
		}
	}
}

// TestOnlySpawnedCreaturesCount counts creatures of several origins.
func TestOnlySpawnedCreaturesCount(t *testing.T) {
	table := species.NewTable()
	list, _ := load(t, "d", "ant")
	table.Replace("d", list)
	ant := draft.Kind{Deployment: "d", Species: "ant"}
	for _, spec := range []deploy.CreatureSpec{{Species: "ant", Address: "creature.a"}, {}, {Species: "ant"}, {Species: "ant"}} {
		table.Count("d", &spec, 1)
	}
	table.Count("", &deploy.CreatureSpec{Species: "ant"}, 1)
	if got := table.Alive(ant); got != 2 {
		t.Errorf("%d spawned creatures are counted, want 2", got)
	}
	table.Count("d", &deploy.CreatureSpec{Species: "ant"}, -2)
	if got := table.Alive(ant); got != 0 {
		t.Errorf("after their removal, %d spawned creatures are counted, want none", got)
	}
	if s := table.Spec(ant); s == nil || s.Name != "ant" || len(table.Of("d")) != 1 || len(table.Of("e")) != 0 {
		t.Errorf("the table has the species %v and %v", s, table.Of("d"))
	}
	if got := species.Aware(table.All()); len(got) != 1 || got[0].Species != "ant" || got[0].Limit != 2 {
		t.Errorf("awareness documents would show %v", got)
	}
}

// TestADeploymentIsLoadedAsAWhole loads deployments with one species that fails.
func TestADeploymentIsLoadedAsAWhole(t *testing.T) {
	refused := errors.New("refused")
	spec := func(name string) deploy.SpeciesSpec {
		return deploy.SpeciesSpec{Name: name, Spawnable: 1, Spec: deploy.CreatureSpec{Module: name}}
	}
	d := &deploy.Deployment{Name: "d", Species: []deploy.SpeciesSpec{spec("a"), spec("b"), {Name: "c", Spec: deploy.CreatureSpec{Module: "c"}}}}
	compile := func(s *deploy.CreatureSpec) (abi.Module, error) {
		if s.Module == "c" {
			t.Error("a species that may not be spawned was compiled")
		}
		return &openModule{}, nil
	}
	list, err := species.Load(d, compile, func(s *species.Template) error {
		if s.Name == "b" {
			return refused
		}
		return nil
	})
	if !errors.Is(err, refused) || len(list) != 2 {
		t.Errorf("a species that does not start: %d templates and %v", len(list), err)
	}
	list, err = species.Load(d, func(*deploy.CreatureSpec) (abi.Module, error) { return nil, refused }, nil)
	if !errors.Is(err, refused) || len(list) != 0 {
		t.Errorf("a module that does not compile: %d templates and %v", len(list), err)
	}
	d.Species = nil
	for i := range deploy.MaxSpecies + 1 {
		d.Species = append(d.Species, spec(fmt.Sprintf("s%d", i)))
	}
	list, err = species.Load(d, compile, func(*species.Template) error { return nil })
	if abi.CodeOf(err) != abi.LimitExceeded || len(list) != deploy.MaxSpecies {
		t.Errorf("too many species: %d templates and %v", len(list), err)
	}
}
