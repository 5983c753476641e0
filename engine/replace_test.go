package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// replacing is a creature that records what it hears, with two versions of its module:
// "record", and "loud", which writes in capital letters.
func replacing(t *testing.T) (s *saved, c journal.CreatureID, ch journal.ChannelID) {
	h := newFakeHost()
	h.on("loud", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage && kind != abi.KindTimer {
			return nil
		}
		payload, _ := t.Source(abi.SourcePayload)
		old, _ := t.StateGet([]byte("heard"))
		return codeErr(t, t.StateSet([]byte("heard"), fmt.Appendf(old, "%s\n", strings.ToUpper(string(payload)))))
	})
	h.on("timing", func(t abi.Turn, kind abi.Kind) error {
		if kind == abi.KindMessage {
			return codeErr(t, t.TimerSet([]byte("alarm"), time.Hour, 0, []byte("rang")))
		}
		return nil
	})
	h.on("broken", func(_ abi.Turn, kind abi.Kind) error {
		if kind == abi.KindMessage {
			return errors.New("unreachable")
		}
		return nil
	})
	h.inits["refuses"] = func(abi.Turn, abi.Kind) error { return errors.New("not today") }
	h.on("refuses", func(abi.Turn, abi.Kind) error { return nil })
	s = newSaved(t, engine.Options{Host: h})
	from := s.add("from", "relay")
	c = s.add("counter", "record", func(c *deploy.CreatureSpec) {
		c.Restart = deploy.RestartPolicy{Attempts: 1, Max: 3, Backoff: time.Millisecond}
	})
	ch = s.connect(from, c, "news")
	return s, c, ch
}

