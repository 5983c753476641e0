package replay_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/topology"
	"github.com/seed47132306/terrarium/replay"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// asking is a creature that makes a call for each message, and outputs the answer.
func asking(ask func(t abi.Turn)) behaviour {
	return func(t abi.Turn, kind abi.Kind, _ *int) error {
		if payload := get(t, abi.SourcePayload); string(payload) == "ask" {
			ask(t)
		} else {
			t.Output(payload)
		}
		return nil
	}
}

// TestWhatIsNotInTheLog makes creatures ask for what no log has: those turns are counted
// with the reason, and the others are compared.
func TestWhatIsNotInTheLog(t *testing.T) {
	puts := func(s abi.Source) func(abi.Turn) { return func(t abi.Turn) { t.Output(get(t, s)) } }
	for reason, c := range map[replay.Reason]struct {
		ask  func(abi.Turn)
		spec func(*deploy.CreatureSpec)
	}{
		replay.RealClock: {func(t abi.Turn) { t.Output(fmt.Append(nil, t.Now())) }, func(s *deploy.CreatureSpec) { s.Grants.Clock = true }},
		replay.RealRandom: {func(t abi.Turn) {
			p := make([]byte, 8)
			t.Random(p)
			t.Output(p)
		}, func(s *deploy.CreatureSpec) { s.Grants.Random = true }},
		replay.Secret: {puts(abi.SourceConfig), func(s *deploy.CreatureSpec) {
			s.Config, s.Secret = json.RawMessage(`{"token": "hush", "open": 1}`), []string{"token"}
		}},
		replay.Surrounding: {puts(abi.SourceAwarenessMarkdown), nil},
	} {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, map[string]behaviour{"asking": asking(c.ask)})
			spec := c.spec
			if spec == nil {
				spec = func(*deploy.CreatureSpec) {}
			}
			id := w.add("a", "asking", spec)
			w.tell(id, "plain")
			asked := w.tell(id, "ask")
			w.tell(id, "plain")
			w.wait()
			r := w.replay(replay.Options{})
			if len(r.Unjudged) != 1 || r.Unjudged[0].Reason != reason || r.Unjudged[0].Turns != 1 || r.Unjudged[0].First != w.turnOf(id, asked) {
				t.Errorf("not compared: %+v", r.Unjudged)
			}
			if r.Turns != 3 || !r.Same() {
				t.Errorf("the report is %+v, want 3 turns and no difference", r)
			}
		})
	}
}

// TestWhatIsInTheLog makes a creature ask for what it is not granted, but the log has.
func TestWhatIsInTheLog(t *testing.T) {
	w := newWorld(t, map[string]behaviour{"asking": asking(func(t abi.Turn) {
		p := make([]byte, 8)
		t.Random(p)
		fmt.Fprintf(output{t}, "%d %x %s", t.Now(), p, get(t, abi.SourceAwarenessRevision))
		token, _ := t.Config([]byte("open"))
		t.Output(token)
	})})
	id := w.add("a", "asking", func(s *deploy.CreatureSpec) {
		s.Config, s.Secret = json.RawMessage(`{"token": "hush", "open": "<1>"}`), []string{"token"}
	})
	w.tell(id, "ask")
	w.wait()
	same(t, w.replay(replay.Options{}), 2)
}

type output struct{ t abi.Turn }

func (o output) Write(p []byte) (int, error) {
	o.t.Output(p)
	return len(p), nil
}

// TestSenderThatWasRenamed makes a creature ask for the name of a sender that was renamed
// after sending.
func TestSenderThatWasRenamed(t *testing.T) {
	w := newWorld(t, map[string]behaviour{
		"relay": func(t abi.Turn, kind abi.Kind, _ *int) error {
			if kind == abi.KindMessage {
				t.Send(abi.AllChannels, get(t, abi.SourcePayload), nil)
			}
			return nil
		},
		"hears": func(t abi.Turn, _ abi.Kind, _ *int) error { t.Output(get(t, abi.SourceSender)); return nil },
	})
	one, two, ears := w.add("relay", "relay"), w.add("relay", "relay"), w.add("ears", "hears")
	w.change(topology.Connect{From: one, To: ears})
	w.tell(one, "before")
	w.wait()
	w.change(topology.Connect{From: two, To: ears}) // this renames the second to relay~2
	w.tell(two, "behind")
	w.wait()
	same(t, w.replay(replay.Options{}), 7)
}

