package topology

// CreatureID identifies a creature. It never changes and is unique in an
// engine.
type CreatureID string

// ChannelID identifies a channel. It never changes and is unique in an engine.
type ChannelID string

// GraphID identifies a graph. A merge ends all but one of the ids involved, a
// split makes new ones; [State.Current] returns the successor of an ended id.
type GraphID string

// Direction is the direction of an edge, seen from the creature.
type Direction uint8

// The directions.
const (
	Listen Direction = iota + 1
	Send
)

// String returns "listen" or "send".
func (d Direction) String() string {
	switch d {
	case Listen:
		return "listen"
	case Send:
		return "send"
	}
	return "unknown"
}

// Collision says how a merge resolves a name that both sides use.
type Collision uint8

// The ways to resolve a collision.
const (
	// Rename gives the absorbed side's creature or channel the next free name
	// of the form name~2, name~3, … It is the default.
	Rename Collision = iota
	// Unify merges two channels of the same name: the survivor's channel continues, the
	// absorbed one is sealed. Creatures, and channels with the report flag, are renamed
	// nevertheless.
	Unify
	// Reject fails the operation with the code already_exists.
	Reject
)

// Op is one operation on a [State]. The operations are the structs of this
// file.
type Op interface{ op() string }

// Wire is one edge requested by [AddCreature].
type Wire struct {
	Channel   ChannelID
	Direction Direction
	Alias     string // empty: the channel's name at that moment
}

// AddCreature adds a creature.
//
// Without Join and Edges the creature forms a new graph. With Edges it is in
// the graph of the channels it is wired to; if these are several graphs, they
// merge. (A channel without edges only moves to the creature's graph.) With
// Join it is in that graph. If none of Edges leads there, the creature gets a
// direct channel named after it, on which it listens and its parent may send.
// Its parent is Parent, if that is in the graph; otherwise the graph's root;
// without a root, its oldest privileged member; without one, its oldest member.
type AddCreature struct {
	ID         CreatureID
	Name       string     // not empty; unique in the resulting graph
	Parent     CreatureID // stored as given; need not exist
	Privileged bool
	Root       bool
	Stopped    bool
	Paused     bool // stopped, and ready to continue at once; only with Stopped
	Join       GraphID
	Edges      []Wire
	Direct     bool // give it a direct channel even if an edge leads to the graph that it joins
	// Born and GraphBorn are the creation numbers of a restored creature and
	// of the graph whose first member it is; 0 means the next number.
	Born, GraphBorn uint64
}

// RemoveCreature removes a creature with its edges, together with the
// creatures of With that are in its graph at that moment. The rest of its
// graph may split. Removing the last member ends the graph, and with it every
// channel declared there.
type RemoveCreature struct {
	ID CreatureID
	// With lists other creatures to remove. Those in another graph, or in
	// none, are ignored.
	With []CreatureID
}

// AddChannel declares a channel in a graph: Graph or, if that is empty, the
// graph of the creature With.
type AddChannel struct {
	ID    ChannelID
	Graph GraphID
	With  CreatureID
	Name  string // not empty; unique among the channels of the graph
	// Numbered takes the next free name of the form name~2, name~3, … if
	// another channel of the graph has the name. Without it that is an error.
	Numbered bool
	// Report marks a report_to_root channel, which is never unified.
	Report bool
	Born   uint64 // its creation number if it is restored; 0 means the next
}

// RemoveChannel removes a channel with all its edges; its graph may split.
type RemoveChannel struct{ ID ChannelID }

// Connect makes From send on a channel that To listens on. If they are in
// different graphs, the graphs merge.
//
// The channel is the first of these:
//
//   - Channel, if it is given; it must be in the graph of From or To
//   - if Name is given, the channel of that name in From's graph, else the one
//     in To's graph, else a new one of that name
//   - the oldest channel that already leads from From to To
//   - a new one named from-to-to, after both creatures
//
// New channels are declared in From's graph.
type Connect struct {
	From, To    CreatureID
	Channel     ChannelID
	Name        string
	Alias       string // for both ends' new edges; empty: the channel's name, made unique for Send
	OnCollision Collision
	Settle      map[string]Collision // as in [SetEdge]
}

// Disconnect ends From→To, on Channel or, if it is empty, on every channel
// that leads from From to To. It never disconnects a third creature, so it takes
// the first of these steps that is possible:
//
//   - if From is the channel's only sender, To's listen edge is removed
//   - if only To and From listen, From's send edge is removed
//   - From's sends move to a new channel, with the old alias; the listeners
//     other than From and To listen there too, with their old aliases
type Disconnect struct {
	From, To CreatureID
	Channel  ChannelID
}

// SetEdge turns one edge on or off. Turning on an edge that is on, or off one
// that is off, changes nothing.
//
// Turning on merges the creature's graph and the channel's if they differ. A
// channel without edges only moves to the creature's graph.
type SetEdge struct {
	Creature  CreatureID
	Channel   ChannelID
	Direction Direction
	On        bool
	// Alias is the alias of a new edge. Empty means the channel's name, made
	// unique for Send (name~2, …). The operation fails if the creature already
	// uses a given alias for sending on another channel.
	Alias string
	// OnCollision resolves names when turning on merges two graphs.
	OnCollision Collision
	// Settle takes precedence over OnCollision for the channel names that it
	// contains. It is not modified.
	Settle map[string]Collision
}

// SetStopped marks a creature stopped or running. Membership and edges stay.
type SetStopped struct {
	ID      CreatureID
	Stopped bool
	Paused  bool // as in AddCreature
}

// SetPrivileged promotes or demotes a creature.
type SetPrivileged struct {
	ID         CreatureID
	Privileged bool
}

// SetRoot marks or unmarks a creature as the root of its deployment. When a
// graph splits into parts of equal size, the flag decides which part keeps the
// graph id.
type SetRoot struct {
	ID   CreatureID
	Root bool
}

// SetNames renames creatures, all at once, so that two can exchange names. If
// another creature of the graph keeps the new name, or gets it earlier in the
// list, a creature takes the next free name of the form name~2, name~3, … If a
// creature is listed several times, the last name counts. Channels are renamed
// one after the other, in the same way.
type SetNames struct {
	Names    []Naming
	Channels []ChannelNaming
}

// Naming is the new name of a creature.
type Naming struct {
	ID   CreatureID
	Name string // not empty
}

// ChannelNaming is the new name of a channel.
type ChannelNaming struct {
	ID   ChannelID
	Name string // not empty
}

func (AddCreature) op() string    { return "add_creature" }
func (RemoveCreature) op() string { return "remove_creature" }
func (AddChannel) op() string     { return "add_channel" }
func (RemoveChannel) op() string  { return "remove_channel" }
func (Connect) op() string        { return "connect" }
func (Disconnect) op() string     { return "disconnect" }
func (e SetEdge) op() string      { return "set_" + e.Direction.String() }
func (s SetStopped) op() string {
	switch {
	case s.Stopped && s.Paused:
		return "pause_creature"
	case s.Stopped:
		return "stop_creature"
	}
	return "start_creature"
}
func (s SetPrivileged) op() string {
	if s.Privileged {
		return "promote"
	}
	return "demote"
}
func (SetRoot) op() string  { return "assign_root" }
func (SetNames) op() string { return "set_names" }

// IDs returns fresh ids for things that an operation creates implicitly: the
// graphs of a split or of a new singleton, and channels made by [Connect],
// [Disconnect] or [AddCreature]. The order of calls depends only on the state
// and the operation.
type IDs interface {
	NewGraph() GraphID
	NewChannel() ChannelID
}
