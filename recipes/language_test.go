package recipes

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// Everything in the language has a description, so that the reference is complete.
func TestLanguageIsDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range Language() {
		if b.Doc == "" || seen[b.Name] || len(b.Attributes) == 0 && b.Others == "" {
			t.Errorf("the block %q is not described, or twice", b.Name)
		}
		seen[b.Name] = true
		for _, a := range b.Attributes {
			name := b.Name + "." + a.Name
			if a.Doc == "" || a.Type == "" || seen[name] {
				t.Errorf("the attribute %s is not described, or twice", name)
			}
			if (a.Type == ChoiceValue) != (len(a.Choices) > 1) || a.Type == ChoiceValue && a.Default != "" && !slices.Contains(a.Choices, a.Default) {
				t.Errorf("the choices of %s are %q, without it %q", name, a.Choices, a.Default)
			}
			if a.Required && a.Default+a.Without != "" {
				t.Errorf("%s is required and has a default", name)
			}
			seen[name] = true
		}
	}
	for _, f := range Functions() {
		if f.Doc == "" || f.Group == "" || seen[f.Name+"()"] || !strings.HasPrefix(f.Signature, f.Name+"(") {
			t.Errorf("the function %+v is not described, or twice", f)
		}
		seen[f.Name+"()"] = true
	}
}

// Exactly the functions with a description can be called.
func TestFunctionsAreDescribed(t *testing.T) {
	callable := (&folder{}).functions()
	for _, f := range Functions() {
		if _, ok := callable[f.Name]; !ok {
			t.Errorf("%s cannot be called", f.Name)
		}
		delete(callable, f.Name)
	}
	for name := range callable {
		t.Errorf("the function %s is not described", name)
	}
}

// The loader reads every attribute that it accepts: a reference to nothing is found in
// each of them.
func TestAttributesAreRead(t *testing.T) {
	for _, b := range Language() {
		for _, a := range b.Attributes {
			if found := saidOf(t, &b, a.Name, "nowhere.at_all"); found == "" {
				t.Errorf("the attribute %s of a block %s is accepted and never read", a.Name, b.Name)
			} else if strings.HasPrefix(found, "Unsupported") {
				t.Errorf("the attribute %s of a block %s: %s", a.Name, b.Name, found)
			}
		}
	}
}

// Attributes of common types are read according to their description.
func TestAttributesHaveTheirTypes(t *testing.T) {
	right := map[ValueType]string{TextValue: `"a"`, FlagValue: "true", CountValue: "2", SizeValue: `"4KiB"`, DurationValue: `"20ms"`,
		TextsValue: `["a"]`, TextMapValue: `{ a = "b" }`}
	wrong := map[ValueType]string{TextValue: `["a"]`, FlagValue: `"perhaps"`, CountValue: "0", SizeValue: `"large"`, DurationValue: `"long"`,
		ChoiceValue: `"neither"`, TextsValue: "1", TextMapValue: "1"}
	// Attributes that this test leaves out: texts with a meaning, attributes that the HCL
	// extension decodes, and attributes that are evaluated after a test has run.
	other := []string{"module", "required_version", "folder", "source", "run", "file", "labels", "http", "llm", "capabilities", "allow", "methods", "addresses", "retry_on", "proxy", "ca", "money"}
	checked := 0
	for _, b := range Language() {
		for _, a := range b.Attributes {
			if wrong[a.Type] == "" || slices.Contains(other, a.Name) || b.Name == "assert" {
				continue
			}
			if saidOf(t, &b, a.Name, wrong[a.Type]) == "" {
				t.Errorf("the attribute %s of a block %s, %s, may be %s", a.Name, b.Name, a.Type, wrong[a.Type])
			}
			values := a.Choices
			if value := right[a.Type]; value != "" {
				values = []string{value}
			}
			for _, value := range values {
				if a.Type == ChoiceValue {
					value = fmt.Sprintf("%q", value)
				}
				if found := saidOf(t, &b, a.Name, value); found != "" && found != "No process to run it in" && (found != "Secret in the recipe" || !a.Sensitive) {
					t.Errorf("the attribute %s of a block %s may not be %s: %s", a.Name, b.Name, value, found)
				}
			}
			checked++
		}
	}
	if checked < 60 {
		t.Errorf("only %d attributes were checked", checked)
	}
}

