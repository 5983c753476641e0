package topology

// DeltaKind says what an operation did to the graphs that existed before it.
type DeltaKind uint8

// The kinds. No operation both merges and splits; a batch returns one delta
// per operation.
const (
	None DeltaKind = iota
	Merge
	Split
)

// String returns "none", "merge" or "split".
func (k DeltaKind) String() string {
	return [...]string{"none", "merge", "split"}[k]
}

// Delta describes the changes of one operation. Every list is in a fixed order
// that depends only on the state and the operation.
type Delta struct {
	Op        string // the operation's name, as in errors
	Kind      DeltaKind
	OldGraphs []GraphID    // the graphs concerned, before; after a merge the survivor first
	NewGraphs []GraphID    // the graphs concerned, after; for a split the one that keeps the id first
	Affected  []CreatureID // creatures whose graph id changed, oldest first; without new creatures
	Renamed   []Renaming
	Unified   []Unification
	Channel   ChannelID // the channel of Connect or AddChannel; the direct channel of AddCreature
	// Channels lists the channels that Disconnect separated, followed by as
	// many entries again: the channel to which the sends of each one moved, or
	// "".
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

// Unification is a pair of channels that became one. The edges of Absorbed are
// now edges of Survivor; Absorbed has been removed.
type Unification struct{ Survivor, Absorbed ChannelID }

// ChangeKind is the kind of a [Change].
type ChangeKind uint8

// The kinds of change, and the fields that each uses.
const (
	CreatureAdded   ChangeKind = iota + 1 // Creature, Graph, Name
	CreatureRemoved                       // Creature, Graph; its edges were removed before
	ChannelAdded                          // Channel, Graph, Name
	ChannelRemoved                        // Channel, Graph; its edges were removed before
	EdgeAdded                             // Creature, Channel, Direction, Alias
	EdgeRemoved                           // Creature, Channel, Direction, Alias
	CreatureMoved                         // Creature, Graph (new), From (old)
	ChannelMoved                          // Channel, Graph (new), From (old)
	CreatureRenamed                       // Creature, Name
	ChannelRenamed                        // Channel, Name
	GraphAdded                            // Graph
	GraphEnded                            // Graph; Into is its successor, empty if its last member was removed
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
