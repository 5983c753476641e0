package operations

import (
	"context"
	"slices"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// ConnectArgs are the arguments of connect.
type ConnectArgs struct {
	From        string `json:"from" op:"required" doc:"creature that will send"`
	To          string `json:"to" op:"required" doc:"creature that will listen"`
	Channel     string `json:"channel,omitempty" doc:"id or name; a channel that does not exist is declared; if the field is left out, a channel is chosen"`
	Alias       string `json:"alias,omitempty" doc:"both creatures' name for the channel"`
	OnCollision string `json:"on_collision,omitempty" doc:"if both graphs use a name: rename, unify or reject"`
}

// DisconnectArgs are the arguments of disconnect.
type DisconnectArgs struct {
	From    string `json:"from" op:"required" doc:"creature that sends"`
	To      string `json:"to" op:"required" doc:"creature that listens"`
	Channel string `json:"channel,omitempty" doc:"id or name; if left out, every channel from one to the other"`
}

// ChannelsResult is the result of disconnect and assign_root.
type ChannelsResult struct {
	Channels []terrarium.ChannelID `json:"channels"` // after disconnect: the channels on which the creatures were separated; after assign_root: the report channel, and the other channels on which the root listens
	Delta    journal.Delta         `json:"delta"`
}

// EdgeArgs are the arguments of set_listen and set_send.
type EdgeArgs struct {
	Creature string `json:"creature" op:"required" doc:"id, or a name that is unique"`
	Channel  string `json:"channel" op:"required" doc:"id, name in the creature's graph, or a name that is unique"`
	On       *bool  `json:"on" op:"required" doc:"true to add the edge, false to remove it"`
	Alias    string `json:"alias,omitempty" doc:"the creature's name for the channel"`
	// OnCollision is as in ConnectArgs.
	OnCollision string `json:"on_collision,omitempty" doc:"if both graphs use a name: rename, unify or reject"`
}

func connect(ctx context.Context, b *staging, a *ConnectArgs) (*ChannelResult, error) {
	collision, err := parseCollision("connect", a.OnCollision)
	if err != nil {
		return nil, err
	}
	from, to, err := findPair(b, a.From, a.To)
	if err != nil {
		return nil, err
	}
	op := topology.Connect{From: from, To: to, Alias: a.Alias, OnCollision: collision}
	if op.Channel, op.Name, err = connecting(b, from, to, a.Channel); err != nil {
		return nil, err
	}
	out, err := b.Do(ctx, op)
	if err != nil {
		return nil, err
	}
	return &ChannelResult{out.Channel, out.Delta}, nil
}

// connecting finds the channel of a connection, or returns the name of a channel to
// declare. The id of a removed channel is not taken for a name.
func connecting(b *staging, from, to terrarium.CreatureID, channel string) (terrarium.ChannelID, string, error) {
	if channel == "" {
		return "", "", nil
	}
	for _, g := range []terrarium.GraphID{b.GraphOf(from), b.GraphOf(to)} {
		if id, err := b.FindChannel(g, channel); err == nil {
			return id, "", nil
		}
	}
	if journal.IsID('h', channel) {
		_, err := b.FindChannel("", channel)
		return "", "", err
	}
	return "", channel, nil
}

func parseCollision(op, s string) (topology.Collision, error) {
	switch s {
	case "", "rename":
		return topology.Rename, nil
	case "unify":
		return topology.Unify, nil
	case "reject":
		return topology.Reject, nil
	}
	return 0, invalid(op, "unknown way to settle a collision: "+s, "use rename, unify or reject")
}

func findPair(b *staging, from, to string) (f, t terrarium.CreatureID, err error) {
	if f, err = b.FindCreature("", from); err != nil {
		return
	}
	t, err = b.FindCreature("", to)
	return
}

func disconnect(ctx context.Context, b *staging, a *DisconnectArgs) (*ChannelsResult, error) {
	from, to, err := findPair(b, a.From, a.To)
	if err != nil {
		return nil, err
	}
	op := topology.Disconnect{From: from, To: to}
	if a.Channel != "" {
		if op.Channel, err = b.FindChannel(b.GraphOf(from), a.Channel); err != nil {
			return nil, err
		}
	}
	out, err := b.Do(ctx, op)
	if err != nil {
		return nil, err
	}
	channels := slices.DeleteFunc(out.Channels, func(id terrarium.ChannelID) bool { return id == "" })
	return &ChannelsResult{channels, out.Delta}, nil
}

func setEdge(dir journal.Direction) func(context.Context, *staging, *EdgeArgs) (*DeltaResult, error) {
	return func(ctx context.Context, b *staging, a *EdgeArgs) (*DeltaResult, error) {
		collision, err := parseCollision("set_"+dir.String(), a.OnCollision)
		if err != nil {
			return nil, err
		}
		c, err := b.FindCreature("", a.Creature)
		if err != nil {
			return nil, err
		}
		ch, err := b.FindChannel(b.GraphOf(c), a.Channel)
		if err != nil {
			if ch, err = b.FindChannel("", a.Channel); err != nil {
				return nil, err
			}
		}
		return deltaOf(b.Do(ctx, topology.SetEdge{Creature: c, Channel: ch, Direction: dir, On: *a.On, Alias: a.Alias, OnCollision: collision}))
	}
}
