package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// These tests reproduce faults that the simulator has found in graphs without a store that
// become part of a graph with one.

// unlogged applies a deployment without a store whose creatures all listen and
// send on one channel.
func (d *onDisk) unlogged(creatures ...deploy.CreatureSpec) (ids []journal.CreatureID, ch journal.ChannelID) {
	d.Helper()
	none := journal.Volatile
	dep := &deploy.Deployment{Name: "unlogged", Session: deploy.SessionSettings{Durability: &none}}
	dep.Channels = []deploy.ChannelSpec{{Address: "channel.in", Name: "in"}}
	for _, c := range creatures {
		c.Address = "creature." + c.Name
		c.Listen = []deploy.WireSpec{{Channel: "channel.in"}}
		c.Send = []deploy.WireSpec{{Channel: "channel.in"}}
		dep.Creatures = append(dep.Creatures, c)
	}
	a, err := d.Apply(d.T.Context(), dep)
	if err != nil {
		d.Fatal(err)
	}
	for _, c := range dep.Creatures {
		ids = append(ids, a.Creatures[c.Address])
	}
	return ids, a.Channels["channel.in"]
}

// enter connects a creature of a graph without a store to one that has a store.
func (d *onDisk) enter(c journal.CreatureID) {
	d.Helper()
	d.connect(c, d.add("keeper", "sink"))
	if d.Volatile(journal.InboxOf(c)) {
		d.Fatal("the graph still has no store")
	}
}

func TestAReplyFindsARequestFromBeforeTheGraphHadALog(t *testing.T) {
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprintf("crash %v", crash), func(t *testing.T) {
			d := newOnDisk(t)
			d.host.on("asker", asker)
			d.host.on("replier", func(t abi.Turn, kind abi.Kind) error {
				if kind == abi.KindRequest {
					return codeErr(t, t.Reply([]byte("yes")))
				}
				return nil
			})
			ask, reply := spec("ask", "asker"), spec("reply", "replier")
			ask.Config = []byte(`{"ask": "reply"}`)
			reply.Stopped = true
			ids, _ := d.unlogged(ask, reply)
			d.sendTo(ids[0], "go")
			d.serve()
			d.enter(ids[0])
			if crash {
				d.reboot()
			}
			d.change(topology.SetStopped{ID: ids[1]})
			d.serve()
			if got := d.state(ids[0], "heard"); got != "2 ok yes\n" {
				t.Errorf("the asker heard %q", got)
			}
			if open := d.Open(ids[0]); len(open) > 0 {
				t.Errorf("still open: %+v", open)
			}
		})
	}
}

func TestDeadLettersComeAlongIntoALog(t *testing.T) {
	d := newOnDisk(t)
	d.host.on("fails", func(_ abi.Turn, kind abi.Kind) error {
		if kind == abi.KindMessage {
			return &abi.Error{Code: abi.Trapped, Message: "as told"}
		}
		return nil
	})
	a, b := spec("a", "sink"), spec("b", "fails")
	b.Restart.Attempts = 1
	ids, ch := d.unlogged(a, b)
	d.sendTo(ids[1], "one")
	d.serve()
	check := func(when string) {
		t.Helper()
		g, err := d.FindGraph(string(ids[1]))
		if err != nil {
			t.Fatal(err)
		}
		if l := d.letters(g); len(l) != 1 || string(l[0].Payload) != "one" || l[0].Reason != "trapped" {
			t.Errorf("%s: the dead letters are %+v, want one", when, l)
		}
	}
	check("before")
	d.change(topology.RemoveChannel{ID: ch})
	check("after a split")
	d.enter(ids[1])
	check("in the log")
	d.reboot()
	check("after a crash")
}

func TestWhatAMailboxHadNoRoomForStaysADeadLetter(t *testing.T) {
	for _, policy := range []deploy.Overflow{deploy.OverflowDeadLetter, deploy.OverflowDropOldest} {
		for _, crash := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, crash %v", policy, crash), func(t *testing.T) {
				d := newOnDisk(t)
				failed := false
				d.host.on("fails once", func(tn abi.Turn, kind abi.Kind) error {
					if kind == abi.KindMessage && !failed {
						failed = true
						return &abi.Error{Code: abi.Trapped, Message: "as told"}
					}
					return d.host.behaviours["record"](tn, kind)
				})
				narrow, wide := spec("narrow", "fails once"), spec("wide", "record")
				narrow.Overflow, narrow.Limits.Mailbox = policy, 2
				wide.Stopped = true
				ids, ch := d.unlogged(narrow, wide)
				d.send(ch, "0")
				d.serve() // fails, and will be tried again
				for _, payload := range []string{"1", "2", "3"} {
					d.send(ch, payload)
				}
				d.enter(ids[0])
				if crash {
					d.reboot()
				}
				d.clock.Advance(time.Minute)
				d.Ring()
				d.change(topology.SetStopped{ID: ids[1]})
				d.send(ch, "4")
				d.serve()
				want := "in:0\nin:1\nin:2\nin:4\n"
				if policy == deploy.OverflowDropOldest {
					want = "in:0\nin:2\nin:3\nin:4\n"
				}
				if got := d.state(ids[0], "heard"); got != want {
					t.Errorf("the narrow creature heard %q, want %q", got, want)
				}
				if got := d.state(ids[1], "heard"); got != "in:0\nin:1\nin:2\nin:3\nin:4\n" {
					t.Errorf("the wide creature heard %q", got)
				}
			})
		}
	}
}

