package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tetratelabs/wazero/api"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/conformance/hosts/adapter"
)

// creatureKey is the key of a context's creature.
type creatureKey struct{}

// arguments are those of a hostcall: numbers, ranges that have been read, and the buffer to
// write to, each in order.
type arguments struct {
	n      []int64
	in     [][]byte
	buffer []byte
}

type handler func(c *creature, a *arguments) (int64, *abi.Error)

// handlers has every function of the contract but http, which the host does not have.
var handlers = map[string]handler{
	"read": read, "size": size, "feature": feature, "config": config, "channel": channel, "send": send, "send_to": sendTo,
	"request": ask, "reply": reply, "output": output, "state_get": stateGet, "state_set": stateSet, "state_delete": stateDelete,
	"state_list": stateList, "timer_set": timerSet, "timer_cancel": timerCancel, "tool": tool, "log": logLine, "random": random,
	"now":       func(c *creature, _ *arguments) (int64, *abi.Error) { return c.time(), nil },
	"fuel_left": func(*creature, *arguments) (int64, *abi.Error) { return -1, nil },
}

// count counts a hostcall, and ends a guest that makes too many.
func (c *creature) count() bool {
	c.turn.calls++
	if c.turn.calls >= 2*c.limit["calls"] {
		panic(fail(abi.LimitExceeded, "the guest has made twice as many hostcalls as the limit calls allows"))
	}
	return c.turn.calls <= c.limit["calls"]
}

// caller returns the creature that makes a hostcall, and its memory. wazero passes the guest's
// module, or the host's own if the guest exports an import as a function that the host calls.
func caller(ctx context.Context, mod api.Module) (*creature, api.Memory) {
	c := ctx.Value(creatureKey{}).(*creature)
	if c.instance != nil {
		mod = c.instance
	}
	return c, mod.Memory()
}

// hostcall returns a function of the contract as wazero calls it.
func hostcall(f abi.Function) api.GoModuleFunc {
	do := handlers[f.Name]
	return func(ctx context.Context, mod api.Module, stack []uint64) {
		c, mem := caller(ctx, mod)
		a, err := c.admit(f, mem, stack)
		var result int64
		if err == nil {
			result, err = do(c, a)
		}
		if err != nil {
			c.turn.failed, result = err.Message, int64(err.Code.Status())
			c.turn.failure = f.Name + ": " + err.Message + " (" + err.Code.String() + ")"
		}
		if stack[0] = uint64(result); f.Result == abi.I32 {
			stack[0] = api.EncodeI32(int32(result))
		}
	}
}

// admit checks what can be checked without knowing the function, and reads its ranges.
func (c *creature) admit(f abi.Function, mem api.Memory, stack []uint64) (*arguments, *abi.Error) {
	if !c.count() {
		return nil, c.over("calls", abi.LimitExceeded)
	}
	if f.Effect && c.turn.phase != abi.ExportHandle {
		return nil, fail(abi.Denied, "%s has an effect, and %s may only read", f.Name, c.turn.phase)
	}
	if name := featureOf(f); name != "" && c.lacks[name] {
		return nil, fail(abi.Unsupported, "this host does not have %s", name)
	}
	a := &arguments{}
	for i := 0; i < len(f.Params); i++ {
		p := f.Params[i]
		if !strings.HasSuffix(p.Name, "ptr") {
			n := int64(stack[i])
			if p.Type == abi.I32 {
				n = int64(int32(n))
			}
			if n < 0 && (strings.HasSuffix(p.Name, "_ms") || p.Name == "offset") {
				return nil, fail(abi.InvalidArgument, "%s: %s is negative", f.Name, p.Name)
			}
			a.n = append(a.n, n)
			continue
		}
		i++
		at, length := uint32(stack[i-1]), int32(stack[i])
		bytes, ok := mem.Read(at, uint32(length))
		if length == 0 {
			bytes, ok = []byte{}, true
		}
		if length < 0 || !ok {
			return nil, fail(abi.InvalidArgument, "%s: %d bytes at %d lie outside of the memory", f.Name, length, at)
		}
		if f.Params[i].Name == "cap" || f.Name == "random" {
			a.buffer = bytes
		} else {
			a.in = append(a.in, append([]byte{}, bytes...))
		}
	}
	return a, nil
}

