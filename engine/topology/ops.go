package topology

// CreatureID names a creature. It never changes and is unique in an engine.
type CreatureID string

// ChannelID names a channel. It never changes and is unique in an engine.
type ChannelID string

// GraphID names a graph. A merge ends all but one of the ids involved, a split
// mints new ones; see [State.Current] for where an ended id went.
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

// Collision says what a merge does about a name that both sides use.
type Collision uint8

// The ways to settle a collision.
const (
	// Rename gives the absorbed side's creature or channel the next free name
	// of the form name~2, name~3, … It is the default.
	Rename Collision = iota
	// Unify makes one channel of two of the same name: the survivor's goes on,
	// the absorbed one is sealed. Creatures, and channels for which the report
	// flag is set, are renamed all the same.
	Unify
	// Reject fails the operation with the code already_exists.
	Reject
)

// Op is one operation on a [State]. The operations are the structs of this
// file.
type Op interface{ op() string }

// Wire is one edge that [AddCreature] asks for.
type Wire struct {
	Channel   ChannelID
	Direction Direction
	Alias     string // empty: the channel's name at that moment
}

// AddCreature adds a creature.
//
// Without Join and Edges it becomes a graph of its own. With Edges it is in
// the graph of the channels it is wired to, which merges those graphs if they
// are several. (A channel without edges leads nowhere: it moves to the
// creature's graph alone.) With Join it is in that graph: if none of Edges
// leads there it gets a direct channel named after it, on which it listens and
// its parent may send: Parent if it is in that graph, else the graph's root,
// else its eldest privileged member, else its eldest member.
type AddCreature struct {
	ID         CreatureID
	Name       string     // not empty; unique in the resulting graph
	Parent     CreatureID // kept as given; need not exist
	Privileged bool
	Root       bool
	Stopped    bool
	Join       GraphID
	Edges      []Wire
	// Born and GraphBorn are the creation numbers of a creature, and of the
	// graph that it is the first member of, that existed before; 0: the next.
	Born, GraphBorn uint64
}

// RemoveCreature removes a creature with its edges, and those of With that are
// in its graph at that moment, as one. The rest of its graph may split. Its last member's removal ends the graph, and with it every channel
// declared there.
type RemoveCreature struct {
	ID CreatureID
	// With are others that go along. Who is in another graph, or nowhere, is left
	// alone.
	With []CreatureID
}

// AddChannel declares a channel in a graph: Graph, or if that is empty, the
// graph that the creature With is in.
type AddChannel struct {
	ID    ChannelID
	Graph GraphID
	With  CreatureID
	Name  string // not empty; unique among the channels of the graph
	// Numbered takes the next free name of the form name~2, name~3, … if another
	// channel of the graph has the name, where it would otherwise be an error.
	Numbered bool
	// Report marks a report_to_root channel, which is never unified.
	Report bool
	Born   uint64 // its creation number if it existed before; 0: the next
}

// RemoveChannel drops a channel with all its edges; its graph may split.
type RemoveChannel struct{ ID ChannelID }

// Connect makes From send on a channel that To listens on. If they are in
// different graphs, these merge.
//
// The channel is Channel if given (it must be in the graph of From or To);
// else, if Name is given, the channel of that name in From's graph, else in
// To's, else a new one of that name; else the eldest that already leads from
// From to To; else a new one named from-to-to after both. New channels are
// declared in From's graph.
type Connect struct {
	From, To    CreatureID
	Channel     ChannelID
	Name        string
	Alias       string // for both ends' new edges; empty: the channel's name, made unique for Send
	OnCollision Collision
	Settle      map[string]Collision // as in [SetEdge]
}

// Disconnect ends From→To, on Channel or, if it is empty, on every channel
// that leads from From to To. It never cuts a third party: if From is the
// channel's only sender, To's listen edge goes; else if nobody but To and From
// listens, From's send edge goes; else From's sends move to a new channel, with
// the old alias, on which the other listeners listen with their old alias.
type Disconnect struct {
	From, To CreatureID
	Channel  ChannelID
}

// SetEdge turns one edge on or off. Turning on an edge that is on, or off one
// that is off, changes nothing.
//
// Turning on joins the creature's graph and the channel's if they differ. A
// channel without edges joins nobody: it moves to the creature's graph alone.
type SetEdge struct {
	Creature  CreatureID
	Channel   ChannelID
	Direction Direction
	On        bool
	// Alias is for a new edge; empty: the channel's name, made unique for Send
	// (name~2, …). A given one that the creature uses for sending on another
	// channel fails the operation.
	Alias string
	// OnCollision settles names when turning on merges two graphs.
	OnCollision Collision
	// Settle goes before OnCollision for the channels of the names that it has.
	// It is not modified.
	Settle map[string]Collision
}

// SetStopped marks a creature stopped or running. Membership and edges stay.
type SetStopped struct {
	ID      CreatureID
	Stopped bool
}

// SetPrivileged promotes or demotes a creature.
type SetPrivileged struct {
	ID         CreatureID
	Privileged bool
}

// SetRoot marks a creature as the root of its deployment, or not. The flag
// decides which part keeps the graph id on a split of equals.
type SetRoot struct {
	ID   CreatureID
	Root bool
}

// SetNames gives creatures other names, all at once, so that two can exchange theirs.
// One whose new name another creature of its graph keeps, or has been given before it,
// takes the next free name of the form name~2, name~3, … Of several names for one
// creature the last counts.
type SetNames struct{ Names []Naming }

// Naming is the name that a creature is to have.
type Naming struct {
	ID   CreatureID
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
	if s.Stopped {
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

// IDs hands out fresh ids for what an operation creates by itself: the graphs
// of a split or of a new singleton, and channels made by [Connect],
// [Disconnect] or [AddCreature]. It is asked in an order that depends only on
// the state and the operation.
type IDs interface {
	NewGraph() GraphID
	NewChannel() ChannelID
}
