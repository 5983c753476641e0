package recipes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/zclconf/go-cty/cty"
)

// writeJSON writes a recipe in JSON.
func writeJSON(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "team.hcl.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A dynamic block in JSON has the same expressions as one in HCL.
func TestDynamicBlocksInJSON(t *testing.T) {
	path := writeJSON(t, dynamicJSON(`{"x": [1, 2], "y": [3]}`, `${join("+", [for n in wire.value : n * 10])} {output}`))
	d := mustLoad(t, path, Options{Builtins: builtins{"relay"}}).Deployment()
	var prompts []string
	for _, c := range d.Creatures {
		for _, w := range c.Outputs {
			prompts = append(prompts, w.Name+" "+w.Prompt)
		}
	}
	if got, want := strings.Join(prompts, ", "), "wx 10+20 {output}, wy 30 {output}"; got != want {
		t.Errorf("the wires are %s, want %s", got, want)
	}
}

// JSON has no heredocs, so a script in it is not a template.
func TestScriptsInJSON(t *testing.T) {
	path := writeJSON(t, `{"channel": {"in": {}}, "creature": {"a": {"module": "builtin:relay", "listen": ["${channel.in}"]}},
		"policy": {"send": {"p": {"run": "(event) => deny(`+"`${event.channel_address} of ${1 + 1}`"+`)"}}}}`)
	p := mustLoad(t, path, Options{Builtins: builtins{"relay"}}).Deployment().Policy
	got := p.Send(t.Context(), &deploy.SendEvent{ChannelAddress: "channel.in", Payload: []byte("one")})
	if len(got.Denials) != 1 || got.Denials[0].Reason != "channel.in of 2" {
		t.Errorf("got %+v", got)
	}
}

// A secret key makes the whole object secret.
func TestSecretKeysInJSON(t *testing.T) {
	file, diags := parseJSON([]byte(`{"x": {"${key}": 1}}`), "team.hcl.json")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	attributes, _ := file.Body.JustAttributes()
	v, diags := attributes["x"].Expr.Value(&hcl.EvalContext{Variables: map[string]cty.Value{"key": cty.StringVal("k").Mark("secret")}})
	if diags.HasErrors() || !v.HasMark("secret") || v.Type().IsObjectType() && !v.Type().HasAttribute("k") {
		t.Errorf("got %#v, %v", v, diags)
	}
}

// The bounds are for recipes: they do not affect other code in the process that evaluates
// HCL.
func TestNumbersOfOthersAreNotBounded(t *testing.T) {
	expr, diags := hclsyntax.ParseExpression([]byte("1e2000 * 1e2000 + 1"), "", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if v, diags := expr.Value(nil); diags.HasErrors() || !v.IsKnown() {
		t.Errorf("got %#v, %v", v, diags)
	}
}
