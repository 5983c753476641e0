package topology

// Creature is what the topology knows of a creature. It is a copy.
type Creature struct {
	ID         CreatureID
	Name       string
	Graph      GraphID
	Born       uint64 // creation number, rising with every creature of the state
	Parent     CreatureID
	Privileged bool
	Root       bool
	Stopped    bool
	Edges      []Edge // in the order in which they were added
}

// Channel is what the topology knows of a channel. It is a copy.
type Channel struct {
	ID     ChannelID
	Name   string
	Graph  GraphID
	Born   uint64
	Report bool
	Edges  []Edge // in the order in which they were added
}

// Graph is what the topology knows of a graph. It is a copy.
type Graph struct {
	ID        GraphID
	Born      uint64       // creation number, rising with every graph of the state
	Creatures []CreatureID // eldest first
	Channels  []ChannelID  // eldest first
}

// Edge joins a creature and a channel.
type Edge struct {
	Creature  CreatureID
	Channel   ChannelID
	Direction Direction
	Alias     string // the creature's own name for the channel, for this direction
}

// Snapshot is a whole state as plain data, for [Restore]. The lists may be in
// any order; Creature.Edges and Channel.Edges are ignored in favour of Edges.
type Snapshot struct {
	Creatures []Creature
	Channels  []Channel
	Graphs    []Graph // Creatures and Channels are ignored
	Edges     []Edge  // in the order in which they were added
}

// State holds creatures, channels, edges and the graphs derived from them. It
// belongs to one goroutine at a time; while nobody changes it, any number may
// read.
type State struct {
	creatures index[CreatureID, *creature]
	channels  index[ChannelID, *channel]
	graphs    index[GraphID, *graph]
	ended     index[GraphID, *ancestry] // those that were absorbed

	last      counters
	stops     uint64 // made so far
	linkCount int
	torn      bool // a graph may be in several pieces at the moment
	edit      edit // the batch under way
}

// counters are the numbers given last.
type counters struct{ creature, channel, graph, edge uint64 }

// New returns an empty state.
func New() *State {
	return &State{}
}
