package reconcile_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/reconcile"
	"github.com/seed47132306/terrarium/engine/topology"
)

// check compares the state with the lines of a picture, in any order.
func (w *world) check(want ...string) {
	w.t.Helper()
	slices.Sort(want)
	if diff := cmp.Diff(want, w.picture()); diff != "" {
		w.t.Errorf("what there is (-want +got):\n%s", diff)
	}
}

// TestNew applies a deployment to an empty state: creatures get their ids
// first, in the order of the recipe, and then channels.
func TestNew(t *testing.T) {
	w := newWorld(t)
	got := w.apply(crew())
	want := reconcile.Result{
		Creatures:  map[string]journal.CreatureID{"creature.lead": "c001", "creature.hand": "c002"},
		Channels:   map[string]journal.ChannelID{"channel.tasks": "h003", "channel.notes": "h004"},
		Created:    []string{"creature.lead", "creature.hand"},
		Redeclared: map[journal.ChannelID]deploy.ChannelSpec{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the result (-want +got):\n%s", diff)
	}
	w.check("lead", "hand", "#tasks", "#notes", "lead sends tasks", "hand listens tasks", "hand sends notes", "lead listens notes")
}

// TestReportedChanges applies an edited deployment and compares the reported
// result.
func TestReportedChanges(t *testing.T) {
	s := newScene(t, crew())
	s.pending[s.hand], s.unread[s.notes] = 3, 5
	got := s.apply(crew(func(d *deploy.Deployment) {
		d.Creatures[1] = deploy.CreatureSpec{Address: "creature.paw", Name: "paw", Listen: on("tasks")}
		d.Channels = []deploy.ChannelSpec{{Address: "channel.tasks", Name: "tasks", Description: "what to do"}}
		lead(d).Module, lead(d).Listen = "other.wasm", nil
	}))
	want := reconcile.Result{
		Creatures:  map[string]journal.CreatureID{"creature.lead": s.lead, "creature.paw": got.Creatures["creature.paw"]},
		Channels:   map[string]journal.ChannelID{"channel.tasks": s.tasks},
		Resumed:    []string{"creature.lead"},
		Changed:    []string{"creature.lead"},
		Created:    []string{"creature.paw"},
		Removed:    []reconcile.Removed{{Address: "creature.hand", Pending: 3}, {Address: "channel.notes", Pending: 5}},
		Redeclared: map[journal.ChannelID]deploy.ChannelSpec{s.tasks: {Address: "channel.tasks", Name: "tasks", Description: "what to do"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the result (-want +got):\n%s", diff)
	}
	s.check("lead", "paw", "#tasks", "lead sends tasks", "paw listens tasks")
}

// judge is a policy that records its events, and denies them if it has a
// reason.
type judge struct {
	deploy.Policy
	reason string
	asked  []deploy.PolicyEvent
}

func (*judge) Judges(journal.PolicyKind) bool { return true }

func (j *judge) Judge(_ context.Context, ev *deploy.PolicyEvent) (out deploy.Decision) {
	if j.asked = append(j.asked, *ev); j.reason != "" {
		out.Denials = []deploy.Verdict{{Policy: "no", Reason: j.reason}}
	}
	return out
}

// TestDenied lets the deployment's policy deny a plan: nothing happens, and
// the policy was asked once, about the whole plan.
func TestDenied(t *testing.T) {
	s := newScene(t, crew())
	before, j := s.picture(), &judge{reason: "not today"}
	_, err := s.try(crew(func(d *deploy.Deployment) {
		hand(d).Address, d.Policy = "creature.paw", j
	}), reconcile.Options{})
	if abi.CodeOf(err) != abi.Denied {
		t.Errorf("error is %v", err)
	}
	if diff := changes(before, s.picture()); diff != nil {
		t.Errorf("what there is has changed: %q", diff)
	}
	if len(j.asked) != 1 {
		t.Fatalf("asked %d times", len(j.asked))
	}
	ev := j.asked[0]
	if !slices.Equal(ev.Created, []string{"creature.paw"}) || !slices.Equal(ev.Removed, []string{"creature.hand"}) || ev.Kind != journal.JudgePlan || ev.Graph != s.topo.GraphOf(s.lead) {
		t.Errorf("asked about %+v", ev)
	}
}

// TestChannelsNeedEnds proves that a channel needs an edge, and that a refused
// deployment leaves nothing behind.
func TestChannelsNeedEnds(t *testing.T) {
	w := newWorld(t)
	_, err := w.try(crew(func(d *deploy.Deployment) { d.Channels = append(d.Channels, channelSpec("idle")) }), reconcile.Options{})
	if abi.CodeOf(err) != abi.InvalidArgument {
		t.Errorf("error is %v", err)
	}
	w.check()
}

// TestChannelsAreInTheGraphOfTheirFirstCreature applies a second deployment
// whose listener is in a graph with a channel of the same name: the new
// channel gets a number only if its first creature is in that graph.
func TestChannelsAreInTheGraphOfTheirFirstCreature(t *testing.T) {
	for name, c := range map[string]struct {
		first int // of the second deployment's creatures that have edges to the channel
		want  string
	}{
		"beside another's channel": {0, "tasks~2"},
		"by itself":                {1, "tasks"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.apply(crew())
			other := &deploy.Deployment{Name: "other", Creatures: []deploy.CreatureSpec{{Address: "creature.x", Name: "x"}, {Address: "creature.y", Name: "y"}}}
			b := w.apply(other)
			w.do(topology.Connect{From: a.Creatures["creature.lead"], To: b.Creatures["creature.x"], Name: "between"})
			edited := &deploy.Deployment{Name: "other", Channels: []deploy.ChannelSpec{channelSpec("tasks")}, Creatures: slices.Clone(other.Creatures)}
			edited.Creatures[c.first].Listen = on("tasks")
			r := w.update(edited, other)
			ch, _ := w.topo.Channel(r.Channels["channel.tasks"])
			if near := w.topo.GraphOf(b.Creatures[other.Creatures[c.first].Address]); ch.Name != c.want || ch.Graph != near {
				t.Errorf("the channel is called %s and in %s; its listener is in %s", ch.Name, ch.Graph, near)
			}
		})
	}
}

// TestAliases lets send edges exchange aliases, and take the alias of an edge
// added at run time, which gets another one.
func TestAliases(t *testing.T) {
	two := func(aliases ...string) *deploy.Deployment {
		return crew(func(d *deploy.Deployment) { lead(d).Send, hand(d).Listen = on(aliases...), on("tasks", "notes") })
	}
	t.Run("of each other", func(t *testing.T) {
		s := newScene(t, two("tasks=a", "notes=b"))
		before := s.picture()
		s.apply(two("tasks=b", "notes=a"))
		want := []string{"- lead sends notes as b", "- lead sends tasks as a", "+ lead sends notes as a", "+ lead sends tasks as b"}
		if diff := cmp.Diff(want, changes(before, s.picture())); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
	})
	t.Run("of one that stays", func(t *testing.T) {
		last := crew()
		s := newScene(t, last)
		scrap := s.make("scrap", "crew", s.hand)
		op := sends(s.lead, scrap)
		op.Alias = "urgent"
		s.do(op)
		before := s.picture()
		s.update(crew(func(d *deploy.Deployment) { lead(d).Send = on("tasks=urgent") }), last)
		want := []string{"- lead sends scrap as urgent", "- lead sends tasks", "+ lead sends scrap", "+ lead sends tasks as urgent"}
		if diff := cmp.Diff(want, changes(before, s.picture())); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
	})
	t.Run("of one that was given another", func(t *testing.T) {
		last := crew()
		s := newScene(t, last)
		s.do(edge(s.lead, s.tasks, journal.Send, false))
		op := sends(s.lead, s.tasks)
		op.Alias = "mine"
		s.do(op)
		before := s.picture()
		if s.update(crew(), last); len(changes(before, s.picture())) != 0 {
			t.Errorf("the alias did not stay: %q", changes(before, s.picture()))
		}
	})
}

// TestNames lets two creatures swap names, and a new one take over the name of
// a removed and of a renamed creature.
func TestNames(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*deploy.Deployment)
		want []string // by address: the names of lead, hand and paw
	}{
		"swapped": {func(d *deploy.Deployment) { lead(d).Name, hand(d).Name = "hand", "lead" }, []string{"hand", "lead", ""}},
		"of one that goes": {func(d *deploy.Deployment) {
			hand(d).Address = "creature.paw"
		}, []string{"lead", "", "hand"}},
		"of one that is renamed": {func(d *deploy.Deployment) {
			paw := *hand(d)
			paw.Address = "creature.paw"
			hand(d).Name = "left"
			d.Creatures = append(d.Creatures, paw)
		}, []string{"lead", "left", "hand"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, crew())
			r := s.apply(crew(c.edit))
			for i, address := range []string{"creature.lead", "creature.hand", "creature.paw"} {
				if got, _ := s.topo.Creature(r.Creatures[address]); got.Name != c.want[i] {
					t.Errorf("%s is called %q", address, got.Name)
				}
			}
		})
	}
}

