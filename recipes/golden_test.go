package recipes

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/deploy"
)

// Every mistake has its own archive: the recipe and its diagnostics.
func TestMistakes(t *testing.T) {
	for _, a := range archives(t, "testdata/mistakes/*.txtar") {
		t.Run(a.name(), func(t *testing.T) {
			r, d, dir := a.load(t)
			if (r == nil) != d.HasErrors() {
				t.Error("there is a recipe if and only if there is no error")
			}
			if len(d) == 0 {
				t.Error("nothing was found")
			}
			for _, f := range d {
				if strings.Contains(f.Error(), "hunter2") {
					t.Error("a sensitive value is shown:", f)
				}
			}
			a.golden(t, render(t, d, dir))
		})
	}
}

// Recipes without mistakes, and their deployments.
func TestRecipes(t *testing.T) {
	for _, a := range archives(t, "testdata/recipes/*.txtar") {
		t.Run(a.name(), func(t *testing.T) {
			r, d, dir := a.load(t)
			if r == nil || len(d) > 0 {
				t.Fatal(render(t, d, dir))
			}
			a.golden(t, strings.ReplaceAll(summary(t, r.Deployment()), dir, "/recipe"))
		})
	}
}

// summary writes a deployment in a form that is easy to compare.
func summary(t *testing.T, d *deploy.Deployment) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "deployment %s, merge %v", d.Name, d.Session.AllowMerge)
	if d.Session.Durability != nil {
		fmt.Fprintf(&b, ", durability %s", *d.Session.Durability)
	}
	if d.Session.SyncEvery > 0 {
		fmt.Fprintf(&b, ", synced every %v", d.Session.SyncEvery)
	}
	if d.Root != "" {
		fmt.Fprintf(&b, ", root %s", d.Root)
	}
	b.WriteString("\n")
	for name, value := range d.Source.Variables {
		if len(d.Source.Variables) == 1 {
			fmt.Fprintf(&b, "variable %s = %s\n", name, value)
		}
	}
	for _, c := range d.Channels {
		fmt.Fprintf(&b, "%s name=%q %q %s\n", c.Address, c.Name, c.Description, c.Where)
	}
	for _, sp := range d.Species {
		if sp.Spawnable == 0 {
			continue
		}
		fmt.Fprintf(&b, "species %s spawnable=%d %q module=%s wasm=%q %s\n", sp.Name, sp.Spawnable, sp.Description, sp.Spec.Module, sp.Spec.Wasm, sp.Where)
		writeTraits(t, &b, &sp.Spec)
	}
	for _, c := range d.Creatures {
		fmt.Fprintf(&b, "%s name=%q module=%s wasm=%q %s\n", c.Address, c.Name, c.Module, c.Wasm, c.Where)
		fmt.Fprintf(&b, "  listen=%v send=%v\n", c.Listen, c.Send)
		writeTraits(t, &b, &c)
		for _, o := range c.Outputs {
			fmt.Fprintf(&b, "  wire %q to %s content=%v prompt=%q when=%q self=%v %s\n", o.Name, o.To, o.WithContent, o.Prompt, o.When, o.AllowSelf, o.Where)
		}
	}
	for _, m := range d.Moved {
		fmt.Fprintf(&b, "moved %s to %s %s\n", m.From, m.To, m.Where)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Predicates)) {
		fmt.Fprintf(&b, "predicate.%s\n", name)
	}
	for _, w := range d.StopWhen {
		fmt.Fprintf(&b, "stop_when.%s turns=%d messages=%d tokens=%d money=%d after=%v match=%v\n", w.Name, w.Turns, w.Messages, w.Tokens, w.Money, w.After, w.Match != nil)
	}
	return b.String()
}

func writeTraits(t *testing.T, b *strings.Builder, c *deploy.CreatureSpec) {
	t.Helper()
	workers := ""
	if c.Workers != deploy.WorkersKeep {
		workers = c.Workers.String()
	}
	rest, err := json.Marshal(struct {
		Description string          `json:",omitempty"`
		Species     string          `json:",omitempty"`
		Config      json.RawMessage `json:",omitempty"`
		Secret      []string        `json:",omitempty"`
		Limits      any
		Restart     any
		Overflow    string
		Grants      any
		Workers     string `json:",omitempty"`
		Privileged  bool   `json:",omitempty"`
	}{c.Description, c.Species, c.Config, c.Secret, c.Limits, c.Restart, c.Overflow.String(), c.Grants, workers, c.Privileged})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(b, "  %s\n", rest)
}
