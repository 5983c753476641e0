package draft

import (
	"maps"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
)

// Deployment finds a deployment that is applied or being applied.
func (d *Draft) Deployment(name string) *deploy.Deployment {
	if d.Applying != nil && d.Applying.Name == name {
		return d.Applying
	}
	return d.base.Deployment(name)
}

// Predicate finds a predicate of a deployment, or returns nil.
func (d *Draft) Predicate(deployment, name string) deploy.Predicate {
	if of := d.Deployment(deployment); of != nil {
		return of.Predicates[name]
	}
	return nil
}

func (d *Draft) noPredicate(m Member, name string) error {
	remedy := "declare it in the recipe: predicates cannot be added at run time"
	if of := d.Deployment(m.Deployment); of != nil && len(of.Predicates) > 0 {
		remedy = "the deployment " + of.Name + " declares " + strings.Join(slices.Sorted(maps.Keys(of.Predicates)), ", ")
	}
	return &abi.Error{
		Code: abi.NotFound, Op: "wire", Message: "there is no predicate " + errtext.Quoted([]byte(name)) + " for " + string(m.ID),
		Remedy: remedy, IDs: map[string]string{"predicate": name},
	}
}
