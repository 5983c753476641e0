package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// onStorages runs a test on a volatile engine and on one with stores.
func onStorages(t *testing.T, test func(t *testing.T, o engine.Options)) {
	t.Run("volatile", func(t *testing.T) { test(t, engine.Options{}) })
	t.Run("stored", func(t *testing.T) {
		storage := openStorage(t, t.TempDir())
		test(t, engine.Options{Storage: storage})
	})
}

// openStorage opens a session directory that is closed when the test ends.
func openStorage(t *testing.T, dir string) journal.Storage {
	t.Helper()
	storage, err := sqlitestore.Open(t.Context(), dir, sqlitestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := storage.Close(); err != nil {
			t.Error(err)
		}
	})
	return storage
}

func detailOf(t abi.Turn) (d struct {
	Kind, Name, Tag, Code string
	DeadlineMS            int64 `json:"deadline_ms"`
}) {
	b, _ := t.Source(abi.SourceDetail)
	if err := json.Unmarshal(b, &d); err != nil {
		d.Kind = err.Error()
	}
	return d
}

// note appends a line to the state "heard".
func note(t abi.Turn, line string) error {
	old, _ := t.StateGet([]byte("heard"))
	return codeErr(t, t.StateSet([]byte("heard"), []byte(string(old)+line+"\n")))
}

// asker sends each of its messages as a request to the creature named in its
// configuration, and notes the results.
func asker(t abi.Turn, kind abi.Kind) error {
	payload, _ := t.Source(abi.SourcePayload)
	switch kind {
	case abi.KindMessage:
		to, _ := t.Config([]byte("ask"))
		return codeErr(t, t.Request(to, payload, time.Minute, int64(len(payload))))
	case abi.KindResult:
		d := detailOf(t)
		return note(t, fmt.Sprintf("%s %s %s", d.Tag, d.Code, payload))
	}
	return nil
}

// answerer replies to requests, or does as they say.
func answerer(t abi.Turn, kind abi.Kind) error {
	if kind != abi.KindRequest {
		return nil
	}
	payload, _ := t.Source(abi.SourcePayload)
	switch {
	case strings.HasPrefix(string(payload), "trap"):
		return &abi.Error{Code: abi.Trapped, Message: "unreachable"}
	case strings.HasPrefix(string(payload), "silence"):
		return nil
	}
	if code := t.Reply([]byte("re: " + string(payload))); code != abi.OK {
		return codeErr(t, code)
	}
	if code := t.Reply(nil); code != abi.AlreadyExists {
		return fmt.Errorf("a second reply answered %s", code)
	}
	return nil
}

func TestRequestsAreAnsweredOnce(t *testing.T) {
	onStorages(t, func(t *testing.T, o engine.Options) {
		h := newFakeHost()
		h.on("asker", asker)
		h.on("answerer", answerer)
		o.Host = h
		w := newWorld(t, o)
		quick := func(s *deploy.CreatureSpec) { s.Restart.Attempts, s.Restart.Backoff = 2, time.Millisecond }
		b := w.add("b", "answerer", quick)
		a := w.add("a", "asker", func(s *deploy.CreatureSpec) { s.Config = json.RawMessage(`{"ask":"b"}`) })
		w.connect(a, b, "link")
		for _, p := range []string{"x", "trap!", "silence", "yy"} {
			if _, err := w.SendTo(t.Context(), a, engine.Outgoing{Payload: []byte(p)}); err != nil {
				t.Fatal(err)
			}
		}
		w.wait()
		want := "1 ok re: x\n5 trapped unreachable\n7 unavailable b did not reply\n2 ok re: yy\n"
		if got := w.state(a, "heard"); got != want {
			t.Errorf("a noted\n%swant\n%s", got, want)
		}
	})
}

func TestARequestFromOutsideWaitsForItsReply(t *testing.T) {
	onStorages(t, func(t *testing.T, o engine.Options) {
		h := newFakeHost()
		h.on("answerer", answerer)
		o.Host = h
		w := newWorld(t, o)
		b := w.add("b", "answerer", func(s *deploy.CreatureSpec) { s.Restart.Mode = deploy.RestartNever })
		ask := func(p string) (string, abi.Code) {
			reply, err := w.Request(t.Context(), b, engine.Outgoing{Payload: []byte(p)}, time.Minute)
			return string(reply), abi.CodeOf(err)
		}
		if reply, code := ask("x"); reply != "re: x" || code != abi.OK {
			t.Errorf("x: %q, %s", reply, code)
		}
		if _, code := ask("trap"); code != abi.Trapped {
			t.Errorf("trap: %s, want trapped", code)
		}
		if _, code := ask("silence"); code != abi.Unavailable {
			t.Errorf("silence: %s, want unavailable", code)
		}
		w.change(topology.SetStopped{ID: b, Stopped: true})
		_, err := w.Request(t.Context(), b, engine.Outgoing{}, time.Millisecond)
		if abi.CodeOf(err) != abi.Deadline {
			t.Errorf("a stopped creature: %v, want deadline", err)
		}
	})
}

