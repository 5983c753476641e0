package engine_test

import (
	"math"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

func TestNamesAndLimitsThatMakeNoSenseAreRefused(t *testing.T) {
	w := newWorld(t, engine.Options{})
	a := w.add("a", "sink")
	g := w.graph(a)
	for _, name := range []string{"", "a\nb", "a\x00", "\xff", "a\u202eb", "a\u2028b", "a\u200bb", strings.Repeat("x", 257)} {
		_, err := w.AddCreature(t.Context(), deploy.CreatureSpec{Name: name, Wasm: []byte("sink")})
		if abi.CodeOf(err) != abi.InvalidArgument {
			t.Errorf("a creature named %q: %v, want invalid_argument", name, err)
		}
		if _, err := w.AddChannel(t.Context(), g, name, ""); abi.CodeOf(err) != abi.InvalidArgument {
			t.Errorf("a channel named %q: %v, want invalid_argument", name, err)
		}
		if _, err := w.Change(t.Context(), topology.Connect{From: a, To: a, Name: name}); name != "" && abi.CodeOf(err) != abi.InvalidArgument {
			t.Errorf("connecting on %q: %v, want invalid_argument", name, err)
		}
	}
	for what, limits := range map[string]abi.Limits{
		"mailbox": {Mailbox: math.MaxInt}, "memory": {Memory: 1 << 40}, "sends": {Sends: -1}, "deadline": {Deadline: -1}, "message": {Message: 1 << 40},
	} {
		_, err := w.AddCreature(t.Context(), deploy.CreatureSpec{Name: "b", Wasm: []byte("sink"), Limits: limits})
		if abi.CodeOf(err) != abi.InvalidArgument || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v, want invalid_argument that names the limit", what, err)
		}
	}
}

// Names and aliases that could deceive a reader are refused wherever they enter, and
// are not shown unescaped.
func TestDeceptiveNamesAreRefusedEverywhere(t *testing.T) {
	w := newWorld(t, engine.Options{})
	a := w.add("a", "sink")
	g := w.graph(a)
	b := w.add("b", "sink")
	ch, err := w.AddChannel(t.Context(), g, "plain", "")
	if err != nil {
		t.Fatal(err)
	}
	wired := []deploy.WireSpec{{Channel: "plain"}}
	for _, name := range []string{"a\nb", "a\x1bb", "a\u202eb", "a\u2028b", "a\u200bb", "\xff", strings.Repeat("x", 257)} {
		aliased := []deploy.WireSpec{{Channel: "plain", Alias: name}}
		creatures := []deploy.CreatureSpec{{Address: "c", Name: "c", Wasm: []byte("sink"), Listen: wired}}
		plain := []deploy.ChannelSpec{{Address: "plain", Name: "plain"}}
		for entry, enter := range namesOfDeployments(w, name, plain, creatures, aliased) {
			if err := enter(); abi.CodeOf(err) != abi.InvalidArgument || strings.ContainsFunc(err.Error(), abi.Deceptive) {
				t.Errorf("%s %q: %v, want invalid_argument with a printable message", entry, name, err)
			}
		}
		for entry, enter := range map[string]func() error{
			"the alias of a listener that is added": func() error {
				_, err := w.AddCreature(t.Context(), deploy.CreatureSpec{Name: "c", Wasm: []byte("sink"), Join: g, Listen: aliased})
				return err
			},
			"the alias of a sender that is added": func() error {
				_, err := w.AddCreature(t.Context(), deploy.CreatureSpec{Name: "c", Wasm: []byte("sink"), Join: g, Send: aliased})
				return err
			},
			"the alias of connect": func() error {
				_, err := w.Change(t.Context(), topology.Connect{From: a, To: b, Alias: name})
				return err
			},
			"the alias of set_listen": func() error {
				_, err := w.Change(t.Context(), topology.SetEdge{Creature: a, Channel: ch.Channel, Direction: journal.Listen, On: true, Alias: name})
				return err
			},
			"the alias of set_send": func() error {
				_, err := w.Change(t.Context(), topology.SetEdge{Creature: a, Channel: ch.Channel, Direction: journal.Send, On: true, Alias: name})
				return err
			},
			"another name": func() error {
				_, err := w.Change(t.Context(), topology.SetNames{Names: []topology.Naming{{ID: a, Name: name}}})
				return err
			},
			"a wire of outputs": func() error {
				_, err := w.AddWire(t.Context(), journal.OutputWire{Name: name, From: a, To: b})
				return err
			},
		} {
			if err := enter(); abi.CodeOf(err) != abi.InvalidArgument || strings.ContainsFunc(err.Error(), abi.Deceptive) {
				t.Errorf("%s %q: %v, want invalid_argument with a printable message", entry, name, err)
			}
		}
	}
}

// namesOfDeployments are the places of a deployment where a name may occur.
func namesOfDeployments(w *world, name string, plain []deploy.ChannelSpec, creatures []deploy.CreatureSpec, aliased []deploy.WireSpec) map[string]func() error {
	apply := func(d deploy.Deployment) func() error {
		return func() error {
			_, err := w.Apply(w.t.Context(), &d)
			return err
		}
	}
	return map[string]func() error{
		"a deployment":              apply(deploy.Deployment{Name: name, Channels: plain, Creatures: creatures}),
		"a channel of a deployment": apply(deploy.Deployment{Name: "d", Channels: []deploy.ChannelSpec{{Address: "plain", Name: name}}, Creatures: creatures}),
		"a creature of a deployment": apply(deploy.Deployment{
			Name: "d", Channels: plain, Creatures: []deploy.CreatureSpec{{Address: "c", Name: name, Wasm: []byte("sink")}},
		}),
		"an alias of a deployment": apply(deploy.Deployment{
			Name: "d", Channels: plain, Creatures: []deploy.CreatureSpec{{Address: "c", Name: "c", Wasm: []byte("sink"), Listen: aliased}},
		}),
		"a species": apply(deploy.Deployment{
			Name: "d", Channels: plain, Species: []deploy.SpeciesSpec{{Name: name, Spec: deploy.CreatureSpec{Wasm: []byte("sink")}}},
		}),
	}
}

// Group tools refuse the same names, and their errors can be printed.
func TestDeceptiveNamesAreRefusedByGroupTools(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	a := s.apply(crew("crew", ledBy("bob")))
	lead, bob := a.Creatures["creature.lead"], a.Creatures["creature.bob"]
	notes := s.ask(lead, toolCall{"group_channel", args{"action": "create", "name": "notes"}})[0]
	if notes.Code != "" {
		t.Fatal(notes.Error)
	}
	for _, name := range []string{"a\nb", "a\x1bb", "a\u202eb", "a\u2028b", "a\u200bb", strings.Repeat("x", 257)} {
		for i, r := range s.ask(lead,
			toolCall{"group_channel", args{"action": "create", "name": name}},
			toolCall{"group_channel", args{"action": "wire", "channel": "notes", "creature": string(bob), "direction": "listen", "alias": name}},
			toolCall{"group_add_node", args{"species": "clerk", "name": name}},
			toolCall{"group_add_node", args{"species": "clerk", "listen": []args{{"channel": "notes", "alias": name}}}},
			toolCall{"group_add_node", args{"species": "clerk", "send": []args{{"channel": "notes", "alias": name}}}},
			toolCall{"group_wire", args{"action": "add", "from": string(bob), "to": string(lead), "name": name}},
		) {
			if r.Code != abi.InvalidArgument.String() || strings.ContainsFunc(r.Error, abi.Deceptive) {
				t.Errorf("call %d with the name %q: %s %s", i, name, r.Code, r.Error)
			}
		}
	}
}
