package main

import (
	"testing"

	"github.com/seed47132306/terrarium/sdk/go/terrarium/terrariumtest"
)

func TestCapitalLetters(t *testing.T) {
	f := terrariumtest.New(creature)
	f.Channels = []string{"loud"}
	if err := f.Message("in", "ribbit \xff"); err != nil {
		t.Fatal(err)
	}
	if f.Sent[0].Payload != "RIBBIT \xff" {
		t.Errorf("sent %q", f.Sent)
	}
}
