package deploy

import (
	"encoding/json"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Collision says what a merge does about a name that both sides use.
type Collision = topology.Collision

// What a policy can decide about a name that collides in a merge.
const (
	Rename = topology.Rename
	Unify  = topology.Unify
)

// PolicyEvent is something that is about to happen, other than a message. Fields that do
// not apply to its kind are zero.
//
// Tool calls and failures are judged while nothing is locked. Operations on the graph are
// judged one after the other: turns and deliveries continue meanwhile, and other
// operations wait. Operations that a guest requests are judged twice: on the call, and
// again when its turn commits.
type PolicyEvent struct {
	Kind       journal.PolicyKind
	Time       int64 // of the turn or, outside of turns, of the clock; nanoseconds since 1970
	Seed       uint64
	Graph      journal.GraphID // in which it happens; empty if it creates one
	Deployment string          // whose policies judge
	Call       string          // the operation, tool or command that requests it
	Caller     Party           // the calling creature; zero for a caller outside

	// Creature is the creature that spawn, remove, replace and fail are about.
	Creature Party
	Module   string   `json:",omitempty"` // spawn, replace: the new one
	SHA256   string   `json:",omitempty"` // replace: of the new module
	Former   string   `json:",omitempty"` // replace: the former module
	Parent   Party    // spawn
	Listen   []string `json:",omitempty"` // spawn: names of the channels it is wired to
	Send     []string `json:",omitempty"`
	Alive    int      `json:",omitempty"` // spawn: how many creatures of the species exist
	Spawned  *Spawned `json:"-"`          // spawn: what an approval covers beyond the rest
	Workers  []string `json:",omitempty"` // remove: names of the workers that are removed with it

	// From sends to To on Channel, for connect and disconnect; for wire there is no
	// channel. Either may be zero if only one edge is concerned.
	From, To Party
	Channel  PolicyChannel
	// Wire is the output wire of the event wire; Added says whether it is added or
	// removed.
	Wire  *journal.OutputWire `json:",omitempty"`
	Added bool                `json:",omitempty"`

	// Graphs are the graphs that merge, the survivor first.
	Graphs []*GraphView `json:",omitempty"`
	// Collisions are the names that several of them use.
	Collisions []NameCollision `json:",omitempty"`
	// Parts are the names of the creatures in each part of a split, the part that
	// keeps the id first.
	Parts [][]string `json:",omitempty"`

	Called
	FailedTurn
	PlannedChanges

	Surroundings
}

// Called is the group tool that a creature calls, or its request to a capability.
type Called struct {
	Tool      string `json:",omitempty"`
	Arguments []byte `json:",omitempty"` // of a tool: JSON

	// Capability is the kind of the capability and Grant its name. Request is the request
	// as the capability shows it: a JSON object.
	Capability CapabilityKind  `json:",omitempty"`
	Grant      string          `json:",omitempty"`
	Request    json.RawMessage `json:",omitempty"`
}

// FailedTurn describes a failed turn that a policy rules on: what failed, how, and how
// often in a row.
type FailedTurn struct {
	Code     string `json:",omitempty"`
	Error    string `json:",omitempty"`
	Delivery string `json:",omitempty"` // its kind: message, timer, …
	Attempt  int    `json:",omitempty"`
	Attempts int    `json:",omitempty"` // how often the restart policy tries
	Failures int    `json:",omitempty"` // of the creature within the restart policy's time, this one included
}

// PlannedChanges are the changes that applying a deployment would make, by address.
type PlannedChanges struct {
	Created []string `json:",omitempty"`
	Resumed []string `json:",omitempty"`
	Changed []string `json:",omitempty"` // those of Resumed that run and get a new instance
	Removed []string `json:",omitempty"`
}

// Party is a creature in an event.
type Party struct {
	ID         journal.CreatureID `json:"id,omitempty"`
	Name       string             `json:"name,omitempty"`
	Address    string             `json:"address,omitempty"`
	Species    string             `json:"species,omitempty"`
	Deployment string             `json:"deployment,omitempty"`
	Privileged bool               `json:"privileged,omitempty"`
	// Where is the position of its declaration in the recipe; may be empty.
	Where string `json:"where,omitempty"`
}

// PolicyChannel is a channel in an event.
type PolicyChannel struct {
	ID         journal.ChannelID `json:",omitempty"`
	Name       string            `json:",omitempty"`
	Address    string            `json:",omitempty"`
	Deployment string            `json:",omitempty"`
}

// NameCollision is a name that two graphs of a merge use.
type NameCollision struct {
	Kind NameKind `json:"kind"`
	Name string   `json:"name"`
}

// NameKind says what has a name. It is stable.
type NameKind string

// What has names in a graph.
const (
	NameOfCreature NameKind = "creature"
	NameOfChannel  NameKind = "channel"
)

// Decision is what a policy decided about an event.
type Decision struct {
	Words
	// Settle says, by name of a channel that collides in a merge, whether the two are to
	// be renamed or unified. For names that it lacks, the operation's own setting
	// applies.
	Settle map[string]Collision `json:",omitempty"`
	// Request, if not nil, are members that replace those of the request to a capability,
	// as JSON. ChangedBy are the policies that changed it.
	Request   json.RawMessage `json:",omitempty"`
	ChangedBy []Verdict       `json:",omitempty"`
	// Ruling says how to treat a failed turn.
	Ruling Ruling `json:",omitempty"`
	// By is the verdict of the policy that ruled.
	By Verdict
}

// Ruling is how the supervisor treats a failed turn.
type Ruling uint8

// The rulings, the milder ones first.
const (
	RuleNothing    Ruling = iota // the restart policy decides
	RuleRestart                  // try the delivery again, on a fresh instance
	RuleDrop                     // the delivery becomes a dead letter
	RuleQuarantine               // the creature is taken out of service
)

// String returns "", "restart", "drop" or "quarantine".
func (r Ruling) String() string {
	return [...]string{"", "restart", "drop", "quarantine"}[r]
}

// GraphView is a graph as policies see it. It is shared and must not be modified.
type GraphView struct {
	ID        journal.GraphID `json:"id"`
	Creatures []CreatureView  `json:"creatures"` // oldest first
	Channels  []ChannelView   `json:"channels"`  // oldest first
}

// CreatureView is a member of a graph.
type CreatureView struct {
	ID         journal.CreatureID    `json:"id"`
	Name       string                `json:"name"`
	Address    string                `json:"address"`
	Species    string                `json:"species"`
	Deployment string                `json:"deployment"`
	Parent     string                `json:"parent"` // its name
	State      journal.CreatureState `json:"state"`  // running, stopped, paused or quarantined
	Privileged bool                  `json:"privileged"`
	Root       bool                  `json:"root"`
}

// ChannelView is a channel of a graph.
type ChannelView struct {
	ID         journal.ChannelID `json:"id"`
	Name       string            `json:"name"`
	Address    string            `json:"address"`
	Deployment string            `json:"deployment"`
	Listeners  []string          `json:"listeners"` // names
	Senders    []string          `json:"senders"`   // names
}

// About is the creature that an event is about, if it is about one.
func (ev *PolicyEvent) About() Party {
	for _, p := range []Party{ev.Creature, ev.From, ev.To, ev.Caller} {
		if p.ID != "" || p.Name != "" {
			return p
		}
	}
	return Party{}
}

// Subject says what an event is about, for messages.
func (ev *PolicyEvent) Subject() string {
	text := string(ev.Kind)
	switch {
	case ev.Tool != "":
		text += " " + ev.Tool
	case ev.Capability != "":
		text += " " + string(ev.Capability) + "." + ev.Grant
	case ev.Creature.Name != "":
		text += " of " + ev.Creature.Name
	case ev.From.Name != "" || ev.To.Name != "":
		text += " of " + ev.From.Name + "→" + ev.To.Name
	}
	if ev.Channel.Name != "" {
		text += " on " + ev.Channel.Name
	}
	if where := ev.About().Where; where != "" {
		text += " (" + where + ")"
	}
	return text
}
