package outlets_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/internal/outlets"
	"github.com/seed47132306/terrarium/engine/journal"
)

// asked is a predicate that counts its calls.
type asked struct {
	holds bool
	err   error
	calls int
}

func (a *asked) Holds(context.Context, *deploy.OutputEvent) (bool, error) {
	a.calls++
	return a.holds, a.err
}

// TestPredicatesDecide checks that each predicate is evaluated once. Nothing is delivered over
// the wires of a predicate that does not hold, fails, or is not known.
func TestPredicatesDecide(t *testing.T) {
	known := map[string]*asked{"yes": {holds: true}, "no": {}, "fails": {holds: true, err: errors.New("too slow")}}
	var wires []journal.OutputWire
	for _, when := range []string{"yes", "no", "fails", "unknown", "yes", "no", "fails", "unknown", ""} {
		wires = append(wires, journal.OutputWire{ID: journal.WireID("w" + when), Name: when, When: when, WithContent: true})
	}
	list := outlets.Of(wires, func(name string) deploy.Predicate {
		if p := known[name]; p != nil {
			return p
		}
		return nil
	})
	o := &outlets.Output{Payload: []byte("out"), Hops: 1, Limit: 100}
	deliveries, logs := o.Deliveries(t.Context(), list)
	var over []string
	for _, d := range deliveries {
		over = append(over, d.Outlet.When)
	}
	if !slices.Equal(over, []string{"yes", "yes", ""}) {
		t.Errorf("the output is delivered over wires with the predicates %q", over)
	}
	for name, p := range known {
		if p.calls != 1 {
			t.Errorf("the predicate %s was called %d times, want once", name, p.calls)
		}
	}
	if len(logs) != 2 || !strings.Contains(logs[0].Text, "fails of the wire fails cannot judge") || !strings.Contains(logs[0].Text, "too slow") || !strings.Contains(logs[1].Text, "its recipe has not been applied") {
		t.Errorf("the log lines are %+v", logs)
	}
}

// TestWiresDeliverWhatTheySay covers wires with a prompt, with content and without, and
// deliveries that are too large.
func TestWiresDeliverWhatTheySay(t *testing.T) {
	for _, c := range []struct {
		wire  journal.OutputWire
		limit int64
		want  string
		code  abi.Code
	}{
		{journal.OutputWire{ID: "w", WithContent: true}, 100, "out", 0},
		{journal.OutputWire{ID: "w", WithContent: true, Prompt: "{source} on {channel}: {output}, {output}"}, 100, "ann on in: out, out", 0},
		{journal.OutputWire{ID: "w"}, 1, `{"source":"ann","channel":"in","size":3}`, 0},
		{journal.OutputWire{ID: "w", WithContent: true}, 10, `{"source":"ann","channel":"in","size":3}`, abi.TooLarge},
		{journal.OutputWire{ID: "w", WithContent: true, Prompt: "{output}{output}{output}{output}{output}{output}"}, 40, `{"source":"ann","channel":"in","size":3}`, abi.TooLarge},
	} {
		o := &outlets.Output{Payload: []byte("out"), Source: "ann", Channel: "in", Hops: 3, Limit: c.limit}
		list, _ := o.Deliveries(t.Context(), outlets.Of([]journal.OutputWire{c.wire}, func(string) deploy.Predicate { return nil }))
		d := list[0]
		if string(d.Payload) != c.want {
			t.Errorf("the wire %+v delivers %s, want %s", c.wire, d.Payload, c.want)
		}
		if h := journal.DecodeHeaders(d.Headers); h[message.HeaderWire] != "w" || h[message.HeaderHops] != "3" {
			t.Errorf("the delivery of the wire %+v has the headers %v", c.wire, h)
		}
		code, text := d.Undeliverable(outlets.Party{ID: "a"}, outlets.Party{ID: "b"}, nil)
		if code != c.code || (code == 0) != (text == "") {
			t.Errorf("the delivery of the wire %+v is undeliverable with %v: %s", c.wire, code, text)
		}
		m := message.New(d.Payload, d.Headers)
		if m.Kind = abi.KindOutput; outlets.Hops(m) != 4 {
			t.Errorf("an output for this delivery has %d hops, want 4", outlets.Hops(m))
		}
		if m.Kind = abi.KindMessage; outlets.Hops(m) != 1 {
			t.Errorf("an output for a message with the same headers has %d hops, want 1", outlets.Hops(m))
		}
	}
}

