package plainly

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestJSON(t *testing.T) {
	type settings struct {
		Name  string          `json:"name"`
		Count int             `json:"count"`
		Share float64         `json:"share"`
		On    *bool           `json:"on"`
		List  []string        `json:"list"`
		Inner struct{ N int } `json:"inner"`
	}
	for text, want := range map[string]string{
		``:                      "the text ends too early",
		`{"name": `:             "the text ends too early",
		"{\n \"name\": x}":      "invalid character 'x' looking for beginning of value, at line 2, column 10",
		`7`:                     "it is a JSON number, not an object, at line 1, column 1",
		`{"name": 7}`:           `the field "name" is a JSON number, not a string, at line 1, column 10`,
		`{"count": "x"}`:        `the field "count" is a JSON string, not a whole number, at line 1, column 13`,
		`{"share": []}`:         `the field "share" is a JSON array, not a number, at line 1, column 11`,
		`{"on": 1}`:             `the field "on" is a JSON number, not true or false, at line 1, column 8`,
		`{"list": {}}`:          `the field "list" is a JSON object, not an array, at line 1, column 10`,
		`{"inner": {"N": "1"}}`: `the field "inner.N" is a JSON string, not a whole number, at line 1, column 19`,
	} {
		err := json.Unmarshal([]byte(text), new(settings))
		if got := JSON([]byte(text), err).Error(); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		if !errors.Is(JSON(nil, err), err) {
			t.Errorf("%s: the error is lost", text)
		}
	}
	for err, want := range map[error]string{
		io.EOF: "it is empty", io.ErrUnexpectedEOF: "the text ends too early", errors.New(`json: unknown field "x"`): `unknown field "x"`,
	} {
		if got := JSON(nil, err).Error(); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	if JSON(nil, nil) != nil {
		t.Error("no error has become one")
	}
}

func TestText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing")
	_, missing := os.ReadFile(path)
	_, corrupt := base64.StdEncoding.DecodeString("a$")
	typed := json.Unmarshal([]byte(`{"A":"x"}`), new(struct{ A int }))
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("the module: %w", missing), "the module: there is no file or folder " + path},
		{&fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}, "open x: permission denied"},
		{fmt.Errorf("the value: %w", corrupt), "the value: it is not base64: the character at byte 2 does not belong there"},
		{fmt.Errorf("the value: %w", typed), `the value: the field "A" is a JSON string, not a whole number`},
		{fmt.Errorf("the value: %w", json.Unmarshal(nil, new(int))), "the value: the text ends too early"},
	} {
		if got := Text(c.err); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestYAML(t *testing.T) {
	for text, want := range map[string]string{
		"list: x":  "line 1: a string `x` does not belong there",
		"list: {}": "line 1: a mapping does not belong there",
		"other: 1": "line 1: unknown field other",
	} {
		dec := yaml.NewDecoder(strings.NewReader(text))
		dec.KnownFields(true)
		if got := YAML(dec.Decode(&struct{ List []string }{})); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
