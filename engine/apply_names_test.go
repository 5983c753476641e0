package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// named is a deployment of creatures on one channel. Each pair of texts is the address
// and the name of a creature.
func named(pairs ...string) *deploy.Deployment {
	d := &deploy.Deployment{Name: "named", Channels: []deploy.ChannelSpec{{Address: "channel.in", Name: "in"}}}
	for i := 0; i < len(pairs); i += 2 {
		c := spec(pairs[i+1], "sink")
		c.Address, c.Listen = "creature."+pairs[i], []deploy.WireSpec{{Channel: "channel.in"}}
		d.Creatures = append(d.Creatures, c)
	}
	return d
}

// namesIn are the names of creatures, by address.
func (s *saved) namesIn() map[string]string {
	out := map[string]string{}
	for _, g := range s.status() {
		for _, c := range g.Creatures {
			out[c.Address] = c.Name
		}
	}
	return out
}

// An edited recipe determines the names of its creatures, while they run and after a
// restart.
func TestApplyRenames(t *testing.T) {
	for name, c := range map[string]struct {
		before, after []string
		want          map[string]string
	}{
		"one": {
			[]string{"a", "reader"}, []string{"a", "scribe"},
			map[string]string{"creature.a": "scribe"},
		},
		"a new creature takes the old name": {
			[]string{"a", "reader"}, []string{"a", "scribe", "b", "reader"},
			map[string]string{"creature.a": "scribe", "creature.b": "reader"},
		},
		"two creatures exchange names": {
			[]string{"a", "reader", "b", "scribe"}, []string{"a", "scribe", "b", "reader"},
			map[string]string{"creature.a": "scribe", "creature.b": "reader"},
		},
		"a creature takes the name of a removed one": {
			[]string{"a", "reader", "b", "scribe"}, []string{"a", "scribe"},
			map[string]string{"creature.a": "scribe"},
		},
		"a new creature takes the name of a removed one": {
			[]string{"a", "reader", "b", "scribe"}, []string{"a", "reader", "c", "scribe"},
			map[string]string{"creature.a": "reader", "creature.c": "scribe"},
		},
		"three creatures rotate names": {
			[]string{"a", "x", "b", "y", "c", "z"}, []string{"a", "y", "b", "z", "c", "x"},
			map[string]string{"creature.a": "y", "creature.b": "z", "creature.c": "x"},
		},
	} {
		for how, restart := range map[string]bool{"while it runs": false, "after a restart": true} {
			t.Run(name+" "+how, func(t *testing.T) {
				s := newSaved(t, engine.Options{})
				s.apply(named(c.before...))
				if restart {
					s.reopen()
				}
				after := named(c.after...)
				plan, err := s.Plan(t.Context(), after)
				if err != nil {
					t.Fatal(err)
				}
				if plan.Empty() {
					t.Error("the plan is empty, although names have changed")
				}
				s.apply(after)
				if diff := cmp.Diff(c.want, s.namesIn()); diff != "" {
					t.Errorf("names (-want +got):\n%s", diff)
				}
				nothingLeft(t, s, []*deploy.Deployment{after})
				s.reopen()
				nothingLeft(t, s, []*deploy.Deployment{after})
				s.apply(after)
				if diff := cmp.Diff(c.want, s.namesIn()); diff != "" {
					t.Errorf("names after a restart (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// A name that a merge has assigned stays when the same recipe is applied again.
func TestApplyLeavesNumberedNames(t *testing.T) {
	s := newSaved(t, engine.Options{})
	d := named("a", "reader")
	a := s.apply(d)
	other := s.add("reader", "sink")
	s.connect(other, a.Creatures["creature.a"], "out")
	before := s.namesIn()
	nothingLeft(t, s, []*deploy.Deployment{d})
	s.apply(d)
	if diff := cmp.Diff(before, s.namesIn()); diff != "" {
		t.Errorf("names (-before +after):\n%s", diff)
	}
}
