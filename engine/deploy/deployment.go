package deploy

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// ReportChannel is the name of the channel on which the members of a deployment report to
// its root.
const ReportChannel = "report_to_root"

// Deployment is one recipe, ready to be applied: what will exist, by address. Addresses
// are stable: applying an edited recipe matches existing creatures and channels by
// address.
type Deployment struct {
	Name    string
	Source  Source
	Session SessionSettings
	// Channels and Creatures are in the order of the recipe.
	Channels  []ChannelSpec
	Creatures []CreatureSpec
	// Species are templates of creatures; some may be spawned.
	Species []SpeciesSpec
	// Connectors are the sources and sinks, which package terrarium runs.
	Connectors []Connector
	// Root is the address of the root creature, or empty.
	Root string
	// Policy judges what this deployment's members do; nil allows everything.
	Policy Policy
	// StopWhen are the conditions under which its creatures stop; one that holds is enough.
	StopWhen []StopWhen
	// Predicates are the predicates that output wires of its members may name.
	Predicates map[string]Predicate
	// Moved lists the addresses that have changed, sorted by From. Each From occurs once;
	// see [Deployment.NowAt].
	Moved []Move
	// Declared are the other declarations of the recipe, for plans.
	Declared []Declaration
	// Last, if not nil, is the deployment as it was last applied. Changes made since then
	// at run time are kept: creatures, channels, edges and output wires that were added
	// or removed, and which creature is the root, privileged or stopped. Where the
	// deployment differs from Last, the deployment takes precedence. Without Last it
	// takes precedence everywhere, and no change made at run time is kept.
	Last *Deployment
}

// Source is where a deployment came from. A copy is kept in the store.
type Source struct {
	Path  string            // of the recipe: a file or a folder; empty when there is none
	Files map[string]string // contents by name relative to Path's folder
	// Variables are the values given to variables, as JSON, without those that
	// are sensitive.
	Variables map[string]json.RawMessage
}

// SessionSettings are the settings of a deployment's session.
type SessionSettings struct {
	// Durability of the graphs of the deployment; nil means the engine's.
	Durability *journal.Durability
	// SyncEvery bounds what a power failure can lose, if the durability is
	// [journal.Normal]: see [journal.MetaSyncEvery]. Zero leaves it to the storage.
	SyncEvery time.Duration
	// AllowMerge lets a group tool merge this session with another.
	AllowMerge bool
}

// ChannelSpec declares a channel.
type ChannelSpec struct {
	Address     string // for example channel.tasks or channel.shard["a"]
	Name        string
	Description string
	// Where is the position of the declaration, for messages ("team.hcl:12"); may be
	// empty.
	Where string
}

// CreatureSpec describes a creature to be added.
type CreatureSpec struct {
	Address string // within its deployment; empty for a creature that no recipe declares
	Name    string // unique in its graph
	// Description says what the creature is for, in at most [MaxDescription] bytes.
	Description string
	// Module is a path, or builtin:NAME for one of the creatures that ship
	// with terrarium.
	Module string
	// Wasm is the module's bytes, if the caller has them. Otherwise they are
	// loaded when the creature is added.
	Wasm []byte
	// Species is the template of the creature, or empty. With neither Module nor Wasm it
	// names a species of an applied deployment that may be spawned: the rest of the
	// specification comes from that species, and Config is merged over its configuration.
	// Deployment says which deployment, if several have a species of that name.
	Species    string
	Deployment string
	Config     json.RawMessage // a JSON object; nil means {}
	// Secret names the attributes of Config that no store may keep. A creature that is
	// restored without its recipe lacks them.
	Secret []string
	// Given are those of Secret that do not have the value of the species: the caller
	// that spawned the creature gave another. No recipe contains that value.
	Given    []string
	Limits   abi.Limits
	Restart  RestartPolicy
	Overflow Overflow
	Grants   journal.Grants
	// Capabilities are what it can reach outside, sorted by kind and name.
	Capabilities []Capability
	Privileged   bool
	Stopped      bool // add it without starting it
	// Listen and Send name channels: by address within a deployment, otherwise
	// by id, or by name in the graph that is joined.
	Listen []WireSpec
	Send   []WireSpec
	// Outputs are its output wires.
	Outputs []OutputSpec
	// Join is the graph to join, by id; empty means a new graph.
	Join journal.GraphID
	// Parent is the creature it belongs to; may be empty.
	Parent journal.CreatureID
	// Workers says what happens to its workers when the creature is removed.
	Workers Workers
	Where   string // as in ChannelSpec
}

