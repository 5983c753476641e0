package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/topology"
)

// TestDocumentsKeepToTheirSchema compares the documents of a worker and of a
// privileged creature with the schema in the repository.
func TestDocumentsKeepToTheirSchema(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/reference/awareness.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	tr, err := terrarium.New(t.Context(), terrarium.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close(t.Context())
	boss, err := tr.AddCreature(t.Context(), terrarium.CreatureSpec{Name: "boss", Module: "builtin:echo", Privileged: true})
	if err != nil {
		t.Fatal(err)
	}
	worker, err := tr.AddCreature(t.Context(), terrarium.CreatureSpec{Name: "worker", Module: "builtin:echo", Parent: boss.Creature})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Change(t.Context(), topology.Connect{From: boss.Creature, To: worker.Creature}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []terrarium.CreatureID{boss.Creature, worker.Creature} {
		view, err := tr.Awareness(c)
		if err != nil {
			t.Fatal(err)
		}
		var doc any
		if err := json.Unmarshal(view.JSON(), &doc); err != nil {
			t.Fatal(err)
		}
		for _, problem := range check(schema, doc, "") {
			t.Error(problem)
		}
		delete(doc.(map[string]any), "self")
		if len(check(schema, doc, "")) != 1 {
			t.Error("a missing member is not noticed")
		}
	}
}

// check lists where a value does not fit a schema, or has members that the schema does not
// list.
func check(schema map[string]any, value any, at string) (problems []string) {
	kind := map[string]bool{"object": false}
	switch v := value.(type) {
	case map[string]any:
		kind["object"] = true
		properties, _ := schema["properties"].(map[string]any)
		for name, member := range v {
			of, ok := properties[name].(map[string]any)
			if !ok {
				problems = append(problems, at+"."+name+" is not in the schema")
				continue
			}
			problems = append(problems, check(of, member, at+"."+name)...)
		}
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, ok := v[name.(string)]; !ok {
				problems = append(problems, fmt.Sprintf("%s.%s is missing", at, name))
			}
		}
	case []any:
		kind["array"] = true
		for i, item := range v {
			problems = append(problems, check(schema["items"].(map[string]any), item, fmt.Sprintf("%s[%d]", at, i))...)
		}
	case string:
		kind["string"] = true
	case bool:
		kind["boolean"] = true
	case float64:
		kind["integer"] = v == float64(int64(v))
	}
	if want, _ := schema["type"].(string); !kind[want] {
		problems = append(problems, fmt.Sprintf("%s is %T, not of the type %s", at, value, want))
	}
	return problems
}

// A tag with something that schemas cannot express is an error, rather than ignored.
func TestBounds(t *testing.T) {
	i := inference{}
	s, err := i.schemaOf(reflect.TypeFor[struct {
		A *int    `json:"a" bounds:"minimum=1,maximum=2"`
		B string  `bounds:"minLength=1,enum=x|y" jsonschema:"about b"`
		C []uint8 `json:"c"`
	}]())
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(s.Properties)
	want := `{"B":{"type":"string","description":"about b","enum":["x","y"],"minLength":1},"a":{"type":"integer","minimum":1,"maximum":2},"c":{"type":"array","items":{"type":"integer","minimum":0,"maximum":255}}}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[struct {
			A int `bounds:"minimum=one"`
		}](), reflect.TypeFor[struct {
			A int `bounds:"least=1"`
		}](),
	} {
		if _, err := i.schemaOf(typ); err == nil {
			t.Errorf("%v has a schema", typ)
		}
	}
}

// TestPlain proves that the text of a comment names pages by their paths.
func TestPlain(t *testing.T) {
	for doc, want := range map[string]string{
		"one of the [error codes](errors.md)": "one of the error codes (docs/reference/errors.md)",
		"an edge in a [GroupStatus]":          "an edge in a GroupStatus",
		"words, \"phrases\" (quoted)":         "words, \"phrases\" (quoted)",
	} {
		if got := plain(doc); got != want {
			t.Errorf("plain(%q) is %q, want %q", doc, got, want)
		}
	}
}
