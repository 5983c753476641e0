package engine_test

import (
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// TestASessionTellsOfTheDeploymentsOfItsMembers merges the graphs of two recipes, applies one
// of them from another file, and splits the graphs again.
func TestASessionTellsOfTheDeploymentsOfItsMembers(t *testing.T) {
	s := newSaved(t, engine.Options{})
	named := func(name, path string) *deploy.Deployment {
		d := team(2)
		d.Name = name
		d.Source = deploy.Source{Path: path, Files: map[string]string{path: "text of " + path}}
		return d
	}
	one, two := s.apply(named("one", "1.hcl")), s.apply(named("two", "2.hcl"))
	a, b := one.Creatures["creature.m1"], two.Creatures["creature.m0"]
	s.wantDeployments(a, "one:1.hcl")
	s.wantDeployments(b, "two:2.hcl")
	s.change(topology.Connect{From: a, To: b, Channel: two.Channels["channel.c0"]})
	s.wantDeployments(a, "one:1.hcl", "two:2.hcl")
	s.reopen() // only the stores remember
	s.wantDeployments(b, "one:1.hcl", "two:2.hcl")
	s.apply(named("two", "other.hcl"))
	s.wantDeployments(a, "one:1.hcl", "two:other.hcl")
	s.change(topology.SetEdge{Creature: a, Channel: two.Channels["channel.c0"], Direction: journal.Send})
	s.wantDeployments(a, "one:1.hcl")
	s.wantDeployments(b, "two:other.hcl")
	s.reopen()
	s.wantDeployments(a, "one:1.hcl")
	s.wantDeployments(b, "two:other.hcl")
}

// wantDeployments checks the deployments, with the paths of their recipes, in the
// metadata of a creature's session.
func (s *saved) wantDeployments(c journal.CreatureID, want ...string) {
	s.t.Helper()
	home, err := s.FindGraph(string(c)) // another creature may have the same name
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.History(s.t.Context(), string(home), journal.HistoryQuery{Limit: 1}); err != nil { // waits until all is written
		s.t.Fatal(err)
	}
	infos, err := s.Sessions(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, i := range infos {
		if !i.Live || i.Graph != home {
			continue
		}
		var got []string
		for n, name := range engine.DeploymentsIn(i.Meta) {
			key := engine.MetaConfigPath
			if n > 0 {
				key += "/" + name
			}
			got = append(got, name+":"+i.Meta[key])
		}
		if !slices.Equal(got, want) {
			s.t.Errorf("the session lists the deployments %v, want %v: %v", got, want, i.Meta)
		}
		return
	}
	s.t.Errorf("%s is in no session", c)
}
