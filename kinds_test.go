package terrarium_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/connector"
)

// oddKind is a kind of capability with a name and a setting.
type oddKind struct {
	name    string
	setting capability.SettingType
}

func (k oddKind) Name() string {
	if k.name == "panics" {
		panic("it has no name")
	}
	return k.name
}

func (k oddKind) Settings() []capability.Setting {
	return []capability.Setting{{Name: "size", Type: k.setting}}
}

func (oddKind) Open(json.RawMessage) (capability.Grant, error) { return nil, nil }

// TestOddKinds proves that kinds that cannot work are refused when the program adds them.
func TestOddKinds(t *testing.T) {
	fine := oddKind{"fine", capability.Count}
	for want, o := range map[string]terrarium.Options{
		`the kind of capability "fine" is in the options twice`:               {Capabilities: []capability.Kind{fine, fine}},
		`the kind of capability "a.b" does not have a valid name`:             {Capabilities: []capability.Kind{oddKind{"a.b", capability.Count}}},
		`the kind of capability "" does not have a valid name`:                {Capabilities: []capability.Kind{oddKind{"", capability.Count}}},
		`the kind of capability "x" has a setting "size" of the unknown type`: {Capabilities: []capability.Kind{oddKind{"x", "many"}}},
		`a kind that this program has added panicked: it has no name`:         {Capabilities: []capability.Kind{oddKind{"panics", capability.Count}}},
		`a kind that this program has added panicked: runtime error`:          {Capabilities: []capability.Kind{nil}},
		`the kind of sink "flaky" is in the options twice`:                    {Connectors: []connector.Kind{&flaky{}, &flaky{}}},
	} {
		x, err := terrarium.New(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New returns %v, want %s", err, want)
		}
		if x != nil {
			t.Errorf("with %s, New returns a value", want)
		}
		if code := abi.CodeOf(err); code != abi.InvalidArgument && code != abi.Internal {
			t.Errorf("the code is %s", code)
		}
	}
	x, err := terrarium.New(t.Context(), terrarium.Options{Capabilities: []capability.Kind{fine}, Connectors: []connector.Kind{&flaky{}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
