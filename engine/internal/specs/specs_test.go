package specs

import (
	"encoding/json"
	"testing"

	"github.com/seed47132306/terrarium/abi"
)

// TestConfigurations proves which configurations are valid, and how the ABI writes their
// attributes.
func TestConfigurations(t *testing.T) {
	for _, tt := range []struct {
		raw, config string
		texts       map[string]string
	}{
		{"", "{}", nil},
		{" \n", "{}", nil},
		{"null", "{}", nil},
		{`{"a": "x\ty", "b": [1, 2], "c": null}`, `{"a": "x\ty", "b": [1, 2], "c": null}`, map[string]string{"a": "x\ty", "b": "[1, 2]", "c": "null"}},
	} {
		texts, err := Config("c", json.RawMessage(tt.raw))
		config := JSON(json.RawMessage(tt.raw))
		if err != nil || string(config) != tt.config || len(texts) != len(tt.texts) {
			t.Errorf("%q: %s, %q, %v", tt.raw, config, texts, err)
		}
		for name, want := range tt.texts {
			if got := string(texts[name]); got != want {
				t.Errorf("%q: attribute %s is %q, want %q", tt.raw, name, got, want)
			}
		}
	}
	for _, raw := range []string{"[]", `"text"`, "{"} {
		if _, err := Config("c", json.RawMessage(raw)); abi.CodeOf(err) != abi.InvalidArgument {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

// TestOverlay proves that an attribute of the upper configuration replaces the whole attribute
// of the lower one.
func TestOverlay(t *testing.T) {
	for _, tt := range []struct{ base, top, want string }{
		{`{"a":1}`, "", `{"a":1}`},
		{"", `{"a":1}`, `{"a":1}`},
		{`{"a":{"x":1},"b":2}`, `{"a":{"y":1}}`, `{"a":{"y":1},"b":2}`},
	} {
		if got, err := Overlay("c", json.RawMessage(tt.base), json.RawMessage(tt.top)); err != nil || string(got) != tt.want {
			t.Errorf("%s over %s is %s, %v; want %s", tt.top, tt.base, got, err, tt.want)
		}
	}
	if _, err := Overlay("c", nil, json.RawMessage("[]")); abi.CodeOf(err) != abi.InvalidArgument {
		t.Errorf("a list over nothing: %v, want invalid_argument", err)
	}
}

// TestLimitsHaveDefaults proves that limits get their defaults if, and only if, they are zero.
func TestLimitsHaveDefaults(t *testing.T) {
	if got := Limits(abi.Limits{}); *got != abi.DefaultLimits {
		t.Errorf("the defaults are %+v", got)
	}
	if got := Limits(abi.Limits{Sends: 3, Fuel: 7}); got.Sends != 3 || got.Fuel != 7 || got.Memory != abi.DefaultLimits.Memory {
		t.Errorf("with two limits set, the limits are %+v", got)
	}
}
