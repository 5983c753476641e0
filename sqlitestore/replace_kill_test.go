package sqlitestore

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/replay"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
)

const killsPerReplaced = 6 // of one directory

// TestKilledReplacing kills a process that replaces the modules of creatures while they handle
// messages, requests, results and timers. The process dies before or after a transaction, or at
// a random moment, and the next process continues by itself.
//
// After every life, the rows name the module of the last replacement in the log, and every
// output of a creature is that of the module that it had at that time. Each replacement that
// was acknowledged is in the log once, and so is each message. Every recorded turn has the same
// effects again on the module that the log names for it. In the end, each creature has received
// every message, timer, request and result once.
func TestKilledReplacing(t *testing.T) {
	t.Parallel()
	seeded.Long(t)
	seed := seeded.For(t.Name())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	died, replacements := map[string]int{}, 0
	for todo := errandKills(t); todo > 0; todo -= killsPerReplaced {
		b := &replaceReports{t: t, dir: t.TempDir(), random: random, begun: map[string]bool{}, done: map[string]bool{}}
		b.live(failpoint.Count + 1) // the first life must leave a session
		for range min(todo, killsPerReplaced) {
			point := []failpoint.Point{failpoint.Appending, failpoint.Appended, failpoint.Count}[random.IntN(3)]
			died[b.live(point)]++
		}
		if got := b.live(failpoint.Count + 1); got != "its own end" {
			t.Fatal("the last life did not reach its end")
		}
		b.checkEnd()
		replacements += len(b.done)
	}
	t.Logf("lives ended at %v; %d replacements were acknowledged", died, replacements)
}

// replaceReports is what the lives of one directory have reported, and what follows from it.
type replaceReports struct {
	t           *testing.T
	dir         string
	random      *rand.Rand
	lives       int
	goal, acked uint64
	begun, done map[string]bool // replacements that were begun, and acknowledged
}

// live lets a process run until it dies at the point, checks what it leaves, and returns
// where it ended.
func (b *replaceReports) live(point failpoint.Point) string {
	b.t.Helper()
	b.lives++
	b.goal += 60 + b.random.Uint64N(100)
	o := order{Dir: b.dir, Point: point, Pass: 1 + b.random.Int32N(40), Lines: 60}
	a := &errand{Word: "replace", Replace: &replacing{Life: b.lives, Goal: b.goal}}
	lines, done := a.sendOff(b.t, o, b.random)
	for _, line := range lines {
		switch line.Word {
		case "ok":
			b.acked = max(b.acked, line.Seq)
		case "replacing":
			b.begun[line.Text] = true
		case "replaced":
			b.done[line.Text] = true
		}
	}
	b.check()
	switch {
	case b.t.Failed():
		b.t.Fatalf("after a life that was to end at %s, pass %d", pointName(point), o.Pass)
	case done:
		return "its own end"
	}
	return pointName(point)
}

// check checks what a life has left, without changing it.
func (b *replaceReports) check() {
	b.t.Helper()
	v := mustView(b.t, b.dir)
	graphs, problems, err := v.Live(b.t.Context())
	if err != nil || len(problems) > 0 || len(graphs) > 1 {
		b.t.Fatal(graphs, problems, err)
	}
	if len(graphs) == 0 {
		return // the process died before it had begun
	}
	g := graphs[0]
	wantWhole(b.t, v, g.Session)
	modules := b.checkLog(v, g)
	for _, c := range g.Creatures {
		if want := modules[c.ID]; c.Module != want || c.SHA256 != sumOf(want) {
			b.t.Errorf("%s has the module %s (%s), but the log says %s", c.Name, c.Module, c.SHA256, want)
		}
		for key, count := range b.state(v, g, c.Name) {
			if count != "|" {
				b.t.Errorf("%s has received %s %d times", c.Name, key, len(count))
			}
		}
	}
	b.checkTimers(v, g)
	b.replay(v)
}

// checkTimers checks that each timer that the singer has set has fired once or is still set.
func (b *replaceReports) checkTimers(v *View, g journal.SavedGraph) {
	b.t.Helper()
	count := map[string]int{}
	for _, timer := range g.Timers {
		count[timer.Name]++
	}
	fired, err := v.History(b.t.Context(), g.Session, journal.HistoryQuery{Kinds: []journal.EventKind{journal.EventTimer}, Limit: 1 << 30})
	if err != nil {
		b.t.Fatal(err)
	}
	for i := range fired {
		count[string(fired[i].Payload)]++
	}
	state := b.state(v, g, singer)
	for n := uint64(timerGap); n <= b.goal; n += timerGap {
		set := 0
		if state[fmt.Sprintf("%d %d", abi.KindMessage, n)] != "" {
			set = 1
		}
		if got := count[fmt.Sprint(n)]; got != set {
			b.t.Errorf("the timer %d was set %d times, and is set or has fired %d times", n, set, got)
		}
	}
}

