package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// ticking adds a creature with that many timers, which ring every millisecond.
func (d *onDisk) ticking(timers int, limits abi.Limits) journal.CreatureID {
	d.Helper()
	d.host.on("ticker", func(t abi.Turn, kind abi.Kind) error {
		if payload, _ := t.Source(abi.SourcePayload); string(payload) == "trap" {
			return &abi.Error{Code: abi.Trapped, Message: "unreachable"}
		}
		for i := range timers {
			if kind != abi.KindMessage {
				break
			}
			if code := t.TimerSet(fmt.Appendf(nil, "t%d", i), 0, time.Millisecond, make([]byte, 4000)); code != abi.OK {
				return codeErr(t, code)
			}
		}
		return nil
	})
	c := d.add("ticker", "ticker", func(s *deploy.CreatureSpec) {
		s.Limits = limits
		s.Restart = deploy.RestartPolicy{Max: 1, Within: time.Hour}
	})
	d.sendTo(c, "go")
	d.serve()
	return c
}

// rung counts the timers that have been delivered.
func (d *onDisk) rung() (n int) {
	for _, ev := range d.disk.Log() {
		if ev.Kind == journal.EventTimer {
			n++
		}
	}
	return n
}

// run advances the clock by a number of milliseconds, one at a time.
func (d *onDisk) run(milliseconds int) {
	for range milliseconds {
		d.clock.Advance(time.Millisecond)
		d.Ring()
		d.serve()
	}
}

func TestDueTimersWaitForRoomInTheStore(t *testing.T) {
	d := newOnDisk(t)
	d.ticking(8, abi.Limits{})
	d.run(5)
	d.disk.Flush()
	d.disk.Bound, d.disk.Broken = 20, true
	d.run(200)
	before := d.rung()
	d.run(200)
	if now := d.rung(); now != before {
		t.Errorf("%d timers have fired while the store had no room, want none", now-before)
	}
	d.disk.Broken = false
	d.run(100)
	if now := d.rung(); now < before+8 {
		t.Errorf("%d timers have fired since the store has room again, want all", now-before)
	}
}

func TestTimersRingNoOftenerThanTheirLimit(t *testing.T) {
	d := newOnDisk(t)
	c := d.ticking(8, abi.Limits{TimerRate: 20})
	d.run(3000)
	if n := d.rung(); n < 60 || n > 81 {
		t.Errorf("%d timers have fired in three seconds, want 20 a second, and at most a second's worth more", n)
	}
	d.told(c, "timer_rate")
}

func TestACreatureThatStoresTooMuchWaits(t *testing.T) {
	const messages, size, rate = 40, 1000, 2000
	d := newOnDisk(t)
	c := d.add("hog", "record", func(s *deploy.CreatureSpec) { s.Limits.StoreRate = rate })
	for i := range messages {
		d.sendTo(c, fmt.Sprintf("%02d%s", i, strings.Repeat("x", size)))
	}
	heard := func() int { return strings.Count(d.state(c, "heard"), "\n") }
	d.serve()
	first := heard()
	if first == 0 || first == messages {
		t.Errorf("%d of %d messages were handled at once", first, messages)
	}
	if !d.Busy() {
		t.Error("a creature that waits counts as idle")
	}
	d.told(c, "store_rate")
	for range 10_000 {
		if heard() == messages {
			return
		}
		d.clock.Advance(time.Second)
		d.Ring()
		d.serve()
	}
	t.Errorf("only %d of %d messages have been handled in the end", heard(), messages)
}