func featureOf(f abi.Function) string {
	if f.Feature < 0 {
		return ""
	}
	return abi.Features[f.Feature].Name
}

func (c *creature) over(limit string, code abi.Code) *abi.Error {
	return fail(code, "the limit %s (%d) is reached", limit, c.limit[limit])
}

// Reading.

func (c *creature) source(n int64) ([]byte, *abi.Error) {
	t, q := c.turn, c.turn.q
	if s := abi.Source(n); s == abi.SourceAwarenessJSON || s == abi.SourceAwarenessMarkdown || s == abi.SourceAwarenessRevision {
		if c.lacks["awareness"] {
			return nil, fail(abi.Unsupported, "this host has no awareness documents")
		}
	}
	switch abi.Source(n) {
	case abi.SourcePayload:
		return q.Payload, nil
	case abi.SourceChannel:
		if q.Alias != "" {
			return []byte(q.Alias), nil
		}
		return []byte(c.Creature), nil
	case abi.SourceSender:
		return []byte(q.Sender), nil
	case abi.SourceMessageID:
		if q.Message == 0 {
			return nil, nil
		}
		return strconv.AppendUint(nil, q.Message, 10), nil
	case abi.SourceHeaders:
		var out []byte
		for _, h := range q.Headers {
			out = append(out, h[0]+"\x00"+h[1]+"\x00"...)
		}
		return out, nil
	case abi.SourceDetail:
		return c.detail(), nil
	case abi.SourceConfig:
		return c.Config, nil
	case abi.SourceAwarenessJSON:
		return fmt.Appendf(nil, `{"revision":%d}`, c.revision), nil
	case abi.SourceAwarenessMarkdown:
		return []byte("# " + c.Creature + "\n"), nil
	case abi.SourceResult:
		return t.result, nil
	case abi.SourceError:
		return []byte(t.failed), nil
	case abi.SourceFailure:
		return []byte(t.failure), nil
	case abi.SourceSelf:
		return []byte(c.Creature), nil
	case abi.SourceAwarenessRevision:
		return strconv.AppendInt(nil, c.revision, 10), nil
	}
	return nil, fail(abi.NotFound, "there is no source %d", n)
}

func (c *creature) detail() []byte {
	q := c.turn.q
	kind := abi.Kind(q.Kind)
	d := map[string]any{"kind": kind.String(), "attempt": q.Attempt, "time": c.turn.now}
	switch kind {
	case abi.KindMessage:
		d["direct"], d["seq"] = q.Alias == "", q.Message
	case abi.KindOutput:
		d["source"], d["wire"] = q.Sender, q.Wire
	case abi.KindTimer:
		d["name"] = q.Name
	case abi.KindResult:
		d["tag"], d["code"] = strconv.FormatInt(q.Tag, 10), q.Code
		if q.Code == "" {
			d["code"] = "ok"
		}
	case abi.KindGraphChanged:
		d["revision"] = c.revision
	case abi.KindRequest:
		d["deadline_ms"] = q.Deadline
	}
	text, _ := json.Marshal(d) // strings and numbers
	return text
}

func read(c *creature, a *arguments) (int64, *abi.Error) {
	data, err := c.source(a.n[0])
	return int64(copy(a.buffer, data[min(a.n[1], int64(len(data))):])), err
}

func size(c *creature, a *arguments) (int64, *abi.Error) {
	data, err := c.source(a.n[0])
	return int64(len(data)), err
}

func feature(c *creature, a *arguments) (int64, *abi.Error) {
	if n := a.n[0]; n >= 0 && n < int64(len(abi.Features)) && !c.lacks[abi.Features[n].Name] {
		return 1, nil
	}
	return 0, nil
}

// keep makes data the source result.
func (c *creature) keep(data, buffer []byte) (int64, *abi.Error) {
	copy(buffer, data)
	c.turn.result = data
	return int64(len(data)), nil
}

func config(c *creature, a *arguments) (int64, *abi.Error) {
	v, ok := c.config[string(a.in[0])]
	if !ok {
		return 0, fail(abi.NotFound, "the configuration has no such member")
	}
	var text string
	if v[0] == '"' && json.Unmarshal(v, &text) == nil {
		return c.keep([]byte(text), a.buffer)
	}
	var plain bytes.Buffer
	_ = json.Compact(&plain, v) // it is a part of valid JSON
	return c.keep(plain.Bytes(), a.buffer)
}

