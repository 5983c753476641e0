package storemeta

import (
	"encoding/json"
	"maps"
	"strings"
)

// MemoryKey identifies the memory of a policy of a deployment.
type MemoryKey struct{ Deployment, Policy string }

// Cell is the memory of a policy. A cell is replaced, never modified, so a
// reader can check by comparing pointers whether its value is current.
type Cell struct{ Value []byte }

// memoryPrefix starts the keys of a store's metadata that hold the memory of
// policies. It is followed by the policy and, after a slash, the deployment.
const memoryPrefix = "policy "

// The name of a policy may contain slashes, from the keys of a for_each.
var (
	escapeSlashes   = strings.NewReplacer("%", "%25", "/", "%2F")
	unescapeSlashes = strings.NewReplacer("%25", "%", "%2F", "/")
)

// MetaKey returns the key under which a store keeps a cell.
func (k MemoryKey) MetaKey() string {
	return memoryPrefix + escapeSlashes.Replace(k.Policy) + "/" + k.Deployment
}

// MemoryOf separates the memory of policies from a store's metadata. rest is
// meta itself if there is no memory.
func MemoryOf(meta map[string]string) (rest map[string]string, memory map[MemoryKey]*Cell) {
	for key, value := range meta {
		text, ok := strings.CutPrefix(key, memoryPrefix)
		if !ok {
			continue
		}
		if memory == nil {
			rest, memory = maps.Clone(meta), map[MemoryKey]*Cell{}
		}
		delete(rest, key)
		policy, deployment, _ := strings.Cut(text, "/")
		if json.Valid([]byte(value)) { // an empty value means none
			memory[MemoryKey{deployment, unescapeSlashes.Replace(policy)}] = &Cell{[]byte(value)}
		}
	}
	if memory == nil {
		return meta, nil
	}
	return rest, memory
}