// TestUnclaimed proves that a creature restored only with its graph is
// removed, with its direct channel, if it belongs to the deployment or to
// none.
func TestUnclaimed(t *testing.T) {
	s := newScene(t, crew())
	clerk := s.spawn("clerk", s.lead)
	s.unclaimed[clerk], s.pending[clerk] = true, 2
	before := s.picture()
	r := s.apply(crew())
	if want := []reconcile.Removed{{Address: "clerk", Pending: 2}}; !slices.Equal(r.Removed, want) {
		t.Errorf("removed are %v", r.Removed)
	}
	want := []string{"- #clerk", "- clerk", "- clerk listens clerk", "- lead sends clerk"}
	if diff := cmp.Diff(want, changes(before, s.picture())); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// TestUnclaimedOfOthers proves that an unclaimed creature stays if it belongs
// to another deployment that has not been applied yet, and is removed if no
// recipe made its deployment.
func TestUnclaimedOfOthers(t *testing.T) {
	for deployment, stays := range map[string]bool{"other": true, "": false, "root:c999": false} {
		s := newScene(t, crew())
		clerk := s.spawn("clerk", s.lead)
		m := s.members[clerk]
		m.Deployment = deployment
		s.members[clerk], s.unclaimed[clerk] = m, true
		s.apply(crew())
		if _, there := s.members[clerk]; there != stays {
			t.Errorf("of the deployment %q: is there is %v", deployment, there)
		}
	}
}

// TestRestored proves that a deployment that decides alone keeps things made
// by creatures, if the whole session was restored.
func TestRestored(t *testing.T) {
	s := newScene(t, crew())
	s.spawn("clerk", s.lead)
	s.do(sends(s.lead, s.make("scrap", "crew", s.hand)))
	before := s.picture()
	s.applyWith(crew(), reconcile.Options{Restored: true})
	if diff := changes(before, s.picture()); diff != nil {
		t.Errorf("changes: %q", diff)
	}
}

// TestWorkersGoAlong removes a creature together with its workers.
func TestWorkersGoAlong(t *testing.T) {
	s := newScene(t, crew(func(d *deploy.Deployment) { hand(d).Workers = deploy.WorkersRemove }))
	s.spawn("clerk", s.hand)
	r := s.apply(crew(func(d *deploy.Deployment) {
		d.Creatures, d.Channels = d.Creatures[:1], d.Channels[:1]
		lead(d).Listen = nil
	}))
	want := []reconcile.Removed{{Address: "creature.hand"}, {Address: "clerk"}, {Address: "channel.notes"}}
	if !slices.Equal(r.Removed, want) {
		t.Errorf("removed are %v", r.Removed)
	}
	s.check("lead", "#tasks", "lead sends tasks")
}

// TestAlonePathsMeet applies random deployments one after the other, each
// deciding alone: the final state is as if the last one had been applied
// first, and applying it again changes nothing.
func TestAlonePathsMeet(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			w, fresh := newWorld(t), newWorld(t)
			var d *deploy.Deployment
			for range 1 + r.IntN(4) {
				d = randomCrew(r)
				w.apply(d)
			}
			fresh.apply(d)
			if diff := cmp.Diff(fresh.picture(), w.picture()); diff != "" {
				t.Errorf("on another path (-new +got):\n%s", diff)
			}
			before := w.picture()
			again := w.apply(d)
			if diff := changes(before, w.picture()); diff != nil || len(again.Created)+len(again.Removed)+len(again.Changed) != 0 || len(w.wireNotes) != 0 {
				t.Errorf("again: changes %q, result %+v, wires %v", diff, again, w.wireNotes)
			}
		})
	}
}

