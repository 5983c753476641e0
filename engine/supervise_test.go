package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
	"github.com/seed47132306/terrarium/internal/fresh"
)

func TestRestartModes(t *testing.T) {
	for _, test := range []struct {
		mode              deploy.RestartMode
		failures, started int
	}{
		{deploy.RestartOnFailure, 3, 1 + 3},
		{deploy.RestartNever, 1, 1 + 1},
		{deploy.RestartAlways, 3, 7},
	} {
		t.Run(test.mode.String(), func(t *testing.T) {
			if fresh.Instances() {
				test.started = 1 + 3 + test.failures // the start, the deliveries that succeed and those that fail
			}
			w := newWorld(t, engine.Options{Workers: 1})
			events := w.Subscribe(engine.Filter{Kinds: []journal.EventKind{journal.EventTurnFailed}}, 0)
			a := w.add("a", "count", func(c *deploy.CreatureSpec) {
				c.Restart = deploy.RestartPolicy{Mode: test.mode, Backoff: time.Microsecond}
			})
			in := w.connect(a, a, "in")
			w.change(topology.SetEdge{Creature: a, Channel: in, Direction: journal.Send})
			for _, p := range []string{"1", "trap", "2", "3"} {
				w.send(in, p)
			}
			w.wait()
			events.Close()
			failures := 0
			for range events.All(t.Context()) {
				failures++
			}
			if failures != test.failures || w.host.started() != test.started {
				t.Errorf("%d failures and %d instances, want %d and %d", failures, w.host.started(), test.failures, test.started)
			}
			if got := w.state(a, "n"); got != "3" || w.DeadLetterCount() != 1 {
				t.Errorf("a counted to %s with %d dead letters, want 3 with 1", got, w.DeadLetterCount())
			}
		})
	}
}

func TestQuarantineIsLiftedByStart(t *testing.T) {
	w := newWorld(t, engine.Options{})
	a := w.add("a", "count", func(c *deploy.CreatureSpec) {
		c.Restart = deploy.RestartPolicy{Mode: deploy.RestartNever, Max: 2}
	})
	in := w.connect(a, a, "in")
	for _, p := range []string{"trap", "trap", "trap", "1"} {
		w.send(in, p)
	}
	w.wait() // the backlog of a quarantined creature does not count
	state := func() journal.CreatureState { return w.status()[0].Creatures[0].State }
	if state() != "quarantined" || w.state(a, "n") != "" {
		t.Fatalf("a is %s and counted to %s, want quarantined and no count", state(), w.state(a, "n"))
	}
	w.change(topology.SetStopped{ID: a})
	w.wait()
	if state() != "running" || w.state(a, "n") != "1" {
		t.Errorf("a is %s and counted to %s, want running and 1", state(), w.state(a, "n"))
	}
}

func TestIdleWaitsForRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFakeHost()
		failing := true
		h.on("moody", func(tn abi.Turn, kind abi.Kind) error {
			if kind == abi.KindMessage && failing {
				failing = false
				return &abi.Error{Code: abi.Trapped}
			}
			return h.behaviours["record"](tn, kind)
		})
		w := newWorld(t, engine.Options{Host: h})
		a := w.add("a", "moody", func(c *deploy.CreatureSpec) { c.Restart.Backoff = time.Hour })
		in := w.connect(a, a, "in")
		w.wait()
		w.send(in, "x")
		idle := make(chan error, 1)
		begin := time.Now()
		go func() { idle <- w.WaitIdle(context.Background()) }()
		if err := <-idle; err != nil {
			t.Fatal(err)
		}
		if pause := time.Since(begin); pause < 5*time.Second { // the maximum is 10 s, at least half of which is certain
			t.Errorf("the engine was idle after %v, want at least 5 s", pause)
		}
		if got := w.state(a, "heard"); got != "in:x\n" {
			t.Errorf("a heard %q", got)
		}
	})
}

