package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// echoKind is a capability that returns what it gets, and counts. Bodies that begin with fail,
// again or hold have other results.
type echoKind struct {
	mu    sync.Mutex
	seen  map[string][]string // bodies by key
	tries map[string]int
	hold  chan struct{} // bodies that begin with hold wait for it; nil: they do not
	held  chan struct{} // if not nil, it gets one for each that waits
}

func newEcho() *echoKind { return &echoKind{seen: map[string][]string{}, tries: map[string]int{}} }

func (*echoKind) Name() string                   { return "echo" }
func (*echoKind) Settings() []capability.Setting { return nil }

func (k *echoKind) Open(settings json.RawMessage) (capability.Grant, error) {
	g := &echoGrant{echoKind: k}
	return g, json.Unmarshal(settings, g)
}

type echoGrant struct {
	*echoKind
	Forbid string `json:"forbid"`
	Dead   bool   `json:"dead"`
}

func (g *echoGrant) Check(r capability.Request) error {
	if g.Forbid != "" && strings.HasPrefix(string(r.Body), g.Forbid) {
		return &abi.Error{Code: abi.Denied, Message: "it is forbidden", Remedy: "request something else"}
	}
	return nil
}

func (g *echoGrant) View(r capability.Request) map[string]any {
	return map[string]any{"body": string(r.Body)}
}

func (g *echoGrant) Amend(r capability.Request, members json.RawMessage) (capability.Request, error) {
	var m struct{ Body string }
	err := json.Unmarshal(members, &m)
	r.Body = []byte(m.Body)
	return r, err
}

func (g *echoGrant) Do(ctx context.Context, call capability.Call) capability.Result {
	body := string(call.Body)
	g.mu.Lock()
	g.seen[call.Key] = append(g.seen[call.Key], body)
	g.tries[body]++
	n, hold := g.tries[body], g.hold
	g.mu.Unlock()
	switch {
	case strings.HasPrefix(body, "hold") && hold != nil:
		if g.held != nil {
			g.held <- struct{}{}
		}
		select {
		case <-hold:
		case <-ctx.Done():
			return capability.Failure(abi.Deadline, "it was interrupted")
		}
	case strings.HasPrefix(body, "fail"):
		return capability.Failure(abi.Unavailable, "it is down")
	case strings.HasPrefix(body, "again") && n < 3:
		r := capability.Failure(abi.Unavailable, "not yet")
		r.Again = true
		return r
	case strings.HasPrefix(body, "panic"):
		panic("at the disco")
	case strings.HasPrefix(body, "large"):
		return capability.Result{Payload: make([]byte, 1<<20)}
	}
	return capability.Result{Payload: []byte("re: " + body), Status: 200, Headers: map[string]string{"x-from": "echo", "Terrarium-Code": "forged"}}
}

func (g *echoGrant) Limits() capability.Limits {
	return capability.Limits{Concurrency: 4, Retries: 2, Backoff: time.Millisecond, DeadLetter: g.Dead}
}
func (*echoGrant) Allows() []string               { return []string{"everything"} }
func (*echoGrant) Warnings() []capability.Warning { return nil }

// caller sends each of its messages as a request to the capability in its configuration, and
// notes the results.
func caller(t abi.Turn, kind abi.Kind) error {
	payload, _ := t.Source(abi.SourcePayload)
	switch kind {
	case abi.KindMessage:
		to, _ := t.Config([]byte("reach"))
		if code := t.Request([]byte("capability:"+string(to)), payload, 0, int64(len(payload))); code != abi.OK {
			return note(t, fmt.Sprintf("%s: %s", code, t.LastError()))
		}
	case abi.KindResult:
		var d struct {
			Tag, Code string
			Status    int
		}
		b, _ := t.Source(abi.SourceDetail)
		_ = json.Unmarshal(b, &d)
		headers, _ := t.Source(abi.SourceHeaders)
		return note(t, fmt.Sprintf("%s %s %d %s %s", d.Tag, d.Code, d.Status, journal.DecodeHeaders(headers)["x-from"], payload))
	}
	return nil
}

// reaching grants the capability echo.main with settings.
func reaching(settings string) func(*deploy.CreatureSpec) {
	return func(s *deploy.CreatureSpec) {
		s.Config = json.RawMessage(`{"reach":"echo.main"}`)
		s.Capabilities = []deploy.Capability{{Kind: "echo", Name: "main", Settings: json.RawMessage(settings)}}
	}
}

// tellNow is tell without waiting.
func (w *world) tellNow(c journal.CreatureID, payload string) {
	w.t.Helper()
	if _, err := w.SendTo(w.t.Context(), c, engine.Outgoing{Payload: []byte(payload)}); err != nil {
		w.t.Fatal(err)
	}
}

