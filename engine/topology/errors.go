package topology

import (
	"fmt"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// The kinds of ids, as keys of [abi.Error.IDs] and as words in messages.
const (
	aCreature = "creature"
	aChannel  = "channel"
	aGraph    = "graph"
)

func failure(code abi.Code, remedy, format string, args ...any) *abi.Error {
	return &abi.Error{Code: code, Message: fmt.Sprintf(format, args...), Remedy: remedy}
}

func notFound(what, id string) *abi.Error {
	return failure(abi.NotFound, "use an existing id", "%s %q does not exist", what, id).With(what, id)
}

func idTaken(what, id string) *abi.Error {
	return failure(abi.AlreadyExists, "use a new id, or remove the other one first",
		"%s %q exists already", what, id).With(what, id)
}

// unusableID returns the error for an id from the caller's IDs that is not
// fresh.
func unusableID(what, id string) *abi.Error {
	return failure(abi.Internal, "report it: the source of ids must return each id once",
		"the new %s id %q is empty or was used before", what, id).With(what, id)
}

func nameTaken(what, name, owner string, g *graph) *abi.Error {
	return failure(abi.AlreadyExists, "choose another name, or rename or remove the other one first",
		"the name %q belongs to %s %q in graph %q", name, what, owner, g.id).
		With(what, owner).With(aGraph, string(g.id))
}

func emptyID(what string) *abi.Error {
	return failure(abi.InvalidArgument, "use an id that is unique in the engine", "the %s id is empty", what)
}

func emptyName(what, id string) *abi.Error {
	return failure(abi.InvalidArgument, "give a name", "%s %q has an empty name", what, id).With(what, id)
}

func badDirection(d Direction) *abi.Error {
	return failure(abi.InvalidArgument, "use listen or send", "direction %d does not exist", uint8(d))
}

func aliasTaken(c *creature, alias string, l *link) *abi.Error {
	return failure(abi.AlreadyExists, "choose another alias, or omit it to get a free one",
		"creature %q uses the alias %q for sending on channel %q", c.id, alias, l.channel.id).
		With(aCreature, string(c.id)).With(aChannel, string(l.channel.id))
}

func notConnected(from, to CreatureID, ch ChannelID) *abi.Error {
	e := failure(abi.NotConnected, "list the channels between the two, or use another pair",
		"no channel leads from creature %q to creature %q", from, to)
	if ch != "" {
		e = failure(abi.NotConnected, "omit the channel to end every connection between the two, or use one that connects them",
			"channel %q does not lead from creature %q to creature %q", ch, from, to).With(aChannel, string(ch))
	}
	return e.With("from", string(from)).With("to", string(to))
}

func elsewhere(ch *channel, from, to *creature) *abi.Error {
	return failure(abi.InvalidArgument, "use a channel of either graph, or omit it to get a new one",
		"channel %q is in graph %q, neither with creature %q in graph %q nor with creature %q in graph %q",
		ch.id, ch.graph.id, from.id, from.graph.id, to.id, to.graph.id).
		With(aChannel, string(ch.id)).With("from", string(from.id)).With("to", string(to.id))
}

// colliding returns the error of a merge with the collision policy reject.
func colliding(into, from *graph, names []string) *abi.Error {
	return failure(abi.AlreadyExists, "omit on_collision to let the merge rename them, or use unify; or remove one of each and add it under another name",
		"graphs %q and %q both use %s", into.id, from.id, strings.Join(names, ", ")).
		With(aGraph, string(into.id)).With("other", string(from.id))
}

// numbered adds to an error which operation of a batch failed.
func numbered(e *abi.Error, index, count int) *abi.Error {
	if count == 1 {
		return e
	}
	e = e.With("index", fmt.Sprint(index))
	e.Message = fmt.Sprintf("operation %d of %d: %s", index+1, count, e.Message)
	return e
}