// Sending.

func channel(c *creature, a *arguments) (int64, *abi.Error) {
	alias := string(a.in[0])
	if len(alias) < 1 || len(alias) > 256 || !utf8.ValidString(alias) {
		return 0, fail(abi.InvalidArgument, "an alias is UTF-8 of 1 to 256 bytes")
	}
	i := slices.Index(c.handles, alias)
	if i < 0 {
		if i = len(c.handles); int64(i) >= c.limit["handles"] {
			return 0, c.over("handles", abi.LimitExceeded)
		}
		c.handles = append(c.handles, alias)
	}
	return int64(i), nil
}

// room checks headers, and that n messages more are within the limits.
func (c *creature) room(n int, payload, headers []byte) ([][2]string, *abi.Error) {
	t, size := c.turn, int64(len(payload)+len(headers))
	if size > c.limit["message"] {
		return nil, c.over("message", abi.TooLarge)
	}
	parts := strings.Split(string(headers), "\x00")
	if len(parts)%2 == 0 || parts[len(parts)-1] != "" {
		return nil, fail(abi.InvalidArgument, "headers are name NUL value NUL, repeated")
	}
	pairs := map[string]string{}
	for i := 0; i+1 < len(parts); i += 2 {
		name, value := parts[i], parts[i+1]
		reserved := strings.HasPrefix(strings.ToLower(name), "terrarium-")
		if name == "" || reserved && !slices.Contains(t.q.Headers, [2]string{name, value}) {
			return nil, fail(abi.InvalidArgument, "the name %q of a header is empty or reserved", name)
		}
		if !reserved {
			pairs[name] = value
		}
	}
	if t.sent+int64(n) > c.limit["sends"] {
		return nil, c.over("sends", abi.LimitExceeded)
	}
	if t.sendBytes+int64(n)*size > c.limit["send_bytes"] {
		return nil, c.over("send_bytes", abi.LimitExceeded)
	}
	t.sent, t.sendBytes = t.sent+int64(n), t.sendBytes+int64(n)*size
	var out [][2]string
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		out = append(out, [2]string{name, pairs[name]})
	}
	return out, nil
}

func send(c *creature, a *arguments) (int64, *abi.Error) {
	var to []string
	handle := a.n[0]
	if handle != int64(abi.AllChannels) && (handle < 0 || handle >= int64(len(c.handles))) {
		return 0, fail(abi.InvalidArgument, "%d is not a handle", handle)
	}
	for _, e := range c.Send {
		if handle == int64(abi.AllChannels) || e.Alias == c.handles[handle] {
			to = append(to, e.Alias)
		}
	}
	if handle >= 0 && len(to) == 0 {
		return 0, fail(abi.NotConnected, "the alias %s is bound to no channel", c.handles[handle])
	}
	headers, err := c.room(len(to), a.in[0], a.in[1])
	if err != nil {
		return 0, err
	}
	for _, alias := range to {
		c.turn.sends = append(c.turn.sends, adapter.Effect{Kind: "send", To: alias, Payload: a.in[0], Headers: headers})
	}
	return int64(len(to)), nil
}

// direct sends a message or a request to a creature.
func (c *creature) direct(to []byte, e adapter.Effect) *abi.Error {
	if c.world.creatures[string(to)] == nil {
		return fail(abi.NotFound, "there is no such creature in this graph")
	}
	if e.Kind == "request" {
		if e.MS == 0 {
			return fail(abi.InvalidArgument, "a request needs time")
		}
		if c.open+c.turn.asked >= c.limit["requests"] {
			return c.over("requests", abi.LimitExceeded)
		}
	}
	if _, err := c.room(1, e.Payload, nil); err != nil {
		return err
	}
	if e.Kind == "request" {
		c.turn.asked++
	}
	e.To = string(to)
	c.turn.sends = append(c.turn.sends, e)
	return nil
}

func sendTo(c *creature, a *arguments) (int64, *abi.Error) {
	return 0, c.direct(a.in[0], adapter.Effect{Kind: "send_to", Payload: a.in[1]})
}

