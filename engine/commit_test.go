package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/sim"
	"github.com/seed47132306/terrarium/engine/journal"
)

// graphEdits are changes that a turn may make to its graph: none, some that leave it whole, and
// one that splits it.
var graphEdits = map[string]toolCall{
	"no change":  {},
	"a change":   {Tool: "group_channel", Args: args{"action": "create", "name": "annex"}},
	"a removal":  {Tool: "group_remove_node", Args: args{"creature": "leaf"}},
	"a division": {Tool: "group_remove_node", Args: args{"creature": "bridge"}},
}

// A turn leaves the same in the log, in the counters and in memory whether it changes
// its graph, cuts it, or does neither.
func TestATurnLeavesTheSameHoweverItCommits(t *testing.T) {
	for _, where := range []string{"without a store", "with a store"} {
		want := ""
		for _, edit := range []string{"no change", "a change", "a removal", "a division"} {
			t.Run(where+"/"+edit, func(t *testing.T) {
				var w *world
				var s *saved
				if where == "with a store" {
					s = newSaved(t, engine.Options{Host: busyHost(graphEdits[edit])})
					w = s.world
				} else {
					w = newWorld(t, engine.Options{Host: busyHost(graphEdits[edit])})
				}
				got, lead := busyTurn(t, w)
				if want == "" {
					want = got
				}
				if got != want {
					t.Errorf("the turn leaves\n%s\nwant, as without a change,\n%s", got, want)
				}
				if s == nil {
					return
				}
				before := w.left(lead)
				s.reopen()
				if after := s.left(lead); after != before {
					t.Errorf("after a restart:\n%s\nwant\n%s", after, before)
				}
			})
		}
	}
}

// busyHost has a lead that does everything a turn can do, and calls a tool.
func busyHost(edit toolCall) *fakeHost {
	h := onWires(newFakeHost())
	h.on("asker", onMessage(func(t abi.Turn) error {
		if payload, _ := t.Source(abi.SourcePayload); string(payload) != "go" {
			return nil
		}
		return codeErr(t, t.Request([]byte("lead"), []byte("go"), time.Hour, 3))
	}))
	h.on("lead", func(t abi.Turn, kind abi.Kind) error {
		if kind == abi.KindMessage {
			t.StateSet([]byte("old"), []byte("x"))
			t.TimerSet([]byte("old"), time.Hour, 0, nil)
			return codeErr(t, t.TimerSet([]byte("both"), time.Hour, 0, []byte("before")))
		}
		if kind != abi.KindRequest {
			return nil
		}
		if edit.Tool != "" {
			args, _ := json.Marshal(edit.Args)
			if _, code := t.Tool([]byte(edit.Tool), args); code != abi.OK {
				return codeErr(t, code)
			}
		}
		t.Log(abi.LevelInfo, []byte("busy"))
		codes := []abi.Code{
			abi.CodeOfStatus(t.Send(abi.AllChannels, []byte("news"), []byte("h\x00v\x00"))),
			t.SendTo([]byte("near"), []byte("hello")),
			t.Request([]byte("mute"), []byte("ping"), 2*time.Hour, 7),
			t.Output([]byte("out")),
			t.StateSet([]byte("new"), []byte("y")),
			t.TimerSet([]byte("new"), time.Hour, time.Minute, []byte("tick")),
			t.TimerSet([]byte("both"), time.Hour, 0, []byte("after")),
			t.Reply([]byte("pong")),
		}
		t.StateDelete([]byte("old"))
		t.TimerCancel([]byte("old"))
		for _, code := range codes {
			if code != abi.OK {
				return codeErr(t, code)
			}
		}
		return nil
	})
	return h
}

// busyTurn lets the lead of a graph take its turn, and describes what the turn has left.
func busyTurn(t *testing.T, w *world) (left string, lead journal.CreatureID) {
	t.Helper()
	lead = w.add("lead", "lead", privileged)
	asker, near, catch := w.add("asker", "asker"), w.add("near", "sink"), w.add("catch", "catch")
	mute, leaf, bridge, far := w.add("mute", "sink", stopped), w.add("leaf", "sink"), w.add("bridge", "sink"), w.add("far", "sink")
	for i, c := range []journal.CreatureID{asker, near, catch, mute, leaf, bridge} {
		w.connect(lead, c, fmt.Sprint("c", i))
	}
	w.connect(bridge, far, "away")
	w.wire(journal.OutputWire{From: lead, To: catch, WithContent: true})
	w.wire(journal.OutputWire{From: lead, To: journal.ToRoot}) // there is no root
	w.tell(lead, "prepare")
	sub := w.Subscribe(engine.Filter{}, 0)
	w.tell(asker, "go")
	sub.Close()
	var b strings.Builder
	turn, names := journal.EventID{}, w.names()
	for ob := range sub.All(context.Background()) {
		ev := &ob.Event
		if ev.Kind == journal.EventTurnEnded && ev.Creature == lead && turn.IsZero() {
			turn = ev.ID
		}
		if !turn.IsZero() && (ev.ID == turn || ev.Turn == turn) {
			fmt.Fprintf(&b, "%s %s %s %d %v %s\n", ev.Kind, names[string(ev.Creature)], names[strings.TrimPrefix(string(ev.Channel), "inbox.")], ev.Seq, journal.DecodeHeaders(ev.Headers), payloadOf(ev))
		}
	}
	status, _ := w.creatureIn(lead)
	fmt.Fprintf(&b, "%+v\n", status.Counters)
	return anyID.ReplaceAllString(b.String()+w.left(lead), "…"), lead
}