func TestAReplyOutsideOfARequestIsDenied(t *testing.T) {
	h := newFakeHost()
	h.on("replier", func(t abi.Turn, kind abi.Kind) error {
		if kind == abi.KindMessage {
			return note(t, t.Reply(nil).String())
		}
		return nil
	})
	w := newWorld(t, engine.Options{Host: h})
	c := w.add("c", "replier")
	if _, err := w.SendTo(t.Context(), c, engine.Outgoing{}); err != nil {
		t.Fatal(err)
	}
	w.wait()
	if got := w.state(c, "heard"); got != "denied\n" {
		t.Errorf("a reply without a request returned %q, want denied", got)
	}
}

// timekeeper sets the timers that its messages name, and notes when they fire.
func timekeeper(t abi.Turn, kind abi.Kind) error {
	payload, _ := t.Source(abi.SourcePayload)
	switch kind {
	case abi.KindMessage:
		var name string
		var delay, period int64
		if n, _ := fmt.Sscanf(string(payload), "set %s %d %d", &name, &delay, &period); n == 3 {
			return codeErr(t, t.TimerSet([]byte(name), time.Duration(delay)*time.Millisecond, time.Duration(period)*time.Millisecond, payload))
		}
		if n, _ := fmt.Sscanf(string(payload), "cancel %s", &name); n == 1 {
			existed, code := t.TimerCancel([]byte(name))
			if code != abi.OK {
				return codeErr(t, code)
			}
			return note(t, fmt.Sprint("cancelled ", existed))
		}
	case abi.KindTimer:
		if err := note(t, detailOf(t).Name); err != nil {
			return err
		}
		t.Output(payload)
	}
	return nil
}

// outputs waits for n outputs.
func (w *world) outputs(sub *engine.Subscription, n int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Minute)
	defer cancel()
	for range n {
		if _, err := sub.Next(ctx); err != nil {
			w.t.Fatal(err)
		}
	}
	w.wait()
}

func TestTimersFireAndRepeat(t *testing.T) {
	onStorages(t, func(t *testing.T, o engine.Options) {
		h := newFakeHost()
		h.on("timekeeper", timekeeper)
		o.Host = h
		w := newWorld(t, o)
		c := w.add("c", "timekeeper", func(s *deploy.CreatureSpec) { s.Limits.Timers = 2 })
		sub := w.Subscribe(engine.Filter{Kinds: []journal.EventKind{journal.EventOutput}}, 0)
		defer sub.Close()
		tell := func(s string) {
			if _, err := w.SendTo(t.Context(), c, engine.Outgoing{Payload: []byte(s)}); err != nil {
				t.Fatal(err)
			}
			w.wait()
		}
		tell("set once 1 0")
		w.outputs(sub, 1)
		tell("set tick 1 1")
		w.outputs(sub, 3)
		tell("cancel tick")
		tell("cancel tick")
		tell("set never 3600000 0")
		tell("set never 3600000 0") // replaces it
		tell("set late 3600000 0")
		tell("set beyond 3600000 0") // one more than the limit
		// The timer tick may already have fired into the inbox when it was cancelled.
		heard := w.state(c, "heard")
		if n := strings.Count(heard, "tick\n"); n < 3 {
			t.Errorf("tick fired %d times, want 3 or more", n)
		}
		if got, want := strings.ReplaceAll(heard, "tick\n", ""), "once\ncancelled true\ncancelled false\n"; got != want {
			t.Errorf("the timekeeper noted %q, want %q and ticks", got, want)
		}
		if n := w.DeadLetterCount(); n != 1 {
			t.Errorf("%d dead letters, want 1: the timer beyond the limit", n)
		}
	})
}

func TestTimersAndRequestsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	h := newFakeHost()
	h.on("timekeeper", timekeeper)
	h.on("asker", asker)
	h.on("answerer", answerer)
	storage, err := sqlitestore.Open(t.Context(), dir, sqlitestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, engine.Options{Host: h, Storage: storage, Load: loadName})
	c := w.add("c", "timekeeper")
	b := w.add("b", "answerer", func(s *deploy.CreatureSpec) { s.Stopped = true })
	a := w.add("a", "asker", func(s *deploy.CreatureSpec) { s.Config = json.RawMessage(`{"ask":"b"}`) })
	w.connect(a, b, "link")
	if _, err := w.SendTo(t.Context(), a, engine.Outgoing{Payload: []byte("later")}); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"set soon 1000 0", "set tick 1000 3600000", "set never 3600000 0"} {
		if _, err := w.SendTo(t.Context(), c, engine.Outgoing{Payload: []byte(s)}); err != nil {
			t.Fatal(err)
		}
	}
	w.wait()
	w.close()
	if err := storage.Close(); err != nil {
		t.Fatal(err)
	}

	w = newWorld(t, engine.Options{Host: h, Storage: openStorage(t, dir), Load: loadName})
	sub := w.Subscribe(engine.Filter{Kinds: []journal.EventKind{journal.EventOutput}}, 0)
	defer sub.Close()
	if _, problems, err := w.Restore(t.Context()); err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	w.change(topology.SetStopped{ID: b})
	w.outputs(sub, 2)
	got := strings.Fields(w.state(c, "heard"))
	if len(got) != 2 || got[0] == got[1] {
		t.Errorf("after the restart the timers %v fired, want soon and tick", got)
	}
	if got := w.state(a, "heard"); got != "5 ok re: later\n" {
		t.Errorf("after the restart the answer is %q", got)
	}
}

// loadName returns the name of a module as its bytes, as the fake host expects.
func loadName(_ context.Context, module string) ([]byte, error) { return []byte(module), nil }
