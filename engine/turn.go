package engine

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
)

// turn collects what a guest asks for during one call; it implements
// [abi.Turn]. It belongs to one worker, which uses it again for its next turn.
type turn struct {
	e    *core
	c    *creature
	kind abi.Kind
	d    delivery // d.msg is never nil
	now  int64
	// readOnly is set outside of creature_handle.
	readOnly bool
	wiring   *wiring
	// ctx is that of the call under way, which the calls of a guest do not pass on.
	ctx context.Context

	// arena holds the bytes of everything that is sent or put out, so that a
	// turn with a store costs one allocation for all of it.
	arena       []byte
	sends       []sendEffect
	sendCount   int
	asked       int // requests among them
	sendBytes   int64
	output      []byte
	hasOutput   bool
	wired       []wiredOutput  // what its wires make of the output
	writes      []stateWrite   // by rising key, each once
	timers      []timerEffect  // by rising name, each once
	before      map[string]int // the timers of before, once it was asked for one; see timersBefore
	beforeBytes int64
	replied     bool
	reply       span
	stateSize   int64 // what the creature's state would have after the writes
	logs        []logLine
	verdicts    []draft.Word
	judged      bool         // policies have changed or left out a send
	recalled    recollection // by the policies that judge what the turn does
	logBytes    int64
	fuel        int64 // what the guest used up; -1 if the host does not count it

	tools *toolUse // nil unless the turn has called a group tool
	alone *locked  // the mutation lock, if the turn holds it; see handleAlone

	detailJSON []byte // the source detail, once it was asked for
	looked     bool   // the awareness document was asked for
	late       bool   // and is newer than the turn

	fault   fault
	rng     *rand.ChaCha8
	scratch []byte
}

// span is a piece of a turn's arena.
type span struct{ from, to int }

func (t *turn) bytes(s span) []byte { return t.arena[s.from:s.to:s.to] }

func (t *turn) keep(b []byte) span {
	from := len(t.arena)
	t.arena = append(t.arena, b...)
	return span{from, len(t.arena)}
}

// sendEffect is one message that the turn wants to send: on a channel, which
// is looked up again by its alias if the wiring has changed meanwhile, or to a
// creature.
type sendEffect struct {
	alias   string
	ch      *channel
	to      *creature
	payload span
	headers span
	ask     *ask // nil unless it is a request

	// What policies made of it.
	mutated        bool
	mutatedPayload []byte
	mutatedHeaders []byte
	left           bool // denied or dropped: leave it out
	keep           bool // log it as it was
}

type logLine struct {
	level  abi.Level
	text   string
	engine bool // the guest has not said it
}

// fault is the last failed call, kept in a form that costs nothing until the
// guest asks for its text.
type fault struct {
	code   abi.Code
	text   string
	remedy string
	ids    map[string]string // that it is about, as in [abi.Error]
}

// begin prepares the turn for one call into c's instance.
func (t *turn) begin(ctx context.Context, c *creature, d delivery, kind abi.Kind, readOnly bool) {
	t.ctx, t.c, t.d, t.kind, t.readOnly = ctx, c, d, kind, readOnly
	t.now = d.msg.time
	if c.spec.Grants.Clock {
		t.now = 0
	}
	t.wiring = c.wiring.Load()
	t.stateSize = c.stateSize
}

// start makes an instance of a creature, unless there is one. The caller owns the
// creature's instance (see scheduled).
func (t *turn) start(ctx context.Context, c *creature) error {
	if c.instance != nil {
		return nil
	}
	c.handles = &handles{index: map[string]int32{}}
	t.begin(ctx, c, delivery{msg: bootMessage}, 0, true)
	instance, err := c.module.Instantiate(ctx, &c.limits, t)
	if err != nil {
		return c.veil.Error(err)
	}
	c.instance = instance
	c.instances.Add(1)
	return nil
}

