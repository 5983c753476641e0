package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/conformance/hosts/adapter"
)

func fail(code abi.Code, format string, args ...any) *abi.Error {
	return &abi.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// startPhase is the phase of the start function, which has no name.
const startPhase = "start"

// turn is what one call into a guest reads and collects.
type turn struct {
	phase     string
	q         *adapter.Request
	now       int64
	failed    string // the source error
	failure   string // the source of that name
	result    []byte
	calls     int64
	logs      [][2]string
	logBytes  int64
	words     string // the last warning or error
	sends     []adapter.Effect
	sent      int64
	sendBytes int64
	asked     int64
	reply     []byte
	output    []byte
	writes    map[string][]byte // nil: deleted
	written   int64
	size      int64 // of the state, as the turn sees it
	timers    map[string]*timer
	tools     int64
	drawn     int       // random bytes
	block     [32]byte  // the last ones
	lines     [3][]byte // of standard output and error, not yet ended
}

type timer struct {
	delay, period, due int64
	payload            []byte
}

// creature is a creature and its instance, if there is one.
type creature struct {
	*adapter.Request
	world    *world
	limit    map[string]int64
	lacks    map[string]bool
	config   map[string]json.RawMessage
	state    map[string][]byte
	timers   map[string]*timer
	open     int64 // requests that wait for an answer
	made     int
	revision int64

	compiled  wazero.CompiledModule
	instance  api.Module
	handles   []string
	turn      *turn
	monotonic int64
}

// defaults returns the limits of a creature by name; the deadline is in milliseconds.
func defaults() map[string]int64 {
	out, raw := map[string]int64{}, map[string]json.RawMessage{}
	text, _ := json.Marshal(abi.DefaultLimits) // numbers and a string
	_ = json.Unmarshal(text, &raw)
	for name, v := range raw {
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			out[name] = n
		}
	}
	out["deadline"] = abi.DefaultLimits.Deadline.Milliseconds()
	return out
}

func (w *world) load(ctx context.Context, q *adapter.Request) (*creature, *abi.Error) {
	c := &creature{Request: q, world: w, limit: defaults(), lacks: map[string]bool{}, timers: map[string]*timer{}, state: q.State, revision: 1}
	if q.Limits != nil {
		maps.Copy(c.limit, *q.Limits)
	}
	for _, f := range abi.Features {
		c.lacks[f.Name] = !slices.Contains(features, f.Name) || slices.Contains(q.Lacks, f.Name)
	}
	if len(q.Config) == 0 {
		q.Config = json.RawMessage("{}")
	}
	var plain bytes.Buffer
	if err := errors.Join(json.Unmarshal(q.Config, &c.config), json.Compact(&plain, q.Config)); err != nil {
		return nil, fail(abi.InvalidArgument, "the configuration is not a JSON object: %v", err)
	}
	q.Config = plain.Bytes()
	m, wrong := w.check(ctx, q.Module)
	if len(wrong) > 0 {
		return nil, wrong[0]
	}
	if least := int64(m.ExportedMemories()[abi.ExportMemory].Min()) * abi.PageBytes; least > c.limit["memory"] {
		return nil, fail(abi.LimitExceeded, "the module begins with %d bytes of memory, beyond the limit memory", least)
	}
	if count, elements := tables(q.Module); elements > c.limit["table"] {
		return nil, fail(abi.LimitExceeded, "the module begins with %d elements of tables, beyond the limit table", elements)
	} else if count > 0 {
		var err error
		if m, err = w.runtime.CompileModule(ctx, bound(q.Module, c.limit["table"]-elements)); err != nil {
			return nil, fail(abi.Internal, "%v", err)
		}
	}
	c.compiled = m
	return c, nil
}

// memory is a linear memory that grows up to a limit.
type memory struct {
	bytes []byte
	limit uint64
}

func (m *memory) Reallocate(size uint64) []byte {
	if size > m.limit {
		return nil
	}
	m.bytes = append(m.bytes, make([]byte, size-uint64(len(m.bytes)))...)
	return m.bytes
}

func (m *memory) Free() { m.bytes = nil }