// anyID matches the ids of wires and events.
var anyID = regexp.MustCompile(`\bw[0-9a-z]{16}\b|\b[0-9a-f]{32}-[0-9]+\b`)

// names are the names of all creatures, by id and by inbox.
func (w *world) names() map[string]string {
	out := map[string]string{}
	for _, g := range w.status() {
		for _, c := range g.Creatures {
			out[string(c.ID)], out[string(journal.InboxOf(c.ID))] = c.Name, c.Name
		}
		for _, ch := range g.Channels {
			out[string(ch.ID)] = ch.Name
		}
	}
	return out
}

func payloadOf(ev *journal.Event) string {
	var p map[string]any
	if ev.Kind != journal.EventTurnEnded && ev.Kind != journal.EventDeadLetter || json.Unmarshal(ev.Payload, &p) != nil {
		return fmt.Sprintf("%q", ev.Payload)
	}
	for _, name := range []string{"notes", "tools", "creature"} {
		delete(p, name)
	}
	b, _ := json.Marshal(p)
	return string(b)
}

// left is what a turn of a creature has left outside the log.
func (w *world) left(c journal.CreatureID) string {
	w.t.Helper()
	var b strings.Builder
	timers, err := w.Timers(c)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, x := range timers {
		fmt.Fprintf(&b, "timer %s %d %q\n", x.Name, x.Period, x.Payload)
	}
	state, err := w.State(w.t.Context(), c, "")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, x := range state {
		fmt.Fprintf(&b, "state %s %s\n", x.Key, x.Value)
	}
	letters := w.letters(c)
	slices.SortFunc(letters, func(a, b journal.DeadLetterRow) int { return strings.Compare(a.Error, b.Error) })
	for _, l := range letters {
		fmt.Fprintf(&b, "letter %s %s %q %s\n", l.Kind, l.Reason, l.Payload, l.Error)
	}
	return b.String()
}

// What a turn stores counts against the limit store_rate whether or not it changes its
// graph.
func TestATurnThatChangesTheGraphIsChargedForWhatItStores(t *testing.T) {
	charged := map[string]int64{}
	for edit, call := range graphEdits {
		d := newOnDisk(t)
		d.host.on("writer", onMessage(func(t abi.Turn) error {
			if call.Tool != "" {
				args, _ := json.Marshal(call.Args)
				if _, code := t.Tool([]byte(call.Tool), args); code != abi.OK {
					return codeErr(t, code)
				}
			}
			return codeErr(t, t.StateSet([]byte("k"), make([]byte, 30_000)))
		}))
		lead := d.add("lead", "writer", privileged, func(c *deploy.CreatureSpec) { c.Limits.StoreRate = 1000 })
		bridge := d.add("bridge", "sink")
		d.connect(lead, d.add("leaf", "sink"))
		d.connect(lead, bridge)
		d.connect(bridge, d.add("far", "sink"))
		d.serve()
		before := d.Charged(lead)
		d.sendTo(lead, "go")
		d.serve()
		charged[edit] = d.Charged(lead) - before
	}
	for edit, n := range charged {
		if n < charged["no change"] {
			t.Errorf("with %s the creature is charged for %d bytes, but without a change for %d", edit, n, charged["no change"])
		}
	}
}

// A turn that changes the channels of its creature records its sends as the creature made them,
// because the log shows only where they arrived.
func TestATurnThatMovesItsSendsNotesThem(t *testing.T) {
	for edit, call := range graphEdits {
		if call.Tool == "" {
			continue
		}
		t.Run(edit, func(t *testing.T) {
			h := newFakeHost()
			h.on("lead", onMessage(func(t abi.Turn) error {
				for _, call := range []toolCall{call, {"group_channel", args{"action": "unwire", "channel": "work", "creature": "lead", "direction": "send"}}} {
					args, _ := json.Marshal(call.Args)
					if _, code := t.Tool([]byte(call.Tool), args); code != abi.OK {
						return codeErr(t, code)
					}
				}
				return status(t, t.Send(t.Channel([]byte("work")), []byte("dig"), nil))
			}))
			s := newSaved(t, engine.Options{Host: h})
			lead, near, bridge := s.add("lead", "lead", privileged), s.add("near", "sink"), s.add("bridge", "sink")
			s.connect(lead, near, "work")
			s.connect(lead, near, "bond")
			s.connect(lead, s.add("leaf", "sink"), "to leaf")
			s.connect(lead, bridge, "to bridge")
			s.connect(bridge, s.add("far", "sink"), "away")
			s.tell(lead, "go")
			for _, ev := range s.events(lead, journal.EventTurnEnded) {
				var p journal.TurnEndedPayload
				if err := json.Unmarshal(ev.Payload, &p); err != nil {
					t.Fatal(err)
				}
				if ev.Creature == lead && p.Sends > 0 && (p.Notes == nil || len(p.Notes.Sends) != 1 || string(p.Notes.Sends[0].Payload) != "dig") {
					t.Errorf("the turn records %s", ev.Payload)
				}
			}
		})
	}
}

