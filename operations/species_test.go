package operations

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/plugins"
)

// spawnRecipe writes a recipe of that name, with a species and a catalog that have
// real modules.
func spawnRecipe(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	tally, err := plugins.Get("tally")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "tools"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tools", "tally.wasm"), tally, 0o644); err != nil {
		t.Fatal(err)
	}
	recipe := fmt.Sprintf(`
terrarium { name = %q }
channel "lines" {}
creature "boss" {
  module  = "builtin:relay"
  listen  = [channel.lines]
  workers = "remove"
}
species "filter" {
  module    = "builtin:gate"
  spawnable = 2
  config    = { match = "ERROR" }
}
catalog "tools" {
  folder    = "tools"
  spawnable = 1
  config    = { key = "field:2" }
}
`, name)
	path := filepath.Join(dir, "recipe.hcl")
	if err := os.WriteFile(path, []byte(recipe), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func refusedWith(t *testing.T, tr *terrarium.Terrarium, op, args string, code abi.Code, word string) {
	t.Helper()
	_, err := Do(context.Background(), tr, op, json.RawMessage(args))
	if abi.CodeOf(err) != code || !strings.Contains(fmt.Sprint(err), word) {
		t.Errorf("%s %s: %v, want %v and %q", op, args, err, code, word)
	}
}

func TestAddCreatureSpawnsFromARecipe(t *testing.T) {
	tr := open(t, terrarium.Options{Dir: t.TempDir()})
	do(t, tr, "apply", fmt.Sprintf(`{"recipe":%q}`, spawnRecipe(t, "one")))
	do(t, tr, "add_creature", `{"name":"f","species":"filter","join":"boss","parent":"boss"}`)
	do(t, tr, "add_creature", `{"name":"t","species":"tools/tally","join":"boss","parent":"f","config":{"every":1}}`)
	refusedWith(t, tr, "add_creature", `{"name":"u","species":"tools/tally"}`, abi.LimitExceeded, "spawnable: 1, alive: 1")
	do(t, tr, "send", `{"channel":"t","payload":"07:02 frog"}`)
	do(t, tr, "wait_idle", `{}`)
	if state := do(t, tr, "state", `{"creature":"t"}`)["state"].(map[string]any); state["count/frog"] == nil {
		t.Errorf("the spawned creature holds %v", state)
	}
	do(t, tr, "remove_creature", `{"creature":"boss"}`)
	if graphs := do(t, tr, "status", `{}`)["graphs"].([]any); len(graphs) > 0 {
		t.Errorf("the workers are there: %v", graphs)
	}
	do(t, tr, "add_creature", `{"name":"u","species":"tools/tally"}`)
}

func TestAddCreatureRefusesWhatCannotBeSpawned(t *testing.T) {
	tr := open(t, terrarium.Options{})
	refusedWith(t, tr, "add_creature", `{"name":"f","species":"filter"}`, abi.NotFound, "declare a catalog")
	do(t, tr, "apply", fmt.Sprintf(`{"recipe":%q}`, spawnRecipe(t, "one")))
	refusedWith(t, tr, "add_creature", `{"name":"f","species":"fliter"}`, abi.NotFound, "filter, tools/tally")
	refusedWith(t, tr, "add_creature", `{"name":"f"}`, abi.InvalidArgument, `neither the field "module" nor "species"`)
	refusedWith(t, tr, "add_creature", `{"name":"f","species":"filter","module":"builtin:gate"}`, abi.InvalidArgument, "module of its own")
	refusedWith(t, tr, "add_creature", `{"name":"f","module":"builtin:gate","deployment":"one"}`, abi.InvalidArgument, "module of its own")
	refusedWith(t, tr, "add_creature", `{"name":"f","species":"filter","limits":{"fuel":1}}`, abi.InvalidArgument, "those of the species")
	refusedWith(t, tr, "add_creature", `{"name":"f","species":"filter","deployment":"two"}`, abi.NotFound, "applied: one")
	refusedWith(t, tr, "add_creature", `{"name":"f","module":"builtin:gate","workers":"sell"}`, abi.InvalidArgument, "keep or remove")
	do(t, tr, "apply", fmt.Sprintf(`{"recipe":%q}`, spawnRecipe(t, "two")))
	refusedWith(t, tr, "add_creature", `{"name":"f","species":"filter"}`, abi.Ambiguous, "name the deployment")
	refusedWith(t, tr, "batch", `{"ops":[{"op":"add_creature","name":"f","species":"filter","deployment":"two"},{"op":"add_creature","name":"g","species":"filter","deployment":"two"},{"op":"add_creature","name":"h","species":"filter","deployment":"two"}]}`, abi.LimitExceeded, "spawnable: 2, alive: 2")
	if n := len(do(t, tr, "status", `{}`)["graphs"].([]any)); n != 2 {
		t.Errorf("%d graphs, want the two of the recipes", n)
	}
}
