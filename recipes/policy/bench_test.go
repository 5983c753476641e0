package policy

import (
	"fmt"
	"testing"

	"github.com/dop251/goja"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// decisions lists the cases in which make bench measures policies. Each is compared with
// bare: the same work by the interpreter alone, on existing values.
var decisions = []struct {
	name   string
	policy Policy
	bare   string
	graph  int // creatures
	memory string
}{
	{"allow", Policy{Source: `(e) => { if (e.payload.length > 100) return deny("long"); }`},
		`(e) => { if (e.payload.length > 100) return "long"; }`, 2, ``},
	{"match=false", Policy{Source: `(e) => deny("x")`, Match: func(e *deploy.SendEvent) (bool, error) { return len(e.Payload) > 100, nil }},
		`(e) => e.payload.length > 100`, 2, ``},
	{"deny", Policy{Source: `(e) => deny("no " + e.sender)`}, `(e) => "no " + e.sender`, 2, ``},
	{"patch", Policy{Source: `(e) => patch({payload: e.payload + "!"})`, Mode: Mutate}, `(e) => ({payload: e.payload + "!"})`, 2, ``},
	{"state", Policy{Source: `(e, c) => { c.state.n = (c.state.n || 0) + 1; }`},
		`(e, c) => { c.state.n = (c.state.n || 0) + 1; }`, 2, `{"n":3}`},
	{"state/16KiB", Policy{Source: `(e, c) => { c.state.k0 = (c.state.k0 || 0) + 1; }`},
		`(e, c) => { c.state.k0 = (c.state.k0 || 0) + 1; }`, 2, largeState()},
	{"graph/10", Policy{Source: `(e, c) => { if (c.graph.creatures({species: "scribe"}).length > 8) return deny("x"); }`},
		`(e, c) => { if (c.members.filter((m) => m.species === "scribe").length > 8) return "x"; }`, 10, ``},
	{"graph/1000", Policy{Source: `(e, c) => { if (c.graph.creatures({species: "scribe"}).length > 8) return deny("x"); }`},
		`(e, c) => { if (c.members.filter((m) => m.species === "scribe").length > 8) return "x"; }`, 1000, ``},
}

// largeState is about the largest state that a policy can keep.
func largeState() string {
	text := `{"k0":0`
	for k := 1; len(text) < 16_000; k++ {
		text += fmt.Sprintf(`,"key-%d":"%032d"`, k, k)
	}
	return text + "}"
}

// graphOf is a graph of n creatures, four of which are scribes.
func graphOf(n int) *deploy.GraphView {
	v := &deploy.GraphView{ID: "g1"}
	for k := range n {
		c := deploy.CreatureView{ID: journal.CreatureID(fmt.Sprintf("c%d", k)), Name: fmt.Sprintf("creature-%d", k), Species: "reader", State: "running"}
		if k < 4 {
			c.Species = "scribe"
		}
		v.Creatures = append(v.Creatures, c)
	}
	return v
}

// deciding is a message with its surroundings.
func deciding(view *deploy.GraphView, kept string) *deploy.SendEvent {
	e := event("x marks the spot")
	e.View = func() *deploy.GraphView { return view }
	if kept != "" {
		e.Memory = memory{"send.p0": kept}
	}
	return e
}

func BenchmarkDecision(b *testing.B) {
	for _, c := range decisions {
		b.Run(c.name, func(b *testing.B) {
			s, e := set(b, c.policy), deciding(graphOf(c.graph), c.memory)
			b.ReportAllocs()
			for b.Loop() {
				s.Send(b.Context(), e)
			}
		})
	}
	b.Run("process", func(b *testing.B) {
		c := decisions[0]
		c.policy.Name, c.policy.Timeout = "p0", MaxTimeout
		s, e := apart(b, c.policy), deciding(graphOf(c.graph), "")
		s.Send(b.Context(), e)
		b.ReportAllocs()
		for b.Loop() {
			s.Send(b.Context(), e)
		}
	})
}

func BenchmarkBareScript(b *testing.B) {
	for _, c := range decisions {
		b.Run(c.name, func(b *testing.B) {
			vm := goja.New()
			v, err := vm.RunString(c.bare)
			if err != nil {
				b.Fatal(err)
			}
			f, _ := goja.AssertFunction(v)
			event, ctx := vm.NewObject(), vm.NewObject()
			for _, set := range []error{
				event.Set("payload", "x marks the spot"), event.Set("sender", "writer"), ctx.Set("members", membersOf(vm, c.graph)), ctx.Set("state", vm.NewObject()),
			} {
				if set != nil {
					b.Fatal(set)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f(goja.Undefined(), event, ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// membersOf returns a graph as a plain list of the interpreter.
func membersOf(vm *goja.Runtime, n int) goja.Value {
	var list []any
	for _, c := range graphOf(n).Creatures {
		o := vm.NewObject()
		if o.Set("name", c.Name) != nil || o.Set("species", c.Species) != nil {
			return nil
		}
		list = append(list, o)
	}
	return vm.NewArray(list...)
}