// reset forgets what was collected, keeping the memory unless it is large.
func (t *turn) reset() {
	if cap(t.arena) > 1<<20 {
		t.arena = nil
	}
	if cap(t.output) > 1<<20 {
		t.output = nil
	}
	if cap(t.scratch) > 1<<20 {
		t.scratch = nil
	}
	// Field by field: this is on the path of every delivery, and most turns
	// use few of them.
	t.arena, t.scratch, t.fuel = t.arena[:0], t.scratch[:0], 0
	t.sends = emptied(t.sends)
	t.writes = emptied(t.writes)
	t.logs = emptied(t.logs)
	t.verdicts, t.judged = emptied(t.verdicts), false
	t.recalled.forget()
	t.timers = emptied(t.timers)
	t.before, t.beforeBytes = nil, 0
	t.replied, t.reply, t.detailJSON = false, span{}, nil
	t.looked, t.late = false, false
	t.sendCount, t.sendBytes, t.logBytes, t.asked = 0, 0, 0, 0
	if t.tools != nil {
		t.tools.Discard()
		t.tools = nil
	}
	t.output, t.hasOutput = t.output[:0], false
	t.wired = emptied(t.wired)
	if t.fault.code != abi.OK {
		t.fault = fault{}
	}
	t.ctx, t.c, t.d, t.wiring, t.rng = nil, nil, delivery{}, nil, nil
}

// emptied returns the list without elements, letting go of what they refer to.
func emptied[T any](list []T) []T {
	if len(list) > 0 {
		clear(list)
	}
	return list[:0]
}

func (t *turn) fail(code abi.Code, remedy, format string, args ...any) abi.Code {
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	t.fault = fault{code: code, text: text, remedy: remedy}
	return code
}

func (t *turn) overLimit(name string, max int64) abi.Code {
	return t.fail(abi.LimitExceeded, "raise the limit or do less per turn", "the limit %s (%d) is reached", name, max)
}

// effect checks what every collecting call has in common.
func (t *turn) effect() abi.Code {
	if t.readOnly {
		return t.fail(abi.Denied, "do it in creature_handle", "effects are only collected while a delivery is handled")
	}
	return abi.OK
}

// LastError implements [abi.Turn]: what was wrong, what to do, and at the end in
// parentheses the ids that it is about.
func (t *turn) LastError() string {
	text := t.fault.text
	if t.fault.remedy != "" {
		text += "; " + t.fault.remedy
	}
	if len(t.fault.ids) == 0 {
		return text
	}
	var ids []string
	for _, what := range slices.Sorted(maps.Keys(t.fault.ids)) {
		ids = append(ids, what+"="+errtext.PlainID(t.fault.ids[what]))
	}
	return text + " (" + strings.Join(ids, ", ") + ")"
}

func (t *turn) HasFeature(f abi.Feature) bool {
	return hasFeature(f)
}

func hasFeature(f abi.Feature) bool {
	return f == abi.FeatureTimers || f == abi.FeatureRequests || f == abi.FeatureTools || f == abi.FeatureAwareness
}

func (t *turn) Source(s abi.Source) ([]byte, abi.Code) {
	m := t.d.msg
	switch s {
	case abi.SourcePayload:
		return m.payload, abi.OK
	case abi.SourceHeaders:
		return m.guestHeaders(), abi.OK
	case abi.SourceChannel:
		return t.text(t.channel()), abi.OK
	case abi.SourceSender:
		return t.text(m.senderName), abi.OK
	case abi.SourceMessageID:
		return t.text(m.id.String()), abi.OK
	case abi.SourceDetail:
		if t.detailJSON == nil {
			t.detailJSON = t.detail()
		}
		return t.detailJSON, abi.OK
	case abi.SourceConfig:
		return t.c.config, abi.OK
	case abi.SourceSelf:
		return t.text(t.wiring.name), abi.OK
	case abi.SourceAwarenessJSON, abi.SourceAwarenessMarkdown, abi.SourceAwarenessRevision:
		return t.awareness(s)
	}
	return nil, t.fail(abi.NotFound, "see the table of sources", "there is no source %d", s)
}

func (t *turn) text(s string) []byte {
	t.scratch = append(t.scratch[:0], s...)
	return t.scratch
}

