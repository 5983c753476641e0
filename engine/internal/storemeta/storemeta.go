// Package storemeta reads and writes the metadata of a session's store: its
// records of the deployments of its members, and the memory of their policies.
//
// Metadata is a map of strings. If the members belong to several deployments,
// the keys without a slash belong to the first; the keys of the others end in
// a slash and the deployment's name. A store never deletes a key, so an empty
// value means none.
package storemeta

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// The keys of a store's records of a deployment.
const (
	Deployment = "deployment"
	ConfigPath = "config_path" // of the recipe
	Recipe     = "recipe"      // its files, a JSON object
	Variables  = "variables"   // a JSON object
	Declared   = "declared"    // a JSON list of [deploy.Declaration]
	Merge      = "merge"       // MergeAllowed, if a group tool may merge its session
)

// UsedPrefix starts the keys of a store's metadata that say what creatures have used of
// capabilities. They belong to no deployment.
const UsedPrefix = "used "

// StopPrefix starts the keys of a store's metadata that say what the stop_when blocks of recipes
// have counted. They belong to no deployment.
const StopPrefix = "stop "

// MergeAllowed is the value of [Merge].
const MergeAllowed = "allow"

// Meta is the metadata of a store, by deployment. The maps of the deployments are never
// modified, and may be shared.
type Meta struct {
	Names []string // the first of the store, and the others by name
	Of    map[string]map[string]string
}

// Parse reads the metadata of a store, without the memory of policies.
func Parse(meta map[string]string) *Meta {
	m := &Meta{Of: map[string]map[string]string{}}
	first := meta[Deployment]
	for key, value := range meta {
		if value == "" || strings.HasPrefix(key, memoryPrefix) || strings.HasPrefix(key, UsedPrefix) || strings.HasPrefix(key, StopPrefix) {
			continue
		}
		key, name, others := strings.Cut(key, "/")
		if !others {
			name = first
		}
		if m.Of[name] == nil {
			m.Of[name] = map[string]string{}
		}
		m.Of[name][key] = value
	}
	m.Names = slices.Sorted(maps.Keys(m.Of))
	m.prefer(first)
	return m
}

// prefer puts a deployment first.
func (m *Meta) prefer(name string) {
	if i := slices.Index(m.Names, name); i > 0 {
		m.Names = slices.Insert(slices.Delete(m.Names, i, i+1), 0, name)
	}
}

// Add adds the deployments of another store that are not known yet.
func (m *Meta) Add(other *Meta) {
	for _, name := range other.Names {
		if m.Of[name] == nil {
			m.Put(name, other.Of[name])
		}
	}
}

// Put sets the metadata of a deployment.
func (m *Meta) Put(name string, meta map[string]string) {
	if m.Of[name] == nil {
		m.Names = append(m.Names, name)
	}
	m.Of[name] = meta
}

// Only drops the deployments that have no members.
func (m *Meta) Only(members map[string]bool) {
	m.Names = slices.DeleteFunc(m.Names, func(name string) bool { return !members[name] })
}

// Join returns the metadata in the form of a store.
func (m *Meta) Join() map[string]string {
	if len(m.Names) == 0 {
		return nil
	}
	out := map[string]string{}
	for i, name := range m.Names {
		for key, value := range m.Of[name] {
			if i > 0 {
				key += "/" + name
			}
			out[key] = value
		}
	}
	return out
}

// Continued is the metadata of a graph that continues others, in the order in which they take
// precedence: for each deployment with members. applied is that of a deployment that is
// applied now, or nil.
func Continued(before []map[string]string, applied map[string]string, members map[string]bool) map[string]string {
	m := Parse(nil)
	for _, meta := range before {
		m.Add(Parse(meta))
	}
	if applied != nil {
		m.Put(applied[Deployment], applied)
	}
	m.Only(members)
	return m.Join()
}

// Correction returns the entries that change the metadata from into to.
func Correction(from, to map[string]string) map[string]string {
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

// Source returns the origin of a deployment from the metadata of one of its
// stores. ok is false for a deployment that no recipe made.
func Source(meta map[string]string) (s deploy.Source, ok bool) {
	if s.Path = meta[ConfigPath]; s.Path == "" {
		return s, false
	}
	if json.Unmarshal([]byte(meta[Recipe]), &s.Files) != nil {
		s.Files = nil
	}
	if text := meta[Variables]; text != "" && json.Unmarshal([]byte(text), &s.Variables) != nil {
		s.Variables = nil
	}
	return s, true
}

// DeclaredIn returns the declarations of deployments, by name, from the stores
// of saved graphs. If stores differ, the latest counts.
func DeclaredIn(graphs []journal.SavedGraph) map[string][]deploy.Declaration {
	graphs = slices.Clone(graphs)
	slices.SortStableFunc(graphs, func(a, b journal.SavedGraph) int { return cmp.Compare(a.LastTime, b.LastTime) })
	out := map[string][]deploy.Declaration{}
	for i := range graphs {
		for name, meta := range Parse(graphs[i].Meta).Of {
			var list []deploy.Declaration
			if text := meta[Declared]; text != "" && json.Unmarshal([]byte(text), &list) == nil {
				out[name] = list
			}
		}
	}
	return out
}

// Of is the metadata of a deployment in its sessions.
func Of(d *deploy.Deployment) map[string]string {
	m := map[string]string{Deployment: d.Name}
	if d.Session.AllowMerge {
		m[Merge] = MergeAllowed
	}
	if every := d.Session.SyncEvery; every > 0 {
		m[journal.MetaSyncEvery] = every.String()
	}
	if s := d.Source; s.Path != "" {
		m[ConfigPath] = s.Path
		m[Recipe] = string(journal.JSON(s.Files))
		m[Declared] = string(journal.JSON(slices.Concat([]deploy.Declaration{}, d.Declared)))
		if len(s.Variables) > 0 {
			m[Variables] = string(journal.JSON(s.Variables))
		}
	}
	return m
}