// start makes an instance. The turn of the creature is then that of creature_init.
func (c *creature) start(ctx context.Context, now int64) *abi.Error {
	c.turn, c.handles = &turn{phase: startPhase, q: &adapter.Request{}}, nil
	c.made++
	err := c.guarded(ctx, 10, func(ctx context.Context) (err error) {
		ctx = experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(func(uint64, uint64) experimental.LinearMemory {
			return &memory{bytes: []byte{}, limit: uint64(c.limit["memory"])}
		}))
		c.instance, err = c.world.runtime.InstantiateModule(ctx, c.compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
		return err
	})
	if err == nil {
		c.turn.phase = abi.ExportInitialize
		_, err = c.call(ctx, 10)
	}
	if err == nil {
		c.turn = &turn{phase: abi.ExportInit, q: &adapter.Request{}, now: now, logs: c.turn.logs}
		_, err = c.call(ctx, 10)
	}
	if err != nil {
		c.discard(ctx)
	}
	return err
}

// discard closes the instance without calling it.
func (c *creature) discard(ctx context.Context) {
	if c.instance != nil {
		_ = c.instance.Close(ctx) // nothing is left to be done about it
		c.instance = nil
	}
}

// call calls the function of the turn's phase, if the module has it.
func (c *creature) call(ctx context.Context, deadlines int64, args ...uint64) (status int32, ended *abi.Error) {
	f := c.instance.ExportedFunction(c.turn.phase)
	if f == nil {
		return 0, nil
	}
	ended = c.guarded(ctx, deadlines, func(ctx context.Context) error {
		results, err := f.Call(ctx, args...)
		if len(results) > 0 {
			status = api.DecodeI32(results[0])
		}
		return err
	})
	if ended == nil && status < 0 {
		why := c.turn.words
		if why == "" {
			why = c.turn.failed
		}
		ended = fail(abi.CodeOfStatus(status), "the guest returned %d: %s", status, why)
	}
	return status, ended
}

// guarded runs a guest within its deadline, and returns how it was ended.
func (c *creature) guarded(ctx context.Context, deadlines int64, f func(ctx context.Context) error) *abi.Error {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, creatureKey{}, c), time.Duration(c.limit["deadline"]*deadlines)*time.Millisecond)
	defer cancel()
	err := f(ctx)
	for descriptor := range c.turn.lines {
		c.endLine(descriptor)
	}
	var ended *abi.Error
	var exit *sys.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ended):
		return ended
	case errors.As(err, &exit):
		return fail(abi.Deadline, "the guest was ended at its deadline, %d ms", c.limit["deadline"]*deadlines)
	case cause(err).Error() == "stack overflow": // wazero does not export this error
		return fail(abi.LimitExceeded, "the guest's calls nest beyond the bound of the interpreter, which stands for the limit stack")
	}
	return fail(abi.Trapped, "%v", err)
}

// cause returns the innermost error; the texts of the outer ones have names from the module.
func cause(err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}

// handle runs one turn and applies its effects.
func (c *creature) handle(ctx context.Context, q *adapter.Request, now int64) (*turn, *abi.Error) {
	var logs [][2]string
	if c.instance == nil {
		if err := c.start(ctx, now); err != nil {
			return c.turn, err
		}
		logs = c.turn.logs
	}
	if abi.Kind(q.Kind) == abi.KindGraphChanged {
		c.revision++
	}
	t := &turn{phase: abi.ExportHandle, q: q, now: now, writes: map[string][]byte{}, timers: map[string]*timer{}}
	for k, v := range c.state {
		t.size += cost(k, v)
	}
	c.turn = t
	_, err := c.call(ctx, 1, api.EncodeI32(q.Kind), uint64(len(q.Payload)))
	t.logs = append(logs, t.logs...)
	if err != nil || c.Fresh || c.instance.IsClosed() { // closed: the deadline passed while it returned
		c.discard(ctx)
	}
	if err != nil {
		return t, err
	}
	for _, x := range t.timers {
		if x != nil {
			x.due = later(now, x.delay)
		}
	}
	c.state, c.timers = merged(c.state, t.writes, func(v []byte) bool { return v == nil }), merged(c.timers, t.timers, func(x *timer) bool { return x == nil })
	return t, nil
}

// merged returns a map with changes, some of which remove an entry.
func merged[V any](m, changes map[string]V, removes func(v V) bool) map[string]V {
	out := map[string]V{}
	maps.Copy(out, m)
	maps.Copy(out, changes)
	maps.DeleteFunc(out, func(_ string, v V) bool { return removes(v) })
	return out
}

func cost(key string, value []byte) int64 { return int64(len(key) + len(value) + 32) }

// later returns the time in so many milliseconds, or the last time that there is.
func later(t, ms int64) int64 {
	if ms > (math.MaxInt64-t)/1e6 {
		return math.MaxInt64
	}
	return t + ms*1e6
}
