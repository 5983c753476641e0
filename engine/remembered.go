package engine

import (
	"encoding/json"
	"maps"
	"slices"
)

// Remembered is a deployment as sessions remember it: which recipe it was applied
// from last.
type Remembered struct {
	Name string
	// Source is where it came from, with the copy of the recipe. Its Path is empty
	// for a deployment that no recipe made.
	Source Source
	// Graphs are those that have members of it.
	Graphs []GraphID
}

// RememberedIn lists the deployments that saved graphs have members of, by name.
// If stores differ, because one could not be read for a while, it is what the
// latest of them says.
func RememberedIn(graphs []SavedGraph) []Remembered {
	graphs = slices.Clone(graphs)
	slices.SortStableFunc(graphs, func(a, b SavedGraph) int { return int(max(min(a.LastTime-b.LastTime, 1), -1)) })
	found := map[string]*Remembered{}
	for i := range graphs {
		g := &graphs[i]
		meta := parseMeta(g.Meta)
		for name := range deploymentsIn(g) {
			r := found[name]
			if r == nil {
				r = &Remembered{Name: name}
				found[name] = r
			}
			r.Graphs = append(r.Graphs, g.Graph)
			if s, ok := sourceIn(meta.of[name]); ok {
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

// Remembered lists the deployments of all graphs, saved or brought back, that
// have not been applied.
func (e *Engine) Remembered() []Remembered {
	list := RememberedIn(e.rows())
	e.mu.RLock()
	defer e.mu.RUnlock()
	return slices.DeleteFunc(list, func(r Remembered) bool { return e.deployments[r.Name] != nil })
}

// deploymentsIn are the declared deployments that a saved graph has members of.
func deploymentsIn(g *SavedGraph) map[string]bool {
	out := map[string]bool{}
	for i := range g.Creatures {
		if d := g.Creatures[i].Deployment; !undeclared(d) {
			out[d] = true
		}
	}
	for i := range g.Channels {
		if d := g.Channels[i].Deployment; !undeclared(d) {
			out[d] = true
		}
	}
	return out
}

// sourceIn reads what [application.meta] has written.
func sourceIn(meta map[string]string) (s Source, ok bool) {
	if s.Path = meta[MetaConfigPath]; s.Path == "" {
		return s, false
	}
	if json.Unmarshal([]byte(meta[MetaRecipe]), &s.Files) != nil {
		s.Files = nil
	}
	if text := meta[MetaVariables]; text != "" && json.Unmarshal([]byte(text), &s.Variables) != nil {
		s.Variables = nil
	}
	return s, true
}
