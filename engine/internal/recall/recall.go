// Package recall holds the memory of policies in a graph, and what the policies of one turn
// have read from it.
package recall

import (
	"maps"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/storemeta"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Cells are what the policies of a graph's deployments remember. A cell is replaced and
// never modified, and so is the map. So a reader compares pointers to find out whether
// what it has read is still current.
type Cells map[storemeta.MemoryKey]*storemeta.Cell

// Meta is the metadata of a graph as a store of it has it.
func (c Cells) Meta(meta map[string]string) map[string]string {
	if len(c) == 0 {
		return meta
	}
	out := maps.Clone(meta)
	if out == nil {
		out = map[string]string{}
	}
	for k, cell := range c {
		out[k.MetaKey()] = string(cell.Value)
	}
	return out
}

// Text is what is remembered under a key; empty for nothing.
func (c Cells) Text(k storemeta.MemoryKey) string {
	if cell := c[k]; cell != nil {
		return string(cell.Value)
	}
	return ""
}

// Inherit is what a graph remembers that continues others: for each key, the cell of the
// first of them that has the key.
func Inherit(before ...Cells) Cells {
	var out Cells
	for _, c := range before {
		for k, cell := range c {
			if out[k] == nil {
				if out == nil {
					out = Cells{}
				}
				out[k] = cell
			}
		}
	}
	return out
}

// Recollection is what the policies of one turn or operation have recalled, and what they
// will remember if the turn or operation takes effect.
type Recollection struct {
	Home func() Cells // of the graph, as it is at the moment
	// read are the cells as they were, nil for a missing one. Now is what the policies will
	// remember.
	read Cells
	Now  map[storemeta.MemoryKey][]byte
	Kept bool // by a change
}

// Of implements [draft.Memory].
func (r *Recollection) Of(deployment string) deploy.PolicyMemory {
	return &deploymentMemory{r, deployment}
}

type deploymentMemory struct {
	r          *Recollection
	deployment string
}

// Recall implements [deploy.PolicyMemory].
func (m *deploymentMemory) Recall(policy string) []byte {
	k, r := storemeta.MemoryKey{Deployment: m.deployment, Policy: policy}, m.r
	if value, changed := r.Now[k]; changed {
		return value
	}
	cell, known := r.read[k]
	if !known {
		cell = r.Home()[k]
		if r.read == nil {
			r.read = Cells{}
		}
		r.read[k] = cell
	}
	if cell == nil {
		return nil
	}
	return cell.Value
}

// Remember implements [deploy.PolicyMemory].
func (m *deploymentMemory) Remember(policy string, value []byte) {
	m.Recall(policy) // so that Current compares the value that this one replaces
	if m.r.Now == nil {
		m.r.Now = map[storemeta.MemoryKey][]byte{}
	}
	m.r.Now[storemeta.MemoryKey{Deployment: m.deployment, Policy: policy}] = value
}

// Current reports whether what was recalled still holds.
func (r *Recollection) Current(c Cells) bool {
	return len(r.read) == 0 || r.holds(c) // nothing is read in most turns, and this comparison is inlined
}

func (r *Recollection) holds(c Cells) bool {
	for k, cell := range r.read {
		if c[k] != cell {
			return false
		}
	}
	return true
}

// Changes reports whether there is something to be remembered.
func (r *Recollection) Changes() bool { return len(r.Now) > 0 }

// Keep stores what is remembered in the cells, and in the record of what was judged.
func (r *Recollection) Keep(c *Cells, rec *journal.Record) {
	if len(r.Now) > 0 {
		r.put(c, rec)
	}
}

func (r *Recollection) put(c *Cells, rec *journal.Record) {
	memory := maps.Clone(*c) // a cut under way may be reading it
	if memory == nil {
		memory = Cells{}
	}
	for k, value := range r.Now {
		if value == nil {
			delete(memory, k)
		} else {
			memory[k] = &storemeta.Cell{Value: value}
		}
		rec.PutMeta(k.MetaKey(), string(value))
	}
	*c = memory
}

// Write puts what is remembered into the record of a graph that has kept it.
func (r *Recollection) Write(c Cells, rec *journal.Record) {
	for k := range r.Now {
		rec.PutMeta(k.MetaKey(), c.Text(k))
	}
}

// Forget forgets what was recalled.
func (r *Recollection) Forget() { r.read, r.Now, r.Kept = nil, nil, false }
