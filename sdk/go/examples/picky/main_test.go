package main

import (
	"errors"
	"testing"

	"github.com/seed47132306/terrarium/sdk/go/terrarium"
	"github.com/seed47132306/terrarium/sdk/go/terrarium/terrariumtest"
)

func TestPicky(t *testing.T) {
	f := terrariumtest.New(creature)
	f.Config = map[string]any{"want": "fly"}
	f.Channels = []string{"out"}
	want := terrarium.Header{Name: "want", Value: "fly"}
	for text, code := range map[string]terrarium.Code{
		"big": terrarium.TooLarge, "alias": terrarium.NotConnected, "key": terrarium.InvalidArgument,
		"fail": terrarium.Failed, "denied": terrarium.Denied, "much too long": terrarium.TooLarge, "\xff": terrarium.InvalidArgument,
	} {
		if err := f.Message("in", text, want); !errors.Is(err, code) {
			t.Errorf("%q: %v, want %v", text, err, code)
		}
	}
	if err := f.Message("in", "echo"); !errors.Is(err, terrarium.InvalidArgument) {
		t.Errorf("without the header: %v", err)
	}
	for _, text := range []string{"echo", "caught", "missing", "fuel", "log", "fine"} {
		if err := f.Message("in", text, want); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	if f.Sent[0].Headers != "want\x00fly\x00seen\x00yes\x00" || len(f.Outputs) != 4 {
		t.Errorf("sent %q, output %q", f.Sent, f.Outputs)
	}
}