func ask(c *creature, a *arguments) (int64, *abi.Error) {
	return 0, c.direct(a.in[0], adapter.Effect{Kind: "request", Payload: a.in[1], MS: a.n[0], Tag: a.n[1]})
}

func reply(c *creature, a *arguments) (int64, *abi.Error) {
	switch {
	case abi.Kind(c.turn.q.Kind) != abi.KindRequest:
		return 0, fail(abi.Denied, "this turn handles no request")
	case c.turn.reply != nil:
		return 0, fail(abi.AlreadyExists, "there is a reply already")
	case int64(len(a.in[0])) > c.limit["message"]:
		return 0, c.over("message", abi.TooLarge)
	}
	c.turn.reply = a.in[0]
	return 0, nil
}

func output(c *creature, a *arguments) (int64, *abi.Error) {
	if int64(len(c.turn.output)+len(a.in[0])) > c.limit["output"] {
		return 0, c.over("output", abi.LimitExceeded)
	}
	if c.turn.output == nil {
		c.turn.output = []byte{}
	}
	c.turn.output = append(c.turn.output, a.in[0]...)
	return 0, nil
}

// State and timers.

// key checks a key of the state or the name of a timer.
func (c *creature) key(key []byte, limit int64) *abi.Error {
	if len(key) == 0 || bytes.IndexByte(key, 0) >= 0 || !utf8.Valid(key) {
		return fail(abi.InvalidArgument, "a key is UTF-8, not empty and without NUL")
	}
	if int64(len(key)) > limit {
		return c.over("state_key", abi.TooLarge)
	}
	return nil
}

// value returns a value of the state as the turn sees it; nil if there is none.
func (c *creature) value(key string) []byte {
	if v, ok := c.turn.writes[key]; ok {
		return v
	}
	return c.state[key]
}

func stateGet(c *creature, a *arguments) (int64, *abi.Error) {
	if err := c.key(a.in[0], math.MaxInt64); err != nil {
		return 0, err
	}
	v := c.value(string(a.in[0]))
	if v == nil {
		return 0, fail(abi.NotFound, "there is no such key")
	}
	return c.keep(v, a.buffer)
}

func stateSet(c *creature, a *arguments) (int64, *abi.Error) {
	if err := c.key(a.in[0], c.limit["state_key"]); err != nil {
		return 0, err
	}
	if int64(len(a.in[1])) > c.limit["state_value"] {
		return 0, c.over("state_value", abi.TooLarge)
	}
	return 0, c.write(string(a.in[0]), a.in[1])
}

func (c *creature) write(key string, value []byte) *abi.Error {
	t := c.turn
	if t.written >= c.limit["state_writes"] {
		return c.over("state_writes", abi.LimitExceeded)
	}
	after := t.size
	if old := c.value(key); old != nil {
		after -= cost(key, old)
	}
	if value != nil {
		if after += cost(key, value); after > c.limit["state"] {
			return c.over("state", abi.LimitExceeded)
		}
	}
	t.size, t.writes[key] = after, value
	t.written++
	return nil
}

func stateDelete(c *creature, a *arguments) (int64, *abi.Error) {
	if err := c.key(a.in[0], c.limit["state_key"]); err != nil {
		return 0, err
	}
	if c.value(string(a.in[0])) == nil {
		return 0, nil
	}
	return 1, c.write(string(a.in[0]), nil)
}

func stateList(c *creature, a *arguments) (int64, *abi.Error) {
	var list []byte
	for _, k := range slices.Sorted(maps.Keys(merged(c.state, c.turn.writes, func(v []byte) bool { return v == nil }))) {
		if strings.HasPrefix(k, string(a.in[0])) {
			list = append(append(list, k...), 0)
		}
	}
	return c.keep(list, a.buffer)
}

// setTimers returns the timers as the turn sees them.
func (c *creature) setTimers() map[string]*timer {
	return merged(c.timers, c.turn.timers, func(x *timer) bool { return x == nil })
}

