package diff

import (
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
)

// Plan is what applying deployments changes, address by address: the difference
// between what there is and what there will be.
type Plan struct {
	// Declared is what the recipes say besides, policies first. It tells what becomes of
	// each declaration, also that it stays.
	Declared  []DeclarationPlan
	Creatures []CreaturePlan
	Channels  []ChannelPlan
	// Graphs are those that merge, split, begin or end.
	Graphs []GraphPlan
	// Problems are the stores that cannot be read, see [Engine.Problems], and behind
	// them the creatures that will stay stopped, because no recipe declares them and
	// their modules are missing or cannot be used.
	Problems []error
}

// PlanAction is what becomes of a creature or a channel.
type PlanAction string

// The actions.
const (
	PlanResume PlanAction = "resume" // it goes on, perhaps changed
	PlanCreate PlanAction = "create"
	PlanRemove PlanAction = "remove"
)

// CreaturePlan is what becomes of one creature.
type CreaturePlan struct {
	Deployment string             `json:"deployment,omitempty"`
	Address    string             `json:"address,omitempty"` // empty for one that no recipe declares
	Name       string             `json:"name"`
	Creature   journal.CreatureID `json:"creature,omitempty"` // empty for one that does not exist yet
	Action     PlanAction         `json:"action"`
	Changes    []PlanChange       `json:"changes,omitempty"`
	// Unknown are attributes of its configuration that are sensitive, so that no
	// store has what they were. They are set to what the recipe says, which may be
	// the same, and are not among the changes.
	Unknown []string `json:"unknown,omitempty"`
	// Cut says that its graph merges, splits or is rearranged.
	Cut bool `json:"cut,omitempty"`
	// Waiting is what it finds when it goes on; of one that goes, what it had.
	Waiting Waiting `json:"waiting,omitzero"`
	// Buried are the deliveries that become dead letters.
	Buried uint64 `json:"buried,omitempty"`
}

// Waiting is what waits for a creature.
type Waiting struct {
	Deliveries  uint64 `json:"deliveries,omitempty"`
	Timers      int    `json:"timers,omitempty"`
	Requests    int    `json:"requests,omitempty"` // that it has made and nobody has answered
	DeadLetters int    `json:"dead_letters,omitempty"`
}

// ChannelPlan is what becomes of one channel.
type ChannelPlan struct {
	Deployment string            `json:"deployment,omitempty"`
	Address    string            `json:"address,omitempty"`
	Name       string            `json:"name"`
	Channel    journal.ChannelID `json:"channel,omitempty"`
	Action     PlanAction        `json:"action"`
	Changes    []PlanChange      `json:"changes,omitempty"`
	Messages   uint64            `json:"messages,omitempty"` // that it has had
}

// PlanChange is one thing that is different afterwards. An empty Before means
// that it comes, an empty After that it goes. Where a value is sensitive there is
// "(sensitive value)", on both sides if it is another.
type PlanChange struct {
	What   string `json:"what"`         // module, sha256, config, limits, …, listen, send, wire, root, privileged, stopped, parent, name
	Of     string `json:"of,omitempty"` // which edge or wire, or which sensitive attribute of the configuration
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// GraphPlan is what becomes of graphs whose members go from one to another.
type GraphPlan struct {
	Kind   journal.CutKind   `json:"kind"` // merge, split, rearrange, begin or end
	Before []journal.GraphID `json:"before"`
	After  []GraphPart       `json:"after"`
}

// GraphPart is one graph as it is going to be.
type GraphPart struct {
	Graph   journal.GraphID `json:"graph,omitempty"` // empty for one that does not exist yet
	Members []string        `json:"members"`         // creatures by address or else by name, sorted
}

// Empty reports whether nothing changes, as far as can be known; see
// [CreaturePlan.Unknown].
func (p *Plan) Empty() bool {
	return len(p.Graphs) == 0 &&
		!slices.ContainsFunc(p.Declared, func(d DeclarationPlan) bool { return !d.idle() }) &&
		!slices.ContainsFunc(p.Creatures, func(c CreaturePlan) bool { return !c.idle() }) &&
		!slices.ContainsFunc(p.Channels, func(c ChannelPlan) bool { return !c.idle() })
}