// The messages of a turn carry the name that their sender has after the turn, even if a merge
// has assigned that name.
func TestATurnThatMergesSendsUnderTheNameThatItGets(t *testing.T) {
	h := onWires(operators())
	s := newSaved(t, engine.Options{Host: h})
	listens := func(d *deploy.Deployment) { d.Creatures[1].Module, d.Creatures[1].Wasm = "pass", []byte("pass") }
	elder, younger := s.apply(crew("elder", allowMerge)), s.apply(crew("younger", allowMerge, listens))
	lead := younger.Creatures["creature.lead"]
	merge := toolCall{"group_channel", args{
		"action": "wire", "channel": string(elder.Channels["channel.work"]), "creature": "ann", "direction": "listen", "merge": true,
	}}
	for _, r := range s.ask(lead, merge, toolCall{"send_channel", args{"channel": "work", "payload": "dig"}}) {
		if r.Code != "" {
			t.Fatalf("%s: %s", r.Code, r.Error)
		}
	}
	s.wait()
	now, _ := s.creatureIn(lead)
	if heard := s.state(younger.Creatures["creature.ann"], "heard"); now.Name == "lead" || heard != now.Name+":dig\n" {
		t.Errorf("ann received %q from the creature now named %s", heard, now.Name)
	}
}

// A creature makes a cut in the turn that handles a notification. After a crash, the store still
// knows that the creature was notified.
func TestACutByANotifiedCreatureKeepsTheNotification(t *testing.T) {
	d := newOnDisk(t)
	d.host.exports["watcher"] = []string{abi.ExportGraphChanged}
	told := 0
	d.host.on("watcher", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindGraphChanged {
			return nil
		}
		told++
		d.disk.CutCrash = sim.CrashAfter
		_, code := t.Tool([]byte("group_remove_node"), []byte(`{"creature": "bridge"}`))
		return codeErr(t, code)
	})
	watcher, bridge, far := d.add("watcher", "watcher", privileged), d.add("bridge", "sink"), d.add("far", "sink")
	d.serve()
	d.connect(watcher, bridge)
	d.connect(bridge, far)
	d.serve()
	if told == 0 || !d.disk.Crashed() {
		t.Fatalf("the watcher was notified %d times; crashed: %v", told, d.disk.Crashed())
	}
	d.boot()
	if revision, last := d.Sight(watcher); last != revision {
		t.Errorf("the watcher has seen revision %d, but was notified of %d", revision, last)
	}
}

// A turn that sends to a worker and removes it counts the dead letter, as does a turn
// that does not change the graph.
func TestATurnThatChangesTheGraphCountsItsDeadLetters(t *testing.T) {
	h := newFakeHost()
	h.on("lead", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			return nil
		}
		if code := t.SendTo([]byte("worker"), []byte("dig")); code != abi.OK {
			return codeErr(t, code)
		}
		_, code := t.Tool([]byte("group_remove_node"), []byte(`{"creature": "worker"}`))
		return codeErr(t, code)
	})
	w := newWorld(t, engine.Options{Host: h})
	lead := w.add("lead", "lead", func(c *deploy.CreatureSpec) { c.Privileged = true })
	w.connect(lead, w.add("worker", "sink"), "work")
	if _, err := w.SendTo(t.Context(), lead, engine.Outgoing{}); err != nil {
		t.Fatal(err)
	}
	w.wait()
	for _, c := range w.status()[0].Creatures {
		if c.ID == lead && (c.Counters.DeadLetters != 1 || c.Counters.Sent != 0) {
			t.Errorf("the lead has counted %+v, want one dead letter", c.Counters)
		}
	}
	if n := w.DeadLetterCount(); n != 1 {
		t.Errorf("%d dead letters, want 1", n)
	}
}

// The counters of a creature include every message that it sent: on channels, to creatures, and
// as requests.
func TestSentMessagesAreCounted(t *testing.T) {
	h := newFakeHost()
	h.on("sender", func(turn abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			return nil
		}
		turn.Send(turn.Channel([]byte("news")), []byte("one"), nil)
		turn.SendTo([]byte("b"), []byte("two"))
		return nil
	})
	w := newWorld(t, engine.Options{Host: h})
	a, b := w.add("a", "sender"), w.add("b", "record")
	w.connect(a, b, "news")
	if _, err := w.SendTo(t.Context(), a, engine.Outgoing{Payload: []byte("go")}); err != nil {
		t.Fatal(err)
	}
	w.wait()
	if c, _ := w.creature(a); c.Counters.Sent != 2 {
		t.Errorf("a has sent %d messages, want 2", c.Counters.Sent)
	}
	if c, _ := w.creature(b); c.Counters.Sent != 0 {
		t.Errorf("b has sent %d messages, want none", c.Counters.Sent)
	}
}
