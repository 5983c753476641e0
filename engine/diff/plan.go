package diff

import (
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
)

// Plan lists what applying deployments would change, address by address: the
// difference between the current and the planned state.
type Plan struct {
	// Declared lists the other declarations of the recipes, policies first,
	// each with its change, unchanged ones included.
	Declared  []DeclarationPlan
	Creatures []CreaturePlan
	Channels  []ChannelPlan
	// Graphs lists the graphs that merge, split, begin or end.
	Graphs []GraphPlan
	// Stops lists the recipes that stop, stay stopped or continue; see [StopPlan].
	Stops []StopPlan
	// Outside lists what creatures, sources and sinks can reach once they continue or begin.
	Outside []OutsidePlan
	// Hints lists moves that would keep something that the plan removes, where the plan
	// creates something of the same kind.
	Hints []MoveHint
	// Problems lists the stores that cannot be read, see Engine.Problems of package engine,
	// followed by the creatures that will stay stopped, because no recipe
	// declares them and their modules are missing or unusable.
	Problems []error
}

// PlanAction is the planned change of a creature or a channel.
type PlanAction string

// The actions.
const (
	PlanResume PlanAction = "resume" // it continues, possibly changed
	PlanCreate PlanAction = "create"
	PlanRemove PlanAction = "remove"
)

// CreaturePlan is the planned change of one creature.
type CreaturePlan struct {
	Deployment string             `json:"deployment,omitempty"`
	Address    string             `json:"address,omitempty"` // empty if no recipe declares it
	Name       string             `json:"name"`
	Creature   journal.CreatureID `json:"creature,omitempty"` // empty if it does not exist yet
	Action     PlanAction         `json:"action"`
	MovedFrom  string             `json:"moved_from,omitempty"` // its former address, if that differs
	Changes    []PlanChange       `json:"changes,omitempty"`
	// Sensitive attributes of its configuration. Their previous values are in no
	// store, so they are not among the changes. They are set to the recipe's
	// values, which may be the same as before.
	Unknown []string `json:"unknown,omitempty"`
	Cut     bool     `json:"cut,omitempty"` // whether its graph merges, splits or is rearranged
	// how many items wait for the creature when it continues; for a removed
	// creature, how many waited before
	Waiting Waiting `json:"waiting,omitzero"`
	Buried  uint64  `json:"buried,omitempty"` // number of its deliveries that become dead letters
}

// Waiting counts the items that wait for a creature.
type Waiting struct {
	Deliveries  uint64 `json:"deliveries,omitempty"`   // deliveries that it has not handled
	Timers      int    `json:"timers,omitempty"`       // timers that it has set
	Requests    int    `json:"requests,omitempty"`     // unanswered requests that it has made
	DeadLetters int    `json:"dead_letters,omitempty"` // its dead letters
}

// ChannelPlan is the planned change of one channel.
type ChannelPlan struct {
	Deployment string            `json:"deployment,omitempty"`
	Address    string            `json:"address,omitempty"`
	Name       string            `json:"name"`
	Channel    journal.ChannelID `json:"channel,omitempty"` // empty if it does not exist yet
	Action     PlanAction        `json:"action"`
	MovedFrom  string            `json:"moved_from,omitempty"` // its former address, if that differs
	Changes    []PlanChange      `json:"changes,omitempty"`
	Messages   uint64            `json:"messages,omitempty"` // messages sent on it so far
}

// PlanChange is one difference. If Before is empty, something is added; if After is empty,
// it is removed. A sensitive value is shown as "(sensitive value)", on both sides if it
// changes.
type PlanChange struct {
	What   string `json:"what"`             // module, sha256, description, config, limits, …, listen, send, wire, root, privileged, stopped, paused, parent, name
	Of     string `json:"of,omitempty"`     // which edge or wire, or which sensitive attribute of the configuration
	Before string `json:"before,omitempty"` // value before the change
	After  string `json:"after,omitempty"`  // value after the change
}

// GraphPlan is the planned change of graphs whose members move between them.
type GraphPlan struct {
	Kind   journal.CutKind   `json:"kind"`   // merge, split, rearrange, begin or end
	Before []journal.GraphID `json:"before"` // the graphs concerned, before the change
	After  []GraphPart       `json:"after"`  // the graphs that result
}

// GraphPart is one graph after the change.
type GraphPart struct {
	Graph   journal.GraphID `json:"graph,omitempty"` // empty if it does not exist yet
	Members []string        `json:"members"`         // creatures by address or else by name, sorted
}

// Empty reports whether nothing changes, as far as is known; see
// [CreaturePlan.Unknown].
func (p *Plan) Empty() bool {
	return len(p.Graphs) == 0 &&
		!slices.ContainsFunc(p.Stops, func(s StopPlan) bool { return !s.idle() }) &&
		!slices.ContainsFunc(p.Declared, func(d DeclarationPlan) bool { return !d.idle() }) &&
		!slices.ContainsFunc(p.Creatures, func(c CreaturePlan) bool { return !c.idle() }) &&
		!slices.ContainsFunc(p.Channels, func(c ChannelPlan) bool { return !c.idle() })
}
