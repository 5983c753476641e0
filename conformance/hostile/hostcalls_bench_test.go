package hostile

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// BenchmarkHostcalls measures the time of a unit of fuel when it is spent on
// one repeated hostcall, including the commit of the turn: with small and
// large arguments, found and not found, accepted and refused.
//
//	go test -run - -bench Hostcalls -benchtime 5x ./conformance/hostile
//
// It provides the table in docs/explanation/containment.md. A line far above
// the others is a hostcall without a price for some of its work.
func BenchmarkHostcalls(b *testing.B) {
	for _, c := range hostcallCosts() {
		b.Run(c.name, func(b *testing.B) { c.measure(b) })
	}
}

// A hostcallCost is a hostcall with certain arguments.
type hostcallCost struct {
	name  string
	call  string // of the contract
	times int32  // in a turn
	args  []code
	// before runs once, in a separate turn, with the same memory.
	before func(m *binaryModule, imported map[string]uint32) code
	// first runs in the turn itself, before the calls.
	first func(imported map[string]uint32) code
	// neighbours are other creatures in the graph, and as many channels on which the
	// creature may send.
	neighbours int
}

// Addresses in the guest of a measurement: a call counter, as text that
// differs each time, and some bytes.
const (
	countAt  = 64
	shortAt  = 128
	bytesAt  = 4096
	mebibyte = 1 << 20
)

// counter is the local that counts the calls.
const counter = 2

func (c *hostcallCost) build() []byte {
	m := newCreature(400)
	imported := map[string]uint32{}
	for _, f := range abi.Functions {
		imported[f.Name] = m.hostcall(f.Name)
	}
	m.data(shortAt, []byte("name\x00value\x00{}group_statussubject"))
	m.data(bytesAt, []byte("x"))
	first := code{}
	if c.first != nil {
		first = c.first(imported)
	}
	var before code
	if c.before != nil {
		before = c.before(m, imported)
	}
	return m.finishWith([]locals{{1, typeI32}},
		localGet(1), when(i32(bytesAt), i32('x'), i32(16*mebibyte), memoryFill, before, i32(0), ret),
		first, i32(0), localSet(counter),
		countUp(c.times, seq(c.args...), call(imported[c.call]), drop),
	)
}

// countUp repeats body that many times, with the number of the round as 4
// characters at countAt.
func countUp(times int32, body ...code) code {
	var digits code
	for i := range 4 {
		digits = append(digits, seq(i32(int32(countAt+i)),
			localGet(counter), i32(int32(6*(3-i))), code{0x76}, i32(63), i32and, i32('0'), i32add, code{0x3a, 0, 0})...)
	}
	return loop(
		digits, seq(body...),
		localGet(counter), i32(1), i32add, localTee(counter), i32(times), code{0x49}, brIf(0),
	)
}

// measure adds a creature, runs its preparation, and measures its turns. The
// limits are so large that only those named by a case refuse a call.
func (c *hostcallCost) measure(b *testing.B) {
	ctx := b.Context()
	t, err := terrarium.New(ctx, terrarium.Options{Workers: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := t.Close(context.WithoutCancel(ctx)); err != nil {
			b.Error(err)
		}
	})
	const many = 1 << 30
	limits := abi.Limits{
		Fuel: muchFuel, Deadline: muchTime, Sends: many, SendBytes: many, Output: many, LogLines: many, LogBytes: many,
		State: many, StateWrites: many, StateKey: 64 << 10, Calls: many, Timers: 1000, Tools: many,
	}
	spec := deploy.CreatureSpec{Name: "subject", Wasm: c.build(), Privileged: true, Limits: limits, Config: json.RawMessage(`{"k":"v"}`)}
	added, err := t.AddCreature(ctx, spec)
	if err != nil {
		b.Fatal(err)
	}
	c.surround(b, t, added.Creature)
	sub := t.Subscribe(engine.Filter{Kinds: []journal.EventKind{journal.EventTurnStarted, journal.EventTurnEnded, journal.EventTurnFailed}, Creatures: []journal.CreatureID{added.Creature}}, 64)
	defer sub.Close()
	turn := func(payload string) (time.Duration, int64) {
		sent, err := t.SendTo(ctx, added.Creature, engine.Outgoing{Payload: []byte(payload)})
		if err != nil {
			b.Fatal(err)
		}
		return measuredTurn(ctx, b, sub, sent.Message)
	}
	turn("prepare")
	var took time.Duration
	var fuel int64
	for b.Loop() {
		d, units := turn("")
		took, fuel = took+d, fuel+units
	}
	b.ReportMetric(float64(took.Nanoseconds())/float64(fuel), "ns/unit")
	b.ReportMetric(float64(fuel)/float64(b.N)/float64(c.times), "units/call")
	b.ReportMetric(0, "ns/op")
}

