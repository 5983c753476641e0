package misfit

import (
	"encoding/json"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// TestOf shows the reasons for values that a schema rejects.
func TestOf(t *testing.T) {
	const schema = `{"type": "object", "properties": {
		"key": {"type": "string", "pattern": "^[a-z]+$"},
		"every": {"type": "integer", "minimum": 1, "maximum": 100000},
		"part": {"type": "number", "maximum": 0.5},
		"mode": {"enum": ["fast", "slow"]},
		"list": {"type": "array", "items": {"type": "string"}, "maxItems": 1},
		"deep": {"type": "object", "properties": {"er": {"type": "string"}}, "additionalProperties": false},
		"name": {"type": "string", "minLength": 1, "maxLength": 3},
		"pair": {"type": "object", "required": ["a", "b"]}}}`
	for value, want := range map[string]string{
		`{"key": 3}`:           "key: it must be of type string, but is of type integer",
		`{"key": null}`:        "key: it must be of type string, but is of type null",
		`{"key": "A\nB"}`:      `key: "A\nB" does not match the pattern "^[a-z]+$"`,
		`{"every": -1}`:        "every: it must be at least 1, but is -1",
		`{"every": 100001}`:    "every: it must be at most 100000, but is 100001",
		`{"every": "many"}`:    "every: it must be of type integer, but is of type string",
		`{"part": 0.75}`:       "part: it must be at most 0.5, but is 0.75",
		`{"mode": "quick"}`:    "mode: quick is not one of: fast slow",
		`{"deep": {"er": 1}}`:  "deep/er: it must be of type string, but is of type integer",
		`{"deep": {"x": 1}}`:   `deep: "x" is not allowed`,
		`{"pair": {}}`:         `pair: "a", "b" are missing`,
		`{"name": ""}`:         "name: it has 0 characters, fewer than 1",
		`{"name": "\n\"ab"}`:   "name: it has 4 characters, more than 3",
		`[]`:                   ": it must be of type object, but is of type array",
		`{"list": ["a", "b"]}`: "list: maxItems: array length 2 is greater than 1",
	} {
		var s jsonschema.Schema
		if err := json.Unmarshal([]byte(schema), &s); err != nil {
			t.Fatal(err)
		}
		resolved, err := s.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			t.Fatal(err)
		}
		err = resolved.Validate(v)
		if err == nil {
			t.Errorf("%s is accepted", value)
			continue
		}
		where, text := Of(err)
		if got := where + ": " + text; got != want {
			t.Errorf("of %s the reason is\n%s\nand not\n%s", value, got, want)
		}
	}
}