func timerSet(c *creature, a *arguments) (int64, *abi.Error) {
	if err := c.key(a.in[0], c.limit["state_key"]); err != nil {
		return 0, err
	}
	if int64(len(a.in[1])) > c.limit["message"] {
		return 0, c.over("message", abi.TooLarge)
	}
	const never = int64(math.MaxInt64 / 1_000_000)
	set, name := c.setTimers(), string(a.in[0])
	set[name] = &timer{delay: min(a.n[0], never), period: min(a.n[1], never), payload: a.in[1]}
	if int64(len(set)) > c.limit["timers"] {
		return 0, c.over("timers", abi.LimitExceeded)
	}
	var total int
	for n, x := range set {
		total += len(n) + len(x.payload)
	}
	if int64(total) > c.limit["timer_bytes"] {
		return 0, c.over("timer_bytes", abi.LimitExceeded)
	}
	c.turn.timers[name] = set[name]
	return 0, nil
}

func timerCancel(c *creature, a *arguments) (int64, *abi.Error) {
	if err := c.key(a.in[0], c.limit["state_key"]); err != nil {
		return 0, err
	}
	name := string(a.in[0])
	if c.setTimers()[name] == nil {
		return 0, nil
	}
	c.turn.timers[name] = nil
	return 1, nil
}

// Tools, the log, time and random bytes.

func tool(c *creature, a *arguments) (int64, *abi.Error) {
	if c.turn.tools >= c.limit["tools"] {
		return 0, c.over("tools", abi.LimitExceeded)
	}
	c.turn.tools++
	if int64(len(a.in[1])) > c.limit["message"] {
		return 0, c.over("message", abi.TooLarge)
	}
	for _, x := range c.Tools {
		if x.Name != string(a.in[0]) {
			continue
		}
		if code, _ := abi.ParseCode(x.Code); code != abi.OK {
			return 0, fail(code, "the tool %s refuses", x.Name)
		}
		return c.keep([]byte(x.Result), nil)
	}
	return 0, fail(abi.NotFound, "there is no such tool")
}

func logLine(c *creature, a *arguments) (int64, *abi.Error) {
	if a.n[0] < 0 || a.n[0] >= int64(len(abi.LevelNames)) {
		return 0, fail(abi.InvalidArgument, "there is no level %d", a.n[0])
	}
	return 0, c.log(abi.Level(a.n[0]), a.in[0])
}

func (c *creature) log(level abi.Level, text []byte) *abi.Error {
	t := c.turn
	text = text[:min(int64(len(text)), c.limit["log_bytes"]+1)] // what is beyond is cut in any case
	line := string([]rune(string(text)))
	if level >= abi.LevelWarn {
		t.words = line
	}
	if int64(len(t.logs)) >= c.limit["log_lines"] {
		return c.over("log_lines", abi.LimitExceeded)
	}
	if left := c.limit["log_bytes"] - t.logBytes; int64(len(text)) > left {
		if left < 3 {
			return c.over("log_bytes", abi.LimitExceeded)
		}
		text = text[:left]
		line = strings.ToValidUTF8(string(text[:left-3]), "") + "…"
	}
	t.logBytes += int64(len(text))
	t.logs = append(t.logs, [2]string{level.String(), line})
	return nil
}

// early reports whether the guest does not know yet which creature it is.
func (c *creature) early() bool {
	return c.turn.phase == startPhase || c.turn.phase == abi.ExportInitialize
}

func (c *creature) time() int64 {
	if c.early() {
		return 0
	}
	if c.Clock {
		return time.Now().UnixNano()
	}
	return c.turn.now
}

func random(c *creature, a *arguments) (int64, *abi.Error) {
	c.draw(a.buffer)
	return 0, nil
}

func (c *creature) draw(buffer []byte) {
	var seed string
	switch q := c.turn.q; {
	case c.early():
		sum := sha256.Sum256(c.Module)
		seed = string(sum[:])
	case c.Random:
		_, _ = rand.Read(buffer) // never fails
		return
	default:
		seed = fmt.Sprintf("%q %d %d %s", c.Creature, q.Kind, q.Message, c.turn.phase)
	}
	for i := range buffer {
		// The bytes of a turn are one sequence, however it is cut into calls.
		n := c.turn.drawn + i
		if i == 0 || n%sha256.Size == 0 {
			c.turn.block = sha256.Sum256(fmt.Appendf(nil, "%s %d", seed, n/sha256.Size))
		}
		buffer[i] = c.turn.block[n%sha256.Size]
	}
	c.turn.drawn += len(buffer)
}
