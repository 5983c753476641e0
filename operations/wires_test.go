package operations

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

func TestWireOperations(t *testing.T) {
	tr := open(t, terrarium.Options{})
	left, right := twoDesks(t, tr)
	listed := func(args string) (ids []string) {
		t.Helper()
		for _, w := range do(t, tr, "wires", args)["wires"].([]any) {
			ids = append(ids, w.(map[string]any)["wire"].(string))
		}
		return ids
	}
	one := do(t, tr, "wire", fmt.Sprintf(`{"from":%q,"to":%q,"name":"one"}`, left.count, left.clerk))["wire"].(string)
	two := do(t, tr, "wire", fmt.Sprintf(`{"from":%q,"to":"root","with_content":false,"prompt":"{source}"}`, right.count))["wire"].(string)
	for args, want := range map[string][]string{
		`{}`: {one, two},
		fmt.Sprintf(`{"creature":%q}`, left.clerk):                  {one},
		fmt.Sprintf(`{"creature":%q}`, right.clerk):                 nil,
		fmt.Sprintf(`{"graph":%q}`, graphOf(t, tr, right.count).ID): {two},
	} {
		if got := listed(args); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("wires %s: %v, want %v", args, got, want)
		}
	}
	if w := graphOf(t, tr, left.count).Wires; len(w) != 1 || w[0].Name != "one" || !w[0].WithContent || w[0].To != left.clerk {
		t.Errorf("status: %+v", w)
	}
	for args, code := range map[string]abi.Code{
		fmt.Sprintf(`{"from":%q,"to":%q}`, left.count, right.clerk):                    abi.NotConnected,
		fmt.Sprintf(`{"from":%q,"to":"absent"}`, left.count):                           abi.NotFound,
		fmt.Sprintf(`{"from":%q,"to":"clerk","name":"one"}`, left.count):               abi.AlreadyExists,
		fmt.Sprintf(`{"from":%q,"to":"clerk","when":"done"}`, left.count):              abi.NotFound,
		fmt.Sprintf(`{"from":%q,"to":"count"}`, left.count):                            abi.InvalidArgument,
		fmt.Sprintf(`{"from":%q,"to":"clerk","name":"two","prompt":"{}"}`, left.count): abi.InvalidArgument,
		`{"from":"count","to":"clerk"}`:                                                abi.Ambiguous,
	} {
		if _, err := Do(context.Background(), tr, "wire", json.RawMessage(args)); abi.CodeOf(err) != code {
			t.Errorf("wire %s: %v, want the code %s", args, err, code)
		}
	}
	if got := do(t, tr, "unwire", fmt.Sprintf(`{"from":%q,"wire":"one"}`, left.count))["wire"]; got != one {
		t.Errorf("unwire: %v", got)
	}
	for args, code := range map[string]abi.Code{
		fmt.Sprintf(`{"wire":%q}`, one):                       abi.NotFound,
		`{"wire":"one"}`:                                      abi.NotFound,
		fmt.Sprintf(`{"wire":%q,"from":%q}`, two, left.count): abi.InvalidArgument,
	} {
		if _, err := Do(context.Background(), tr, "unwire", json.RawMessage(args)); abi.CodeOf(err) != code {
			t.Errorf("unwire %s: %v, want the code %s", args, err, code)
		}
	}
	// A batch that fails leaves the wires as they were.
	batch := fmt.Sprintf(`{"ops":[{"op":"unwire","wire":%q},{"op":"wire","from":%q,"to":"absent"}]}`, two, right.count)
	if _, err := Do(context.Background(), tr, "batch", json.RawMessage(batch)); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("a batch that fails: %v", err)
	}
	if got := listed(`{}`); len(got) != 1 || got[0] != two {
		t.Errorf("after it: %v", got)
	}
}

// The wires of a recipe work with real Wasm: the outputs for which a predicate is true
// reach the root and the channel on which it sends, and a restart keeps the wires.
func TestWiresOfARecipe(t *testing.T) {
	dir := t.TempDir()
	voice, err := os.ReadFile("../testdata/voice.wasm")
	if err != nil {
		t.Fatal(err)
	}
	const recipe = `
predicate "alarming" { run = "output.includes('ERROR')" }
channel "alarms" {}
creature "voice" {
  module = "voice.wasm"
  wire "alarms" {
    to     = root
    when   = predicate.alarming
    prompt = "{source} heard in {channel}: {output}"
  }
}
creature "counter" {
  module = "builtin:tally"
  listen = [channel.alarms]
}
creature "keeper" {
  module = "builtin:relay"
  send   = [channel.alarms]
}
root = creature.keeper
`
	path := filepath.Join(dir, "team.hcl")
	for name, content := range map[string]string{path: recipe, filepath.Join(dir, "voice.wasm"): string(voice)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var before []journal.OutputWire
	for run := range 2 {
		tr, err := terrarium.New(t.Context(), terrarium.Options{Dir: filepath.Join(dir, "session")})
		if err != nil {
			t.Fatal(err)
		}
		applied, err := tr.Apply(t.Context(), path, terrarium.RecipeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		list, err := tr.Wires("")
		if err != nil || len(list) != 1 || before != nil && list[0] != before[0] {
			t.Errorf("wires %+v, before %+v, %v", list, before, err)
		}
		before = list
		for _, line := range []string{"all is well", "ERROR no route"} {
			tell(t, tr, applied.Creatures["creature.voice"], line)
		}
		got := counted(t, tr, applied.Creatures["creature.counter"])
		if want := map[string]any{"count/voice heard in voice: ERROR no route": fmt.Sprint(run + 1)}; !reflect.DeepEqual(got, want) {
			t.Errorf("counted %v, want %v", got, want)
		}
		if err := tr.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestVoice proves that testdata/voice.wasm is made from its text.
func TestVoice(t *testing.T) {
	tool, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Skip("needs wat2wasm: make toolchains installs it")
	}
	built := filepath.Join(t.TempDir(), "voice.wasm")
	if out, err := exec.Command(tool, "../testdata/voice.wat", "-o", built).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile("../testdata/voice.wasm"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("voice.wasm is not what voice.wat says: build it again with wat2wasm; %v", err)
	}
}
