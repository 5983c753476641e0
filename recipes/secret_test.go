package recipes_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/recipes"
)

// A store keeps the configuration of a creature without its sensitive attributes.
func TestSensitiveAttributesOfAConfigurationAreNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.hcl")
	text := `
variable "key" {
  type      = string
  sensitive = true
}
variable "open" { default = "x" }
channel "in" {}
species "s" {
  module = "builtin:echo"
  config = { token = var.key, host = "a" }
}
creature "plain" {
  species = species.s
  config  = { token = "public" }
  listen  = [channel.in]
}
creature "secretive" {
  species = species.s
  config  = { nested = { deep = "${var.key}!" }, open = var.open }
  listen  = [channel.in]
}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, diags := recipes.Load(t.Context(), path, recipes.Options{Vars: map[string]string{"key": "hush"}})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	d := r.Deployment()
	if got := d.Creatures[0].Secret; len(got) != 0 {
		t.Errorf("plain keeps %v secret, although it has overridden it", got)
	}
	got := slices.Sorted(slices.Values(d.Creatures[1].Secret))
	if want := []string{"nested", "token"}; !slices.Equal(got, want) {
		t.Errorf("secretive keeps %v secret, want %v", got, want)
	}
	if !strings.Contains(string(d.Creatures[1].Config), "hush!") {
		t.Errorf("the creature does not get its secret: %s", d.Creatures[1].Config)
	}
	if _, stored := d.Source.Variables["key"]; stored {
		t.Error("the source keeps the value of a sensitive variable")
	}
}
