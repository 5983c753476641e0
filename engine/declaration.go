package engine

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// declaredIn reads what saved graphs remember of what deployments declared, by deployment. If stores differ, the latest of
// them says.
func declaredIn(graphs []journal.SavedGraph) map[string][]deploy.Declaration {
	graphs = slices.Clone(graphs)
	slices.SortStableFunc(graphs, func(a, b journal.SavedGraph) int { return cmp.Compare(a.LastTime, b.LastTime) })
	out := map[string][]deploy.Declaration{}
	for i := range graphs {
		for name, meta := range parseMeta(graphs[i].Meta).of {
			var list []deploy.Declaration
			if text := meta[MetaDeclared]; text != "" && json.Unmarshal([]byte(text), &list) == nil {
				out[name] = list
			}
		}
	}
	return out
}
