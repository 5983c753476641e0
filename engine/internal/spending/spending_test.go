package spending

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine/journal"
)

const llm = "llm.main"

// world is the simplest model of ledgers: how much every creature has used, and what each graph
// knows of that.
type world struct {
	graphs []*place
	homes  map[journal.CreatureID]int
}

type place struct {
	ledger Ledger
	known  map[journal.CreatureID]int64 // what a creature had used when the graph last knew it
}

// TestLedgersFollowGraphs splits and merges graphs at random while creatures use budgets, and
// compares each ledger with the model after it was written and read.
func TestLedgersFollowGraphs(t *testing.T) {
	r := rand.New(rand.NewPCG(27, 3))
	for range 50 {
		w := world{homes: map[journal.CreatureID]int{}, graphs: []*place{{known: map[journal.CreatureID]int64{}}}}
		names := []journal.CreatureID{"c1", "c2", "c3", "c4", "c5"}
		for _, c := range names {
			w.homes[c] = 0
		}
		for range 60 {
			c := names[r.IntN(len(names))]
			g := w.graphs[w.homes[c]]
			switch r.IntN(6) {
			case 0: // a split: the creature gets a graph of its own
				next := &place{known: maps.Clone(g.known)}
				next.ledger.Inherit(g.ledger)
				w.homes[c] = len(w.graphs)
				w.graphs = append(w.graphs, next)
			case 1: // a merge with the graph of another creature
				d := names[r.IntN(len(names))]
				from := w.homes[d]
				if from == w.homes[c] {
					continue
				}
				g.ledger.Inherit(w.graphs[from].ledger)
				for k, n := range w.graphs[from].known {
					// The graph that has the creature knows best.
					if w.homes[k] == from || g.known[k] == 0 && w.homes[k] != w.homes[c] {
						g.known[k] = n
					} else if w.homes[k] != w.homes[c] {
						g.known[k] = later(g, w.graphs[from], k)
					}
				}
				for k, home := range w.homes {
					if home == from {
						w.homes[k] = w.homes[c]
					}
				}
			default:
				n := int64(r.IntN(100) - 30)
				if n = max(n, -g.known[c]); n == 0 {
					continue
				}
				if _, err := g.ledger.Change(nil, Key{llm, c}, journal.EventID{}, nil, map[string]int64{"tokens": n}); err != nil {
					t.Fatal(err)
				}
				g.known[c] += n
			}
			var read Ledger
			rest := read.Read(g.ledger.Meta(map[string]string{"deployment": "d"}))
			if len(rest) != 1 || rest["deployment"] != "d" {
				t.Fatalf("the rest is %v", rest)
			}
			var sum int64
			for k, n := range g.known {
				if got := read.Used(Key{llm, k})["tokens"]; got != n && w.homes[k] == w.homes[c] {
					t.Fatalf("%s has used %d, want %d", k, got, n)
				}
				sum += read.Used(Key{llm, k})["tokens"]
			}
			if got := read.Graph(llm)["tokens"]; got != sum {
				t.Fatalf("the graph has used %d, want %d", got, sum)
			}
		}
	}
}

// later returns what the graph with the newer knowledge knows of a creature that is in neither
// of two graphs.
func later(a, b *place, k journal.CreatureID) int64 {
	key := Key{llm, k}
	x, y := a.ledger.used[key]["tokens"], b.ledger.used[key]["tokens"]
	return max(x.Charged, y.Charged) - max(x.Returned, y.Returned)
}

// TestSplitAndMergeCountOnce proves that what a graph had used before a split counts once after
// a merge, although both parts remember it.
func TestSplitAndMergeCountOnce(t *testing.T) {
	var whole, part Ledger
	change := func(l *Ledger, c journal.CreatureID, n int64) {
		t.Helper()
		if _, err := l.Change(nil, Key{llm, c}, journal.EventID{}, nil, map[string]int64{"tokens": n}); err != nil {
			t.Fatal(err)
		}
	}
	change(&whole, "a", 100)
	change(&whole, "b", 4000) // a reservation
	part.Inherit(whole)
	change(&part, "b", -3990) // b is in the part, which settles the reservation
	change(&whole, "a", 7)
	if part.Graph(llm)["tokens"] != 110 || whole.Graph(llm)["tokens"] != 4107 {
		t.Errorf("the parts have used %v and %v", part.Graph(llm), whole.Graph(llm))
	}
	whole.Inherit(part)
	if got := whole.Graph(llm)["tokens"]; got != 117 {
		t.Errorf("after the merge, the graph has used %d, want 117", got)
	}
	whole.Inherit(whole)
	if got := whole.Graph(llm)["tokens"]; got != 117 {
		t.Errorf("after inheriting from itself, the graph has used %d, want 117", got)
	}
}

