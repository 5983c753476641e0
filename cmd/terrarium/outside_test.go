//go:build unix

package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// keys are the idempotency keys of the requests that the server has got.
func (s *scriptedServer) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.got))
}

// TestResumeTellsWhatReachesOutside kills examples/agents while a request to the model is open.
// The plan, and resume before anything runs, list what becomes reachable and the request.
func TestResumeTellsWhatReachesOutside(t *testing.T) {
	t.Parallel()
	a := newAgents(t, true)
	a.once(a.run("killed", os.DevNull)...)
	a.once("send", "killed", "questions", a.questions[0])
	a.killAtRequest(1, true)
	keys := a.server.keys()
	if len(keys) != 1 {
		t.Fatalf("the server has got the requests %q", keys)
	}
	want := []string{
		"Reachable outside:\n    agents: creature.lead → llm.main: models scripted at " + strings.TrimPrefix(a.variables[1], "endpoint=") + "; up to 1000000 tokens per graph\n",
		"Open requests to the outside:\n    agents: creature.lead → llm.main: scripted (key " + keys[0] + ") will be sent again, with the same key\n",
	}
	check := func(what, text string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s does not say %q:\n%s", what, w, text)
			}
		}
		if strings.Contains(text, agentsKey) {
			t.Errorf("%s has the key", what)
		}
	}
	plan := append(a.resume(), "--plan")
	check("the plan", a.once(plan...))
	if text := a.once(append(plan, "-o", "json")...); !strings.Contains(text, `"becomes": "sent"`) || !strings.Contains(text, keys[0]) {
		t.Errorf("the plan in JSON: %s", text)
	}
	cmd := a.command(append(a.resume(), "--exit-when-idle")...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	check("resume", stderr.String())
	a.once(append(a.resume(), "--exit-when-idle", "--quiet")...)
	if text := a.once(plan...); strings.Contains(text, "Open requests") {
		t.Errorf("after the result, the plan still has open requests:\n%s", text)
	}
}
