package topology

// DeltaKind says what an operation did to the graphs that existed before it.
type DeltaKind uint8

// The kinds. An operation that both merges and splits does not exist; a batch
// answers one delta per operation.
const (
	None DeltaKind = iota
	Merge
	Split
)

// String returns "none", "merge" or "split".
func (k DeltaKind) String() string {
	return [...]string{"none", "merge", "split"}[k]
}

// Delta tells what one operation changed. Every list is in a fixed order that
// depends only on the state and the operation.
type Delta struct {
	Op        string // the operation's name, as in errors
	Kind      DeltaKind
	OldGraphs []GraphID    // the graphs concerned, before; for a merge the survivor first
	NewGraphs []GraphID    // the graphs concerned, after; for a split the one that keeps the id first
	Affected  []CreatureID // those whose graph id changed, eldest first; a new creature is not among them
	Renamed   []Renaming
	Unified   []Unification
	Channel   ChannelID // what Connect connected or AddChannel added; the direct channel of AddCreature
	// Channels are those that Disconnect took apart, followed by as many
	// entries again: the channel to which the sends of each one moved, or "".
	Channels []ChannelID
	Changes  []Change // the steps, in order, from the state before to the state after
}

// Renaming is one name that a merge changed. Exactly one of Creature and
// Channel is set.
type Renaming struct {
	Creature CreatureID
	Channel  ChannelID
	Old, New string
}

// Unification is one pair of channels that became one. The edges of Absorbed
// are edges of Survivor now; Absorbed is gone from the state.
type Unification struct{ Survivor, Absorbed ChannelID }

// ChangeKind is the kind of a [Change].
type ChangeKind uint8

// The kinds of change, and the fields that each uses.
const (
	CreatureAdded   ChangeKind = iota + 1 // Creature, Graph, Name
	CreatureRemoved                       // Creature, Graph; its edges went before
	ChannelAdded                          // Channel, Graph, Name
	ChannelRemoved                        // Channel, Graph; its edges went before
	EdgeAdded                             // Creature, Channel, Direction, Alias
	EdgeRemoved                           // Creature, Channel, Direction, Alias
	CreatureMoved                         // Creature, Graph (new), From (old)
	ChannelMoved                          // Channel, Graph (new), From (old)
	CreatureRenamed                       // Creature, Name
	ChannelRenamed                        // Channel, Name
	GraphAdded                            // Graph
	GraphEnded                            // Graph; Into is where it went, empty when its last member was removed
	FlagsChanged                          // Creature: stopped, privileged or root
)

// Change is one step of a [Delta].
type Change struct {
	Kind      ChangeKind
	Creature  CreatureID
	Channel   ChannelID
	Direction Direction
	Alias     string
	Name      string
	Graph     GraphID
	From      GraphID
	Into      GraphID
}
