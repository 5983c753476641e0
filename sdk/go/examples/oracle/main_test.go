package main

import (
	"errors"
	"testing"

	"github.com/seed47132306/terrarium/sdk/go/terrarium"
	"github.com/seed47132306/terrarium/sdk/go/terrarium/terrariumtest"
)

func TestOracle(t *testing.T) {
	f := terrariumtest.New(creature)
	f.Channels = []string{"answers"}
	if reply, _, err := f.Request("why"); err != nil || reply != "you asked: why" {
		t.Errorf("%q, %v", reply, err)
	}
	if _, _, err := f.Request("refuse"); !errors.Is(err, terrarium.Denied) {
		t.Errorf("a refusal: %v", err)
	}
	if err := f.Message("in", "ask sage what now"); err != nil || f.Requests[0].Payload != "what now" {
		t.Fatalf("%v, requests %v", err, f.Requests)
	}
	if err := f.Answer(f.Requests[0].Tag, "sleep"); err != nil || f.Sent[0].Payload != "#1 ok: sleep" {
		t.Errorf("%v, sent %v", err, f.Sent)
	}
	if err := f.Fail(2, terrarium.Deadline, "too late"); err != nil || f.Sent[1].Payload != "#2 deadline: too late" {
		t.Errorf("%v, sent %v", err, f.Sent)
	}
}