// randomCrew draws a deployment of up to four creatures and four channels. All are
// joined by one channel: names are unique in a graph.
func randomCrew(r *rand.Rand) *deploy.Deployment {
	d := &deploy.Deployment{Name: "crew", Channels: []deploy.ChannelSpec{channelSpec("all")}}
	names := r.Perm(4)
	used := map[string]bool{"all": true}
	for i := range 1 + r.IntN(4) {
		c := deploy.CreatureSpec{
			Address: fmt.Sprintf("creature.%d", i), Name: fmt.Sprintf("name%d", names[i]), Listen: on("all"),
			Stopped: r.IntN(4) == 0, Privileged: r.IntN(4) == 0,
		}
		aliases := r.Perm(3)
		for k := range 3 {
			ch := fmt.Sprintf("x%d", k)
			if r.IntN(3) == 0 {
				c.Listen, used[ch] = append(c.Listen, on(ch)...), true
			}
			if r.IntN(3) == 0 {
				c.Send, used[ch] = append(c.Send, on(fmt.Sprintf("%s=a%d", ch, aliases[k]))...), true
			}
		}
		if i > 0 && r.IntN(2) == 0 {
			c.Outputs = []deploy.OutputSpec{{Name: "out", To: fmt.Sprintf("creature.%d", r.IntN(i)), WithContent: r.IntN(2) == 0}}
		}
		d.Creatures = append(d.Creatures, c)
	}
	for k := range 3 {
		if ch := fmt.Sprintf("x%d", k); used[ch] {
			d.Channels = append(d.Channels, channelSpec(ch))
		}
	}
	if r.IntN(2) == 0 {
		d.Root = d.Creatures[r.IntN(len(d.Creatures))].Address
	}
	return d
}
