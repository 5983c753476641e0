package sdk_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/rehearsal"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sdk/internal/kits"
)

// stage is a reference creature on the host, with the checks and limits of an engine but
// outside of any graph.
type stage struct {
	t        testing.TB
	module   abi.Module
	r        *engine.Rehearsal
	instance abi.Instance
	state    map[string]bool
}

const (
	lowLimit     = 1 << 16
	messageLimit = 1 << 20 // the default
	valueLimit   = 1 << 20 // the default
)

func newStage(t testing.TB, m abi.Module, config string, limits abi.Limits) *stage {
	s := &stage{t: t, module: m, r: engine.NewRehearsal("subject")}
	sends := []journal.SettingEdge{{Alias: "out", Channel: "out"}, {Alias: "counts", Channel: "counts"}, {Alias: "answers", Channel: "answers"}}
	limits.Deadline = time.Minute // fuel bounds the work, on a busy machine too
	if err := s.r.Become(&journal.Setting{Name: "subject", Config: config, Sends: sends, Limits: limits}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stage) close() {
	if s.instance != nil {
		_ = s.instance.Close(context.WithoutCancel(s.t.Context())) // nothing in it is needed
		s.instance = nil
	}
}

// compiled returns the creatures of a kit by name, until the test ends.
func compiled(t *testing.T, k *kits.Kit) map[string]abi.Module {
	dir := modules(t, k)
	ctx := context.WithoutCancel(t.Context())
	h, err := host.New(ctx, host.Options{CacheDir: cache(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	out := map[string]abi.Module{}
	for _, name := range kits.Creatures {
		wasm, err := os.ReadFile(filepath.Join(dir, name+".wasm"))
		if err != nil {
			t.Fatal(err)
		}
		if out[name], err = h.Compile(ctx, wasm); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := out[name].Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	return out
}

// strained is a turn of the engine in which some sources and the results of tools are
// others.
type strained struct {
	abi.Turn
	sources map[abi.Source]string
	tool    string
}

func (x *strained) Source(s abi.Source) ([]byte, abi.Code) {
	if text, ok := x.sources[s]; ok {
		return []byte(text), abi.OK
	}
	return x.Turn.Source(s)
}

func (x *strained) Tool([]byte, []byte) ([]byte, abi.Code) { return []byte(x.tool), abi.OK }

func (x *strained) HasFeature(abi.Feature) bool { return true }

// strain is a delivery to a creature that is at a limit, or malformed.
type strain struct {
	name, creature string
	config         string // {} by default
	limits         abi.Limits
	kind           abi.Kind // message by default
	payload        string
	headers        string // in the form of the ABI
	sources        map[abi.Source]string
	tool           string
	// want is how the turn ends. For OK, sent is the size of what it sends or outputs; -1
	// stands for any. Malformed input may also be refused with an ordinary error.
	want      abi.Code
	sent      int
	malformed bool
	large     bool // it may use up the fuel of an interpreter
}

// deliver hands over the delivery and returns the error of the turn. An instance that
// failed is replaced.
func (s *stage) deliver(c *strain) (rehearsal.Effects, error) {
	x := &strained{sources: c.sources, tool: c.tool}
	if s.instance == nil {
		limits := s.r.Limits()
		x.Turn = s.r.Starting()
		instance, err := s.module.Instantiate(s.t.Context(), &limits, x)
		if err != nil {
			return s.r.Effects(), err
		}
		s.instance = instance
	}
	kind := c.kind
	if kind == 0 {
		kind = abi.KindMessage
	}
	d := &rehearsal.Delivery{
		Kind: kind, Channel: "in", Alias: "in", Seq: 1, Attempt: 1, Payload: []byte(c.payload), Headers: []byte(c.headers), Revision: 2,
	}
	x.Turn = s.r.Begin(d)
	s.r.Introduce("peer", "peer")
	err := s.instance.Handle(s.t.Context(), x, kind, len(c.payload))
	done := s.r.Effects()
	if err != nil {
		s.close()
		return done, err
	}
	for _, w := range done.Writes {
		s.r.Write(w.Key, w.Value, w.Deleted)
	}
	for _, timer := range done.Timers {
		s.r.SetTimer(timer)
	}
	return done, nil
}

// members is a result of group_status.
const members = `{"creatures":[{"id":"c1","name":"a","state":"running"},{"id":"c2","name":"b"}]}`

const wantFly = `{"want": "fly", "most": 1000}`

// headersOf returns the header want and another one; together they have a size.
func headersOf(size int) string {
	head := "want\x00fly\x00pad\x00"
	return head + strings.Repeat("h", size-len(head)-1) + "\x00"
}

// echoRoom is what is left for the headers of a message to picky that it echoes: it adds
// its payload and a header of its own.
const echoRoom = messageLimit - len("echo") - len("seen\x00yes\x00")

const depth = 100_000

var (
	deepList   = strings.Repeat("[", depth) + strings.Repeat("]", depth)
	deepObject = strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth)
)

// strains are what every kit has to stand.
func strains() []strain {
	list := []strain{
		{name: "an empty payload", creature: "shout", sent: 0},
		{name: "a payload at a low limit", creature: "shout", limits: abi.Limits{Message: lowLimit}, payload: strings.Repeat("x", lowLimit), sent: lowLimit},
		{name: "a payload beyond a low limit", creature: "shout", limits: abi.Limits{Message: lowLimit}, payload: strings.Repeat("x", lowLimit+1), want: abi.TooLarge},
		{name: "a payload at the limit", creature: "shout", payload: strings.Repeat("x", messageLimit), sent: messageLimit, large: true},
		{name: "a payload beyond the limit", creature: "shout", payload: strings.Repeat("x", messageLimit+1), want: abi.TooLarge, large: true},
		{name: "the largest payload from outside", creature: "shout", payload: strings.Repeat("x", 16<<20), want: abi.TooLarge, large: true},
		{name: "an empty text", creature: "tally", sent: -1},
		{name: "a text at the limit", creature: "picky", config: wantFly, payload: strings.Repeat("ä", messageLimit/2), headers: headersOf(20), want: abi.TooLarge},
		{name: "headers at the limit", creature: "picky", config: wantFly, payload: "echo", headers: headersOf(echoRoom), sent: messageLimit},
		{name: "headers beyond the limit", creature: "picky", config: wantFly, payload: "echo", headers: headersOf(echoRoom + 1), want: abi.TooLarge},
		{name: "many headers", creature: "picky", config: wantFly, payload: "echo", headers: headersOf(20) + manyHeaders(5_000), sent: -1},
		{name: "a state value at the limit", creature: "picky", config: wantFly, limits: abi.Limits{StateValue: valueLimit + 1}, payload: "big", headers: headersOf(20)},
		{name: "a state value beyond the limit", creature: "picky", config: wantFly, payload: "big", headers: headersOf(20), want: abi.TooLarge},
		{name: "a state value beyond the limit, caught", creature: "picky", config: wantFly, payload: "caught", headers: headersOf(20), sent: len("caught too_large")},
	}
	type source struct {
		name, creature string
		good           string
		with           func(text string) strain
	}
	for _, j := range []source{
		{"the configuration", "picky", wantFly, func(text string) strain {
			return strain{payload: "fuel", headers: headersOf(20), sources: map[abi.Source]string{abi.SourceConfig: text}}
		}},
		{"the details", "oracle", `{"kind":"result","attempt":1,"time":1,"tag":"7","code":"ok"}`, func(text string) strain {
			return strain{kind: abi.KindResult, payload: "answer", sources: map[abi.Source]string{abi.SourceDetail: text}}
		}},
		{"the result of a tool", "scout", members, func(text string) strain {
			return strain{payload: "members", tool: text}
		}},
		{"the awareness document", "scout", `{"revision":2,"self":{"id":"c1","name":"a"},"channels":{"total":1,"items":[{"id":"h1","name":"in","listen":"in"}]}}`, func(text string) strain {
			return strain{kind: abi.KindGraphChanged, sources: map[abi.Source]string{abi.SourceAwarenessJSON: text, abi.SourceAwarenessRevision: "2"}}
		}},
	} {
		add := func(what, text string) {
			c := j.with(text)
			c.name, c.creature, c.malformed = j.name+" "+what, j.creature, true
			if c.creature == "picky" {
				c.config = wantFly
			}
			list = append(list, c)
		}
		add("as it is", j.good)
		list[len(list)-1].malformed, list[len(list)-1].sent = false, -1
		for n := range len(j.good) {
			add(fmt.Sprintf("cut at %d", n), j.good[:n])
		}
		add("with a deep list", strings.TrimSuffix(j.good, "}")+`,"x":`+deepList+"}")
		add("with a deep object", `{"x":`+deepObject+","+j.good[1:])
		add("of open lists", strings.Repeat("[", depth))
		add("of open objects", strings.Repeat(`{"a":`, depth))
		add("that is a list", deepList)
		add("with a cut escape", `{"`+`\u00`)
		add("that is not UTF-8", "{\"\xff\xfe\":\"\xff\"}")
		add("that is a huge number", `{"most":`+strings.Repeat("9", 1000)+`,"tag":"`+strings.Repeat("9", 1000)+`"}`)
		add("that is NUL", "\x00")
	}
	return list
}

func manyHeaders(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "h%d\x00%d\x00", i, i)
	}
	return b.String()
}

// TestRobust hands payloads, headers and values at the limits, and malformed JSON, to the
// creatures of every kit. A turn ends as the contract says, and never with a trap.
func TestRobust(t *testing.T) {
	all := strains()
	for i, k := range kits.All {
		if !seeded.Part(i, 3) {
			continue
		}
		t.Run(k.Language, func(t *testing.T) {
			creatures := compiled(t, &k)
			for i := range all {
				c := &all[i]
				s := newStage(t, creatures[c.creature], cmp.Or(c.config, "{}"), c.limits)
				done, err := s.deliver(c)
				exhausted := c.large && k.Language == "JavaScript" && abi.CodeOf(err) == abi.OutOfFuel
				if problem := wantStrain(c, done, err); problem != "" && !exhausted {
					t.Errorf("%s: %s", c.name, problem)
				}
				s.close()
			}
		})
	}
}

// wantStrain returns what is wrong with the end of a turn.
func wantStrain(c *strain, done rehearsal.Effects, err error) string {
	for _, line := range done.Logs {
		if !utf8.ValidString(line.Text) {
			return fmt.Sprintf("the log line %q is not UTF-8", line.Text)
		}
	}
	code := abi.CodeOf(err)
	switch {
	case c.malformed && err != nil:
		if code != abi.InvalidArgument && code != abi.Failed && code != abi.NotFound || len(done.Logs) == 0 {
			return fmt.Sprintf("it ends with %s and %d log lines: %.300s", code, len(done.Logs), err)
		}
	case c.malformed:
	case err != nil || c.want != abi.OK:
		if code != c.want {
			return fmt.Sprintf("it ends with %.300v, want %s", err, c.want)
		}
	case c.sent >= 0:
		size := len(done.Output)
		for _, s := range done.Sends {
			size = max(size, len(s.Payload)+len(s.Headers))
		}
		if size != c.sent {
			return fmt.Sprintf("it sends %d bytes, want %d", size, c.sent)
		}
	}
	return ""
}

// collected is the memory that a language may reach before its collector frees anything:
// that of Go begins when the heap reaches 4 MiB.
var collected = map[string]int64{"Go": 8 << 20}

// TestMemoryOfKits proves that turns leave nothing in linear memory. TERRARIUM_TURNS sets
// how many turns.
func TestMemoryOfKits(t *testing.T) {
	turns := 2_000
	if more, err := strconv.Atoi(os.Getenv("TERRARIUM_TURNS")); err == nil {
		turns = more
	}
	work := map[string]struct {
		config   string
		delivery func(n int) strain
	}{
		"shout":  {"{}", func(n int) strain { return strain{payload: strings.Repeat("frog ", 1+n%400)} }},
		"tally":  {"{}", func(n int) strain { return strain{payload: "frog" + strconv.Itoa(n%50)} }},
		"ticker": {"{}", func(n int) strain { return strain{payload: "in 10 t" + strconv.Itoa(n%5) + " a text"} }},
		"oracle": {"{}", func(n int) strain { return strain{payload: "tell peer " + strings.Repeat("x", n%300)} }},
		"scout": {"{}", func(n int) strain {
			return strain{payload: "members", tool: members}
		}},
		"picky": {wantFly, func(n int) strain { return strain{payload: "echo", headers: headersOf(20 + n%500)} }},
	}
	for i, k := range kits.All {
		if !seeded.Part(i, 3) {
			continue
		}
		t.Run(k.Language, func(t *testing.T) {
			creatures := compiled(t, &k)
			for _, name := range kits.Creatures {
				s := newStage(t, creatures[name], work[name].config, abi.Limits{})
				var early int64
				for n := range turns {
					c := work[name].delivery(n)
					if _, err := s.deliver(&c); err != nil {
						t.Fatalf("%s: turn %d: %v", name, n, err)
					}
					if n == turns/2 {
						early = s.instance.MemoryBytes()
					}
				}
				if now := s.instance.MemoryBytes(); now > max(early, collected[k.Language]) {
					t.Errorf("%s: the memory grew from %d to %d bytes", name, early, now)
				}
				s.close()
			}
		})
	}
}
