// Package inspect defines what an engine reports about the present state of its graphs and
// their members.
package inspect

import (
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// GraphStatus describes a graph.
type GraphStatus struct {
	ID         journal.GraphID      `json:"id"`
	Session    journal.SessionID    `json:"session,omitempty"`
	Root       journal.CreatureID   `json:"root,omitempty"`
	StorePath  string               `json:"store_path,omitempty"`
	Complete   bool                 `json:"complete"`
	Durability string               `json:"durability"`
	Creatures  []CreatureStatus     `json:"creatures"`
	Hibernated int                  `json:"hibernated,omitempty"` // number of creatures that hibernate
	Channels   []ChannelStatus      `json:"channels"`
	Wires      []journal.OutputWire `json:"wires"`
	// the recipes whose creatures have stopped in this graph, because a stop_when block holds
	Stopped []journal.RecipeStop `json:"stopped,omitempty"`
}

// CreatureStatus describes a creature.
type CreatureStatus struct {
	ID             journal.CreatureID           `json:"id"`
	Name           string                       `json:"name"`
	Description    string                       `json:"description,omitempty"` // what it is for
	Deployment     string                       `json:"deployment,omitempty"`
	Address        string                       `json:"address,omitempty"`
	Species        string                       `json:"species,omitempty"`
	State          journal.CreatureState        `json:"state"`                // running, stopped, paused, quarantined, backing_off or awaiting_approval
	Hibernated     bool                         `json:"hibernated,omitempty"` // it has been idle, and has no instance until its next turn
	Privileged     bool                         `json:"privileged"`
	Root           bool                         `json:"root"`
	Parent         journal.CreatureID           `json:"parent,omitempty"`
	Listen         []journal.ChannelID          `json:"listen"`
	Send           []journal.ChannelID          `json:"send"`
	Aliases        Aliases                      `json:"aliases"`
	Cursors        map[journal.ChannelID]Cursor `json:"cursors"`
	Incarnation    uint64                       `json:"incarnation"` // number of its current instance, from 1 in each run of the engine
	InstanceStarts uint64                       `json:"instance_starts"`
	Module         string                       `json:"module"`
	ModuleSHA256   string                       `json:"module_sha256"`
	Engine         abi.Engine                   `json:"engine,omitempty"` // what runs the module: compiler, interpreter or translation
	MemoryBytes    int64                        `json:"memory_bytes"`
	Limits         abi.Limits                   `json:"limits"`
	Counters       Counters                     `json:"counters"`
	Approvals      int                          `json:"approvals,omitempty"`    // open questions of policies about its turn
	Capabilities   []Capability                 `json:"capabilities,omitempty"` // what it can reach outside
}

// Capability is what a creature can reach outside.
type Capability struct {
	ID string `json:"id"` // its kind and name, such as http.alerts
	// what it allows, in words; null until the recipe is applied, if it lacks settings
	// that are not stored
	Allows []string `json:"allows"`
	// what the creature has used, by unit
	Used map[string]int64 `json:"used,omitempty"`
	// what all creatures of its graph have used, including removed ones, by unit
	UsedByGraph map[string]int64 `json:"used_by_graph,omitempty"`
	// what may be used, by unit
	Budgets []CapabilityBudget `json:"budgets,omitempty"`
	// how its requests are made; like allows, absent until the recipe is applied
	Limits *CapabilityLimits `json:"limits,omitempty"`
}

// CapabilityBudget bounds how much of a unit the requests to a capability may use.
type CapabilityBudget struct {
	Unit     string `json:"unit"`               // unit of the capability, such as tokens
	Creature int64  `json:"creature,omitempty"` // the bound for each creature; absent: not bounded
	Graph    int64  `json:"graph,omitempty"`    // the bound for all creatures of a graph together; absent: not bounded
}

// CapabilityLimits bounds the requests that all creatures with a grant from the same
// declaration make together.
type CapabilityLimits struct {
	Concurrency int     `json:"concurrency"`    // attempts at the same time
	Rate        float64 `json:"rate,omitempty"` // attempts per second on average; absent: not bounded
	Timeout     string  `json:"timeout"`        // duration of an attempt, such as 30s
	Retries     int     `json:"retries"`        // further attempts of a request
}

// Aliases are a creature's own names for channels.
type Aliases struct {
	Listen map[string][]journal.ChannelID `json:"listen"`
	Send   map[string]journal.ChannelID   `json:"send"`
}

// Cursor is the position of a creature in a channel.
type Cursor struct {
	Seq     uint64 `json:"seq"`
	Pending uint64 `json:"pending"`
}

// ChannelStatus describes a channel.
type ChannelStatus struct {
	ID          journal.ChannelID    `json:"id"`
	Name        string               `json:"name"`
	Deployment  string               `json:"deployment,omitempty"`
	Address     string               `json:"address,omitempty"`
	Description string               `json:"description,omitempty"`
	Listeners   []journal.CreatureID `json:"listeners"`
	Senders     []journal.CreatureID `json:"senders"`
	Head        uint64               `json:"head"`
}

// Counters count what a creature has done since the engine started.
type Counters struct {
	Turns       uint64 `json:"turns"`
	Failures    uint64 `json:"failures"`
	Sent        uint64 `json:"sent"`
	DeadLetters uint64 `json:"dead_letters"`
	Denied      uint64 `json:"denied"`
	Fuel        uint64 `json:"fuel"`                // fuel that its turns used, including failed ones
	Conflicts   uint64 `json:"conflicts,omitempty"` // turns that were run again because their graph had changed
	// how often the creature or its timers had to wait, because it exceeded store_rate or
	// timer_rate
	Throttled uint64 `json:"throttled,omitempty"`
}

// Burn adds the fuel of a turn.
func (c *Counters) Burn(fuel int64) {
	if fuel > 0 {
		c.Fuel += uint64(fuel)
	}
}

// StateEntry is one state value of a creature.
type StateEntry struct {
	Key   string
	Value []byte
}

// Decision answers the question of a policy.
type Decision struct {
	Approve bool
	// By is the name of the operator and Reason what the operator says about it. Both may
	// be empty, and have at most [journal.MaxApprovalText] bytes.
	By, Reason string
}

// Decision is the answer as the journal has it.
func (d *Decision) Decision() journal.ApprovalDecision {
	if d.Approve {
		return journal.Approved
	}
	return journal.Denied
}
