package diff

import (
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// OutsidePlan is something outside that becomes reachable when the plan is applied: for a
// creature, with a capability, or for a source or a sink of a recipe. Creatures that are
// running and do not change are not listed.
type OutsidePlan struct {
	Deployment string             `json:"deployment,omitempty"`
	Address    string             `json:"address,omitempty"`    // address of the creature, the source or the sink
	Name       string             `json:"name,omitempty"`       // name of the creature
	Creature   journal.CreatureID `json:"creature,omitempty"`   // empty if it does not exist yet
	Capability string             `json:"capability,omitempty"` // its kind and name, such as http.alerts; absent for a source or a sink
	Reaches    []string           `json:"reaches"`              // what it reaches, in words; for a source or a sink, its settings
	Lacking    bool               `json:"lacking,omitempty"`    // its sensitive settings are not stored, so its requests wait until the recipe is applied
	Revoked    bool               `json:"revoked,omitempty"`    // it is no longer granted, and is listed for its open requests
	Requests   []OpenRequest      `json:"requests,omitempty"`   // requests of the creature without a result so far
}

// OpenRequest is a request to a capability, without a result so far.
type OpenRequest struct {
	ID      string        `json:"id"`                // its idempotency key
	Request string        `json:"request,omitempty"` // what it requests, in short
	Becomes RequestFuture `json:"becomes"`           // what happens to it
}

// RequestFuture is what becomes of an open request.
type RequestFuture string

// The values of [RequestFuture].
const (
	RequestSent   RequestFuture = "sent"   // it is sent again, with the same key
	RequestWaits  RequestFuture = "waits"  // it waits for settings that are not stored
	RequestDenied RequestFuture = "denied" // its creature gets the result denied
)

// Connectors returns the sources and sinks of deployments, which become active.
func Connectors(deployments []*deploy.Deployment) []OutsidePlan {
	var out []OutsidePlan
	for _, d := range deployments {
		for i := range d.Declared {
			c := &d.Declared[i]
			if !ofConnector(c.Address) {
				continue
			}
			one := OutsidePlan{Deployment: d.Name, Address: c.Address, Reaches: []string{}}
			for _, name := range slices.Sorted(maps.Keys(c.Settings)) {
				one.Reaches = append(one.Reaches, name+" = "+c.Settings[name].Text)
			}
			out = append(out, one)
		}
	}
	return out
}
