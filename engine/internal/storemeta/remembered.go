package storemeta

import (
	"fmt"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Remembered is a deployment as sessions remember it: which recipe it was applied
// from last.
type Remembered struct {
	Name string
	// Source is where it came from, with the copy of the recipe. Its Path is empty
	// for a deployment that no recipe made.
	Source deploy.Source
	// Graphs are those that have members of it.
	Graphs []journal.GraphID
}

// RememberedIn lists the deployments that have members in saved graphs, by name. If
// stores differ, because one of them could not be read for a while, the latest one
// counts.
func RememberedIn(graphs []journal.SavedGraph) []Remembered {
	graphs = slices.Clone(graphs)
	slices.SortStableFunc(graphs, func(a, b journal.SavedGraph) int { return int(max(min(a.LastTime-b.LastTime, 1), -1)) })
	found := map[string]*Remembered{}
	for i := range graphs {
		g := &graphs[i]
		meta := Parse(g.Meta)
		for name := range MembersIn(g) {
			r := found[name]
			if r == nil {
				r = &Remembered{Name: name}
				found[name] = r
			}
			r.Graphs = append(r.Graphs, g.Graph)
			if s, ok := Source(meta.Of[name]); ok {
				r.Source = s
			}
		}
	}
	out := []Remembered{}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		slices.Sort(found[name].Graphs)
		out = append(out, *found[name])
	}
	return out
}

// MembersIn returns the declared deployments that have members in a saved graph.
func MembersIn(g *journal.SavedGraph) map[string]bool {
	out := map[string]bool{}
	for i := range g.Creatures {
		if d := g.Creatures[i].Deployment; !draft.Undeclared(d) {
			out[d] = true
		}
	}
	for i := range g.Channels {
		if d := g.Channels[i].Deployment; !draft.Undeclared(d) {
			out[d] = true
		}
	}
	return out
}

// CheckRenamed refuses a deployment that no store knows if a saved deployment, which is
// not applied, came from exactly the same recipe: then the file or folder of the recipe
// was renamed, or is named in another way. The deployment would start without state and
// handle all input again. This does not affect a recipe that sets its own name, because
// its text contains the name.
func CheckRenamed(d *deploy.Deployment, saved []journal.SavedGraph, applied func(name string) bool) error {
	if len(d.Source.Files) == 0 {
		return nil
	}
	texts := d.Source.Texts()
	for _, r := range RememberedIn(saved) {
		if applied(r.Name) || !slices.Equal(texts, r.Source.Texts()) {
			continue
		}
		return &abi.Error{
			Code: abi.Conflict, Op: "apply",
			Message: fmt.Sprintf("the session already has this recipe, as the deployment %s from %s; %s would start without its state, and handle all input again", r.Name, r.Source.Path, d.Name),
			Remedy:  fmt.Sprintf("choose one by its name in the recipe: terrarium { name = %q } continues the existing deployment, terrarium { name = %q } starts a second one", r.Name, d.Name),
			IDs:     map[string]string{"deployment": r.Name, "path": r.Source.Path},
		}
	}
	return nil
}