// surround adds the neighbours.
func (c *hostcallCost) surround(b *testing.B, t *terrarium.Terrarium, subject journal.CreatureID) {
	err := t.Batch(b.Context(), func(batch *engine.Batch) error {
		for i := range c.neighbours {
			name := fmt.Sprint("neighbour", i)
			if _, _, err := batch.AddCreature(b.Context(), deploy.CreatureSpec{Name: name, Module: "builtin:relay", Join: batch.GraphOf(subject)}); err != nil {
				return err
			}
			ch, err := batch.AddChannel(b.Context(), batch.GraphOf(subject), "channel"+name, "")
			if err != nil {
				return err
			}
			if _, err := batch.Do(b.Context(), topology.SetEdge{Creature: subject, Channel: ch.Channel, Direction: journal.Send, On: true}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// measuredTurn waits for the end of a turn and returns how long it took, and its
// fuel.
func measuredTurn(ctx context.Context, b *testing.B, sub *engine.Subscription, message journal.EventID) (time.Duration, int64) {
	var began int64
	for {
		ob, err := sub.Next(ctx)
		if err != nil {
			b.Fatal(err)
		}
		ev := &ob.Event
		switch {
		case ev.Cause != message:
		case ev.Kind == journal.EventTurnStarted:
			began = ev.Time
		case ev.Kind == journal.EventTurnFailed:
			b.Fatal(string(ev.Payload))
		default:
			var p journal.TurnEndedPayload
			if err := json.Unmarshal(ev.Payload, &p); err != nil {
				b.Fatal(err)
			}
			return time.Duration(ev.Time - began), p.Fuel
		}
	}
}

func hostcallCosts() []hostcallCost {
	n := func(v ...int32) (out []code) {
		for _, x := range v {
			out = append(out, i32(x))
		}
		return out
	}
	with := func(args []code, more ...code) []code { return append(args, more...) }
	fillState := func(keys int32) func(*binaryModule, map[string]uint32) code {
		return func(_ *binaryModule, imported map[string]uint32) code {
			return seq(i32(0), localSet(counter),
				countUp(keys, i32(countAt), i32(4), i32(countAt), i32(4), call(imported["state_set"]), drop))
		}
	}
	fillTimers := func(_ *binaryModule, imported map[string]uint32) code {
		return seq(i32(0), localSet(counter),
			countUp(256, i32(countAt), i32(4), i64(1<<40), i64(0), i32(0), i32(0), call(imported["timer_set"]), drop))
	}
	const nowhere = 1 << 30
	computes := func(times int32, body ...code) func(map[string]uint32) code {
		return func(map[string]uint32) code {
			return seq(i32(0), localSet(counter), countUp(times, body...))
		}
	}
	denormal, three := code{0x44, 0x2b, 0xe6, 0x70, 0x8b, 0x68, 0x12, 0, 0}, code{0x44, 0, 0, 0, 0, 0, 0, 8, 0x40}
	const divide, store = 0xa3, 0x39
	division := seq(i32(0), denormal, three, code{divide, store, 3, 0})
	return []hostcallCost{
		// Not hostcalls, but references for them.
		{name: "guest/additions", call: "now", times: 1, first: computes(200_000, i32(16), i32(0), repeat(100, localGet(counter), i32add), i32Store())},
		{name: "guest/divisions of denormal numbers", call: "now", times: 1, first: computes(20_000, repeat(100, division))},
		{name: "now", call: "now", times: 100_000},
		{name: "fuel_left", call: "fuel_left", times: 100_000},
		{name: "feature", call: "feature", times: 100_000, args: n(0)},
		{name: "feature/unknown", call: "feature", times: 100_000, args: n(99)},
		{name: "size/payload", call: "size", times: 100_000, args: n(0)},
		{name: "size/unknown", call: "size", times: 100_000, args: n(99)},
		{name: "size/detail", call: "size", times: 100_000, args: n(5)},
		{name: "size/awareness_json", call: "size", times: 100_000, args: n(7)},
		{name: "size/awareness_markdown", call: "size", times: 100_000, args: n(8)},
		{name: "size/awareness_revision", call: "size", times: 100_000, args: n(12)},
		{name: "size/awareness_json of 300", call: "size", times: 1, args: n(7), neighbours: 300},
		{name: "size/awareness_markdown of 300", call: "size", times: 1, args: n(8), neighbours: 300},
		{name: "size/awareness_json of 300 again", call: "size", times: 1000, args: n(7), neighbours: 300},
		{name: "size/message_id", call: "size", times: 100_000, args: n(3)},
		{name: "size/error", call: "size", times: 100_000, args: n(10), first: func(im map[string]uint32) code {
			return seq(i32(shortAt), i32(4), i32(0), i32(0), call(im["state_get"]), drop)
		}},
		{name: "read/payload", call: "read", times: 100_000, args: n(0, 0, bytesAt, 64)},
		{name: "read/outside", call: "read", times: 100_000, args: n(0, 0, nowhere, 64)},
		{name: "read/result 1 MiB", call: "read", times: 1000, args: n(9, 0, bytesAt, mebibyte), first: func(im map[string]uint32) code {
			return seq(i32(shortAt), i32(4), i32(bytesAt), i32(mebibyte), call(im["state_set"]), drop,
				i32(shortAt), i32(4), i32(0), i32(0), call(im["state_get"]), drop)
		}},
		{name: "config/found", call: "config", times: 100_000, args: n(shortAt+4, 0, bytesAt, 64)},
		{name: "config/missing", call: "config", times: 100_000, args: n(countAt, 4, bytesAt, 64)},
		{name: "config/64 KiB key", call: "config", times: 10_000, args: n(bytesAt, 64<<10, 0, 0)},
		{name: "config/16 MiB key", call: "config", times: 100, args: n(bytesAt, 16<<20, 0, 0)},
		{name: "channel/new", call: "channel", times: 4000, args: n(countAt, 4)},
		{name: "channel/known", call: "channel", times: 100_000, args: n(shortAt, 4)},
		{name: "channel/16 MiB", call: "channel", times: 100, args: n(bytesAt, 16<<20)},
		{name: "send/nowhere", call: "send", times: 100_000, args: n(-1, bytesAt, 16, shortAt, 11)},
		{name: "send/100 channels", call: "send", times: 500, args: n(-1, bytesAt, 16, 0, 0), neighbours: 100},
		{name: "send/1 MiB nowhere", call: "send", times: 1000, args: n(-1, bytesAt, mebibyte, 0, 0)},
		{name: "send/malformed headers", call: "send", times: 100, args: n(-1, bytesAt, 0, bytesAt, mebibyte)},
		{name: "send/bad handle", call: "send", times: 100_000, args: n(7777, bytesAt, 16, 0, 0)},
		{name: "send_to/self", call: "send_to", times: 500, args: n(shortAt+25, 7, bytesAt, 16)},
		{name: "send_to/missing", call: "send_to", times: 100_000, args: n(countAt, 4, bytesAt, 16)},
		{name: "send_to/16 MiB name", call: "send_to", times: 100, args: n(bytesAt, 16<<20, 0, 0)},
		{name: "request/missing", call: "request", times: 100_000, args: with(n(countAt, 4, bytesAt, 16), i64(1), i64(1))},
		{name: "reply/denied", call: "reply", times: 100_000, args: n(bytesAt, 16)},
		{name: "reply/denied 1 MiB", call: "reply", times: 1000, args: n(bytesAt, mebibyte)},
		{name: "output/1 byte", call: "output", times: 100_000, args: n(bytesAt, 1)},
		{name: "output/1 MiB", call: "output", times: 32, args: n(bytesAt, mebibyte)},
		{name: "state_get/missing", call: "state_get", times: 100_000, args: n(shortAt, 4, 0, 0), before: fillState(360_000)},
		{name: "state_get/found", call: "state_get", times: 100_000, args: n(countAt, 4, bytesAt, 16), before: fillState(360_000)},
		{name: "state_get/64 KiB key", call: "state_get", times: 10_000, args: n(bytesAt, 64<<10, 0, 0)},
		{name: "state_get/16 MiB key", call: "state_get", times: 100, args: n(bytesAt, 16<<20, 0, 0)},
		{name: "state_get/512 byte key", call: "state_get", times: 100_000, args: n(bytesAt, 512, 0, 0), before: fillState(360_000)},
		{name: "state_set/new", call: "state_set", times: 4096, args: n(countAt, 4, bytesAt, 16)},
		{name: "state_set/again", call: "state_set", times: 100_000, args: n(shortAt, 4, bytesAt, 16)},
		{name: "state_set/1 MiB", call: "state_set", times: 500, args: n(shortAt, 4, bytesAt, mebibyte)},
		{name: "state_set/too large", call: "state_set", times: 500, args: n(shortAt, 4, bytesAt, 2*mebibyte)},
		{name: "state_delete/missing", call: "state_delete", times: 100_000, args: n(shortAt, 4)},
		{name: "state_list/none", call: "state_list", times: 100_000, args: n(shortAt, 4, 0, 0), before: fillState(360_000)},
		{name: "state_list/360,000 keys", call: "state_list", times: 3, args: n(0, 0, 0, 0), before: fillState(360_000)},
		{name: "timer_set/one of 256", call: "timer_set", times: 10_000, args: with(n(shortAt, 4), i64(1<<40), i64(0), i32(bytesAt), i32(16)), before: fillTimers},
		{name: "timer_set/64 KiB", call: "timer_set", times: 1000, args: with(n(shortAt, 4), i64(1<<40), i64(0), i32(bytesAt), i32(64<<10))},
		{name: "timer_set/too large", call: "timer_set", times: 1000, args: with(n(shortAt, 4), i64(1<<40), i64(0), i32(bytesAt), i32(2*mebibyte))},
		{name: "timer_cancel/missing", call: "timer_cancel", times: 10_000, args: n(shortAt, 4), before: fillTimers},
		{name: "tool/missing", call: "tool", times: 1000, args: n(countAt, 4, shortAt+11, 2)},
		{name: "tool/group_status", call: "tool", times: 1000, args: n(shortAt+13, 12, shortAt+11, 2)},
		{name: "tool/group_status of 300", call: "tool", times: 50, args: n(shortAt+13, 12, shortAt+11, 2), neighbours: 300},
		{name: "tool/1 MiB of no JSON", call: "tool", times: 50, args: n(shortAt+13, 12, bytesAt, mebibyte-64)},
		{name: "tool/2 MiB", call: "tool", times: 50, args: n(shortAt+13, 12, bytesAt, 2*mebibyte)},
		{name: "http/absent", call: "http", times: 100_000, args: with(n(bytesAt, 16, bytesAt, 16), i64(1))},
		{name: "log/1 byte", call: "log", times: 20_000, args: n(1, bytesAt, 1)},
		{name: "log/64 KiB", call: "log", times: 100, args: n(3, bytesAt, 64<<10)},
		{name: "log/bad level", call: "log", times: 100_000, args: n(9, bytesAt, 1)},
		{name: "random/8 bytes", call: "random", times: 100_000, args: n(bytesAt, 8)},
		{name: "random/1 MiB", call: "random", times: 100, args: n(bytesAt, mebibyte)},
	}
}

// Every hostcall of the contract is measured.
func TestEveryHostcallIsMeasured(t *testing.T) {
	measured := map[string]bool{}
	for _, c := range hostcallCosts() {
		measured[c.call] = true
	}
	for _, f := range abi.Functions {
		if !measured[f.Name] {
			t.Errorf("there is no measurement of %s", f.Name)
		}
	}
}
