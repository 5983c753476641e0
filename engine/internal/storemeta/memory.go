package storemeta

import (
	"encoding/json"
	"maps"
	"strings"
)

// MemoryKey names what a policy of a deployment remembers.
type MemoryKey struct{ Deployment, Policy string }

// Cell is what a policy remembers. A cell is replaced, never modified, so a reader finds
// out by comparing pointers whether what it has read still holds.
type Cell struct{ Value []byte }

// memoryPrefix begins the keys of a store's metadata that hold the memory of
// policies. Behind it come the policy and, after a slash, the deployment.
const memoryPrefix = "policy "

// The name of a policy may have slashes, from the keys of a for_each.
var (
	escapeSlashes   = strings.NewReplacer("%", "%25", "/", "%2F")
	unescapeSlashes = strings.NewReplacer("%25", "%", "%2F", "/")
)

// MetaKey is the key under which a store keeps a cell.
func (k MemoryKey) MetaKey() string {
	return memoryPrefix + escapeSlashes.Replace(k.Policy) + "/" + k.Deployment
}

// MemoryOf takes what policies remember out of a store's metadata. rest is meta itself if
// they remember nothing.
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
		if json.Valid([]byte(value)) { // an empty value stands for none
			memory[MemoryKey{deployment, unescapeSlashes.Replace(policy)}] = &Cell{[]byte(value)}
		}
	}
	if memory == nil {
		return meta, nil
	}
	return rest, memory
}