// TestLinearMemory finds a creature that keeps in its memory what it should keep in its
// state: on a kept instance nothing differs, and on fresh ones its second turn does.
func TestLinearMemory(t *testing.T) {
	w := newWorld(t, map[string]behaviour{"forgetful": func(t abi.Turn, kind abi.Kind, memory *int) error {
		if kind == abi.KindMessage {
			*memory++
			t.Output(fmt.Append(nil, *memory))
		}
		return nil
	}})
	id := w.add("a", "forgetful")
	w.tell(id, "one")
	second := w.tell(id, "two")
	w.tell(id, "three")
	w.wait()
	same(t, w.replay(replay.Options{}), 4)
	r := w.replay(replay.Options{Fresh: true, All: true})
	if r.Differ != 2 || r.Differences[0].Turn != w.turnOf(id, second) {
		t.Errorf("on fresh instances the report is %+v", r)
	}
}

// TestFailures replays turns that failed: the same failure is no difference, and a fixed
// module differs at the first of them.
func TestFailures(t *testing.T) {
	fails := func(broken bool) behaviour {
		return func(t abi.Turn, _ abi.Kind, _ *int) error {
			t.Log(abi.LevelInfo, []byte("here"))
			if string(get(t, abi.SourcePayload)) == "bad" && broken {
				t.Output([]byte("of which nothing comes"))
				return &abi.Error{Code: abi.Trapped, Message: "unreachable"}
			}
			return nil
		}
	}
	w := newWorld(t, map[string]behaviour{"fails": fails(true), "fixed": fails(false)})
	id := w.add("a", "fails")
	w.tell(id, "good")
	bad := w.tell(id, "bad")
	w.tell(id, "good")
	w.wait()
	same(t, w.replay(replay.Options{}), 5)
	r := w.replay(replay.Options{Creatures: []string{"a"}, Module: []byte("fixed"), All: true})
	if r.Differ != 2 || r.Differences[0].Turn != w.turnOf(id, bad) || r.Differences[1].Attempt != 2 {
		t.Fatalf("of the fixed module the report is %+v", r)
	}
	if diff := fmt.Sprint(r.Differences[0].Diff()); diff != `[{32 log info "here"} {45 failed trapped "unreachable"}]` {
		t.Errorf("the diff is %s", diff)
	}
}

// TestOutsideReply replays requests from outside, whose replies are in no inbox.
func TestOutsideReply(t *testing.T) {
	answers := func(word string) behaviour {
		return func(t abi.Turn, kind abi.Kind, _ *int) error {
			if kind == abi.KindRequest {
				t.Reply([]byte(word + "\xff"))
			}
			return nil
		}
	}
	w := newWorld(t, map[string]behaviour{"yes": answers("yes"), "no": answers("no")})
	id := w.add("a", "yes")
	if _, err := w.Request(t.Context(), id, engine.Outgoing{Payload: []byte("?")}, time.Minute); err != nil {
		t.Fatal(err)
	}
	w.wait()
	same(t, w.replay(replay.Options{}), 2)
	r := w.replay(replay.Options{Creatures: []string{string(id)}, Module: []byte("no")})
	if r.Differ != 1 || r.Differences[0].Recorded[0].Kind != "reply" || string(r.Differences[0].Replayed[0].Payload) != "no\xff" {
		t.Errorf("the report is %+v", r)
	}
}

