package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/plugins"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// TestKillReplace kills exec while it replaces the module of a creature that counts messages
// and reports after each. Every version of the module has another word in its reports. After
// every kill the creature has the module of the last replacement in the log, and each report
// is of the module that the creature had then, and of one message more than the report before
// it. No message that was answered is lost or counted twice.
func TestKillReplace(t *testing.T) {
	t.Parallel()
	seeded.Long(t)
	seed := seeded.For(t.Name())
	t.Logf("seed %d", seed)
	wasm, err := plugins.Get("tally")
	if err != nil {
		t.Fatal(err)
	}
	x := &swaps{t: t, dir: t.TempDir(), wasm: wasm, random: rand.New(rand.NewPCG(seed, 0)), asked: map[string]bool{}, replaced: map[string]bool{}}
	x.begin()
	for range kills(t, 3) {
		x.life(1 + x.random.IntN(300))
		x.check()
	}
	x.finish()
	t.Logf("%d messages; %d replacements were asked for, and %d answered", x.acked, len(x.asked), len(x.replaced))
}

// swaps records what the lives of one session were asked, and what they answered.
type swaps struct {
	t               *testing.T
	dir             string
	wasm            []byte
	random          *rand.Rand
	sent, acked     int
	asked, replaced map[string]bool // modules
}

// module writes another version of the module.
func (x *swaps) module() string {
	x.t.Helper()
	word := fmt.Sprintf("v%05d", len(x.asked))
	version := bytes.Replace(x.wasm, []byte(`{"counts":{`), []byte(`{"`+word+`":{`), 1)
	if bytes.Equal(version, x.wasm) {
		x.t.Fatal("tally does not report counts any more")
	}
	name := word + ".wasm"
	if err := os.WriteFile(filepath.Join(x.dir, name), version, 0o600); err != nil {
		x.t.Fatal(err)
	}
	x.asked[name] = true
	return name
}

func (x *swaps) begin() {
	x.t.Helper()
	first := x.module()
	p := start(x.t, x.dir, "exec", "--session", "S")
	p.ask(`{"op":"add_creature","name":"census","module":"` + first + `","config":{"key":"field:2","every":1}}`)
	p.ask(`{"op":"add_creature","name":"neighbour","module":"builtin:relay"}`)
	p.ask(`{"op":"connect","from":"neighbour","to":"census","channel":"lines"}`)
	p.ask(`{"op":"set_send","creature":"neighbour","channel":"lines","on":false}`)
	p.ask(`{"op":"set_listen","creature":"neighbour","channel":"lines","on":true}`)
	for name, creature := range map[string]string{"report": "census", "seen": "neighbour"} {
		p.ask(`{"op":"add_channel","graph":"` + creature + `","name":"` + name + `"}`)
		p.ask(`{"op":"set_send","creature":"` + creature + `","channel":"` + name + `","on":true}`)
	}
	p.in.Close()
	p.wait()
}

// life sends messages and replaces modules until there are so many answers, and then kills
// the process. It does not wait for an answer before it asks for more.
func (x *swaps) life(answers int) {
	x.t.Helper()
	p := start(x.t, x.dir, "exec", "--session", "S")
	requests := make([]string, 0, answers+100)
	asks := make([]func(), cap(requests)) // what an answer means
	for i := range asks {
		if x.random.IntN(8) == 0 {
			name := x.module()
			requests = append(requests, fmt.Sprintf(`{"id":%d,"op":"replace_module","creature":"census","module":"%s"}`, i, name))
			asks[i] = func() { x.replaced[name] = true }
			continue
		}
		x.sent++
		n := x.sent
		requests = append(requests, fmt.Sprintf(`{"id":%d,"op":"send","channel":"lines","payload":"%d","producer":"test","offset":%d,"durable":%t}`, i, n, n, n%5 == 0))
		asks[i] = func() {
			if n%5 == 0 {
				x.acked = max(x.acked, n)
			}
		}
	}
	var writing sync.WaitGroup
	writing.Go(func() {
		for _, line := range requests {
			if _, err := io.WriteString(p.in, line+"\n"); err != nil {
				return // it has been killed
			}
		}
	})
	for range answers {
		var answer struct {
			ID    int
			OK    bool
			Error json.RawMessage
		}
		if err := json.Unmarshal([]byte(p.line()), &answer); err != nil || !answer.OK {
			x.t.Fatalf("%+v, %s, %v", answer, answer.Error, err)
		}
		asks[answer.ID]()
	}
	if code := p.signal(os.Kill); code != -1 {
		x.t.Fatalf("it was to be killed, and ended with %d\n%s", code, p.stderr)
	}
	writing.Wait()
}

