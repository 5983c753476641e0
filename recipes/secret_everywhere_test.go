package recipes_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/recipes"
)

// theSecret must not be in any message or stored copy.
const theSecret = "hush-7481926350"

// carriers are attributes that may take a sensitive value: configurations, values on the
// way to one, and parts of tests. They are neither shown nor stored.
var carriers = []string{
	"creature.config", "species.config", "catalog.config", "variable.default", "validation.condition", "validation.error_message",
	"test.variables", "send.payload", "send.json", "send.lines", "send.headers", "assert.condition", "assert.error_message",
	"policy.match", // it is evaluated, and never shown
}

// withAttribute returns a recipe in which one attribute has a sensitive value.
func withAttribute(b recipes.Block, a recipes.Attribute, value string) string {
	attribute := fmt.Sprintf("%s = %s\n", a.Name, value)
	inner := func(block string) string {
		labels := ""
		for range b.Labels {
			labels += ` "x"`
		}
		if block == b.Name {
			return fmt.Sprintf("%s%s {\n%s}\n", b.Name, labels, attribute)
		}
		return ""
	}
	within := func(outer string) string {
		if b.Name == outer {
			return attribute
		}
		if slices.Contains(b.Within, outer) {
			return inner(b.Name)
		}
		return ""
	}
	labels := map[string]string{"policy": `"send" "x"`, "variable": `"x"`}
	text := fmt.Sprintf("variable \"secret\" {\n  type = string\n  sensitive = true\n  default = %q\n}\n", theSecret)
	if b.Within == nil {
		label := labels[b.Name]
		if label == "" && len(b.Labels) > 0 {
			label = `"x"`
		}
		return text + fmt.Sprintf("%s %s {\n%s}\n", b.Name, label, attribute)
	}
	outer := b.Within[0]
	label := labels[outer]
	if label == "" {
		label = `"x"`
	}
	if outer == "dynamic" {
		return text + "creature \"x\" {\n  dynamic \"limits\" {\n    for_each = [1]\n    " + within(outer) + "  }\n}\n"
	}
	return text + fmt.Sprintf("%s %s {\n%s}\n", outer, label, within(outer))
}

// TestNoAttributeTellsASensitiveValue gives every attribute of the language a sensitive
// value, in several forms, and searches all messages and copies for it.
func TestNoAttributeTellsASensitiveValue(t *testing.T) {
	dir, refused := t.TempDir(), 0
	for _, b := range recipes.Language() {
		for _, a := range b.Attributes {
			for _, value := range []string{"var.secret", `"${var.secret}!"`, "[var.secret]", "{ key = var.secret }", `upper(var.secret)`, "jsondecode(var.secret)"} {
				path := filepath.Join(dir, "r.hcl")
				if err := os.WriteFile(path, []byte(withAttribute(b, a, value)), 0o600); err != nil {
					t.Fatal(err)
				}
				r, diags := recipes.Load(t.Context(), path, recipes.Options{})
				name := b.Name + "." + a.Name
				said := everythingSaid(t, r, diags)
				if value == "var.secret" && strings.Contains(said, "Sensitive value") {
					refused++
				}
				if strings.Contains(strings.ToLower(said), theSecret) {
					t.Errorf("%s = %s tells its value:\n%s", name, value, said)
				}
				if r != nil && value == "var.secret" && !slices.Contains(carriers, name) {
					t.Errorf("%s takes a sensitive value, and is not known to keep it to itself", name)
				}
			}
		}
	}
	if refused < 30 { // most attributes; the recipes here are wrong in other ways too
		t.Errorf("only %d attributes refuse a sensitive value", refused)
	}
}

// everythingSaid returns everything but configurations: findings in both forms, and the
// copy that stores keep.
func everythingSaid(t *testing.T, r *recipes.Recipe, diags recipes.Diagnostics) string {
	t.Helper()
	var b bytes.Buffer
	if err := recipes.WriteText(&b, diags, 100, false); err != nil {
		t.Fatal(err)
	}
	if err := recipes.WriteJSON(&b, diags); err != nil {
		t.Fatal(err)
	}
	if err := diags.Err(); err != nil {
		b.WriteString(err.Error())
	}
	if r != nil {
		stored, err := json.Marshal(r.Deployment().Source)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(stored)
	}
	return b.String()
}

func TestTheStoredCopyLacksWhatIsGivenToSensitiveVariables(t *testing.T) {
	outer := map[string]string{
		"hcl": `variable "key" {
  default   = <<-KEY
    ` + theSecret + `
  KEY
  sensitive = true
}
recipe "part" {
  source = "./part"
  token  = "` + theSecret + `"
}
`,
		"hcl.json": `{"variable": {"key": {"default": "` + theSecret + `", "sensitive": true}},
 "recipe": {"part": {"source": "./part", "token": "` + theSecret + `"}}}`,
	}
	part := `
variable "token" {
  type      = string
  sensitive = true
}
channel "in" {}
creature "plain" {
  module = "builtin:echo"
  listen = [channel.in]
  config = { token = var.token }
}
`
	for ending, text := range outer {
		t.Run(ending, func(t *testing.T) {
			dir := t.TempDir()
			files := map[string]string{"main." + ending: text, "part/part.hcl": part}
			for name, data := range files {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r, diags := recipes.Load(t.Context(), dir, recipes.Options{})
			if r == nil {
				t.Fatal(diags.Err())
			}
			if got := string(r.Deployment().Creatures[0].Config); !strings.Contains(got, theSecret) {
				t.Errorf("the creature gets %s", got)
			}
			for name, data := range r.Deployment().Source.Files {
				if strings.Contains(data, theSecret) {
					t.Errorf("%s is stored as\n%s", name, data)
				}
			}
			shape, diags := recipes.LoadSource(t.Context(), r.Deployment().Source, recipes.Options{ShapeOnly: true})
			if shape == nil {
				t.Errorf("the shape of the copy is not known: %v", diags.Err())
			}
			_, diags = recipes.LoadSource(t.Context(), r.Deployment().Source, recipes.Options{})
			if err := diags.Err(); err == nil || !strings.Contains(err.Error(), "No value for variable") {
				t.Errorf("without its value the copy answers %v", err)
			}
		})
	}
}
