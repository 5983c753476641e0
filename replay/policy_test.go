package replay_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed47132306/terrarium"
)

// TestPolicies replays sends that policies have changed, denied or dropped: they are
// compared in the form in which the creature made them.
func TestPolicies(t *testing.T) {
	recipe, dir := filepath.Join(t.TempDir(), "team.hcl"), t.TempDir()
	if err := os.WriteFile(recipe, []byte(`
channel "in" {}
channel "out" {}

creature "copy" {
  module = "builtin:echo"
  listen = [channel.in]
  send   = [channel.out]
}

policy "send" "strict" {
  channel = channel.out
  mode    = "mutate"
  run     = <<-JS
    (event, ctx) => {
      if (event.payload === "denied") return deny("no")
      if (event.payload === "dropped") return drop("no")
      if (event.payload === "mutated") return patch({payload: "something else"})
    }
  JS
  timeout = "1s"
}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	tr, err := terrarium.New(t.Context(), terrarium.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	applied, err := tr.Apply(t.Context(), recipe, terrarium.RecipeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"plain", "denied", "mutated", "dropped", "plain"} {
		if _, err := tr.Send(t.Context(), applied.Channels["channel.in"], terrarium.Outgoing{Payload: []byte(line)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tr.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := heads(t, tr)["out"]; n != 3 {
		t.Fatalf("%d messages came through, want 3 of 5", n)
	}
	if err := tr.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	r, err := terrarium.Replay(t.Context(), dir, terrarium.ReplayOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	same(t, r, 6)
}

// heads returns how many messages the channels have had, by name.
func heads(t *testing.T, tr *terrarium.Terrarium) map[string]uint64 {
	graphs, err := tr.Status("")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]uint64{}
	for _, g := range graphs {
		for _, ch := range g.Channels {
			out[ch.Name] = ch.Head
		}
	}
	return out
}
