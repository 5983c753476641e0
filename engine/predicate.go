package engine

import (
	"maps"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
)

// deployment finds a deployment that is applied or about to be.
func (x *change) deployment(name string) *deploy.Deployment {
	if x.applying != nil && x.applying.Name == name {
		return x.applying
	}
	return x.e.deployments[name]
}

// predicate finds a predicate of a creature's deployment; nil if there is none.
func (x *change) predicate(cr *creature, name string) deploy.Predicate {
	if d := x.deployment(cr.deployment); d != nil {
		return d.Predicates[name]
	}
	return nil
}

func (x *change) noPredicate(cr *creature, name string) error {
	remedy := "declare it in the recipe: a predicate cannot be made while it runs"
	if d := x.deployment(cr.deployment); d != nil && len(d.Predicates) > 0 {
		remedy = "the deployment " + d.Name + " declares " + strings.Join(slices.Sorted(maps.Keys(d.Predicates)), ", ")
	}
	return &abi.Error{
		Code: abi.NotFound, Op: "wire", Message: "there is no predicate " + errtext.Quoted([]byte(name)) + " for " + string(cr.id),
		Remedy: remedy, IDs: map[string]string{"predicate": name},
	}
}
