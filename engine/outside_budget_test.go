package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// meterKind is an echo whose requests forecast two units for each byte of the body, and whose
// attempts use one.
type meterKind struct {
	*echoKind
	used map[string]int64 // by creature; also of attempts whose results are lost
}

func (k *meterKind) Open(settings json.RawMessage) (capability.Grant, error) {
	g, err := k.echoKind.Open(settings)
	if err != nil {
		return nil, err
	}
	m := &meterGrant{echoGrant: g.(*echoGrant), k: k}
	return m, json.Unmarshal(settings, m)
}

type meterGrant struct {
	*echoGrant
	k     *meterKind
	Own   int64 `json:"own"`
	Whole int64 `json:"whole"`
}

func (g *meterGrant) Budgets() []capability.Budget {
	return []capability.Budget{{Unit: "bytes", Creature: g.Own, Graph: g.Whole}}
}

func (g *meterGrant) Forecast(r capability.Request) map[string]int64 {
	return map[string]int64{"bytes": 2 * int64(len(r.Body))}
}

func (g *meterGrant) Do(ctx context.Context, call capability.Call) capability.Result {
	g.k.mu.Lock()
	g.k.used[call.Creature] += int64(len(call.Body))
	g.k.mu.Unlock()
	r := g.echoGrant.Do(ctx, call)
	r.Used = map[string]int64{"bytes": int64(len(call.Body))}
	return r
}

func (w *world) spent(c journal.CreatureID) (own, graph int64) {
	w.t.Helper()
	for _, g := range w.status() {
		for i := range g.Creatures {
			if s := &g.Creatures[i]; s.ID == c {
				return s.Capabilities[0].Used["bytes"], s.Capabilities[0].UsedByGraph["bytes"]
			}
		}
	}
	w.t.Fatalf("no creature %s", c)
	return 0, 0
}

func newMeter(t *testing.T) (*meterKind, *fakeHost) {
	t.Helper()
	h := newFakeHost()
	h.on("caller", caller)
	return &meterKind{newEcho(), map[string]int64{}}, h
}

// TestStatusShowsBudgets proves that the status has the budgets of a capability.
func TestStatusShowsBudgets(t *testing.T) {
	k, h := newMeter(t)
	w := newWorld(t, engine.Options{Host: h, Capabilities: []capability.Kind{k}})
	w.add("a", "caller", reaching(`{"own":30,"whole":60}`))
	got := w.status()[0].Creatures[0].Capabilities
	if len(got) != 1 || !slices.Equal(got[0].Budgets, []inspect.CapabilityBudget{{Unit: "bytes", Creature: 30, Graph: 60}}) {
		t.Errorf("status shows %+v", got)
	}
}

// TestBudgetsAreKept proves which attempts are made, and what a graph has used after a creature
// is removed, after a merge and after a split.
func TestBudgetsAreKept(t *testing.T) {
	onStorages(t, func(t *testing.T, o engine.Options) {
		k, h := newMeter(t)
		o.Host, o.Capabilities = h, []capability.Kind{k}
		w := newWorld(t, o)
		settings := reaching(`{"own":30,"whole":60}`)
		a, b, c := w.add("a", "caller", settings), w.add("b", "caller", settings), w.add("c", "caller", settings)
		say := func(c journal.CreatureID, text string) {
			w.tell(c, text)
			w.wait()
		}
		check := func(c journal.CreatureID, own, graph int64) {
			t.Helper()
			if o, g := w.spent(c); o != own || g != graph {
				t.Errorf("%s has used %d, and its graph %d; want %d and %d", c, o, g, own, graph)
			}
		}
		say(a, "ten bytes.")
		say(a, "ten bytes.")
		check(a, 20, 20)
		say(a, "ten bytes.") // 20 more do not fit
		check(a, 20, 20)
		if got := w.state(a, "heard"); !strings.Contains(got, "10 limit 0  capability: the budget of the creature for echo.main is 30 bytes; 10 are left, and the request may use 20") {
			t.Errorf("a heard %q", got)
		}
		say(a, "again") // an attempt fails, and another does not fit
		check(a, 25, 25)
		say(b, "fifteen bytes..")
		check(b, 15, 15)
		link := w.connect(a, b, "link")
		check(a, 25, 40)
		w.change(topology.RemoveChannel{ID: link})
		check(a, 25, 40)
		check(b, 15, 40)
		say(b, "five.")
		w.connect(a, b, "link2")
		check(b, 20, 45) // what both graphs remember counts once
		w.connect(b, c, "link3")
		say(c, "ten bytes.") // 20 of 15
		check(c, 0, 45)
		w.change(topology.RemoveCreature{ID: a})
		check(c, 0, 45)
		say(c, "ten bytes.")
		check(c, 0, 45)
		say(c, "six...")
		check(c, 6, 51)
		if k.used["a"] != 25 || k.used["b"] != 20 || k.used["c"] != 6 {
			t.Errorf("the units that the capability has counted are %v", k.used)
		}
	})
}

// TestBudgetsOutliveEverything runs random programs of requests, merges, splits and restarts.
// No creature ever uses more than its budget, even counting attempts whose results were lost.
// What is recorded is at least what was used.
func TestBudgetsOutliveEverything(t *testing.T) {
	const budget = 120
	for seed := range uint64(2) {
		r := rand.New(rand.NewPCG(seed, 271))
		k, h := newMeter(t)
		k.hold = make(chan struct{})
		s := newSaved(t, engine.Options{Host: h, Capabilities: []capability.Kind{k}, Durability: journal.Normal})
		var all []journal.CreatureID
		for i := range 4 {
			all = append(all, s.add(fmt.Sprint("c", i), "caller", func(spec *deploy.CreatureSpec) {
				reaching(fmt.Sprintf(`{"own":%d}`, budget))(spec)
			}))
		}
		links := map[[2]journal.CreatureID]journal.ChannelID{}
		refused := 0
		for i := range 60 {
			switch pick := r.IntN(10); {
			case pick < 6:
				s.tellNow(all[r.IntN(len(all))], fmt.Sprintf("%s%d", []string{"hold", "plain", "again"}[r.IntN(3)], 1000+i))
			case pick < 9:
				pair := [2]journal.CreatureID{all[r.IntN(2)], all[2+r.IntN(2)]}
				if ch, linked := links[pair]; linked {
					s.change(topology.RemoveChannel{ID: ch})
					delete(links, pair)
				} else {
					links[pair] = s.connect(pair[0], pair[1], fmt.Sprint("link", i))
				}
			default:
				s.reopen()
			}
		}
		close(k.hold)
		s.wait()
		for i, c := range all {
			used := k.used[fmt.Sprint("c", i)]
			recorded, _ := s.spent(c)
			if used > budget || recorded < used || recorded > budget {
				t.Errorf("seed %d: %s has used %d of %d, and %d are recorded", seed, c, used, budget, recorded)
			}
			refused += strings.Count(s.state(c, "heard"), " limit ")
		}
		if refused == 0 {
			t.Errorf("seed %d: nothing was refused", seed)
		}
	}
}