// TestWhatCannotBeDeliveredIsExplained covers the reasons and the dead letters.
func TestWhatCannotBeDeliveredIsExplained(t *testing.T) {
	ann, bob, none := outlets.Party{ID: "a", Name: "ann"}, outlets.Party{ID: "b", Name: "bob"}, outlets.Party{}
	around := func() []string { return []string{"ann", "bob", "ann"} }
	for _, c := range []struct {
		to       journal.CreatureID // of the wire
		hops     int
		self     bool
		end      outlets.Party
		loop     func() []string
		code     abi.Code
		says     string
		letterTo journal.CreatureID
		alias    string
	}{
		{"b", 1, false, bob, nil, 0, "", "b", ""},
		{"b", 1, false, none, nil, abi.NotConnected, "leads to b, which no longer exists", "b", ""},
		{journal.ToRoot, 1, false, none, nil, abi.NotConnected, "leads to the root, but there is none", "a", string(journal.ToRoot)},
		{journal.ToRoot, 1, false, ann, nil, abi.Denied, "leads back to its source", "a", ""},
		{"a", 1, true, ann, nil, 0, "", "a", ""},
		{"b", journal.MaxHops, false, bob, nil, 0, "", "b", ""},
		{"b", journal.MaxHops + 1, false, bob, around, abi.LimitExceeded, "circulates over the wires ann → bob → ann", "b", ""},
		{"b", journal.MaxHops + 1, false, bob, func() []string { return nil }, abi.LimitExceeded, "from ann to bob is too long", "b", ""},
	} {
		o := &outlets.Output{Hops: c.hops, Limit: 100}
		wire := journal.OutputWire{To: c.to, AllowSelf: c.self}
		list, _ := o.Deliveries(t.Context(), outlets.Of([]journal.OutputWire{wire}, func(string) deploy.Predicate { return nil }))
		code, text := list[0].Undeliverable(ann, c.end, c.loop)
		if code != c.code || !strings.Contains(text, c.says) || (code == 0) != (text == "") {
			t.Errorf("%+v after %d hops: %v, %q; want %v, %q", wire, c.hops, code, text, c.code, c.says)
		}
		if l := list[0].Letter("a", c.end.ID, code, text); l.Creature != c.letterTo || l.Alias != c.alias || l.Sender != "a" {
			t.Errorf("the wire %+v has the dead letter %+v", wire, l)
		}
	}
}

// TestTheShortestLoopIsFound compares the loops of random graphs with all walks of that
// length.
func TestTheShortestLoopIsFound(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		const n = 6
		var edges [n][n]bool
		for range r.IntN(12) {
			edges[r.IntN(n)][r.IntN(n)] = true
		}
		targets := func(at int) iter.Seq[int] {
			return func(yield func(int) bool) {
				for to, on := range edges[at] {
					if on && !yield(to) {
						return
					}
				}
			}
		}
		from, next := r.IntN(n), r.IntN(n)
		loop := outlets.Loop(from, next, targets)
		reached, steps := map[int]bool{next: true}, 0
		for ; steps < n && !reached[from]; steps++ {
			further := map[int]bool{}
			for at := range reached {
				for to := range targets(at) {
					further[to] = true
				}
			}
			reached = further
		}
		if found := reached[from]; found != (loop != nil) || found && len(loop) != steps+2 {
			t.Fatalf("from %d over %d in %v: the loop %v; by %d steps: %v", from, next, edges, loop, steps, found)
		}
		for i := 1; i < len(loop)-1; i++ {
			if loop[1] != next || !edges[loop[i]][loop[i+1]] {
				t.Fatalf("%v is not a loop over %d in %v", loop, next, edges)
			}
		}
	}
}
