package topology

// Creature is a copy of the topology's data about a creature.
type Creature struct {
	ID         CreatureID
	Name       string
	Graph      GraphID
	Born       uint64 // creation number; rises with every creature of the state
	Parent     CreatureID
	Privileged bool
	Root       bool
	Stopped    bool
	Paused     bool   // only if Stopped
	Edges      []Edge // in the order in which they were added
}

// Channel is a copy of the topology's data about a channel.
type Channel struct {
	ID     ChannelID
	Name   string
	Graph  GraphID
	Born   uint64
	Report bool
	Edges  []Edge // in the order in which they were added
}

// Graph is a copy of the topology's data about a graph.
type Graph struct {
	ID        GraphID
	Born      uint64       // creation number; rises with every graph of the state
	Creatures []CreatureID // oldest first
	Channels  []ChannelID  // oldest first
}

// Edge joins a creature and a channel.
type Edge struct {
	Creature  CreatureID
	Channel   ChannelID
	Direction Direction
	Alias     string // the creature's own name for the channel, for this direction
}

// Snapshot is a complete state as plain data, see [State.Snapshot].
// Creature.Edges and Channel.Edges are empty.
type Snapshot struct {
	Creatures []Creature
	Channels  []Channel
	Graphs    []Graph // without Creatures and Channels
	Edges     []Edge  // in the order in which they were added
}

// State holds creatures, channels, edges and the graphs derived from them.
// Only one goroutine at a time may change it; any number may read while none
// changes it.
type State struct {
	creatures index[CreatureID, *creature]
	channels  index[ChannelID, *channel]
	graphs    index[GraphID, *graph]
	ended     index[GraphID, *ancestry] // absorbed graphs

	last      counters
	stops     uint64 // made so far
	linkCount int
	torn      bool // a graph may currently be in several pieces
	edit      edit // the batch in progress
}

// counters holds the last numbers assigned.
type counters struct{ creature, channel, graph, edge uint64 }

// New returns an empty state.
func New() *State {
	return &State{}
}
