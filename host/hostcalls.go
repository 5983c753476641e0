package host

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/seed47132306/terrarium/abi"
)

// A hostcall gets its arguments in wazero's stack form and returns the result.
// It must not panic on any argument.
type hostcall func(c *call, p []uint64) int64

// hostcalls holds the implementations of abi.Functions by name.
var hostcalls = map[string]hostcall{
	"read":         hostRead,
	"size":         hostSize,
	"feature":      hostFeature,
	"config":       lookup("config", abi.Turn.Config),
	"channel":      hostChannel,
	"send":         hostSend,
	"send_to":      pair("send_to", abi.Turn.SendTo),
	"request":      hostRequest,
	"reply":        single("reply", abi.Turn.Reply),
	"output":       hostOutput,
	"state_get":    lookup("state_get", abi.Turn.StateGet),
	"state_set":    pair("state_set", abi.Turn.StateSet),
	"state_delete": remove("state_delete", abi.Turn.StateDelete),
	"state_list":   hostStateList,
	"timer_set":    hostTimerSet,
	"timer_cancel": remove("timer_cancel", abi.Turn.TimerCancel),
	"tool":         hostTool,
	"http":         hostHTTP,
	"log":          hostLog,
	"now":          func(c *call, _ []uint64) int64 { return c.now() },
	"random":       hostRandom,
	"fuel_left":    hostFuelLeft,
}

// ownFunctions returns the functions of the contract.
func ownFunctions() map[string]importable {
	m := map[string]importable{}
	for i := range abi.Functions {
		f := &abi.Functions[i]
		m[f.Name] = importable{signatureOf(f), bind(f, hostcalls[f.Name])}
	}
	return m
}

// bind wraps a hostcall of the table as a function that guests import.
func bind(f *abi.Function, h hostcall) func(*call, []uint64) {
	personal := f.Name != "now" && f.Name != "random"
	return func(c *call, stack []uint64) {
		defer c.contain()
		c.personal = c.personal || personal
		c.calling = f.Name
		var result int64
		if code := c.admit(f); code != abi.OK {
			result = int64(code.Status())
		} else {
			result = h(c, stack)
		}
		c.settle()
		if f.Result == abi.I32 {
			stack[0] = api.EncodeI32(int32(result))
		} else {
			stack[0] = api.EncodeI64(result)
		}
	}
}

// badArgument is the result of a hostcall whose error text view has stored.
const badArgument = -int64(abi.InvalidArgument)

func hostRead(c *call, p []uint64) int64 {
	offset := int32(p[1])
	if offset < 0 {
		return c.invalid("read: the offset %d is negative", offset)
	}
	dst, ok := c.view("read", p[2], p[3])
	if !ok {
		return badArgument
	}
	if text, own := c.ownSource(abi.Source(int32(p[0]))); own {
		return c.copied(copy(dst, text[min(int(offset), len(text)):]))
	}
	src, status := c.source("read", int32(p[0]))
	if status < 0 {
		return status
	}
	return c.copied(copy(dst, src[min(int(offset), len(src)):]))
}

// copied charges for n bytes and returns n.
func (c *call) copied(n int) int64 {
	c.bytes(n)
	return int64(n)
}

func hostSize(c *call, p []uint64) int64 {
	if text, own := c.ownSource(abi.Source(int32(p[0]))); own {
		return length(text)
	}
	src, status := c.source("size", int32(p[0]))
	if status < 0 {
		return status
	}
	return length(src)
}

// source returns the content of every source but those of [call.ownSource].
func (c *call) source(what string, number int32) (content []byte, status int64) {
	if number < 0 || int(number) >= len(abi.Sources) {
		return nil, int64(c.refuse(abi.NotFound, fmt.Sprintf("%s: there is no source %d", what, number)).Status())
	}
	switch abi.Source(number) {
	case abi.SourceResult:
		return c.result, 0
	case abi.SourceAwarenessJSON, abi.SourceAwarenessMarkdown, abi.SourceAwarenessRevision:
		if !c.turn.HasFeature(abi.FeatureAwareness) {
			return nil, int64(c.refuse(abi.Unsupported, what+": this host has no awareness documents; check with feature before reading them").Status())
		}
	}
	content, code := c.turn.Source(abi.Source(number))
	c.composed(abi.Source(number), len(content))
	return content, c.status(code)
}

// composePasses is the cost of composing an awareness document, as a multiple
// of copying it.
const composePasses = 32

