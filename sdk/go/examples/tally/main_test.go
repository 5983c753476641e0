package main

import (
	"errors"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/sdk/go/terrarium"
	"github.com/seed47132306/terrarium/sdk/go/terrarium/terrariumtest"
)

func TestTally(t *testing.T) {
	f := terrariumtest.New(creature)
	f.Config = map[string]any{"step": 2, "prefix": "> "}
	f.Channels = []string{"counts"}
	for _, word := range []string{"frog", "newt", "frog", "-newt", "-newt", "?"} {
		if err := f.Message("in", word); err != nil {
			t.Fatal(err)
		}
	}
	var sent []string
	for _, m := range f.Sent {
		sent = append(sent, m.Payload)
	}
	if want := []string{"> frog=2", "> newt=2", "> frog=4", "newt removed", "newt unknown"}; !slices.Equal(sent, want) {
		t.Errorf("sent %q, want %q", sent, want)
	}
	if !slices.Equal(f.Outputs, []string{"frog=4\n"}) || f.State["n/frog"] != "4" {
		t.Errorf("output %q, state %v", f.Outputs, f.State)
	}
	if err := f.Message("in", "\xff"); !errors.Is(err, terrarium.InvalidArgument) || len(f.State) != 1 {
		t.Errorf("a word that is not UTF-8: %v, state %v", err, f.State)
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	f := terrariumtest.New(creature)
	f.Config = map[string]any{"stepp": 2}
	if err := f.Init(); !errors.Is(err, terrarium.InvalidArgument) {
		t.Errorf("a misspelt attribute: %v", err)
	}
}