// TestAnsweredRequests replays more requests than may wait for an answer at a time. The
// answer to a request is in the turn of another creature.
func TestAnsweredRequests(t *testing.T) {
	w := newWorld(t, map[string]behaviour{
		"asks": func(t abi.Turn, kind abi.Kind, _ *int) error {
			if kind != abi.KindMessage {
				return nil
			}
			return t2err(t, t.Request([]byte("b"), []byte("?"), time.Hour, 1) == abi.OK)
		},
		"replies": func(t abi.Turn, kind abi.Kind, _ *int) error {
			return t2err(t, kind != abi.KindRequest || t.Reply([]byte("!")) == abi.OK)
		},
	})
	a := w.add("a", "asks", func(s *deploy.CreatureSpec) { s.Limits.Requests = 2 })
	w.change(topology.Connect{From: a, To: w.add("b", "replies")})
	for range 5 {
		w.tell(a, "ask")
		w.wait()
	}
	same(t, w.replay(replay.Options{}), 2+3*5)
	same(t, w.replay(replay.Options{Creatures: []string{"a"}}), 1+2*5)
}

// TestTools replays turns that use group tools: they get the recorded results, and
// another call is a difference.
func TestTools(t *testing.T) {
	edits := func(channel string) behaviour {
		return func(t abi.Turn, kind abi.Kind, _ *int) error {
			if kind != abi.KindMessage {
				return nil
			}
			status, _ := t.Tool([]byte("group_status"), nil)
			t.Output(status)
			t.Tool([]byte("group_channel"), fmt.Appendf(nil, `{"action": "create", "name": %q}`, channel))
			t.Tool([]byte("group_send"), []byte(`{"creature": "b", "payload": "hello"}`))
			_, code := t.Tool([]byte("nonsense"), nil)
			return t2err(t, code == abi.NotFound && t.LastError() != "")
		}
	}
	w := newWorld(t, map[string]behaviour{"edits": edits("new"), "other": edits("other"), "sink": asking(nil)})
	root, sink := w.add("a", "edits", func(s *deploy.CreatureSpec) { s.Privileged = true }), w.add("b", "sink")
	w.change(topology.Connect{From: root, To: sink})
	w.tell(root, "go")
	w.wait()
	same(t, w.replay(replay.Options{}), 4)
	r := w.replay(replay.Options{Creatures: []string{"a"}, Module: []byte("other")})
	if r.Differ != 1 || r.Differences[0].First != 1 {
		t.Errorf("of the other module the report is %+v, want its second call to differ", r)
	}
}

func t2err(_ abi.Turn, ok bool) error {
	if ok {
		return nil
	}
	return &abi.Error{Code: abi.Internal, Message: "the tool answered something else"}
}

// TestPrunedHistory replays a session whose beginning has been pruned: turns that depend
// on it are not compared; turns after the state was set again are.
func TestPrunedHistory(t *testing.T) {
	w := newWorld(t, map[string]behaviour{"count": func(t abi.Turn, kind abi.Kind, _ *int) error {
		old, _ := t.StateGet([]byte("n"))
		switch string(get(t, abi.SourcePayload)) {
		case "":
			t.StateSet([]byte("fixed"), []byte("since the start"))
		case "ask":
			fixed, _ := t.StateGet([]byte("fixed"))
			t.Output(fixed)
		}
		var n int
		fmt.Sscan(string(old), &n)
		t.StateSet([]byte("n"), fmt.Append(nil, n+1))
		return nil
	}})
	id := w.add("a", "count")
	w.close()
	w.options.Retain = sqlitestore.Retention{Events: 6000}
	w.open()
	for range 40 {
		for range 75 {
			w.tell(id, "x")
		}
		w.wait()
	}
	if err := w.storage.Settle(t.Context()); err != nil { // this prunes history that is too old
		t.Fatal(err)
	}
	w.tell(id, "ask")
	w.wait()
	r := w.replay(replay.Options{})
	if !r.Same() {
		t.Fatalf("the report is %+v, want turns that were compared and no difference", r)
	}
	reasons := map[replay.Reason]int{}
	for _, u := range r.Unjudged {
		reasons[u.Reason] += u.Turns
	}
	t.Logf("%d turns compared, not compared: %v", r.Turns, reasons)
	if reasons[replay.NoSetting] == 0 || reasons[replay.UnknownKey] != 1 || len(reasons) > 3 {
		t.Errorf("not compared: %v, want turns before the first setting, and the one that asked", reasons)
	}
}