func TestCapabilitiesAnswer(t *testing.T) {
	onStorages(t, func(t *testing.T, o engine.Options) {
		h := newFakeHost()
		h.on("caller", caller)
		echo := newEcho()
		o.Host, o.Capabilities = h, []capability.Kind{echo}
		w := newWorld(t, o)
		a := w.add("a", "caller", reaching(`{"forbid":"no"}`))
		b := w.add("b", "caller", func(s *deploy.CreatureSpec) { s.Config = json.RawMessage(`{"reach":"echo.main"}`) })
		dead := w.add("dead", "caller", reaching(`{"dead":true}`))
		w.tell(b, "x")
		w.tell(dead, "fail!!")
		for _, p := range []string{"x", "nope", "fail", "again!", "panic!!", "large!!!"} {
			w.tell(a, p)
			w.wait()
		}
		want := "1 ok 200 echo re: x\n" +
			"denied: it is forbidden; request something else\n" +
			"4 unavailable 0  it is down\n" +
			"6 ok 200 echo re: again!\n" +
			"7 internal 0  the capability echo.main panicked: at the disco; report it to the author of the kind\n" +
			"8 too_large 0  the result has about 1049088 bytes, and the limit message of the creature is 1048576; raise the limit, or request less\n"
		if got := w.state(a, "heard"); got != want {
			t.Errorf("a noted\n%swant\n%s", got, want)
		}
		if got := w.state(b, "heard"); got != "denied: the creature has no capability echo.main; grant it in the recipe\n" {
			t.Errorf("b heard %q", got)
		}
		letters, err := w.DeadLetters(t.Context(), w.graph(dead), dead, journal.EventID{}, 0)
		if err != nil || len(letters) != 1 || letters[0].Reason != "unavailable" || w.state(dead, "heard") != "" {
			t.Errorf("dead letters %+v, %v; heard %q", letters, err, w.state(dead, "heard"))
		}
		if echo.tries["again!"] != 3 || echo.tries["fail"] != 1 {
			t.Errorf("attempts: %v", echo.tries)
		}
		if _, err := w.Redeliver(t.Context(), w.graph(dead), letters[0].ID); err != nil {
			t.Fatal(err)
		}
		w.wait()
		if got := w.state(dead, "heard"); got != "6 unavailable 0  it is down\n" {
			t.Errorf("after redelivery the creature heard %q", got)
		}
		got := w.status()[0].Creatures[0].Capabilities
		if len(got) != 1 || got[0].ID != "echo.main" || !slices.Equal(got[0].Allows, []string{"everything"}) {
			t.Errorf("status shows %+v", got)
		}
		if want := (inspect.CapabilityLimits{Concurrency: 4, Timeout: "30s", Retries: 2}); len(got) != 1 || got[0].Limits == nil || *got[0].Limits != want || got[0].Budgets != nil {
			t.Errorf("status shows the limits %+v and the budgets %+v", got[0].Limits, got[0].Budgets)
		}
	})
}

// TestRequestsToCapabilitiesOutliveEverything runs random programs of requests, merges,
// splits and restarts. Every request that was committed arrives under one key, and its
// result is handled once.
func TestRequestsToCapabilitiesOutliveEverything(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 27))
			h := newFakeHost()
			h.on("caller", caller)
			echo := newEcho()
			echo.hold = make(chan struct{})
			s := newSaved(t, engine.Options{Host: h, Capabilities: []capability.Kind{echo}, Durability: []journal.Durability{journal.Normal, journal.Full}[seed%2]})
			var all []journal.CreatureID
			for i := range 4 {
				all = append(all, s.add(fmt.Sprint("c", i), "caller", reaching(`{}`)))
			}
			sent := 0
			links := map[[2]journal.CreatureID]journal.ChannelID{}
			for range 50 {
				switch pick := r.IntN(10); {
				case pick < 6:
					sent++
					s.tellNow(all[r.IntN(len(all))], fmt.Sprintf("%s%04d", []string{"hold", "plain", "again"}[r.IntN(3)], sent))
				case pick < 9: // merge or split
					pair := [2]journal.CreatureID{all[r.IntN(2)], all[2+r.IntN(2)]}
					if ch, linked := links[pair]; linked {
						s.change(topology.RemoveChannel{ID: ch})
						delete(links, pair)
					} else {
						links[pair] = s.connect(pair[0], pair[1], fmt.Sprint("link", sent, r.IntN(1_000_000)))
					}
				default:
					s.reopen()
				}
			}
			close(echo.hold)
			s.wait()
			heard := 0
			for _, c := range all {
				for line := range strings.Lines(s.state(c, "heard")) {
					heard++
					if !strings.Contains(line, " ok 200 echo re: ") {
						t.Errorf("a creature heard %q", line)
					}
				}
			}
			if heard != sent || len(echo.tries) != sent || len(echo.seen) != sent {
				t.Errorf("%d requests have %d results, %d bodies and %d keys", sent, heard, len(echo.tries), len(echo.seen))
			}
			for key, bodies := range echo.seen {
				if len(slices.Compact(slices.Clone(bodies))) != 1 {
					t.Errorf("the key %s came with %q", key, slices.Sorted(maps.Keys(echo.tries)))
				}
			}
		})
	}
}