// A default in the reference is the value without the attribute.
func TestDefaults(t *testing.T) {
	checked := 0
	for _, name := range []string{"session", "creature", "species", "wire", "restart", "mailbox", "grants"} {
		b := blockNamed[name]
		for _, a := range b.Attributes {
			if a.Default == "" || a.Type != ChoiceValue && a.Type != FlagValue {
				continue
			}
			value := a.Default
			if a.Type == ChoiceValue {
				value = fmt.Sprintf("%q", value)
			}
			with, without := deploymentOf(t, b, a.Name+" = "+value), deploymentOf(t, b, "")
			if diff := cmp.Diff(without, with, cmpopts.IgnoreFields(deploy.Deployment{}, "Source")); diff != "" {
				t.Errorf("%s = %s of a block %s changes something:\n%s", a.Name, value, name, diff)
			}
			checked++
		}
	}
	if checked < 8 {
		t.Errorf("only %d defaults were checked", checked)
	}
}

func deploymentOf(t *testing.T, b *Block, line string) *deploy.Deployment {
	t.Helper()
	return mustLoad(t, write(t, surroundings+around(b, line, "")), Options{}).Deployment()
}

// surroundings has the things to which blocks refer.
const surroundings = `
channel "c" {}
creature "base" {
  module = "builtin:relay"
  listen = [channel.c]
}
root = creature.base
`

// saidOf returns the findings about an attribute with a value.
func saidOf(t *testing.T, b *Block, name, value string) string {
	t.Helper()
	line := name + " = " + value
	source := around(b, line, name) + surroundings
	_, diags := Load(t.Context(), write(t, source), Options{Tests: true})
	at := strings.Count(source[:strings.Index(source, line)], "\n") + 1
	for _, d := range diags {
		if d.Range.Start.Line == at {
			return d.Summary
		}
	}
	return ""
}

// around returns a recipe with a block that has the required attributes and the given
// line, which sets an attribute. The block does not set that attribute otherwise.
func around(b *Block, line, besides string) string {
	filled := map[string]string{
		"condition": "false", "error_message": `"no"`, "params": "[]", "result": "1", "folder": `"."`, "spawnable": "1", "to": "creature.base",
		"for_each": `["x"]`, "labels": `["x"]`, "source": `"./sub"`, "channel": "channel.c", "value": "1", "allow": `["https://example.com"]`,
	}
	var lines []string
	for _, a := range b.Attributes {
		if a.Required && a.Name != besides {
			lines = append(lines, a.Name+" = "+filled[a.Name])
		}
	}
	lines = append(lines, line)
	also := map[string]string{ // the block is not read without them
		"variable": "default = 1", "creature": "module = \"builtin:relay\"\nlisten = [channel.c]", "species": `module = "builtin:relay"`,
		"policy": "run = \"() => allow()\"", "predicate": `run = "true"`, "dynamic": "labels = [\"x\"]\ncontent {\n to = creature.base\n}", "send": `payload = "x"`,
		"test": "assert {\n condition = true\n}",
	}
	if besides == "json" || besides == "lines" {
		delete(also, "send") // it has one of them already
	}
	for _, l := range strings.Split(also[b.Name], "\n") {
		if attribute, _, _ := strings.Cut(l, " "); l != "" && attribute != besides {
			lines = append(lines, l)
		}
	}
	labels := map[string]string{"name": ` "x"`, "event": ` "send"`, "type": ` "wire"`, "kind": ` "none"`}
	head := b.Name
	for _, label := range b.Labels {
		head += labels[label]
	}
	text := head + " {\n" + strings.Join(lines, "\n") + "\n}"
	if b.Within != nil {
		return around(blockNamed[b.Within[0]], text, "")
	}
	return text + "\n"
}
