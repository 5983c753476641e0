package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// TestStopsAreExactOverCutsByTurns lets a creature split and merge its graph with group tools,
// and kills the process at random moments. A turn that cuts a store is counted in the first
// record of the new store. In every graph, the recipe has stopped if and only if the history
// has as many turns as the condition says.
func TestStopsAreExactOverCutsByTurns(t *testing.T) {
	cuts := 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 78))
		d := newOnDisk(t)
		d.host.on("operator", operate)
		limit := 8 + r.Int64N(25)
		recipe := func() *deploy.Deployment {
			return crew("crew", afterTurns(limit), func(d *deploy.Deployment) { d.Session.AllowMerge = true })
		}
		apply := func() *engine.Applied {
			t.Helper()
			now := recipe()
			now.Last = recipe()
			a, err := d.Apply(t.Context(), now)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		a := apply()
		lead, ann, work := a.Creatures["creature.lead"], a.Creatures["creature.ann"], a.Channels["channel.work"]
		say := func(call string, args args) {
			b, err := json.Marshal([]toolCall{{call, args}})
			if err != nil {
				t.Fatal(err)
			}
			d.sendTo(lead, string(b))
		}
		for step, done := 0, false; !done; step++ {
			if step == 3000 {
				t.Fatalf("seed %d: the recipe has not stopped", seed)
			}
			switch n := r.IntN(24); {
			case n < 2:
				say("group_channel", args{"action": "unwire", "channel": work, "creature": ann, "direction": "listen"})
			case n < 4:
				say("group_channel", args{"action": "wire", "channel": work, "creature": ann, "direction": "listen", "merge": true})
			case n < 5:
				say("group_add_node", args{"species": "scribe", "name": fmt.Sprint("s", step)})
			case n < 6:
				d.sendTo(ann, "hello")
			case n < 9:
				d.disk.Write(r.IntN(4), 1+r.IntN(3), false)
				continue
			case n < 11:
				if d.disk.Kill(); len(d.disk.Sessions()) == 0 {
					d.disk.Flush()
				}
				d.start()
				apply()
			default:
				d.Serve(t.Context(), func(n int) int { return r.IntN(n) })
			}
			if r.IntN(4) > 0 {
				continue // what is not written yet may be lost
			}
			d.disk.Flush()
			graphs := d.status()
			cuts = max(cuts, len(graphs)-1)
			done = true
			for i := range graphs {
				g := &graphs[i]
				if turns := d.turns(g.Creatures[0].ID); turns >= limit != (len(g.Stopped) > 0) || turns > limit && len(graphs) > 1 && g.Stopped[0].Counters.Turns < limit {
					t.Fatalf("seed %d, step %d: graph %s has %d turns of %d, and its stops are %+v", seed, step, g.ID, turns, limit, g.Stopped)
				}
				done = done && len(g.Stopped) > 0
			}
		}
	}
	if cuts == 0 {
		t.Error("no graph was split")
	}
}

// TestAStopAfterWhatModelsUsed proves that a condition counts the amounts that capabilities
// used, and that a request that is open when the recipe stops is not lost.
func TestAStopAfterWhatModelsUsed(t *testing.T) {
	s := newSaved(t, engine.Options{})
	h := newFakeHost()
	h.on("caller", caller)
	k := &tokenKind{newEcho()}
	s.shut()
	s.o.Host, s.o.Capabilities = h, []capability.Kind{k}
	s.open()
	recipe := func(list ...deploy.StopWhen) *deploy.Deployment {
		d := &deploy.Deployment{Name: "talk", StopWhen: list, Channels: []deploy.ChannelSpec{{Address: "channel.in", Name: "in"}}}
		c := spec("a", "caller")
		c.Address, c.Listen = "creature.a", []deploy.WireSpec{{Channel: "channel.in"}}
		reaching(`{}`)(&c)
		d.Creatures = append(d.Creatures, c)
		return d
	}
	a := s.apply(recipe(deploy.StopWhen{Name: "dear", Tokens: 25}, deploy.StopWhen{Name: "other", Money: 1}))
	for range 3 {
		s.send(a.Channels["channel.in"], "ten bytes.")
		s.wait()
	}
	s.send(a.Channels["channel.in"], "ten bytes.")
	s.wait()
	found := stops(s.status())
	if len(found) != 1 || found[0].Condition != "stop_when.dear" || found[0].Counters.Tokens < 25 || !strings.HasPrefix(found[0].Reason, "tokens ") {
		t.Fatalf("the stops are %+v", found)
	}
	s.shut()
	s.open()
	a = s.apply(recipe(deploy.StopWhen{Name: "dear", Tokens: 1000}))
	s.wait()
	if got := strings.Count(s.state(a.Creatures["creature.a"], "heard"), "ten bytes."); got < 4 {
		t.Errorf("a has heard %q, want at least four results", s.state(a.Creatures["creature.a"], "heard"))
	}
}