// TestBudgets proves which changes are refused, and that a refused change has no effect.
func TestBudgets(t *testing.T) {
	var l Ledger
	budgets := []capability.Budget{{Unit: "tokens", Creature: 100, Graph: 150}, {Unit: "money", Graph: 1000}}
	for _, tt := range []struct {
		creature journal.CreatureID
		change   map[string]int64
		code     abi.Code
	}{
		{"a", map[string]int64{"tokens": 100, "money": 600}, abi.OK},
		{"a", map[string]int64{"tokens": 1}, abi.LimitExceeded},
		{"b", map[string]int64{"tokens": 51}, abi.LimitExceeded},
		{"b", map[string]int64{"tokens": 50, "money": 401}, abi.LimitExceeded},
		{"b", map[string]int64{"tokens": 50, "money": 400}, abi.OK},
		{"c", map[string]int64{"tokens": 1}, abi.LimitExceeded},
		{"c", map[string]int64{"other": 1 << 40}, abi.OK},
	} {
		var rec journal.Record
		before := l.Graph(llm)
		ev, err := l.Change(&rec, Key{llm, tt.creature}, journal.EventID{}, budgets, tt.change)
		if abi.CodeOf(err) != tt.code || (err == nil) != (len(rec.Meta) == 1 && ev.Kind == journal.EventBudgetChanged) {
			t.Errorf("%s %v: %v, %v", tt.creature, tt.change, err, rec.Meta)
		}
		if err != nil && !maps.Equal(before, l.Graph(llm)) {
			t.Errorf("after a refused change, the graph has used %v", l.Graph(llm))
		}
	}
	if got := Difference(map[string]int64{"a": 5, "b": 3}, map[string]int64{"a": 7, "c": 1, "b": -9}); !maps.Equal(got, map[string]int64{"a": 2, "b": -3, "c": 1}) {
		t.Errorf("the difference of the ledgers is %v", got)
	}
}

// TestHugeAmounts proves that amounts of a capability that make no sense use up a budget, and never
// free it.
func TestHugeAmounts(t *testing.T) {
	for _, n := range []int64{math.MaxInt64, math.MaxInt64 / 2, Most, math.MinInt64} {
		for _, limit := range []int64{100, math.MaxInt64} {
			var l Ledger
			budgets := []capability.Budget{{Unit: "tokens", Graph: limit}}
			for i := range 8 {
				k := Key{llm, journal.CreatureID(fmt.Sprint("c", i))}
				reserved := map[string]int64{"tokens": 1}
				before := l.Graph(llm)["tokens"]
				var rec journal.Record
				if _, err := l.Change(&rec, k, journal.EventID{}, budgets, Amounts(reserved)); err != nil {
					continue
				}
				if _, err := l.Change(&rec, k, journal.EventID{}, nil, Difference(reserved, map[string]int64{"tokens": n})); err != nil {
					t.Fatal(err)
				}
				if after := l.Graph(llm)["tokens"]; after < before || n > 0 && after < limit/2 && after < Most {
					t.Errorf("after %d were used under a budget of %d, the graph has used %d instead of %d", n, limit, after, before)
				}
				var read Ledger
				if read.Read(rec.Meta); len(read.unread) > 0 || read.Used(k)["tokens"] != l.Used(k)["tokens"] {
					t.Errorf("after %d were used, the store gives back %v and cannot read %v", n, read.Used(k), read.unread)
				}
			}
			if _, err := l.Change(nil, Key{llm, "c9"}, journal.EventID{}, budgets, map[string]int64{"tokens": 1}); n > 0 && limit == 100 && abi.CodeOf(err) != abi.LimitExceeded {
				t.Errorf("after %d were used under a budget of 100, one more gives %v", n, err)
			}
		}
	}
}
