package engine

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// The keys of a store's metadata: what it remembers of the deployment that its
// members are of. If they are of several, these are those of the first, and those
// of each other have a slash and its name behind them. A store keeps every key that
// it was ever given, so an empty value stands for none.
const (
	MetaDeployment = "deployment"
	MetaConfigPath = "config_path" // of the recipe
	MetaRecipe     = "recipe"      // its files, a JSON object
	MetaVariables  = "variables"   // a JSON object
	MetaDeclared   = "declared"    // a JSON list of [deploy.Declaration]
	MetaMerge      = "merge"       // allow, if a group tool may merge its session
)

// mergeAllowed is the value of [MetaMerge].
const mergeAllowed = "allow"

// DeploymentsIn lists the deployments that a store's metadata tells of.
func DeploymentsIn(meta map[string]string) []string { return parseMeta(meta).names }

// deploymentMeta is the metadata of a store, by deployment.
type deploymentMeta struct {
	names []string // the first of the store, and the others by name
	of    map[string]map[string]string
}

func parseMeta(meta map[string]string) *deploymentMeta {
	m := &deploymentMeta{of: map[string]map[string]string{}}
	first := meta[MetaDeployment]
	for key, value := range meta {
		if value == "" || strings.HasPrefix(key, metaMemory) {
			continue
		}
		key, name, others := strings.Cut(key, "/")
		if !others {
			name = first
		}
		if m.of[name] == nil {
			m.of[name] = map[string]string{}
		}
		m.of[name][key] = value
	}
	m.names = slices.Sorted(maps.Keys(m.of))
	m.prefer(first)
	return m
}

// prefer puts a deployment first.
func (m *deploymentMeta) prefer(name string) {
	if i := slices.Index(m.names, name); i > 0 {
		m.names = slices.Insert(slices.Delete(m.names, i, i+1), 0, name)
	}
}

// add adds the deployments of another store that are not known yet.
func (m *deploymentMeta) add(other *deploymentMeta) {
	for _, name := range other.names {
		if m.of[name] == nil {
			m.put(name, other.of[name])
		}
	}
}

// put sets what is known of a deployment.
func (m *deploymentMeta) put(name string, meta map[string]string) {
	if m.of[name] == nil {
		m.names = append(m.names, name)
	}
	m.of[name] = meta
}

// only drops the deployments that have no members.
func (m *deploymentMeta) only(members map[string]bool) {
	m.names = slices.DeleteFunc(m.names, func(name string) bool { return !members[name] })
}

// join is the metadata as a store has it.
func (m *deploymentMeta) join() map[string]string {
	if len(m.names) == 0 {
		return nil
	}
	out := map[string]string{}
	for i, name := range m.names {
		for key, value := range m.of[name] {
			if i > 0 {
				key += "/" + name
			}
			out[key] = value
		}
	}
	return out
}

// metaAfter is the metadata of a graph after the change, which goes on with those of
// the given graphs: that of each deployment that has members in it. The deployments
// of the graph whose id it keeps come first.
func (x *change) metaAfter(info topology.Graph, before []*graph) map[string]string {
	m := parseMeta(nil)
	for _, b := range before {
		if b.id == info.ID {
			m.add(parseMeta(b.meta))
		}
	}
	for _, b := range before {
		m.add(parseMeta(b.meta))
	}
	if x.meta != nil {
		m.put(x.meta[MetaDeployment], x.meta)
	}
	m.only(x.deploymentsOf(info))
	return m.join()
}

// bequeathMeta has the first record of a graph's new store correct the metadata that
// the store begins with, which is that of one of the graphs before.
func (x *change) bequeathMeta(rec *journal.Record, group *storeGroup, id journal.GraphID) {
	info, _ := x.e.topo.Graph(id)
	var from []*graph
	for _, b := range slices.SortedFunc(slices.Values(group.before), byAge) {
		if b.goesOnIn(x, id) {
			from = append(from, b)
		}
	}
	meta := x.metaAfter(info, from)
	x.metas[id] = meta
	rec.Meta = correction(x.meta, meta)
	for _, b := range from {
		maps.Copy(rec.Meta, correction(b.meta, meta))
	}
}

func byAge(a, b *graph) int { return cmp.Or(compare(a.born, b.born), byGraphID(a, b)) }

// correction is what turns the metadata of a store into another.
func correction(from, to map[string]string) map[string]string {
	out := maps.Clone(to)
	if out == nil {
		out = map[string]string{}
	}
	for key := range from {
		if _, there := to[key]; !there {
			out[key] = ""
		}
	}
	return out
}

// deploymentsOf are those that a graph has members of after the change.
func (x *change) deploymentsOf(info topology.Graph) map[string]bool {
	out := map[string]bool{}
	for _, id := range info.Creatures {
		cr := x.e.creatures[id]
		if cr == nil {
			cr = x.creatures[id]
		}
		out[cr.deployment] = true
	}
	for _, id := range info.Channels {
		if ch := x.channel(id); ch != nil {
			out[ch.deployment] = true
		}
	}
	return out
}

// putMeta brings the metadata of the stores of a deployment up to date: a recipe
// may have been edited.
func (x *change) putMeta() {
	seen := map[*graph]bool{}
	for _, id := range x.deployed {
		g := x.e.creatures[id].home.load()
		if seen[g] {
			continue
		}
		seen[g] = true
		m := parseMeta(g.meta)
		m.put(x.meta[MetaDeployment], x.meta)
		meta := m.join()
		changed := correction(g.meta, meta)
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
