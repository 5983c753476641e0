package reconcile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/reconcile"
	"github.com/seed47132306/terrarium/engine/topology"
)

// scene is the crew, applied.
type scene struct {
	*world
	lead, hand   journal.CreatureID
	tasks, notes journal.ChannelID
}

func newScene(t *testing.T, d *deploy.Deployment) *scene {
	w := newWorld(t)
	r := w.apply(d)
	return &scene{
		w, r.Creatures["creature.lead"], r.Creatures["creature.hand"],
		r.Channels["channel.tasks"], r.Channels["channel.notes"],
	}
}

// again lists the ways to apply a deployment again.
type again struct{ alone, drift, heals, incomplete []string }

func (s *scene) again(d *deploy.Deployment, o reconcile.Options) []string {
	before := s.picture()
	s.applyWith(d, o)
	return changes(before, s.picture())
}

func lead(d *deploy.Deployment) *deploy.CreatureSpec { return &d.Creatures[0] }
func hand(d *deploy.Deployment) *deploy.CreatureSpec { return &d.Creatures[1] }

// TestDrift changes something while a deployment runs, applies it again,
// edited or not, and compares the effect: if the deployment alone decides, if
// the last applied version is known, if it runs and restores missing things,
// and if a part cannot be read.
func TestDrift(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*scene)
		edit      func(*deploy.Deployment)
		want      again
	}{
		"nothing": {},
		"a creature was removed": {
			meanwhile: func(s *scene) { s.do(topology.RemoveCreature{ID: s.hand}) },
			want: again{
				alone:      []string{"+ hand", "+ hand listens tasks", "+ hand sends notes"},
				heals:      []string{"+ hand", "+ hand listens tasks", "+ hand sends notes"},
				incomplete: []string{"+ hand", "+ hand listens tasks", "+ hand sends notes"},
			},
		},
		"a channel was made": {
			meanwhile: func(s *scene) { s.make("scrap", "crew", s.hand) },
			want:      again{alone: []string{"- #scrap", "- hand listens scrap"}},
		},
		"a channel was removed": {
			meanwhile: func(s *scene) { s.do(topology.RemoveChannel{ID: s.notes}) },
			want: again{
				alone:      []string{"+ #notes", "+ hand sends notes", "+ lead listens notes"},
				heals:      []string{"+ #notes", "+ hand sends notes", "+ lead listens notes"},
				incomplete: []string{"+ #notes", "+ hand sends notes", "+ lead listens notes"},
			},
		},
		"an edge was taken away": {
			meanwhile: func(s *scene) { s.do(edge(s.hand, s.notes, journal.Send, false)) },
			want: again{
				alone: []string{"+ hand sends notes"}, heals: []string{"+ hand sends notes"}, incomplete: []string{"+ hand sends notes"},
			},
		},
		"an edge was added": {
			meanwhile: func(s *scene) { s.do(listens(s.lead, s.tasks)) },
			want:      again{alone: []string{"- lead listens tasks"}},
		},
		"the recipe drops an edge": {
			edit: func(d *deploy.Deployment) { hand(d).Send = nil },
			want: same("- hand sends notes"),
		},
		"the recipe drops a creature": {
			edit: func(d *deploy.Deployment) { d.Creatures = d.Creatures[:1] },
			want: same("- hand", "- hand listens tasks", "- hand sends notes"),
		},
		"the recipe drops a channel": {
			edit: func(d *deploy.Deployment) {
				d.Channels, lead(d).Listen, hand(d).Send = d.Channels[:1], nil, nil
			},
			want: same("- #notes", "- hand sends notes", "- lead listens notes"),
		},
		"the recipe adds a channel": {
			edit: func(d *deploy.Deployment) {
				d.Channels = append(d.Channels, channelSpec("more"))
				hand(d).Send = on("notes", "more")
			},
			want: same("+ #more", "+ hand sends more"),
		},
		"a creature was stopped": {
			meanwhile: func(s *scene) { s.do(topology.SetStopped{ID: s.hand, Stopped: true}) },
			want:      again{alone: []string{"- hand stopped", "+ hand"}},
		},
		"the recipe stops a creature": {
			edit: func(d *deploy.Deployment) { hand(d).Stopped = true },
			want: same("- hand", "+ hand stopped"),
		},
		"a creature was made privileged": {
			meanwhile: func(s *scene) { s.do(topology.SetPrivileged{ID: s.hand, Privileged: true}) },
			want:      again{alone: []string{"- hand privileged", "+ hand"}},
		},
		"the recipe makes a creature privileged": {
			edit: func(d *deploy.Deployment) { hand(d).Privileged = true },
			want: same("- hand", "+ hand privileged"),
		},
		"a creature was renamed": {
			meanwhile: func(s *scene) { s.rename(s.hand, "paw") },
			want: again{alone: []string{
				"- paw", "- paw listens tasks", "- paw sends notes",
				"+ hand", "+ hand listens tasks", "+ hand sends notes",
			}},
		},
		"a merge has numbered a creature": {
			meanwhile: func(s *scene) { s.rename(s.hand, "hand~2") },
		},
		"the recipe renames a creature": {
			edit: func(d *deploy.Deployment) { hand(d).Name = "paw" },
			want: same(
				"- hand", "- hand listens tasks", "- hand sends notes",
				"+ paw", "+ paw listens tasks", "+ paw sends notes",
			),
		},
		"the recipe gives an edge another alias": {
			edit: func(d *deploy.Deployment) { hand(d).Send = on("notes=log") },
			want: same("- hand sends notes", "+ hand sends notes as log"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, way := range []struct {
				name string
				want []string
				o    func(last *deploy.Deployment) reconcile.Options
			}{
				{"alone", c.want.alone, func(*deploy.Deployment) reconcile.Options { return reconcile.Options{} }},
				{"drift", c.want.drift, func(last *deploy.Deployment) reconcile.Options {
					return reconcile.Options{Drift: reconcile.DriftFrom(last)}
				}},
				{"heals", c.want.heals, func(last *deploy.Deployment) reconcile.Options {
					return reconcile.Options{Drift: reconcile.HealingFrom(last)}
				}},
				{"incomplete", c.want.incomplete, func(last *deploy.Deployment) reconcile.Options {
					return reconcile.Options{Drift: reconcile.DriftFrom(last), Incomplete: true}
				}},
			} {
				last, d := crew(), crew()
				s := newScene(t, last)
				if c.meanwhile != nil {
					c.meanwhile(s)
				}
				if c.edit != nil {
					c.edit(d)
				}
				if diff := cmp.Diff(way.want, s.again(d, way.o(last))); diff != "" {
					t.Errorf("%s: changes (-want +got):\n%s", way.name, diff)
				}
			}
		})
	}
}

func (w *world) rename(id journal.CreatureID, name string) {
	w.t.Helper()
	w.do(topology.SetNames{Names: []topology.Naming{{ID: id, Name: name}}})
}

// same is an effect that does not depend on the way the deployment is applied.
func same(lines ...string) again { return again{lines, lines, lines, lines} }
