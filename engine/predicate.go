package engine

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// Predicate is a condition on outputs that a deployment declares and output
// wires name. Whether it holds depends only on the event.
//
// Its method may be called from any goroutine.
type Predicate interface {
	// Holds is called outside of critical sections, once per output at most,
	// and may take as long as the predicate's own timeout. With an error the
	// output is not delivered, and the creature's log says why.
	Holds(ctx context.Context, event *OutputEvent) (bool, error)
}

// OutputEvent is an output about to go over wires. The slice is not to be
// modified or kept.
type OutputEvent struct {
	Time    int64 // of the delivery that caused it, nanoseconds since 1970
	Seed    uint64
	Output  []byte
	Source  string // name of the creature
	Channel string // on which the delivery came, as the creature calls it
}

// deployment finds a deployment that is applied or about to be.
func (x *change) deployment(name string) *Deployment {
	if x.applying != nil && x.applying.Name == name {
		return x.applying
	}
	return x.e.deployments[name]
}

// predicate finds a predicate of a creature's deployment; nil if there is none.
func (x *change) predicate(cr *creature, name string) Predicate {
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
		Code: abi.NotFound, Op: "wire", Message: "there is no predicate " + quoted([]byte(name)) + " for " + string(cr.id),
		Remedy: remedy, IDs: map[string]string{"predicate": name},
	}
}