// checkLog reads the log, and returns the modules that the creatures have at its end.
func (b *replaceReports) checkLog(v *View, g journal.SavedGraph) map[journal.CreatureID]string {
	b.t.Helper()
	modules, found, messages := map[journal.CreatureID]string{}, map[string]int{}, uint64(0)
	for _, c := range g.Creatures {
		modules[c.ID] = c.Name + " 0 0"
	}
	events, err := v.History(b.t.Context(), g.Session, journal.HistoryQuery{Limit: 1 << 30})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, ev := range events {
		switch ev.Kind {
		case journal.EventModuleReplaced:
			var p journal.ModuleReplacedPayload
			if err := json.Unmarshal(ev.Payload, &p); err != nil || p.Former != modules[ev.Creature] || !b.begun[p.Module] {
				b.t.Errorf("the log says that %s was replaced by %s, but the module was %s; %v", p.Former, p.Module, modules[ev.Creature], err)
			}
			modules[ev.Creature] = p.Module
			found[p.Module]++
		case journal.EventOutput:
			if module := modules[ev.Creature]; !strings.HasPrefix(string(ev.Payload), module+" ") {
				b.t.Errorf("%s was written by a creature with the module %s", ev.Payload, module)
			}
		case journal.EventChannelMessage:
			if messages++; string(ev.Payload) != fmt.Sprint(messages) || ev.Seq != messages {
				b.t.Errorf("message %d is %s, with the number %d", messages, ev.Payload, ev.Seq)
			}
		case journal.EventDeadLetter, journal.EventTurnFailed:
			b.t.Errorf("an event %s: %s", ev.Kind, ev.Payload)
		}
	}
	for module, n := range found {
		if n != 1 {
			b.t.Errorf("the log has the replacement by %s %d times", module, n)
		}
	}
	for module := range b.done {
		if found[module] == 0 {
			b.t.Errorf("the log lacks the replacement by %s, which was acknowledged", module)
		}
	}
	if messages < b.acked {
		b.t.Errorf("there are %d messages, but %d were acknowledged", messages, b.acked)
	}
	return modules
}

// replay runs every turn again on the module that the log names for it.
func (b *replaceReports) replay(v *View) {
	b.t.Helper()
	report, err := replay.Run(b.t.Context(), replay.Options{
		Source: v, Host: voice{}, All: true,
		Load: func(_ context.Context, module string) ([]byte, error) { return []byte(module), nil },
	})
	if err != nil || report.Differ > 0 || report.Skipped() > 0 {
		b.t.Errorf("a replay finds %+v, %v", report, err)
	}
}

func (b *replaceReports) state(v *View, g journal.SavedGraph, name string) map[string]string {
	b.t.Helper()
	at := slices.IndexFunc(g.Creatures, func(c journal.CreatureRow) bool { return c.Name == name })
	if at < 0 {
		b.t.Fatalf("%s does not exist", name)
	}
	state, err := v.State(b.t.Context(), g.Session, g.Creatures[at].ID)
	if err != nil {
		b.t.Fatal(err)
	}
	out := map[string]string{}
	for key, value := range state {
		out[key] = string(value)
	}
	return out
}

// checkEnd checks that each creature has received everything, except for timers that are still
// set.
func (b *replaceReports) checkEnd() {
	b.t.Helper()
	v := mustView(b.t, b.dir)
	graphs, _, err := v.Live(b.t.Context())
	if err != nil || len(graphs) != 1 {
		b.t.Fatal(graphs, err)
	}
	g := graphs[0]
	want := map[string][]abi.Kind{singer: {abi.KindMessage, abi.KindRequest}, asker: {abi.KindMessage, abi.KindResult}}
	for name, kinds := range want {
		state := b.state(v, g, name)
		for _, kind := range kinds {
			for n := uint64(1); n <= b.goal; n++ {
				if key := fmt.Sprintf("%d %d", kind, n); state[key] == "" {
					b.t.Errorf("%s has not received %s", name, key)
				}
			}
		}
	}
	if n := len(g.Requests); n > 0 {
		b.t.Errorf("%d requests are left", n)
	}
	wantTidy(b.t, b.dir)
}