// The window drops messages after the one that will be tried again, so that the cursor is
// beyond that message.
func TestADeliveryToBeTriedAgainIsNotForgottenWithItsEdge(t *testing.T) {
	d := newOnDisk(t)
	failed := false
	d.host.on("fails once", func(tn abi.Turn, kind abi.Kind) error {
		if kind == abi.KindMessage && !failed {
			failed = true
			return &abi.Error{Code: abi.Trapped, Message: "as told"}
		}
		return d.host.behaviours["record"](tn, kind)
	})
	a := spec("a", "fails once")
	a.Overflow, a.Limits.Mailbox = deploy.OverflowDropOldest, 1
	ids, ch := d.unlogged(a)
	d.send(ch, "0")
	d.serve()
	d.send(ch, "1")
	d.sendTo(ids[0], "2") // drops an earlier message
	d.change(topology.SetEdge{Creature: ids[0], Channel: ch, Direction: journal.Listen})
	d.enter(ids[0])
	d.reboot()
	d.serve()
	if got := d.state(ids[0], "heard"); got != "in:0\na:2\n" {
		t.Errorf("the creature heard %q", got)
	}
}

func TestAMessageEntersTheLogsOfTwoGraphsOnce(t *testing.T) {
	for _, fail := range []bool{false, true} {
		t.Run(fmt.Sprintf("fail %v", fail), func(t *testing.T) {
			d := newOnDisk(t)
			a, b := spec("a", "record"), spec("b", "record")
			a.Stopped, b.Stopped = true, true
			ids, ch := d.unlogged(a, b)
			d.send(ch, "one")
			keeper := d.add("keeper", "sink")
			change := []topology.Op{
				topology.Connect{From: ids[0], To: keeper},
				topology.SetEdge{Creature: ids[0], Channel: ch, Direction: journal.Listen},
				topology.SetEdge{Creature: ids[0], Channel: ch, Direction: journal.Send},
			}
			if fail { // the second of two cuts
				d.disk.SkipCuts, d.disk.FailCuts = 1, 1
				if _, err := d.Change(t.Context(), change...); abi.CodeOf(err) != abi.Storage {
					t.Fatalf("the change returns %v, want storage", err)
				}
				if !d.Volatile(ch) {
					t.Error("the graph has a store although the change has failed")
				}
				live := 0
				for _, l := range d.disk.Sessions() {
					if l {
						live++
					}
				}
				if live != 1 {
					t.Errorf("%d sessions are live, want 1", live)
				}
			}
			d.change(change...)
			d.reboot()
			for _, id := range ids {
				d.change(topology.SetStopped{ID: id})
			}
			d.serve()
			for _, id := range ids {
				if got := d.state(id, "heard"); got != "in:one\n" {
					t.Errorf("%s heard %q", id, got)
				}
			}
			d.connect(ids[0], ids[1])
			if report := d.disk.Report(); len(report) > 0 {
				t.Errorf("after the merge, the disk reports damage: %q", report)
			}
		})
	}
}

// A message waits in two graphs without a store, because they were one graph. If both entered a
// log, it would have two ids, and would be delivered twice after a merge.
func TestAMessageThatAnotherGraphHasLoggedEntersNoOtherLog(t *testing.T) {
	d := newOnDisk(t)
	a, b := spec("a", "record"), spec("b", "record")
	a.Stopped, b.Stopped = true, true
	ids, ch := d.unlogged(a, b)
	d.send(ch, "one")
	d.change(topology.SetEdge{Creature: ids[0], Channel: ch, Direction: journal.Listen}, topology.SetEdge{Creature: ids[0], Channel: ch, Direction: journal.Send})
	d.enter(ids[0])
	keeper := d.add("keeper", "sink")
	if _, err := d.Change(t.Context(), topology.Connect{From: ids[1], To: keeper}); abi.CodeOf(err) != abi.Unavailable {
		t.Fatalf("the change returns %v, want unavailable", err)
	}
	if !d.Volatile(ch) {
		t.Error("the graph has a store although the change was refused")
	}
	d.change(topology.SetStopped{ID: ids[1]})
	d.serve()
	d.enter(ids[1])
	d.connect(ids[0], ids[1])
	d.reboot()
	d.change(topology.SetStopped{ID: ids[0]})
	d.serve()
	for _, id := range ids {
		if got := d.state(id, "heard"); got != "in:one\n" {
			t.Errorf("%s heard %q", id, got)
		}
	}
	if report := d.disk.Report(); len(report) > 0 {
		t.Errorf("after the merge, the disk reports damage: %q", report)
	}
}

func TestNobodyWaitsForWhatNeverWasInALog(t *testing.T) {
	d := newOnDisk(t)
	ids, ch := d.unlogged(spec("a", "sink"))
	d.send(ch, "0")
	d.serve()
	d.enter(ids[0])
	r, err := d.Read(ch, "out", engine.ReaderOptions{FromStart: true})
	if err != nil {
		t.Fatal(err)
	}
	in, some, err := d.Poll(t.Context(), r)
	if missed := missedOf(err); some || missed == nil || missed.From != 1 || missed.To != 1 {
		t.Fatalf("the reader reads %+v, %v; want an error that message 1 was missed", in, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.WaitRead(ctx); err != nil {
		t.Errorf("WaitRead: %v", err)
	}
}
