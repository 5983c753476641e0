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

// TestRegrant proves what a spawned creature gets of the recipe that is applied again.
func TestRegrant(t *testing.T) {
	spawned := &deploy.CreatureSpec{Species: "bee", Config: []byte(`{"a":1}`), Capabilities: []deploy.Capability{
		keyed("main", `{"key":"k1","models":["x"]}`, "key"), keyed("open", `{"models":["x"]}`),
	}}
	row := journal.CreatureRow{Name: "maja", Spec: Row{StoredSpec: deploy.NewStoredSpec(spawned), Awareness: &Seen{Revision: 7}}.Encode()}
	if strings.Contains(string(row.Spec), "k1") {
		t.Fatalf("the row has a secret: %s", row.Spec)
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
		got, err := Regrant(row, tt.d)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		spec, err := OfRow(got)
		if err != nil || string(spec.Config) != `{"a":1}` || SeenIn(got.Spec).Revision != 7 || len(spec.Capabilities) != 2 {
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
	_, err := Regrant(row, recipe("bee", keyed("main", `{"models":["x"]}`)))
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
