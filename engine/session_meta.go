package engine

import (
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/internal/storemeta"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// The keys of a store's metadata, which describe the deployment of its members. If the
// members belong to several deployments, these keys describe the first; each other one
// has the same keys with a slash and its name appended. A store keeps every key that it
// was ever given, so an empty value means none.
const (
	MetaDeployment = storemeta.Deployment
	MetaConfigPath = storemeta.ConfigPath  // of the recipe
	MetaRecipe     = storemeta.Recipe      // its files, a JSON object
	MetaVariables  = storemeta.Variables   // a JSON object
	MetaDeclared   = storemeta.Declared    // a JSON list of [deploy.Declaration]
	MetaMerge      = storemeta.Merge       // allow, if a group tool may merge its session
	MetaSyncEvery  = journal.MetaSyncEvery // after which time its writes are synced
)

// DeploymentsIn lists the deployments that a store's metadata describes.
func DeploymentsIn(meta map[string]string) []string { return storemeta.Parse(meta).Names }

// metaAfter is the metadata of a graph after the change, made from those of the graphs
// that it continues: for each deployment with members in it. The deployments of the graph
// whose id it keeps come first.
func (x *change) metaAfter(info topology.Graph, before []section) map[string]string {
	var own, all []map[string]string
	for _, b := range before {
		if all = append(all, b.meta); b.id == info.ID {
			own = append(own, b.meta)
		}
	}
	return storemeta.Continued(append(own, all...), x.recipe.meta, x.DeploymentsIn(info))
}

// bequeathMeta makes the first record of a graph's new store correct the metadata that
// the store begins with, which come from one of the earlier graphs.
func (x *change) bequeathMeta(rec *journal.Record, group *storeGroup, id journal.GraphID) {
	info, _ := x.e.topo.Graph(id)
	from := slices.SortedFunc(slices.Values(x.goingOnIn(group, id)), byAge)
	meta := x.metaAfter(info, from)
	x.metas[id] = meta
	rec.Meta = storemeta.Correction(x.recipe.meta, meta)
	for _, b := range from {
		maps.Copy(rec.Meta, storemeta.Correction(b.meta, meta))
	}
}

// putMeta updates the metadata of the stores of a deployment, because a recipe may have
// been edited.
func (x *change) putMeta() {
	seen := map[section]bool{}
	for _, id := range x.recipe.deployed {
		g := x.home(x.e.creatures[id])
		if seen[g] {
			continue
		}
		seen[g] = true
		m := storemeta.Parse(g.meta)
		m.Put(x.recipe.meta[MetaDeployment], x.recipe.meta)
		meta := m.Join()
		changed := storemeta.Correction(g.meta, meta)
		maps.DeleteFunc(changed, func(key, value string) bool { return g.meta[key] == value })
		g.meta = meta
		if len(changed) == 0 {
			continue
		}
		if rec := x.record(g); rec != nil {
			for key, value := range changed {
				rec.PutMeta(key, value)
			}
		}
	}
}
