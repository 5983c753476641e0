package specs

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

func keyed(name, settings string, secret ...string) deploy.Capability {
	return deploy.Capability{Kind: "llm", Name: name, Settings: json.RawMessage(settings), Secret: secret, From: map[string][]string{"key": {"var.key"}}}
}

// TestRegrant proves what a spawned creature gets from the recipe that is applied again.
func TestRegrant(t *testing.T) {
	spawned := &deploy.CreatureSpec{Species: "bee", Config: []byte(`{"a":1}`), Capabilities: []deploy.Capability{
		keyed("main", `{"key":"k1","models":["x"]}`, "key"), keyed("open", `{"models":["x"]}`),
	}}
	row := journal.CreatureRow{Name: "maja", Spec: Row{StoredSpec: deploy.NewStoredSpec(spawned), Awareness: &Seen{Revision: 7}}.Encode()}
	if strings.Contains(string(row.Spec), "k1") {
		t.Fatalf("the row has a secret: %s", row.Spec)
	}
	saved, err := OfRow(row)
	if err != nil {
		t.Fatal(err)
	}
	recipe := func(species string, list ...deploy.Capability) *deploy.Deployment {
		return &deploy.Deployment{Species: []deploy.SpeciesSpec{{Name: "ant"}, {Name: species, Spec: deploy.CreatureSpec{Capabilities: list}}}}
	}
	for _, tt := range []struct {
		name    string
		d       *deploy.Deployment
		lacking bool
		main    string // its settings
	}{
		{"the recipe as it was", recipe("bee", keyed("main", `{"key":"k1","models":["x"]}`, "key"), keyed("open", `{"models":["y"]}`)), false, `{"key":"k1","models":["x"]}`},
		{"another key and another model", recipe("bee", keyed("main", `{"key":"k2","models":["y"]}`, "key")), false, `{"key":"k2","models":["y"]}`},
		{"no longer a key", recipe("bee", deploy.Capability{Kind: "llm", Name: "main", Settings: json.RawMessage(`{"models":["x"]}`)}), false, `{"models":["x"]}`},
		{"no longer granted", recipe("bee", keyed("other", `{"key":"k1"}`, "key")), true, `{"models":["x"]}`},
		{"no longer a species", recipe("wasp", keyed("main", `{"key":"k1"}`, "key")), true, `{"models":["x"]}`},
		{"not applied", nil, true, `{"models":["x"]}`},
	} {
		spec, changed, err := Regrant(saved, tt.d)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if changed == tt.lacking {
			t.Errorf("%s: Regrant has changed the specification: %t", tt.name, changed)
		}
		if string(spec.Config) != `{"a":1}` || len(spec.Capabilities) != 2 {
			t.Errorf("%s: %v, %+v", tt.name, err, spec)
			continue
		}
		if c := spec.Capabilities[0]; c.ID() != "llm.main" || c.Lacking != tt.lacking || string(c.Settings) != tt.main {
			t.Errorf("%s: the capability is %+v", tt.name, c)
		}
		// A capability without secrets stays as it was when the creature was spawned.
		if c := spec.Capabilities[1]; c.Lacking || string(c.Settings) != `{"models":["x"]}` {
			t.Errorf("%s: the other capability is %+v", tt.name, c)
		}
	}
	_, _, err = Regrant(saved, recipe("bee", keyed("main", `{"models":["x"]}`)))
	var e *abi.Error
	if !errors.As(err, &e) || e.Code != abi.InvalidArgument || !strings.Contains(e.Message, "maja") || !strings.Contains(e.Message, "var.key") || e.IDs["capability"] != "llm.main" {
		t.Errorf("without a value for the variable: %v", err)
	}
}

func TestSecretsFrom(t *testing.T) {
	c := deploy.Capability{Secret: []string{"key", "headers"}, From: map[string][]string{"key": {"var.key"}, "headers": {"var.user", "var.key"}, "other": {"var.x"}}}
	if got := c.SecretsFrom(); !slices.Equal(got, []string{"var.key", "var.user"}) {
		t.Errorf("the secrets come from %q", got)
	}
}

// TestRegrantConfiguration proves what a spawned creature gets from the configuration of its
// species.
func TestRegrantConfiguration(t *testing.T) {
	stored := deploy.NewStoredSpec(&deploy.CreatureSpec{
		Species: "bee", Config: []byte(`{"a":1,"key":"k1","own":"o1"}`), Secret: []string{"key", "own"}, Given: Given([]string{"key", "own"}, []byte(`{"own":"o1"}`)),
	})
	if b, err := json.Marshal(stored); err != nil || strings.Contains(string(b), "k1") || strings.Contains(string(b), "o1") {
		t.Fatalf("the row is %s, %v", b, err)
	}
	saved, err := OfRow(journal.CreatureRow{Name: "maja", Spec: journal.JSON(stored)})
	if err != nil {
		t.Fatal(err)
	}
	recipe := func(config string) *deploy.Deployment {
		return &deploy.Deployment{Species: []deploy.SpeciesSpec{{Name: "bee", Spec: deploy.CreatureSpec{Config: []byte(config)}}}}
	}
	if _, _, err := Regrant(saved, recipe(`{"key":"k2","own":"o2"}`)); abi.CodeOf(err) != abi.Unavailable || !strings.Contains(err.Error(), "own") {
		t.Errorf("with an attribute that was set by the spawn: %v, want unavailable", err)
	}
	saved.Secret, saved.Given = []string{"key"}, nil
	got, changed, err := Regrant(saved, recipe(`{"key":"k2","a":2,"new":3}`))
	if err != nil || !changed || string(got.Config) != `{"a":1,"key":"k2"}` || !slices.Equal(got.Secret, []string{"key"}) {
		t.Errorf("the configuration is %s, %t, %v", got.Config, changed, err)
	}
	if again, changed, err := Regrant(got, recipe(`{"key":"k3"}`)); err != nil || changed || string(again.Config) != string(got.Config) {
		t.Errorf("for a creature that lacks nothing: %s, %t, %v", again.Config, changed, err)
	}
	for config, code := range map[string]abi.Code{`{"key":null}`: abi.InvalidArgument, `{"a":2}`: abi.Unavailable} {
		if _, _, err := Regrant(saved, recipe(config)); abi.CodeOf(err) != code || !strings.Contains(err.Error(), "key") || !strings.Contains(err.Error(), "maja") {
			t.Errorf("with %s: %v, want %s", config, err, code)
		}
	}
	all := map[journal.CreatureID]deploy.CreatureSpec{"c1": saved, "c2": got}
	if whole, err := RegrantAll(all, recipe(`{"key":"k4"}`)); err != nil || len(whole) != 1 || string(whole["c1"].Config) != `{"a":1,"key":"k4"}` {
		t.Errorf("RegrantAll returns %+v, %v", whole, err)
	}
	if _, err := RegrantAll(all, recipe(`{"key":null}`)); abi.CodeOf(err) != abi.InvalidArgument {
		t.Errorf("RegrantAll without a value returns %v, want invalid_argument", err)
	}
}
