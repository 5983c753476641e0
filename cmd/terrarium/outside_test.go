//go:build unix

package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
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

// TestServeTellsWhatReachesOutside starts a service with a recipe and with the session that it
// has left. Both log what becomes reachable before they are ready, and so does a recipe that is
// read again.
func TestServeTellsWhatReachesOutside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	alert := `
channel "lines" {}
http "alerts" {
  allow = ["https://alerts.example.org/*"]
}
creature "pager" {
  module = "builtin:js"
  listen = [channel.lines]
  grants { http = ["alerts"] }
  config = { script = "export default { message(turn) {} }" }
}
`
	write(t, dir, "alert.hcl", alert)
	for i, args := range [][]string{{"alert.hcl"}, nil} {
		s := startService(t, dir, nil, args...)
		reachable, ready := strings.Index(s.stderr.String(), `"reachable outside"`), strings.Index(s.stderr.String(), "is ready")
		if reachable < 0 || reachable > ready || !strings.Contains(s.stderr.String(), `"of":"alert: creature.pager","capability":"http.alerts","reaches":[`) {
			t.Errorf("with %v it logs:\n%s", args, s.stderr.String())
		}
		if i == 0 {
			write(t, dir, "alert.hcl", strings.Replace(alert, "example.org/*", "example.org/frogs", 1))
			if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			s.stderr.await(t, "the recipe was applied")
			if log := s.stderr.String(); !strings.Contains(log, "alerts.example.org/frogs") {
				t.Errorf("reading the recipe again logs:\n%s", log)
			}
		}
		if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := s.wait(); code != exitOK && code != 143 {
			t.Errorf("it ends with %d:\n%s", code, s.stderr.String())
		}
	}
}
