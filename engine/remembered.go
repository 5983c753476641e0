package engine

import (
	"slices"

	"github.com/seed47132306/terrarium/engine/internal/storemeta"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Remembered is a deployment as its sessions have recorded it.
type Remembered = storemeta.Remembered

// RememberedIn lists the deployments that saved graphs have members of, by name.
func RememberedIn(graphs []journal.SavedGraph) []Remembered { return storemeta.RememberedIn(graphs) }

// Remembered lists the deployments of all graphs, saved or restored, that have not been applied.
func (e *Engine) Remembered() []Remembered {
	list := RememberedIn(e.rows())
	l := e.core.rlock()
	defer l.runlock()
	return slices.DeleteFunc(list, func(r Remembered) bool { return l.deployments[r.Name] != nil })
}
