package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// set is a set of facts, written as texts.
type set map[string]bool

// facts are the creatures, channels and edges of a deployment, by address if they have
// one, otherwise by id.
type facts struct{ creatures, channels, edges set }

func newFacts() facts { return facts{set{}, set{}, set{}} }

// factsOf are the facts that a deployment declares. It has no root.
func factsOf(d *deploy.Deployment) facts {
	f := newFacts()
	for _, ch := range d.Channels {
		f.channels[ch.Address] = true
	}
	for _, c := range d.Creatures {
		f.creatures[c.Address] = true
		for _, w := range c.Listen {
			f.edges[c.Address+" listen "+w.Channel] = true
		}
		for _, w := range c.Send {
			f.edges[c.Address+" send "+w.Channel] = true
		}
	}
	return f
}

// factsIn are the facts that are saved.
func factsIn(graphs []journal.SavedGraph) facts {
	f := newFacts()
	names := map[string]string{}
	for _, g := range graphs {
		for _, c := range g.Creatures {
			names[string(c.ID)] = string(c.ID)
			if c.Address != "" {
				names[string(c.ID)] = c.Address
			}
			f.creatures[names[string(c.ID)]] = true
		}
		for _, ch := range g.Channels {
			if ch.Inbox != "" {
				continue
			}
			names[string(ch.ID)] = string(ch.ID)
			if strings.HasPrefix(ch.Address, "channel.") {
				names[string(ch.ID)] = ch.Address
			}
			f.channels[names[string(ch.ID)]] = true
		}
	}
	for _, g := range graphs {
		for _, e := range g.Edges {
			f.edges[fmt.Sprintf("%s %s %s", names[string(e.Creature)], e.Direction, names[string(e.Channel)])] = true
		}
	}
	return f
}

// merge is a three-way merge: ours, with the differences between base and theirs
// applied.
func merge(ours, base, theirs set) set {
	out := set{}
	for x := range ours {
		if !base[x] || theirs[x] {
			out[x] = true
		}
	}
	for x := range theirs {
		if !base[x] {
			out[x] = true
		}
	}
	return out
}

// merged is what the model expects: a merge of creatures, channels and edges, without
// edges that have lost an end. A removed channel is restored if the recipe has a new
// use for it. A channel that only removed creatures would use is not added.
func merged(ours, base, theirs facts) facts {
	out := facts{merge(ours.creatures, base.creatures, theirs.creatures), merge(ours.channels, base.channels, theirs.channels), set{}}
	used := set{}
	for e := range merge(ours.edges, base.edges, theirs.edges) {
		ends := strings.Fields(e)
		if !out.creatures[ends[0]] || !out.channels[ends[2]] && !ours.channels[ends[2]] {
			continue
		}
		out.edges[e], out.channels[ends[2]], used[ends[2]] = true, true, true
	}
	for ch := range ours.channels {
		if !used[ch] && !theirs.channels[ch] {
			delete(out.channels, ch)
		}
	}
	return out
}

// TestWhatRunningHasChangedStays compares with a three-way merge of sets.
func TestWhatRunningHasChangedStays(t *testing.T) {
	for seed := range seeds(t, planSeeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { driftProgram(t, seed) })
	}
}

// TestARecipeMayAskForAWireBetweenGraphs repeats programs in which the recipe declares
// an output wire between creatures that were disconnected while it ran. The wire is
// refused.
func TestARecipeMayAskForAWireBetweenGraphs(t *testing.T) {
	for _, seed := range []uint64{2032893626616776800, 2032893626616776851} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { driftProgram(t, seed) })
	}
}

func driftProgram(t *testing.T, seed uint64) {
	r := newDrafts(1000 + seed)
	s := newSaved(t, engine.Options{})
	base := r.deployment("d0", false)
	s.apply(base)
	r.disturb(s, r.IntN(15), false)
	s.wait()
	saved := s.rest()
	theirs := factsIn(saved)
	ours := *base
	if !r.once(4) {
		ours = *r.edit(base, false)
	}
	if !slices.ContainsFunc(base.Creatures, func(c deploy.CreatureSpec) bool { return theirs.creatures[c.Address] }) {
		return // no creature is left to compare
	}
	ours.Last = base
	want := merged(factsOf(&ours), factsOf(base), theirs)
	if _, err := s.Apply(t.Context(), &ours); err != nil {
		if abi.CodeOf(err) != abi.NotConnected || !spans(&ours, want) {
			t.Errorf("applied: %v", err)
		}
		return
	}
	s.wait()
	got := factsIn(s.rest())
	// New facts have ids of their own. Only recipes add them, so they have addresses.
	if diff := cmp.Diff(inLists(want), inLists(got)); diff != "" {
		t.Errorf("merged (-), saved (+):\n%s", diff)
	}
}

// spans reports whether a recipe declares an output wire between two of the graphs
// that the edges make. The connection was removed while the recipe ran.
func spans(d *deploy.Deployment, f facts) bool {
	var creatures []journal.CreatureID
	for c := range f.creatures {
		creatures = append(creatures, journal.CreatureID(c))
	}
	channels := map[journal.ChannelID][]journal.CreatureID{}
	for e := range f.edges {
		ends := strings.Fields(e)
		ch := journal.ChannelID(ends[2])
		channels[ch] = append(channels[ch], journal.CreatureID(ends[0]))
	}
	parts := map[string]int{}
	for i, part := range partition(creatures, channels) {
		for _, c := range part {
			parts[string(c)] = i
		}
	}
	return slices.ContainsFunc(d.Creatures, func(c deploy.CreatureSpec) bool {
		return f.creatures[c.Address] && slices.ContainsFunc(c.Outputs, func(o deploy.OutputSpec) bool {
			return f.creatures[o.To] && parts[o.To] != parts[c.Address]
		})
	})
}

// inLists returns the facts as sorted lists. It leaves out channels without edges, which may
// stay or be removed with the graph that they were declared in.
func inLists(f facts) [][]string {
	var out [][]string
	maps.DeleteFunc(f.channels, func(ch string, _ bool) bool {
		for e := range f.edges {
			if strings.HasSuffix(e, " "+ch) {
				return false
			}
		}
		return true
	})
	for _, s := range []set{f.creatures, f.channels, f.edges} {
		out = append(out, slices.Sorted(maps.Keys(s)))
	}
	return out
}