func TestAPendingRetryEndsWithStopRemovalAndClose(t *testing.T) {
	for name, end := range map[string]func(w *world, a journal.CreatureID){
		"stop":    func(w *world, a journal.CreatureID) { w.change(topology.SetStopped{ID: a, Stopped: true}); w.wait() },
		"removal": func(w *world, a journal.CreatureID) { w.change(topology.RemoveCreature{ID: a}); w.wait() },
		"close":   func(*world, journal.CreatureID) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, engine.Options{})
				a := w.add("a", "count", func(c *deploy.CreatureSpec) { c.Restart.Backoff = time.Hour })
				in := w.connect(a, a, "in")
				w.send(in, "trap")
				synctest.Wait()
				begin := time.Now()
				end(w, a)
				w.close()
				if time.Since(begin) != 0 {
					t.Errorf("the end took %v, want no wait for the retry", time.Since(begin))
				}
			})
		})
	}
}

func TestStopAndStartAtOnceKeepOneInstance(t *testing.T) {
	w := newWorld(t, engine.Options{Workers: 4})
	a := w.add("a", "record")
	in := w.connect(a, a, "in")
	want := ""
	for i := range 300 {
		w.send(in, fmt.Sprint(i))
		w.change(topology.SetStopped{ID: a, Stopped: true})
		w.change(topology.SetStopped{ID: a})
		want += fmt.Sprintf("in:%d\n", i)
	}
	w.wait()
	if got := w.state(a, "heard"); got != want {
		t.Errorf("a heard %d lines, which are not the messages in order", strings.Count(got, "\n"))
	}
}

func TestFreshInstancesSeeTheSameState(t *testing.T) {
	w := newWorld(t, engine.Options{FreshInstances: true})
	a := w.add("a", "count")
	in := w.connect(a, a, "in")
	for range 5 {
		w.send(in, "x")
	}
	w.wait()
	if got := w.state(a, "n"); got != "5" || w.host.started() != 6 {
		t.Errorf("a counted to %s with %d instances, want 5 with 6", got, w.host.started())
	}
}

// censor is a policy on one channel.
type censor struct{ channel string }

func (c censor) Judges(journal.PolicyKind) bool { return false }

func (c censor) Judge(context.Context, *deploy.PolicyEvent) deploy.Decision { return deploy.Decision{} }

func (c censor) JudgesSend(address string) bool { return address == c.channel }

func (c censor) Send(_ context.Context, ev *deploy.SendEvent) deploy.SendDecision {
	v := deploy.Verdict{Policy: "censor", Reason: "told to", Where: "x.hcl:1"}
	switch text := string(ev.Payload); {
	case strings.HasPrefix(text, "deny"):
		return deploy.SendDecision{Words: deploy.Words{Denials: []deploy.Verdict{v}}}
	case strings.HasPrefix(text, "drop"):
		return deploy.SendDecision{Dropped: &v}
	case strings.HasPrefix(text, "audit"):
		return deploy.SendDecision{Words: deploy.Words{Audits: []deploy.Verdict{v}}}
	}
	return deploy.SendDecision{Mutated: true, Payload: []byte(ev.SenderName + "/" + string(ev.Payload))}
}

func TestPoliciesJudgeWhatIsSent(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a := s.apply(team(2, func(d *deploy.Deployment) { d.Policy = censor{"channel.c1"} }))
	in, out, last := a.Channels["channel.c0"], a.Channels["channel.c1"], a.Creatures["creature.m1"]
	for _, p := range []string{"deny", "drop", "audit", "pass"} {
		s.send(in, p) // m0 sends it on, and the policy judges that
	}
	s.wait()
	for _, p := range []string{"deny", "drop"} {
		if _, err := s.Send(t.Context(), out, engine.Outgoing{Payload: []byte(p)}); abi.CodeOf(err) != abi.Denied {
			t.Errorf("%s from outside: %v, want denied", p, err)
		}
	}
	s.send(out, "audit outside")
	s.send(out, "outside")
	s.wait()
	if got, want := s.state(last, "heard"), "c1:audit\nc1:m0/pass\nc1:audit outside\nc1:/outside\n"; got != want {
		t.Errorf("m1 heard %q, want %q", got, want)
	}
	if n := len(s.events(last, journal.EventPolicyDenied)); n != 5 {
		t.Errorf("%d verdicts are logged, want 5: on four messages, and that one from outside was changed", n)
	}
	s.reopen() // the store has the message only if ids have no gap
	if got := s.state(last, "heard"); !strings.HasSuffix(got, "c1:/outside\n") {
		t.Errorf("after a restart, m1 has heard %q", got)
	}
}

