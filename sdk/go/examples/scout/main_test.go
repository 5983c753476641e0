package main

import (
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/sdk/go/terrarium"
	"github.com/seed47132306/terrarium/sdk/go/terrarium/terrariumtest"
)

func TestScout(t *testing.T) {
	var calls []string
	f := terrariumtest.New(creature)
	if err := f.Message("in", "members"); err != nil {
		t.Fatal(err)
	}
	f.Tools = func(name string, args []byte) ([]byte, error) {
		calls = append(calls, name+" "+string(args))
		if name == "group_status" {
			return []byte(`{"creatures":[{"name":"self"},{"name":"frog"}]}`), nil
		}
		return nil, &terrarium.Error{Code: terrarium.Denied, Text: "a policy forbids it"}
	}
	for _, text := range []string{"members", "make pond", "wire pond water"} {
		if err := f.Message("in", text); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Changed(`{"revision":4,"channels":{"items":[{"listen":"in"},{"send":"out"},{"listen":"water"}]}}`); err != nil {
		t.Fatal(err)
	}
	want := []string{"no tools", "members: self, frog", "group_channel: denied", "group_channel: denied", "revision 4: listens on in, water"}
	if !slices.Equal(f.Outputs, want) {
		t.Errorf("output %q, want %q", f.Outputs, want)
	}
	want = []string{
		"group_status {}", `group_channel {"action":"create","name":"pond"}`,
		`group_channel {"action":"wire","channel":"pond","creature":"self","direction":"listen","alias":"water"}`,
	}
	if !slices.Equal(calls, want) {
		t.Errorf("called %q, want %q", calls, want)
	}
}