// detail is the JSON of the source detail.
func (t *turn) detail() []byte {
	m := t.d.msg
	var h map[string]string
	if t.kind != abi.KindMessage {
		h = journal.DecodeHeaders(m.headers)
	}
	deadline, _ := strconv.ParseInt(h[headerDeadline], 10, 64)
	source := ""
	if t.kind == abi.KindOutput {
		source = m.senderName
	}
	return journal.JSON(struct {
		Kind       string `json:"kind"`
		Direct     bool   `json:"direct"`
		Seq        uint64 `json:"seq,omitempty"`
		Attempt    int    `json:"attempt"`
		Time       int64  `json:"time"`
		Name       string `json:"name,omitempty"`
		Tag        string `json:"tag,omitempty"`
		Code       string `json:"code,omitempty"`
		DeadlineMS int64  `json:"deadline_ms,omitempty"`
		Source     string `json:"source,omitempty"`
		Wire       string `json:"wire,omitempty"`
		Revision   uint64 `json:"revision,omitempty"`
	}{
		t.kind.String(), t.d.direct(), m.seq, t.c.attempt + 1, m.time,
		h[headerTimer], h[headerTag], h[headerCode], deadline, source, h[headerWire], t.notice(),
	})
}

func (t *turn) Config(key []byte) ([]byte, abi.Code) {
	if int64(len(key)) <= t.c.limits.StateKey { // looking up a long key costs by its length
		if v, ok := t.c.configText[string(key)]; ok {
			return v, abi.OK
		}
	}
	return nil, t.fail(abi.NotFound, "set it in the creature's config", "the configuration has no attribute %s", errtext.Quoted(key))
}

func (t *turn) Channel(alias []byte) int32 {
	in := t.c.handles
	if len(alias) == 0 || len(alias) > deploy.MaxNameBytes || !utf8.Valid(alias) {
		return t.fail(abi.InvalidArgument, "name a channel as the creature does", "an alias is UTF-8 of 1 to %d bytes", deploy.MaxNameBytes).Status()
	}
	if h, ok := in.index[string(alias)]; ok {
		return h
	}
	if len(in.names) >= t.c.limits.Handles {
		return t.overLimit("handles", int64(t.c.limits.Handles)).Status()
	}
	h := int32(len(in.names))
	name := string(alias)
	in.names = append(in.names, handle{alias: name})
	in.index[name] = h
	return h
}

// handles are the send aliases that an instance has looked up, by handle.
type handles struct {
	names []handle
	index map[string]int32
}

type handle struct {
	alias  string
	wiring *wiring // for which ch holds
	ch     *channel
}

func (t *turn) Send(h int32, payload, headers []byte) int32 {
	if code := t.effect(); code != abi.OK {
		return code.Status()
	}
	headers = journal.WithoutReserved(headers, t.d.msg.headers)
	if h == abi.AllChannels {
		return t.sendAll(payload, headers)
	}
	names := t.c.handles.names
	if h < 0 || int(h) >= len(names) {
		return t.fail(abi.InvalidArgument, "look handles up with the function channel", "%d is not a channel handle", h).Status()
	}
	known := &names[h]
	if known.wiring != t.wiring {
		known.wiring, known.ch = t.wiring, t.wiring.byAlias[known.alias]
	}
	if known.ch == nil {
		return t.fail(abi.NotConnected, "connect the creature to a channel under that alias", "the creature has no send alias %q", known.alias).Status()
	}
	if code := t.room(1, payload, headers); code != abi.OK {
		return code.Status()
	}
	t.sends = append(t.sends, sendEffect{alias: known.alias, ch: known.ch, payload: t.keep(payload), headers: t.keep(headers)})
	return 1
}

func (t *turn) sendAll(payload, headers []byte) int32 {
	edges := t.wiring.sends
	if len(edges) == 0 {
		return t.sendable(payload, headers).Status()
	}
	if code := t.room(len(edges), payload, headers); code != abi.OK {
		return code.Status()
	}
	p, hd := t.keep(payload), t.keep(headers)
	for _, e := range edges {
		t.sends = append(t.sends, sendEffect{alias: e.alias, ch: e.ch, payload: p, headers: hd})
	}
	return int32(len(edges))
}

// sendable checks a message, wherever it goes.
func (t *turn) sendable(payload, headers []byte) abi.Code {
	size := int64(len(payload) + len(headers))
	switch {
	case size > t.c.limits.Message:
		return t.fail(abi.TooLarge, "send smaller messages, or raise the limit", "the message has %d bytes; the limit message is %d", size, t.c.limits.Message)
	case !journal.ValidHeaders(headers):
		return t.fail(abi.InvalidArgument, "write name NUL value NUL for each header", "the headers are malformed")
	case journal.HasReservedHeader(headers):
		return t.fail(abi.InvalidArgument, "use another name", "the names of headers that begin with %s are the host's", journal.ReservedPrefix)
	}
	return abi.OK
}