// A creature that changes its graph in each turn waits after each, as long as the storage is
// behind. Turns that change nothing, and other creatures, do not wait.
func TestACreatureThatChangesItsGraphWaitsForTheStorage(t *testing.T) {
	d := newOnDisk(t)
	turns := map[string]int{}
	for _, name := range []string{"editor", "bystander"} {
		d.host.on(name, onMessage(func(t abi.Turn) error {
			turns[name]++
			if name == "bystander" {
				return nil
			}
			args := fmt.Appendf(nil, `{"action":"create","name":"c%d"}`, turns[name])
			if _, code := t.Tool([]byte("group_channel"), args); code != abi.OK {
				return codeErr(t, code)
			}
			return nil
		}))
	}
	editor, bystander := d.add("editor", "editor", privileged), d.add("bystander", "bystander")
	send := func(n int) {
		for range n {
			d.sendTo(editor, "go")
			d.sendTo(bystander, "go")
		}
		d.serve()
	}
	if send(3); turns["editor"] != 3 || turns["bystander"] != 3 {
		t.Fatalf("while no storage is behind, the turns are %v", turns)
	}
	d.disk.Hasty = true
	if send(3); turns["editor"] != 4 || turns["bystander"] != 6 {
		t.Errorf("while the storage is behind, the turns are %v, want one more of the editor", turns)
	}
	d.run(1999)
	if turns["editor"] != 4 {
		t.Error("the editor did not wait for two seconds")
	}
	d.run(2)
	if turns["editor"] != 5 {
		t.Error("the editor waits for more than two seconds")
	}
	d.disk.Hasty = false
	d.run(2001)
	if turns["editor"] != 6 {
		t.Errorf("once the storage has caught up, the turns are %v", turns)
	}
}

// told checks that a creature's log and status report that a limit makes it wait.
func (d *onDisk) told(c journal.CreatureID, limit string) {
	d.Helper()
	lines := 0
	for _, ev := range d.disk.Log() {
		if ev.Kind == journal.EventLog && ev.Creature == c && strings.Contains(string(ev.Payload), limit) {
			lines++
		}
	}
	if lines != 1 {
		d.Errorf("%d lines in the log name %s, want one", lines, limit)
	}
	status, err := d.Status("")
	if err != nil {
		d.Fatal(err)
	}
	if n := status[0].Creatures[0].Counters.Throttled; n == 0 {
		d.Error("the status does not say that the creature has waited")
	}
}

// The timers of a creature that does not run do not fill its inbox: each fires once when
// it runs again, even in the next engine.
func TestTimersOfACreatureThatDoesNotRunWait(t *testing.T) {
	const timers = 8
	halts := map[string]func(d *onDisk, c journal.CreatureID){
		"stopped": func(d *onDisk, c journal.CreatureID) { d.change(topology.SetStopped{ID: c, Stopped: true}) },
		"quarantined": func(d *onDisk, c journal.CreatureID) {
			d.sendTo(c, "trap")
			d.run(200) // one more attempt
		},
		"stopped, in the next engine": func(d *onDisk, c journal.CreatureID) {
			d.change(topology.SetStopped{ID: c, Stopped: true})
			d.disk.Flush()
			d.reboot()
		},
	}
	for how, halt := range halts {
		t.Run(how, func(t *testing.T) {
			d := newOnDisk(t)
			c := d.ticking(timers, abi.Limits{})
			d.run(5)
			halt(d, c)
			before := d.rung()
			if before == 0 {
				t.Fatal("no timer has fired")
			}
			d.run(200)
			if now := d.rung(); now != before {
				t.Errorf("%d timers have fired while the creature did not run", now-before)
			}
			if set, err := d.Timers(c); err != nil || len(set) != timers {
				t.Errorf("%d timers are set, %v; want %d", len(set), err, timers)
			}
			d.change(topology.SetStopped{ID: c, Stopped: true}, topology.SetStopped{ID: c})
			d.Ring()
			d.serve()
			if now := d.rung(); now != before+timers {
				t.Errorf("%d timers have fired when the creature runs again, want each once", now-before)
			}
			d.run(1)
			if now := d.rung(); now != before+2*timers {
				t.Errorf("%d timers have fired a millisecond later, want each once more", now-before-timers)
			}
		})
	}
}