// composed charges for a document that is composed on its first read.
func (c *call) composed(s abi.Source, size int) {
	if s != abi.SourceAwarenessJSON && s != abi.SourceAwarenessMarkdown {
		return
	}
	if document := uint8(1) << (s - abi.SourceAwarenessJSON); c.documents&document == 0 {
		c.documents |= document
		c.bytes(size * composePasses)
	}
}

// length returns the length of b, capped at the largest result.
func length[T ~string | ~[]byte](b T) int64 { return min(int64(len(b)), math.MaxInt32) }

func hostFeature(c *call, p []uint64) int64 {
	f := abi.Feature(int32(p[0]))
	known := f >= 0 && int(f) < len(abi.Features)
	// Counting fuel is a feature of the host, not of the turn.
	if known && (f == abi.FeatureFuel || c.turn.HasFeature(f)) {
		return 1
	}
	return 0
}

// lookup makes a hostcall (key, buffer) that returns the full length of a
// value and stores all of it as the source result.
func lookup(name string, get func(abi.Turn, []byte) ([]byte, abi.Code)) hostcall {
	return func(c *call, p []uint64) int64 {
		key, ok := c.input(name, p[0], p[1])
		if !ok {
			return badArgument
		}
		dst, ok := c.view(name, p[2], p[3])
		if !ok {
			return badArgument
		}
		value, code := get(c.turn, key)
		if code != abi.OK {
			return c.status(code)
		}
		c.bytes(len(value) + copy(dst, value))
		c.result = append(c.result[:0], value...)
		return length(value)
	}
}

// listUnits is the cost of each key that state_list lists: finding, comparing
// and copying it takes some hundred nanoseconds.
const listUnits = 250

// hostStateList charges for each page of keys as it comes, so that fuel and
// deadline stop a long list while it is being made.
func hostStateList(c *call, p []uint64) int64 {
	prefix, ok := c.input("state_list", p[0], p[1])
	if !ok {
		return badArgument
	}
	dst, ok := c.view("state_list", p[2], p[3])
	if !ok {
		return badArgument
	}
	prefix = bytes.Clone(prefix) // the guest may have put it into the buffer
	var keys []byte
	code := c.turn.StateList(prefix, func(page []byte) {
		c.spend(listUnits*int64(bytes.Count(page, []byte{0})) + int64(len(page))/bytesPerUnit)
		keys = append(keys, page...)
	})
	if code != abi.OK {
		return c.status(code)
	}
	c.bytes(copy(dst, keys))
	c.result = keys
	return length(keys)
}

// single makes a hostcall that passes one range of bytes.
func single(name string, do func(abi.Turn, []byte) abi.Code) hostcall {
	return func(c *call, p []uint64) int64 {
		b, ok := c.input(name, p[0], p[1])
		if !ok {
			return badArgument
		}
		return c.status(do(c.turn, b))
	}
}

// outputPasses is how many times a byte of output is copied while the output
// grows.
const outputPasses = 2

func hostOutput(c *call, p []uint64) int64 {
	b, ok := c.input("output", p[0], p[1])
	if !ok {
		return badArgument
	}
	code := c.turn.Output(b)
	if code == abi.OK {
		c.bytes(len(b) * outputPasses)
	}
	return c.status(code)
}

// pair makes a hostcall that passes two ranges of bytes.
func pair(name string, do func(t abi.Turn, a, b []byte) abi.Code) hostcall {
	return func(c *call, p []uint64) int64 {
		a, b, ok := c.views(name, p)
		if !ok {
			return badArgument
		}
		return c.status(do(c.turn, a, b))
	}
}

// remove makes a hostcall that returns whether there was something to remove.
func remove(name string, do func(abi.Turn, []byte) (bool, abi.Code)) hostcall {
	return func(c *call, p []uint64) int64 {
		key, ok := c.input(name, p[0], p[1])
		if !ok {
			return badArgument
		}
		existed, code := do(c.turn, key)
		if code == abi.OK && existed {
			return 1
		}
		return c.status(code)
	}
}

// views returns the first two ranges of bytes among the arguments.
func (c *call) views(what string, p []uint64) (a, b []byte, ok bool) {
	if a, ok = c.input(what, p[0], p[1]); !ok {
		return nil, nil, false
	}
	b, ok = c.input(what, p[2], p[3])
	return a, b, ok
}

func hostChannel(c *call, p []uint64) int64 {
	alias, ok := c.input("channel", p[0], p[1])
	if !ok {
		return badArgument
	}
	return c.answer(c.turn.Channel(alias))
}

// channelUnits is the cost of each channel but the first that a message is
// sent on.
const channelUnits = 100

