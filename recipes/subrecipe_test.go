package recipes

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// writeAll writes files into a new folder and returns it.
func writeAll(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var nested = map[string]string{
	"team.hcl": `
channel "lines" {}
recipe "desk" {
  source   = "./desk"
  for_each = toset(["a", "b"])
  lines    = channel.lines
}
creature "outside" {
  module = "builtin:relay"
  send   = [channel.lines]
}`,
	"desk/desk.hcl": `
variable "lines" { type = channel }
channel "feed" { description = file("feed.txt") }
creature "c" {
  module = "builtin:relay"
  listen = [var.lines]
  send   = { feed = channel.feed, lines = var.lines }
}
policy "send" "no" {
  match = event.size > 2
  run   = "(event, ctx) => deny('too long')"
}
recipe "deep" { source = "./deep" }`,
	"desk/feed.txt": "what the desk says",
	"desk/deep/deep.hcl": `
channel "own" {}
creature "c" {
  module = "builtin:relay"
  listen = [channel.own]
}`,
}

// A policy of a sub-recipe judges exactly the messages on its channels and the messages
// from its creatures, including those of its own sub-recipes.
func TestPolicyOfSubRecipe(t *testing.T) {
	r := mustLoad(t, writeAll(t, nested), Options{})
	for _, test := range []struct {
		channel, sender string
		denials         []string
	}{
		{"channel.lines", "creature.outside", nil},
		{"channel.lines", "", nil},
		{"channel.lines", `recipe.desk["a"].creature.c`, []string{"desk.a.no"}},
		{`recipe.desk["a"].channel.feed`, "", []string{"desk.a.no"}},
		{`recipe.desk["b"].channel.feed`, "creature.outside", []string{"desk.b.no"}},
		{`recipe.desk["b"].recipe.deep.channel.own`, "", []string{"desk.b.no"}},
		{`recipe.desk["a"].channel.feed`, `recipe.desk["b"].creature.c`, []string{"desk.a.no", "desk.b.no"}},
	} {
		event := &deploy.SendEvent{ChannelAddress: test.channel, SenderAddress: test.sender, Payload: []byte("long enough")}
		decision := r.Deployment().Policy.Send(context.Background(), event)
		var got []string
		for _, v := range decision.Denials {
			got = append(got, v.Policy)
		}
		if diff := cmp.Diff(test.denials, got); diff != "" {
			t.Errorf("%q on %s (-want +got):\n%s", test.sender, test.channel, diff)
		}
		event.Payload = []byte("ok")
		if d := r.Deployment().Policy.Send(context.Background(), event); len(d.Denials) > 0 {
			t.Errorf("a message that does not match is denied: %v", d)
		}
	}
}

// The copy that a session keeps has the files of sub-recipes, and gives the same
// deployment after the recipe was removed.
func TestSubRecipeFromCopy(t *testing.T) {
	for _, source := range []string{"./desk", "./desk/desk.hcl"} {
		files := map[string]string{}
		for name, text := range nested {
			files[name] = text
		}
		files["team.hcl"] = "locals { source = \"" + source + "\" }\n" +
			replaceOnce(t, nested["team.hcl"], `"./desk"`, "local.source")
		dir := writeAll(t, files)
		before := mustLoad(t, dir, Options{}).Deployment()
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		r, d := LoadSource(t.Context(), before.Source, Options{})
		if r == nil {
			t.Fatal(render(t, d, dir))
		}
		if diff := cmp.Diff(before, r.Deployment(), cmpopts.IgnoreFields(deploy.Deployment{}, "Policy")); diff != "" {
			t.Errorf("source %s (-before +after):\n%s", source, diff)
		}
	}
}

// Adding an instance, or another sub-recipe before it, changes no other address.
func TestSubRecipeAddressesAreStable(t *testing.T) {
	addresses := func(team string) map[string]string {
		files := map[string]string{"desk/desk.hcl": nested["desk/desk.hcl"], "desk/feed.txt": "", "desk/deep/deep.hcl": nested["desk/deep/deep.hcl"], "team.hcl": team}
		out := map[string]string{}
		for _, c := range mustLoad(t, writeAll(t, files), Options{}).Deployment().Creatures {
			out[c.Address] = c.Name
		}
		return out
	}
	before := addresses(nested["team.hcl"])
	after := addresses("recipe \"another\" {\n  source = \"./desk/deep\"\n}\n" + replaceOnce(t, nested["team.hcl"], `["a", "b"]`, `["0", "b", "a"]`))
	for address, name := range before {
		if after[address] != name {
			t.Errorf("%s was %s and is %q", address, name, after[address])
		}
	}
	if len(after) != len(before)+3 {
		t.Errorf("before %v, after %v", before, after)
	}
}

// Two blocks can have the same source beside the recipe's own file.
func TestSubRecipeFileUsedByTwoBlocks(t *testing.T) {
	dir := writeAll(t, map[string]string{
		"team.hcl": "recipe \"first\" { source = \"./desk.hcl\" }\nrecipe \"second\" { source = \"./desk.hcl\" }\n",
		"desk.hcl": "channel \"own\" {}\ncreature \"c\" {\n  module = \"builtin:relay\"\n  listen = [channel.own]\n}\n",
	})
	r := mustLoad(t, filepath.Join(dir, "team.hcl"), Options{})
	if n := len(r.Deployment().Creatures); n != 2 {
		t.Errorf("%d creatures, want one of each sub-recipe", n)
	}
}
