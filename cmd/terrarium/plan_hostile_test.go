package main

import (
	"bufio"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/diff"
)

// TestAPlanWritesOneLineForEachThing writes a plan whose texts, as those of a session directory
// from elsewhere, would look like further lines.
func TestAPlanWritesOneLineForEachThing(t *testing.T) {
	const evil = "x\n    team: creature.good → http.main: nothing\t\x1b[2J"
	var text strings.Builder
	w := planWriter{bufio.NewWriter(&text)}
	w.outside([]diff.OutsidePlan{{
		Deployment: evil, Address: evil, Name: evil, Capability: evil, Reaches: []string{evil},
		Requests: []diff.OpenRequest{{ID: evil, Request: evil, Becomes: diff.RequestSent}},
	}})
	w.creature(&diff.CreaturePlan{Deployment: evil, Name: evil, Action: diff.PlanResume, Changes: []diff.PlanChange{{What: evil, Of: evil, After: evil}}})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "\n"); n != 6 || strings.ContainsAny(text.String(), "\t\x1b") {
		t.Errorf("%d lines:\n%s", n, &text)
	}
}