func hostSend(c *call, p []uint64) int64 {
	payload, headers, ok := c.views("send", p[1:])
	if !ok {
		return badArgument
	}
	n := c.turn.Send(int32(p[0]), payload, headers)
	c.cost += channelUnits * int64(max(0, n-1))
	return c.answer(n)
}

func hostRequest(c *call, p []uint64) int64 {
	to, payload, ok := c.views("request", p)
	if !ok {
		return badArgument
	}
	deadline, ok := milliseconds(p[4])
	if !ok {
		return c.invalid("request: the deadline of %d ms is negative", int64(p[4]))
	}
	if bytes.HasPrefix(to, []byte(abi.ReachPrefix)) {
		c.spendReach(payload)
	}
	return c.status(c.turn.Request(to, payload, deadline, int64(p[5])))
}

// reachPasses is the cost of processing what describes a request to a capability, as a
// multiple of copying it: it is read, compared with what is allowed, and shown to policies.
const reachPasses = 32

// reachUnits is the minimum cost of a request to a capability.
const reachUnits = 2_000

// spendReach charges a request to a capability, beforehand, whatever the outcome.
func (c *call) spendReach(description []byte) {
	c.spend(reachUnits + int64(len(description))*reachPasses/bytesPerUnit)
}

func hostTimerSet(c *call, p []uint64) int64 {
	name, ok := c.input("timer_set", p[0], p[1])
	if !ok {
		return badArgument
	}
	delay, ok := milliseconds(p[2])
	if !ok {
		return c.invalid("timer_set: the delay of %d ms is negative", int64(p[2]))
	}
	period, ok := milliseconds(p[3])
	if !ok {
		return c.invalid("timer_set: the period of %d ms is negative", int64(p[3]))
	}
	payload, ok := c.input("timer_set", p[4], p[5])
	if !ok {
		return badArgument
	}
	return c.status(c.turn.TimerSet(name, delay, period, payload))
}

// milliseconds returns a time given by the guest; one that a Duration cannot
// hold becomes the longest Duration.
func milliseconds(v uint64) (d time.Duration, ok bool) {
	ms := int64(v)
	if ms > int64(math.MaxInt64/time.Millisecond) {
		return math.MaxInt64, true
	}
	return time.Duration(ms) * time.Millisecond, ms >= 0
}

// toolPasses is the cost of processing a tool's arguments, as a multiple of
// copying them: they are read as JSON, checked, judged and recorded.
const toolPasses = 160

// resultPasses is the same for a tool's result: it is looked up in the graph,
// written as JSON, copied and recorded.
const resultPasses = 16

// toolUnits is the minimum cost of a tool call.
const toolUnits = 5_000

func hostTool(c *call, p []uint64) int64 {
	name, args, ok := c.views("tool", p)
	if !ok {
		return badArgument
	}
	c.spend(toolUnits + int64(len(args))*toolPasses/bytesPerUnit) // charged beforehand, whatever the outcome
	result, code := c.turn.Tool(name, args)
	if code != abi.OK {
		return c.status(code)
	}
	c.bytes(len(result) * resultPasses)
	c.result = append(c.result[:0], result...)
	return length(result)
}

func hostHTTP(c *call, p []uint64) int64 {
	request, body, ok := c.views("http", p)
	if !ok {
		return badArgument
	}
	c.spendReach(request)
	return c.status(c.turn.HTTP(request, body, int64(p[4])))
}

func hostLog(c *call, p []uint64) int64 {
	level := abi.Level(int32(p[0]))
	if level < 0 || int(level) >= len(abi.LevelNames) {
		return c.invalid("log: there is no level %d", int32(level))
	}
	text, ok := c.input("log", p[1], p[2])
	if !ok {
		return badArgument
	}
	if level >= abi.LevelWarn {
		c.say(text)
	}
	return c.status(c.turn.Log(level, text))
}

func hostRandom(c *call, p []uint64) int64 {
	b, ok := c.view("random", p[0], p[1])
	if !ok {
		return badArgument
	}
	c.random(b)
	return 0
}

// random fills the guest's range a piece at a time, because it may be large.
func (c *call) random(b []byte) {
	const piece = 16 << 10
	for ; len(b) > 0; b = b[min(piece, len(b)):] {
		part := b[:min(piece, len(b))]
		c.spend(randomUnits * int64(len(part)))
		if c.early != nil {
			c.early.Read(part) // never fails
			continue
		}
		c.turn.Random(part)
	}
}

// hostFuelLeft returns the fuel left in the turn, before this call is charged.
func hostFuelLeft(c *call, _ []uint64) int64 {
	return c.budget.Left(int64(c.fuel.Get()) - c.owed)
}