// WireSpec names a channel that a creature listens or sends on.
type WireSpec struct {
	Channel string
	Alias   string // empty: the channel's name
}

// OutputSpec declares an output wire of a creature; see [journal.OutputWire].
type OutputSpec struct {
	Name string
	// To is the target: [journal.ToRoot] or a creature, by address within a deployment,
	// otherwise by id, or by name in the graph.
	To          string
	WithContent bool
	Prompt      string
	When        string
	AllowSelf   bool
	Where       string // as in ChannelSpec
}

// Wire is the output wire of a creature whose target has been resolved.
func (s *OutputSpec) Wire(from, to journal.CreatureID) journal.OutputWire {
	return journal.OutputWire{Name: s.Name, From: from, To: to, WithContent: s.WithContent, Prompt: s.Prompt, When: s.When, AllowSelf: s.AllowSelf}
}

// Overflow is what happens when a mailbox is full in a graph without a store. (With a
// store, mailboxes do not overflow: each is a window on the log.)
type Overflow uint8

// The overflow policies.
const (
	// OverflowBlock makes outside publishers wait while a mailbox of a running creature
	// in the graph is full. A mailbox accepts messages from creatures up to eight times
	// the bound; further ones become dead letters.
	OverflowBlock Overflow = iota
	// OverflowDropOldest drops the oldest waiting delivery.
	OverflowDropOldest
	// OverflowDeadLetter turns the new delivery into a dead letter.
	OverflowDeadLetter
)

// String returns "block", "drop_oldest" or "dead_letter".
func (o Overflow) String() string {
	return [...]string{"block", "drop_oldest", "dead_letter"}[o]
}

// ParseOverflow reads what [Overflow.String] writes.
func ParseOverflow(s string) (Overflow, bool) {
	for o := OverflowBlock; o <= OverflowDeadLetter; o++ {
		if o.String() == s {
			return o, true
		}
	}
	return 0, false
}

// RestartMode says when a creature's delivery is tried again after a failure.
type RestartMode uint8

// The restart modes.
const (
	RestartOnFailure RestartMode = iota // the default
	RestartNever                        // the delivery becomes a dead letter at once
	RestartAlways                       // like on_failure, and the instance is fresh for every delivery
)

// String returns "on_failure", "never" or "always".
func (m RestartMode) String() string {
	return [...]string{"on_failure", "never", "always"}[m]
}

// ParseRestartMode reads what [RestartMode.String] writes.
func ParseRestartMode(s string) (RestartMode, bool) {
	for m := RestartOnFailure; m <= RestartAlways; m++ {
		if m.String() == s {
			return m, true
		}
	}
	return 0, false
}

// RestartPolicy says what happens after a failed turn. The zero value of a
// field means the default of [DefaultRestart].
type RestartPolicy struct {
	Mode RestartMode `json:"mode,omitempty"`
	// Attempts is how often one delivery is tried before it becomes a dead
	// letter.
	Attempts int `json:"attempts,omitempty"`
	// More than Max failed turns within Within quarantine the creature.
	Max    int           `json:"max,omitempty"`
	Within time.Duration `json:"within,omitempty"`
	// Backoff is the pause before the second attempt; it doubles, with jitter,
	// up to BackoffMax.
	Backoff    time.Duration `json:"backoff,omitempty"`
	BackoffMax time.Duration `json:"backoff_max,omitempty"`
}

// DefaultRestart is the restart policy of a creature that has none.
var DefaultRestart = RestartPolicy{
	Mode:       RestartOnFailure,
	Attempts:   3,
	Max:        100,
	Within:     time.Minute,
	Backoff:    50 * time.Millisecond,
	BackoffMax: 10 * time.Second,
}

// SameAs reports whether two declarations are of the same wire.
func (s OutputSpec) SameAs(o OutputSpec) bool {
	s.Where = o.Where
	return s == o
}

// IsAmong reports whether a creature has the declared wire.
func (s *OutputSpec) IsAmong(list []journal.OutputWire, from, to journal.CreatureID) bool {
	wire := s.Wire(from, to)
	return slices.ContainsFunc(list, func(w journal.OutputWire) bool { return w.Name == wire.Name && w.SameAs(wire) })
}

// Texts returns the contents of a recipe's files, sorted, without the names of the files.
func (s *Source) Texts() []string {
	return slices.Sorted(maps.Values(s.Files))
}