// check reads the session that a killed process has left, and continues with the messages
// that it has.
func (x *swaps) check() {
	x.t.Helper()
	verifyAll(x.t, filepath.Join(x.dir, "S"))
	v, err := sqlitestore.OpenReadOnly(x.t.Context(), filepath.Join(x.dir, "S"))
	if err != nil {
		x.t.Fatal(err)
	}
	defer v.Close()
	graphs, problems, err := v.Live(x.t.Context())
	if err != nil || len(problems) > 0 || len(graphs) != 1 {
		x.t.Fatal(graphs, problems, err)
	}
	events, err := v.History(x.t.Context(), graphs[0].Session, journal.HistoryQuery{Limit: 1 << 30})
	if err != nil {
		x.t.Fatal(err)
	}
	channels := map[journal.ChannelID]string{}
	for _, ch := range graphs[0].Channels {
		channels[ch.ID] = ch.Name
	}
	at := slices.IndexFunc(graphs[0].Creatures, func(c journal.CreatureRow) bool { return c.Name == "census" })
	x.sent = x.checkLog(events, channels, graphs[0].Creatures[at].Module)
}

// checkLog checks replacements, reports and messages, and returns how many messages there
// are.
func (x *swaps) checkLog(events []journal.Event, channels map[journal.ChannelID]string, last string) int {
	x.t.Helper()
	module, reports, count, found := "v00000.wasm", 0, map[string]int{}, map[string]bool{}
	for i := range events {
		ev := &events[i]
		name := channels[ev.Channel]
		switch {
		case ev.Kind == journal.EventModuleReplaced:
			var p journal.ModuleReplacedPayload
			if err := json.Unmarshal(ev.Payload, &p); err != nil || p.Former != module || found[p.Module] || !x.asked[p.Module] {
				x.t.Errorf("after %s: %s, %v", module, ev.Payload, err)
			}
			module = p.Module
			found[module] = true
		case ev.Kind == journal.EventChannelMessage && name == "report":
			reports++
			word := strings.TrimSuffix(module, ".wasm")
			if want := fmt.Sprintf(`{"%s":{"(none)":%d},"total":%d}`, word, reports, reports); string(ev.Payload) != want {
				x.t.Errorf("report %d is %s, want %s", reports, ev.Payload, want)
			}
		case ev.Kind == journal.EventChannelMessage:
			count[name]++
			if string(ev.Payload) != fmt.Sprint(count[name]) {
				x.t.Errorf("message %d on %s is %s", count[name], name, ev.Payload)
			}
		case ev.Kind == journal.EventDeadLetter, ev.Kind == journal.EventTurnFailed:
			x.t.Errorf("an event %s: %s", ev.Kind, ev.Payload)
		}
	}
	for name := range x.replaced {
		if !found[name] {
			x.t.Errorf("the replacement by %s was answered, and is not in the log", name)
		}
	}
	if count["lines"] < x.acked || reports > count["lines"] || count["seen"] > count["lines"] || last != module {
		x.t.Errorf("%d messages, %d of them acknowledged; %v, %d reports; the module is %s, want %s", count["lines"], x.acked, count, reports, last, module)
	}
	return count["lines"]
}

// finish lets a process handle everything, and replays all turns, each on its module.
func (x *swaps) finish() {
	x.t.Helper()
	p := start(x.t, x.dir, "exec", "--session", "S")
	p.ask(`{"op":"wait_idle"}`)
	total := string(p.ask(`{"op":"state","creature":"census","prefix":"total"}`))
	if want := fmt.Sprintf(`{"state":{"total":"%d"}}`, x.sent); total != want {
		x.t.Errorf("it has counted %s, want %s", total, want)
	}
	p.in.Close()
	if code := p.wait(); code != exitOK {
		x.t.Fatalf("exit code %d\n%s", code, p.stderr)
	}
	x.check()
	once(x.t, x.dir, "", "replay", "S", "--all") // which fails if a turn differs
}