// room checks and counts n sends of the same bytes.
func (t *turn) room(n int, payload, headers []byte) abi.Code {
	if code := t.sendable(payload, headers); code != abi.OK {
		return code
	}
	limits := &t.c.limits
	size := int64(len(payload) + len(headers))
	switch {
	case t.sendCount+n > limits.Sends:
		return t.overLimit("sends", int64(limits.Sends))
	case t.sendBytes+int64(n)*size > limits.SendBytes:
		return t.overLimit("send_bytes", limits.SendBytes)
	}
	t.sendCount += n
	t.sendBytes += int64(n) * size
	return abi.OK
}

func (t *turn) SendTo(to, payload []byte) abi.Code {
	if code := t.effect(); code != abi.OK {
		return code
	}
	target := t.peer(to)
	if target == nil {
		return t.fail(abi.NotFound, "name a creature of the own graph, by id or name", "there is no creature %s in this graph", errtext.Quoted(to))
	}
	if code := t.room(1, payload, nil); code != abi.OK {
		return code
	}
	t.sends = append(t.sends, sendEffect{to: target, payload: t.keep(payload)})
	return abi.OK
}

// peer finds a creature of the own graph by id or name, also one that the turn adds.
func (t *turn) peer(name []byte) *creature {
	if len(name) > deploy.MaxNameBytes {
		return nil
	}
	if c := t.neighbour(name); c != nil || !t.changesGraph() {
		return c
	}
	return t.addition(string(name))
}

// neighbour finds a creature that is in the own graph already.
func (t *turn) neighbour(name []byte) *creature {
	g := t.c.home.lock()
	if g == nil {
		return nil
	}
	defer g.mu.Unlock()
	if c := g.creatures[journal.CreatureID(name)]; c != nil {
		return c
	}
	return g.names[string(name)]
}

func (t *turn) Output(payload []byte) abi.Code {
	if code := t.effect(); code != abi.OK {
		return code
	}
	if int64(len(t.output))+int64(len(payload)) > t.c.limits.Output {
		return t.overLimit("output", t.c.limits.Output)
	}
	t.output, t.hasOutput = append(t.output, payload...), true
	return abi.OK
}

func (t *turn) absent(feature string) abi.Code {
	return t.fail(abi.Unsupported, "ask with the function feature first", "this host does not have the feature %s", feature)
}

func (t *turn) HTTP(_, _ []byte, _ int64) abi.Code { return t.absent("http") }

func (t *turn) Log(level abi.Level, text []byte) abi.Code {
	limits := &t.c.limits
	switch {
	case level < abi.LevelDebug || level > abi.LevelError:
		return t.fail(abi.InvalidArgument, "use 0 (debug) to 3 (error)", "%d is not a log level", level)
	case len(t.logs) >= limits.LogLines:
		return t.overLimit("log_lines", int64(limits.LogLines))
	case t.logBytes+int64(len(text)) > limits.LogBytes:
		return t.overLimit("log_bytes", limits.LogBytes)
	}
	t.logBytes += int64(len(text))
	t.logs = append(t.logs, logLine{level: level, text: t.c.veil.Text(strings.ToValidUTF8(string(text), "\uFFFD"))})
	return abi.OK
}

func (t *turn) Now() int64 {
	if t.c.spec.Grants.Clock {
		return t.e.clock.Now().UnixNano()
	}
	return t.now
}

// Random is seeded by the delivery's id and the creature's, so that listeners
// of one message draw different numbers, and each the same ones again when the
// turn is run again.
func (t *turn) Random(p []byte) {
	if t.c.spec.Grants.Random {
		crand.Read(p) // never fails
		return
	}
	if t.rng == nil {
		var seed [32]byte
		copy(seed[:], t.d.msg.id.Origin[:])
		binary.LittleEndian.PutUint64(seed[16:], t.d.msg.id.Seq)
		h := fnv.New64a()
		h.Write([]byte(t.c.id))
		binary.LittleEndian.PutUint64(seed[24:], h.Sum64()+uint64(t.kind))
		t.rng = rand.NewChaCha8(seed)
	}
	t.rng.Read(p)
}
