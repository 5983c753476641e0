package regroup_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/engine/internal/regroup"
	"github.com/seed47132306/terrarium/engine/journal"
)

type ids = []journal.GraphID

// TestGroupsNeedTheirKindOfCut covers the kinds of groups.
func TestGroupsNeedTheirKindOfCut(t *testing.T) {
	for _, c := range []struct {
		group         regroup.Group
		kind, outcome journal.CutKind
		keeps         bool
	}{
		{regroup.Group{Before: ids{"a"}, After: ids{"a"}}, journal.CutNone, journal.CutNone, true},
		{regroup.Group{Before: ids{"a"}, After: ids{"a"}, Passed: true}, journal.CutRearrange, journal.CutNone, false},
		{regroup.Group{Before: ids{"a"}, After: ids{"b"}}, journal.CutRearrange, journal.CutMerge, false},
		{regroup.Group{After: ids{"a"}}, journal.CutNone, journal.CutNone, false},
		{regroup.Group{Before: ids{"a"}}, journal.CutNone, journal.CutNone, false},
		{regroup.Group{Before: ids{"a", "b"}, After: ids{"a"}}, journal.CutMerge, journal.CutMerge, false},
		{regroup.Group{Before: ids{"a"}, After: ids{"a", "b"}}, journal.CutSplit, journal.CutSplit, false},
		{regroup.Group{Before: ids{"a", "b"}, After: ids{"c", "d"}}, journal.CutRearrange, journal.CutMerge, false},
		{regroup.Group{Before: ids{"a", "b"}, After: ids{"b", "c", "d"}}, journal.CutRearrange, journal.CutSplit, false},
	} {
		if g := c.group; g.Kind() != c.kind || g.Outcome() != c.outcome || g.Keeps() != c.keeps {
			t.Errorf("%+v: the cut %q, the outcome %q, keeps: %v; want %+v", g, g.Kind(), g.Outcome(), g.Keeps(), c)
		}
	}
}

// TestGroupsAreApart moves random members between random graphs, in random order. The groups
// must be the connected components of these moves.
func TestGroupsAreApart(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		const n = 6
		type move struct{ before, after journal.GraphID }
		var moves []move
		for range r.IntN(10) {
			moves = append(moves, move{journal.GraphID(fmt.Sprint("g", r.IntN(n))), journal.GraphID(fmt.Sprint("g", r.IntN(n)))})
		}
		find := func() string {
			r.Shuffle(len(moves), func(i, j int) { moves[i], moves[j] = moves[j], moves[i] })
			var s regroup.Groups
			for _, m := range moves {
				s.Join(m.before, m.after)
			}
			s.Begin("new")
			s.Begin("new")
			s.End("old")
			text := ""
			for _, g := range s.Found(map[journal.GraphID]bool{"g1": true}) {
				text += fmt.Sprint(*g)
				if g.Passed != slices.Contains(g.Before, "g1") {
					t.Fatalf("the group %+v has a wrong Passed", g)
				}
			}
			return text
		}
		// The reference joins labels until nothing changes.
		label := map[string]string{"<old": "<old", ">new": ">new"}
		for _, m := range moves {
			label["<"+string(m.before)], label[">"+string(m.after)] = "<"+string(m.before), ">"+string(m.after)
		}
		for changed := true; changed; {
			changed = false
			for _, m := range moves {
				a, b := "<"+string(m.before), ">"+string(m.after)
				if low := min(label[a], label[b]); label[a] != low || label[b] != low {
					label[a], label[b], changed = low, low, true
				}
			}
		}
		want := map[string]*regroup.Group{}
		for node, l := range label {
			if want[l] == nil {
				want[l] = &regroup.Group{}
			}
			if id := journal.GraphID(node[1:]); node[0] == '<' {
				want[l].Before = append(want[l].Before, id)
			} else {
				want[l].After = append(want[l].After, id)
			}
		}
		var list []*regroup.Group
		for _, g := range want {
			slices.Sort(g.Before)
			slices.Sort(g.After)
			g.Passed = slices.Contains(g.Before, "g1")
			list = append(list, g)
		}
		first := func(g *regroup.Group) string { return string(append(slices.Clone(g.Before), g.After...)[0]) }
		slices.SortFunc(list, func(a, b *regroup.Group) int {
			if first(a) < first(b) {
				return -1
			}
			return 1
		})
		text := ""
		for _, g := range list {
			text += fmt.Sprint(*g)
		}
		if got, again := find(), find(); got != text || again != text {
			t.Fatalf("%v: the groups %s and, in another order, %s; want %s", moves, got, again, text)
		}
	}
}
