package engine

import (
	"fmt"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/storemeta"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/reconcile"
)

// noteProtected records the addresses that the deployment may not remove, by the addresses
// that they have now. It comes before saved graphs are resumed.
func (a *application) noteProtected() {
	before := a.declaredBefore()
	for i := range before {
		if _, protected := before[i].Settings[deploy.PreventDestroy]; protected {
			if a.protected == nil {
				a.protected = map[string]bool{}
			}
			a.protected[a.d.NowAt(before[i].Address)] = true
		}
	}
}

// declaredBefore returns what the deployment declared when it was last applied.
func (a *application) declaredBefore() []deploy.Declaration {
	if a.former != nil {
		return a.former.Declared
	}
	var graphs []journal.SavedGraph
	for _, d := range a.e.savedWith(a.d.Name) {
		graphs = append(graphs, d.SavedGraph)
	}
	for _, graph := range a.e.graphs { // restored without the recipe
		g := graph.enter()
		graphs = append(graphs, journal.SavedGraph{Meta: g.meta, LastTime: g.now})
		g.leave()
	}
	return storemeta.DeclaredIn(graphs)[a.d.Name]
}

// checkProtected refuses to remove what must not be removed.
func (a *application) checkProtected(removed []reconcile.Removed) error {
	var first *reconcile.Removed
	others := 0
	for i := range removed {
		if r := &removed[i]; a.protected[a.d.NowAt(r.Address)] {
			if first == nil {
				first = r
			} else {
				others++
			}
		}
	}
	if first == nil {
		return nil
	}
	more := ""
	if others > 0 {
		more = fmt.Sprintf(" (and %d more that %s protected)", others, map[bool]string{true: "is", false: "are"}[others == 1])
	}
	return &abi.Error{
		Code: abi.Conflict, Op: "apply", Message: fmt.Sprintf("%s would be removed%s, but it was declared with %s = true", first.Address, more, deploy.PreventDestroy),
		Remedy: fmt.Sprintf("declare it again, or say with a moved block where it is now; to remove it, first apply the recipe with %s = false", deploy.PreventDestroy),
		IDs:    map[string]string{"deployment": a.d.Name, "address": first.Address},
	}
}