// tokenKind is an echo whose requests use one token for each byte.
type tokenKind struct{ *echoKind }

func (k *tokenKind) Open(settings json.RawMessage) (capability.Grant, error) {
	g, err := k.echoKind.Open(settings)
	if err != nil {
		return nil, err
	}
	return &tokenGrant{g.(*echoGrant)}, nil
}

type tokenGrant struct{ *echoGrant }

func (g *tokenGrant) Budgets() []capability.Budget { return nil }

func (g *tokenGrant) Forecast(r capability.Request) map[string]int64 {
	return map[string]int64{"tokens": int64(len(r.Body))}
}

func (g *tokenGrant) Do(ctx context.Context, call capability.Call) capability.Result {
	r := g.echoGrant.Do(ctx, call)
	r.Used = map[string]int64{"tokens": int64(len(call.Body))}
	return r
}

// TestAMatchThatFailsStops proves that a recipe stops if the condition of a block fails.
func TestAMatchThatFailsStops(t *testing.T) {
	w := newWorld(t, engine.Options{})
	a := w.apply(team(2, stopping(deploy.StopWhen{Name: "odd", Match: func(c *journal.StopCounters) (bool, error) {
		if c.Turns == 3 {
			return false, errors.New("no such number")
		}
		return false, nil
	}})))
	w.send(a.Channels["channel.c0"], "1")
	w.wait()
	if found := stops(w.status()); len(found) != 1 || found[0].Reason != "its match fails: no such number" {
		t.Errorf("the stops are %+v", found)
	}
	if _, err := w.Tool(t.Context(), a.Creatures["creature.m0"], "group_send", []byte(`{}`)); abi.CodeOf(err) != abi.Stopped {
		t.Errorf("a call on behalf of a creature of a stopped recipe returns %v", err)
	}
}

// TestATurnThatRunsWhenItsRecipeStopsIsRunAgain ends a turn, with and without a change of the
// graph, after another creature's turn has met the condition. The turn is not committed, and
// its delivery is handled once the recipe continues.
func TestATurnThatRunsWhenItsRecipeStopsIsRunAgain(t *testing.T) {
	for _, changes := range []bool{false, true} {
		t.Run(fmt.Sprintf("changes the graph %v", changes), func(t *testing.T) {
			onStorages(t, func(t *testing.T, o engine.Options) {
				begun, goOn := make(chan struct{}, 4), make(chan struct{})
				h := newFakeHost()
				h.on("slow", func(t abi.Turn, kind abi.Kind) error {
					if kind != abi.KindMessage {
						return nil
					}
					begun <- struct{}{}
					<-goOn
					if changes {
						if _, code := t.Tool([]byte("group_channel"), []byte(`{"action": "create", "name": "made"}`)); code != abi.OK {
							return codeErr(t, code)
						}
					}
					return codeErr(t, t.StateSet([]byte("done"), []byte("yes")))
				})
				o.Host, o.Workers = h, 2
				w := newWorld(t, o)
				recipe := func(limit int64) *deploy.Deployment {
					return team(2, afterTurns(limit), func(d *deploy.Deployment) {
						d.Creatures[0].Module, d.Creatures[0].Wasm, d.Creatures[0].Privileged = "slow", []byte("slow"), true
					})
				}
				a := w.apply(recipe(3))
				w.wait() // two turns, the starts
				m0, m1 := a.Creatures["creature.m0"], a.Creatures["creature.m1"]
				w.tellNow(m0, "go")
				<-begun
				sub := w.Subscribe(engine.Filter{Kinds: []journal.EventKind{journal.EventRecipeStopped}}, 0)
				defer sub.Close()
				w.tellNow(m1, "one more")
				if _, err := sub.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
				close(goOn)
				w.wait()
				if found := stops(w.status()); len(found) != 1 || found[0].Counters.Turns != 3 || w.state(m0, "done") != "" {
					t.Fatalf("the stops are %+v, and the turn has left %q", found, w.state(m0, "done"))
				}
				w.apply(recipe(4))
				w.wait()
				if found := stops(w.status()); len(found) != 1 || found[0].Counters.Turns != 4 || w.state(m0, "done") != "yes" {
					t.Errorf("the stops are %+v, and the turn has left %q", found, w.state(m0, "done"))
				}
			})
		})
	}
}