func TestASlowSubscriberLearnsWhatItMissed(t *testing.T) {
	w := newWorld(t, engine.Options{})
	a := w.add("a", "sink")
	in := w.connect(a, a, "in")
	events := w.Subscribe(engine.Filter{Kinds: []journal.EventKind{journal.EventChannelMessage}, Channels: []journal.ChannelID{in}}, 3)
	for i := range 10 {
		w.send(in, fmt.Sprint(i))
	}
	var got []string
	for range 4 {
		ob, err := events.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ob.Event.Kind == journal.EventLagged {
			got = append(got, fmt.Sprint("missed ", ob.Missed))
		} else {
			got = append(got, string(ob.Event.Payload))
		}
	}
	wantStrings(t, got, []string{"0", "1", "2", "missed 7"})
	w.send(in, "10")
	if ob, err := events.Next(t.Context()); err != nil || string(ob.Event.Payload) != "10" {
		t.Errorf("%+v, %v", ob, err)
	}
	events.Close()
	if _, err := events.Next(t.Context()); abi.CodeOf(err) != abi.Stopped {
		t.Errorf("Next: %v, want stopped", err)
	}
}

func TestAFilterFollowsAGraphThroughMerges(t *testing.T) {
	w := newWorld(t, engine.Options{})
	small := w.add("small", "sink")
	old := w.graph(small)
	events := w.Subscribe(engine.Filter{Kinds: []journal.EventKind{journal.EventChannelMessage}, Graphs: []journal.GraphID{old}}, 0)
	defer events.Close()
	var all journal.ChannelID
	for i := range 3 { // the larger graph continues every time
		a, b := w.add(fmt.Sprint("a", i), "sink"), w.add(fmt.Sprint("b", i), "sink")
		w.connect(a, b, fmt.Sprint("pair", i))
		for j := range 1 << (i + 1) {
			w.connect(a, w.add(fmt.Sprint("c", i, j), "sink"), fmt.Sprint("more", i, j))
		}
		all = w.connect(a, small, fmt.Sprint("all", i))
	}
	if w.graph(small) == old {
		t.Fatal("the graph was never absorbed")
	}
	w.send(all, "found")
	if ob, err := events.Next(t.Context()); err != nil || string(ob.Event.Payload) != "found" {
		t.Errorf("%+v, %v", ob, err)
	}
}

func TestSubscribingToAClosedEngineEndsAtOnce(t *testing.T) {
	w := newWorld(t, engine.Options{})
	w.close()
	events := w.Subscribe(engine.Filter{}, 0)
	defer events.Close()
	if _, err := events.Next(t.Context()); abi.CodeOf(err) != abi.Stopped {
		t.Errorf("Next: %v, want stopped", err)
	}
}

// The root gets a message when a creature is quarantined.
func TestQuarantineIsReportedToTheRoot(t *testing.T) {
	onStorages(t, func(t *testing.T, o engine.Options) {
		w := newWorld(t, o)
		d := team(2, func(d *deploy.Deployment) {
			d.Creatures[0].Module, d.Creatures[0].Wasm = "count", []byte("count")
			d.Creatures[0].Restart = deploy.RestartPolicy{Mode: deploy.RestartNever, Max: 1}
			d.Creatures[0].Send = nil
			d.Root = "creature.m1"
		})
		applied := w.apply(d)
		for range 3 {
			w.send(applied.Channels["channel.c0"], "trap")
		}
		w.wait()
		heard := w.state(applied.Creatures["creature.m1"], "heard")
		const report = `report_to_root:{"event":"creature_quarantined","creature":"m0","code":"trapped","error":"`
		if strings.Count(heard, report) != 1 {
			t.Errorf("the root heard %q, want one report", heard)
		}
	})
}
