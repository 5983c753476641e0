package engine_test

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// faultyKind is a capability of another program whose methods do what they must not do, as the
// request says.
type faultyKind struct{ *echoKind }

func (faultyKind) Name() string { return "echo" }

func (k faultyKind) Open(settings json.RawMessage) (capability.Grant, error) {
	switch string(settings) {
	case `"nothing"`:
		return nil, nil
	case `"panic"`:
		panic("while it opens")
	case `"limits"`:
		return faultyGrant{limits: true}, nil
	case `"rate"`:
		return faultyGrant{echoGrant: &echoGrant{}, rate: math.NaN()}, nil
	case `"slow"`:
		return faultyGrant{echoGrant: &echoGrant{}, rate: 1e-12}, nil
	}
	return faultyGrant{echoGrant: &echoGrant{echoKind: k.echoKind}}, nil
}

type faultyGrant struct {
	*echoGrant
	limits bool
	rate   float64
}

func (g faultyGrant) Limits() capability.Limits {
	if g.limits {
		panic("about limits")
	}
	return capability.Limits{Rate: g.rate}
}

func (faultyGrant) View(r capability.Request) map[string]any {
	switch string(r.Body) {
	case "view":
		panic("in the view")
	case "unencodable":
		return map[string]any{"n": math.NaN()}
	}
	return map[string]any{"body": string(r.Body)}
}

func (g faultyGrant) Amend(r capability.Request, members json.RawMessage) (capability.Request, error) {
	if string(r.Body) == "amend" {
		panic("while it amends")
	}
	if string(r.Body) == "view after" {
		r.Body = []byte("view")
	}
	return r, nil
}

func (g faultyGrant) Do(ctx context.Context, call capability.Call) capability.Result {
	switch string(call.Body) {
	case "text":
		return capability.Failure(abi.Unavailable, strings.Repeat("no ", 20<<20)+"\xff")
	case "bytes":
		return capability.Failure(abi.Unavailable, "\xff\xfe")
	case "code":
		return capability.Result{Code: 211, Text: "unheard of", Payload: []byte("x")}
	}
	return g.echoGrant.Do(ctx, call)
}

// TestFaultyCapabilities proves that a capability that panics or returns nonsense fails the
// request, and never ends the process. A request that policies could not judge is not executed,
// and a long text is shortened like that of other errors.
func TestFaultyCapabilities(t *testing.T) {
	h := newFakeHost()
	h.on("caller", caller)
	k := faultyKind{newEcho()}
	s := newSaved(t, engine.Options{Host: h, Capabilities: []capability.Kind{k}})
	change := func(ev *deploy.PolicyEvent) (d deploy.Decision) {
		if body := string(ev.Request); strings.Contains(body, "amend") || strings.Contains(body, "after") {
			d.Request, d.ChangedBy = json.RawMessage(`{"body":"other"}`), []deploy.Verdict{word("wash", "")}
		}
		return d
	}
	one := spec("one", "caller")
	one.Address = "creature.one"
	reaching(`{}`)(&one)
	applied := s.apply(&deploy.Deployment{Name: "team", Creatures: []deploy.CreatureSpec{one}, Policy: &judge{kinds: []journal.PolicyKind{journal.JudgeCapability}, judge: change}})
	a := applied.Creatures["creature.one"]
	for _, c := range []struct{ body, want string }{
		{"fine", "4 ok 200 echo re: fine\n"},
		{"view", "4 internal 0  the capability echo.main panicked: in the view; report it to the author of the kind\n"},
		{"unencodable", "11 internal 0  the view of the capability echo.main cannot be encoded as JSON: json: unsupported value: NaN; report it to the author of the kind\n"},
		{"amend", "5 denied 0  policy wash (team.hcl:7): a policy changed the request into one that the capability does not allow: the capability echo.main panicked: while it amends; report it to the author of the kind\n"},
		{"view after", "10 internal 0  the capability echo.main panicked: in the view; report it to the author of the kind\n"},
		{"code", "4 internal 0  unheard of\n"},
		{"bytes", "5 unavailable 0  \ufffd\n"},
	} {
		before := s.state(a, "heard")
		s.tell(a, c.body)
		s.wait()
		if got := strings.TrimPrefix(s.state(a, "heard"), before); got != c.want {
			t.Errorf("to %q the creature heard\n%swant\n%s", c.body, got, c.want)
		}
	}
	before := s.state(a, "heard")
	s.tell(a, "text")
	s.wait()
	got := strings.TrimPrefix(s.state(a, "heard"), before)
	if !strings.HasPrefix(got, "4 unavailable 0  no no no") || len(got) < 1000 || len(got) > 10_000 {
		t.Errorf("of a text of 60 MiB the creature heard %d bytes: %.100q", len(got), got)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, never := range []string{"view", "unencodable", "amend", "view after"} {
		if k.tries[never] > 0 {
			t.Errorf("the request %q was executed, although policies could not judge it", never)
		}
	}
}

// TestFaultyKinds proves that a kind that cannot be opened is an error for its caller.
func TestFaultyKinds(t *testing.T) {
	h := newFakeHost()
	h.on("caller", caller)
	w := newWorld(t, engine.Options{Host: h, Capabilities: []capability.Kind{faultyKind{newEcho()}}})
	for settings, want := range map[string]string{
		`"nothing"`: "the capability echo.main returned neither a result nor an error",
		`"panic"`:   "the capability echo.main panicked: while it opens",
		`"limits"`:  "the capability echo.main panicked: about limits",
		`"rate"`:    "the capability echo.main has the rate NaN",
		`"slow"`:    "the capability echo.main has the rate 1e-12",
	} {
		one := spec("one", "caller")
		reaching(settings)(&one)
		if _, err := w.AddCreature(t.Context(), one); err == nil || !strings.Contains(err.Error(), want) || abi.CodeOf(err) != abi.Internal {
			t.Errorf("with the settings %s: %v, want %q", settings, err, want)
		}
	}
}
