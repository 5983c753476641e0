package sqlitestore

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
)

// editPoints are where a life of editors is ended, besides random moments: at the steps of
// cuts, and at those right before and after them.
var editPoints = []failpoint.Point{
	failpoint.Parked, failpoint.Filling, failpoint.Filled, failpoint.Cutting, failpoint.Cut, failpoint.Frozen, failpoint.Opened,
	failpoint.Appending, failpoint.Appended, failpoint.Standing, failpoint.Completing, failpoint.Completed, failpoint.Moved, failpoint.Released,
}

const (
	killsPerEditors = 12 // of one session, whose every cut copies the history
	ordersPerLife   = 60 // of each side, in a life that does not end before
)

// TestKilledEditors kills a process in which two real creatures edit their graphs with tools,
// as random orders request. They spawn, remove, stop and start workers, wire their outputs,
// make and delete channels, and merge and split the two graphs. The process dies at the steps
// of cuts and at random moments, and the next process continues by itself.
//
// After every life, the editors' answers in the log match the store, and then the engine,
// exactly: by id, once, and nothing else. So no turn lacks its changes, and no change lacks its
// turn. Every answer that was printed is one of them. Each worker has received everything since
// the turn that spawned it, once. There were never more workers than allowed, and every session
// is sound.
func TestKilledEditors(t *testing.T) {
	t.Parallel()
	n := (kills(t) + 3) / 4
	for i, durability := range []journal.Durability{journal.Full, journal.Normal} {
		t.Run(durability.String(), func(t *testing.T) {
			t.Parallel()
			seed := seeded.For(t.Name())
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			cache := t.TempDir()
			for todo := editTargets(random, i, n); len(todo) > 0; {
				now := min(len(todo), killsPerEditors)
				b := newEditorReports(t, durability, random, cache)
				for _, point := range todo[:now] {
					b.live(point)
				}
				b.finish()
				todo = todo[now:]
			}
		})
	}
}

// editTargets returns n points to die at: half of the points first, then the others, and every
// third time a random moment (failpoints).
func editTargets(random *rand.Rand, first, n int) (out []failpoint.Point) {
	for i := first; len(out) < n; i += 2 {
		if len(out)%3 == 0 {
			out = append(out, failpoint.Count)
		}
		out = append(out, editPoints[(i+i/len(editPoints))%len(editPoints)])
	}
	random.Shuffle(n, func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:n]
}

// editorReports is what the lives of one session have reported, and what follows from it.
type editorReports struct {
	t          *testing.T
	dir, cache string
	durability journal.Durability
	random     *rand.Rand
	seed       uint64 // of the orders
	teams      map[string]*team
	printed    map[string]map[string]string // answers by side and event id
	logged     map[string][]journal.EventID // answers by side
	cuts       map[journal.CutKind]int      // sessions by what made them
	died       map[string]int               // by what ended a life

	// These belong to the life that continues: what the teams were before it applied their
	// deployments, the graphs that it has reported, and whether it reached its end.
	before map[string]*team
	graphs [][]string
	done   bool
}

func newEditorReports(t *testing.T, d journal.Durability, random *rand.Rand, cache string) *editorReports {
	b := &editorReports{
		t: t, dir: t.TempDir(), cache: cache, durability: d, random: random, seed: random.Uint64(),
		teams: map[string]*team{}, printed: map[string]map[string]string{}, logged: map[string][]journal.EventID{}, died: map[string]int{},
	}
	for _, side := range sides {
		b.teams[side], b.printed[side] = newTeam(side), map[string]string{}
	}
	return b
}

// live lets a process edit until it dies at the point, and checks what it leaves.
func (b *editorReports) live(point failpoint.Point) {
	b.t.Helper()
	if len(b.printed["left"]) == 0 {
		point = failpoint.Count // first of all, there must be a directory
	}
	pass := 1 + b.random.Int32N(2)
	if point == failpoint.Appending || point == failpoint.Appended {
		pass = 1 + b.random.Int32N(80)
	}
	b.run(order{Dir: b.dir, Durability: b.durability.String(), Seed: b.random.Uint64(), Point: point, Pass: pass})
	if b.done {
		b.died["its own end"]++
	} else {
		b.died[pointName(point)]++
	}
	b.check()
	if b.t.Failed() {
		b.t.Fatalf("after a life that was to end at %s, pass %d", pointName(point), pass)
	}
}

// finish lets a process edit until its end, and checks that nothing is left to be done.
func (b *editorReports) finish() {
	b.t.Helper()
	b.run(order{Dir: b.dir, Durability: b.durability.String(), Point: failpoint.Count + 1})
	if !b.done {
		b.t.Fatal("the last life did not reach its end")
	}
	b.check()
	b.checkEnd()
	refused := map[string]int{}
	for _, m := range b.teams {
		for code, n := range m.refused {
			refused[code] += n
		}
	}
	b.t.Logf("%d and %d orders, refused %v; sessions by %v; lives ended at %v", b.teams["left"].answered, b.teams["right"].answered, refused, b.cuts, b.died)
}

func (b *editorReports) run(o order) {
	b.t.Helper()
	goal := max(uint64(len(b.logged["left"])), uint64(len(b.logged["right"]))) + ordersPerLife + mostOrders + 1
	o.Editing = &editing{Cache: b.cache, Seed: b.seed, Goal: goal}
	b.before, b.graphs, b.done = map[string]*team{}, nil, false
	runVictim(b.t, o, b.random, b.listen)
}

// listen notes what a life reports.
func (b *editorReports) listen(text []byte) {
	b.t.Helper()
	var line said
	if json.Unmarshal(text, &line) != nil {
		return // an incomplete line means nothing
	}
	switch line.Word {
	case "applying":
		b.before[line.Side] = b.teams[line.Side].clone()
	case "applied":
		b.teams[line.Side].applied()
	case "graph":
		b.graphs = append(b.graphs, line.Graph)
		if len(b.graphs) < 3 && len(b.logged["left"])+len(b.logged["right"]) > 0 { // no editor has begun yet
			b.compare("the engine, to begin with,", line.Graph)
		}
	case "answer":
		printed := b.printed[line.Side]
		if before, known := printed[line.ID]; known && before != line.Payload {
			b.t.Errorf("%s was printed as %s, but is %s now", line.ID, before, line.Payload)
		}
		printed[line.ID] = line.Payload
	case "done":
		b.done = true
	case "error":
		b.t.Errorf("the victim failed: %s", line.Text)
	}
}

// want returns the lines that are expected.
func (b *editorReports) want() []string {
	graphs := 0
	var out []string
	for _, m := range b.teams {
		if lines := m.lines(); len(lines) > 0 {
			graphs++
			out = append(out, lines...)
		}
	}
	if graphs == 2 && (b.teams["left"].joined() || b.teams["right"].joined()) {
		graphs = 1
	}
	out = append(out, graphsLine(graphs))
	slices.Sort(out)
	return out
}

func (b *editorReports) compare(who string, got []string) {
	b.t.Helper()
	for _, line := range unlike(got, b.want()) {
		b.t.Errorf("%s: %s", who, line)
	}
}
