// Package regroup finds out which graphs exchange members in a change. A group is a set
// of graphs before and after the change, such that no group affects another.
package regroup

import (
	"cmp"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
)

// Group is a set of graphs that exchange members.
type Group struct {
	Before, After []journal.GraphID // each by id
	// Passed means that a member passed through one of the graphs within the change, so that
	// several records describe it.
	Passed bool
}

// Kind is the kind of cut that the group needs.
func (g *Group) Kind() journal.CutKind {
	switch {
	case len(g.Before) > 1 && len(g.After) == 1:
		return journal.CutMerge
	case len(g.Before) == 1 && len(g.After) > 1:
		return journal.CutSplit
	case len(g.Before) == 0 || len(g.After) == 0 || g.Keeps():
		return journal.CutNone
	}
	return journal.CutRearrange
}

// Outcome is the kind of the group in a summary: a merge or a split, or none if it is
// neither.
func (g *Group) Outcome() journal.CutKind {
	switch kind := g.Kind(); {
	case g.same():
		return journal.CutNone
	case kind == journal.CutRearrange && len(g.After) > len(g.Before):
		return journal.CutSplit
	case kind == journal.CutRearrange:
		return journal.CutMerge
	default:
		return kind
	}
}

// Keeps reports whether the group is one graph that keeps its store.
func (g *Group) Keeps() bool { return g.same() && !g.Passed }

// same reports whether the group is one graph that keeps its id.
func (g *Group) same() bool {
	return len(g.Before) == 1 && len(g.After) == 1 && g.Before[0] == g.After[0]
}

func (g *Group) key() journal.GraphID {
	if len(g.Before) > 0 {
		return g.Before[0]
	}
	return g.After[0]
}

// Groups are groups that are being found. The zero value has none.
type Groups struct {
	list          []*Group
	before, after map[journal.GraphID]*Group
}

// Join notes that members of a graph are in a graph after the change.
func (s *Groups) Join(before, after journal.GraphID) {
	if s.before == nil {
		s.before = map[journal.GraphID]*Group{}
	}
	if s.after == nil {
		s.after = map[journal.GraphID]*Group{}
	}
	a, b := s.before[before], s.after[after]
	switch {
	case a == nil && b == nil:
		a = &Group{}
		s.list = append(s.list, a)
	case a == nil:
		a = b
	case b != nil && a != b:
		for _, id := range b.Before {
			s.before[id] = a
		}
		for _, id := range b.After {
			s.after[id] = a
		}
		a.Before, a.After = append(a.Before, b.Before...), append(a.After, b.After...)
		s.list = slices.DeleteFunc(s.list, func(g *Group) bool { return g == b })
	}
	if s.before[before] == nil {
		s.before[before], a.Before = a, append(a.Before, before)
	}
	if s.after[after] == nil {
		s.after[after], a.After = a, append(a.After, after)
	}
}

// End notes that a graph ends with its last member.
func (s *Groups) End(before journal.GraphID) {
	s.list = append(s.list, &Group{Before: []journal.GraphID{before}})
}

// Begin notes that a graph has a new member. It may have others.
func (s *Groups) Begin(after journal.GraphID) {
	if s.after[after] != nil {
		return
	}
	if s.after == nil {
		s.after = map[journal.GraphID]*Group{}
	}
	s.after[after] = &Group{After: []journal.GraphID{after}}
	s.list = append(s.list, s.after[after])
}

// Found returns the groups in a fixed order. passed are the graphs that something passed
// through.
func (s *Groups) Found(passed map[journal.GraphID]bool) []*Group {
	for _, g := range s.list {
		slices.Sort(g.Before)
		slices.Sort(g.After)
		g.Passed = slices.ContainsFunc(g.Before, func(id journal.GraphID) bool { return passed[id] })
	}
	slices.SortFunc(s.list, func(a, b *Group) int { return cmp.Compare(a.key(), b.key()) })
	return s.list
}