func (s *saved) replace(c journal.CreatureID, module string) engine.Replaced {
	s.t.Helper()
	out, err := s.ReplaceModule(s.t.Context(), c, engine.Replacement{Module: module})
	if err == nil {
		err = out.Wait(s.t.Context())
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// TestReplaceModule replaces a module and, after a restart, returns to the first one.
func TestReplaceModule(t *testing.T) {
	s, c, ch := replacing(t)
	hear := func(text string) {
		s.send(ch, text)
		s.wait()
	}
	hear("one")
	want := journal.ModuleReplaced{Name: "counter", Module: "loud", SHA256: "sha-of-loud", Former: "record", FormerSHA256: "sha-of-record"}
	if got := s.replace(c, "loud"); got.ModuleReplaced != want || got.Creature != c || got.Graph != s.graph(c) {
		t.Errorf("replaced: %+v", got)
	}
	hear("two")
	s.reopen()
	hear("three")
	s.replace(c, "record")
	hear("four")
	if got := s.state(c, "heard"); got != "news:one\nTWO\nTHREE\nnews:four\n" {
		t.Errorf("heard %q", got)
	}
	var logged []journal.ModuleReplaced
	for _, ev := range s.events(c, journal.EventModuleReplaced) {
		var p journal.ModuleReplaced
		if err := json.Unmarshal(ev.Payload, &p); err != nil {
			t.Errorf("%+v, %v", ev, err)
		}
		logged = append(logged, p)
	}
	back := journal.ModuleReplaced{Name: "counter", Module: "record", SHA256: "sha-of-record", Former: "loud", FormerSHA256: "sha-of-loud"}
	if d := cmp.Diff([]journal.ModuleReplaced{want, back}, logged); d != "" {
		t.Errorf("logged (- want, + got):\n%s", d)
	}
	if got := s.replace(c, "record"); got.SHA256 != got.FormerSHA256 {
		t.Errorf("the same module again: %+v", got)
	}
	if n := s.host.openModules(); n != 2 {
		t.Errorf("%d modules are open, want those of 2 creatures", n)
	}
}

// TestReplaceModuleKeepsWhatWaits replaces the module of a stopped creature with a
// backlog, and of one that is quarantined.
func TestReplaceModuleKeepsWhatWaits(t *testing.T) {
	s, c, ch := replacing(t)
	s.change(topology.SetStopped{ID: c, Stopped: true})
	for i := range 100 {
		s.send(ch, fmt.Sprintf("m%d", i))
	}
	s.replace(c, "broken")
	if got, _ := s.creature(c); got.State != journal.Stopped || got.Cursors[ch].Pending != 100 {
		t.Errorf("%s with %d pending, want stopped with 100", got.State, got.Cursors[ch].Pending)
	}
	s.change(topology.SetStopped{ID: c})
	s.wait()
	if got, _ := s.creature(c); got.State != journal.Quarantined {
		t.Fatalf("the creature with the broken module is %s", got.State)
	}
	dead := len(s.letters(c))
	s.replace(c, "loud")
	s.wait()
	got, _ := s.creature(c)
	if heard := strings.Count(s.state(c, "heard"), "\n"); got.State != journal.Running || heard+dead != 100 {
		t.Errorf("the creature is %s, has heard %d messages and has %d dead letters; want 100 together", got.State, heard, dead)
	}
}

// TestReplaceModuleKeepsTimers replaces the module while a timer is set.
func TestReplaceModuleKeepsTimers(t *testing.T) {
	s, c, ch := replacing(t)
	s.replace(c, "timing")
	s.send(ch, "go")
	s.wait()
	s.replace(c, "loud")
	if rows, err := s.Timers(c); err != nil || len(rows) != 1 || rows[0].Name != "alarm" || string(rows[0].Payload) != "rang" {
		t.Errorf("timers: %+v, %v", rows, err)
	}
}

// TestReplaceModuleIsRefused tries modules and creatures that are refused. Nothing changes.
func TestReplaceModuleIsRefused(t *testing.T) {
	s, c, ch := replacing(t)
	for module, want := range map[string]string{
		"missing": "no behaviour missing",
		"refuses": "replace_module: starting counter: not today",
	} {
		if _, err := s.ReplaceModule(t.Context(), c, engine.Replacement{Module: module}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", module, err, want)
		}
	}
	if _, err := s.ReplaceModule(t.Context(), "c0000", engine.Replacement{Module: "loud"}); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("of a creature that does not exist: %v, want not_found", err)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.ReplaceModule(stopped, c, engine.Replacement{Module: "loud"}); err == nil {
		t.Error("a module was replaced for a caller that had cancelled")
	}
	s.send(ch, "one")
	s.wait()
	if got := s.state(c, "heard"); got != "news:one\n" {
		t.Errorf("heard %q", got)
	}
	if n := s.host.openModules(); n != 2 {
		t.Errorf("%d modules are open, want those of 2 creatures", n)
	}
}

// TestReplaceModuleIsJudged has a policy that accepts one module only, and recipes that
// return a creature to its module.
func TestReplaceModuleIsJudged(t *testing.T) {
	s := newSaved(t, engine.Options{})
	var seen []deploy.PolicyEvent
	guard := &judge{kinds: []journal.PolicyKind{journal.JudgeReplace}, judge: func(e *deploy.PolicyEvent) deploy.Decision {
		seen = append(seen, *e)
		if e.SHA256 == "sha-of-sink" {
			return deploy.Decision{}
		}
		return deploy.Decision{Words: denial("unknown module")}
	}}
	guarded := func(d *deploy.Deployment) { d.Policy = guard }
	a := s.apply(team(2, guarded))
	c := a.Creatures["creature.m1"]
	if _, err := s.ReplaceModule(t.Context(), c, engine.Replacement{Module: "relay"}); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "unknown module") {
		t.Errorf("an unknown module: %v", err)
	}
	s.replace(c, "sink")
	if len(seen) != 2 || seen[1].Call != "replace_module" || seen[1].Creature.ID != c || seen[1].Module != "sink" || seen[1].Former != "record" {
		t.Errorf("the policy has seen %+v", seen)
	}
	if again := s.apply(team(2, guarded)); !cmp.Equal(again.Changed, []string{"creature.m1"}) || len(seen) != 2 {
		t.Errorf("applying again has changed %v; the policy was asked %d times", again.Changed, len(seen))
	}
}
