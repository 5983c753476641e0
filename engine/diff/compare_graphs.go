package diff

import (
	"cmp"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
)

// graphs matches the graphs before and after the change.
func (c *comparison) graphs(groups []*graphGroup) []GraphPlan {
	out := []GraphPlan{}
	for _, g := range groups {
		if kind := g.kind(); kind != journal.CutNone {
			out = append(out, GraphPlan{Kind: kind, Before: slices.Sorted(maps.Keys(g.before)), After: c.parts(g)})
		}
	}
	slices.SortFunc(out, func(a, b GraphPlan) int {
		return cmp.Or(slices.Compare(a.Before, b.Before), cmp.Compare(a.Kind, b.Kind), slices.Compare(firstMembers(a), firstMembers(b)))
	})
	return out
}

func firstMembers(g GraphPlan) []string {
	if len(g.After) == 0 {
		return nil
	}
	return g.After[0].Members
}

// graphGroup is a set of graphs whose members moved between them.
type graphGroup struct{ before, after map[journal.GraphID]bool }

func (g *graphGroup) kind() journal.CutKind {
	switch {
	case len(g.before) == 0:
		return journal.CutBegin
	case len(g.after) == 0:
		return journal.CutEnd
	case len(g.before) == 1 && len(g.after) == 1:
		return journal.CutNone
	case len(g.after) == 1:
		return journal.CutMerge
	case len(g.before) == 1:
		return journal.CutSplit
	}
	return journal.CutRearrange
}

// cutGraphs returns the graphs, before and after, that merge, split or are
// rearranged.
func cutGraphs(groups []*graphGroup) map[journal.GraphID]bool {
	out := map[journal.GraphID]bool{}
	for _, g := range groups {
		if len(g.before) > 0 && len(g.after) > 0 && g.kind() != journal.CutNone {
			maps.Copy(out, g.before)
			maps.Copy(out, g.after)
		}
	}
	return out
}

// groups groups the graphs that have members in common.
func (c *comparison) groups() []*graphGroup {
	of := map[string]*graphGroup{} // by a graph, "<" before or ">" after
	at := func(key string) *graphGroup {
		if of[key] == nil {
			of[key] = &graphGroup{map[journal.GraphID]bool{}, map[journal.GraphID]bool{}}
		}
		return of[key]
	}
	join := func(before, after journal.GraphID) {
		var g *graphGroup
		if before != "" {
			g = at("<" + string(before))
			g.before[before] = true
		}
		if after == "" {
			return
		}
		h := at(">" + string(after))
		h.after[after] = true
		if g == nil || g == h {
			return
		}
		maps.Copy(g.before, h.before)
		maps.Copy(g.after, h.after)
		for key, other := range of {
			if other == h {
				of[key] = g
			}
		}
	}
	for id := range c.before.creatures {
		join(c.before.homes[id], c.after.homes[id])
	}
	for id := range c.after.creatures {
		join(c.before.homes[id], c.after.homes[id])
	}
	var out []*graphGroup
	for _, g := range of {
		if !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}

// existed returns the graphs that have members before the change.
func (c *comparison) existed() map[journal.GraphID]bool {
	out := map[journal.GraphID]bool{}
	for _, home := range c.before.homes {
		out[home] = true
	}
	return out
}

// parts returns the resulting graphs of a group.
func (c *comparison) parts(g *graphGroup) []GraphPart {
	existed := c.existed()
	members := map[journal.GraphID][]string{}
	for id, home := range c.after.homes {
		if g.after[home] {
			members[home] = append(members[home], c.label(c.after, id))
		}
	}
	out := []GraphPart{}
	for home := range g.after {
		part := GraphPart{Members: members[home]}
		if existed[home] {
			part.Graph = home
		}
		slices.Sort(part.Members)
		out = append(out, part)
	}
	slices.SortFunc(out, func(a, b GraphPart) int {
		return cmp.Or(slices.Compare(a.Members, b.Members), cmp.Compare(a.Graph, b.Graph))
	})
	return out
}
