package engine

import (
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/storemeta"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Remembered is a deployment as its sessions have recorded it.
type Remembered = storemeta.Remembered

// RememberedIn lists the deployments that saved graphs have members of, by name.
func RememberedIn(graphs []journal.SavedGraph) []Remembered { return storemeta.RememberedIn(graphs) }

// Remembered lists the deployments of all graphs, saved or brought back, that have not been
// applied.
func (e *Engine) Remembered() []Remembered {
	list := RememberedIn(e.rows())
	l := e.core.rlock()
	defer l.runlock()
	return slices.DeleteFunc(list, func(r Remembered) bool { return l.deployments[r.Name] != nil })
}

// checkRenamed refuses an unknown deployment if a saved one, which is not applied, came
// from the very same recipe: its file or folder was renamed, or is given in another way.
// It would start with no state and handle all input again. A recipe that sets its own
// name is not concerned, because its text contains the name.
func (j *joint) checkRenamed(e locked, d *deploy.Deployment) error {
	if len(d.Source.Files) == 0 || e.deployments[d.Name] != nil || len(e.savedWith(d.Name)) > 0 {
		return nil
	}
	texts := d.Source.Texts()
	var saved []journal.SavedGraph
	for _, g := range e.sortedSaved() {
		saved = append(saved, g.SavedGraph)
	}
	for _, r := range RememberedIn(saved) {
		if j.of[r.Name] != nil || e.deployments[r.Name] != nil || !slices.Equal(texts, r.Source.Texts()) {
			continue
		}
		return &abi.Error{
			Code: abi.Conflict, Op: "apply",
			Message: fmt.Sprintf("the session has this recipe already, as the deployment %s from %s; %s would start without its state, and handle all input again", r.Name, r.Source.Path, d.Name),
			Remedy:  fmt.Sprintf("choose one by its name in the recipe: terrarium { name = %q } continues the existing deployment, terrarium { name = %q } starts a second one", r.Name, d.Name),
			IDs:     map[string]string{"deployment": r.Name, "path": r.Source.Path},
		}
	}
	return nil
}
