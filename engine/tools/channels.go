package tools

import (
	"context"
	"fmt"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// ChannelArgs holds the arguments of the tool group_channel. The fields say
// which actions take them.
type ChannelArgs struct {
	Action string `json:"action" bounds:"enum=create|delete|wire|unwire"`
	// Name and Description are for create.
	Name        string `json:"name,omitempty" jsonschema:"name of the channel to create; unique among the graph's channels"`
	Description string `json:"description,omitempty"`
	// Channel is for delete, wire and unwire.
	Channel string `json:"channel,omitempty" jsonschema:"id or name of a channel of the caller's graph; with merge, also the id of a channel of another graph"`
	// Creature, Direction and Alias are for wire and unwire.
	Creature  string `json:"creature,omitempty" jsonschema:"id or name of a member of the caller's graph; with merge, also the id of a creature of another graph"`
	Direction string `json:"direction,omitempty" bounds:"enum=listen|send"`
	Alias     string `json:"alias,omitempty" jsonschema:"the creature's alias for the channel"`
	// Merge and OnCollision are for wire.
	Merge       bool   `json:"merge,omitempty" jsonschema:"allow a channel or creature of another graph, which is then merged with the caller's graph"`
	OnCollision string `json:"on_collision,omitempty" bounds:"enum=rename|unify|reject"`
}

// ChannelResult is the result of group_channel.
type ChannelResult struct {
	Channel journal.ChannelID `json:"channel"`
	Name    string            `json:"name,omitempty"`
	Delta   journal.Delta     `json:"delta"`
}

func groupChannel(ctx context.Context, t Turn, args []byte) (any, error) {
	a, err := decodeArgs[ChannelArgs](args)
	if err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	return edit(ctx, t, func(s *Stage) (operation, error) {
		if a.Action == "create" {
			return &createChannel{id: s.ids.NewChannel(), name: a.Name, description: a.Description}, nil
		}
		ch, err := s.channelToWire(&a)
		if err != nil {
			return nil, err
		}
		if a.Action == "delete" {
			return &deleteChannel{ch.ID}, nil
		}
		c, err := s.creatureToWire(&a)
		if err != nil {
			return nil, err
		}
		direction := journal.Listen
		if a.Direction == "send" {
			direction = journal.Send
		}
		if a.Action == "unwire" {
			return &wireChannel{creature: c.ID, channel: ch.ID, direction: direction}, nil
		}
		return &wireChannel{creature: c.ID, channel: ch.ID, direction: direction, on: true, alias: a.Alias, merge: a.Merge, collision: collisions[a.OnCollision]}, nil
	})
}

// collisions maps the values of on_collision.
var collisions = map[string]topology.Collision{"": topology.Rename, "rename": topology.Rename, "unify": topology.Unify, "reject": topology.Reject}

// check refuses arguments that do not go with the action.
func (a *ChannelArgs) check() error {
	needs := map[string][]string{"create": {"name"}, "delete": {"channel"}, "wire": {"channel", "creature", "direction"}, "unwire": {"channel", "creature", "direction"}}
	may := map[string][]string{"create": {"description"}, "wire": {"alias", "merge", "on_collision"}}
	needed, known := needs[a.Action]
	if !known {
		return errtext.Invalid("group_channel", fmt.Sprintf("%s is not an action", errtext.Quoted([]byte(a.Action))), "use create, delete, wire or unwire")
	}
	given := map[string]bool{
		"name": a.Name != "", "description": a.Description != "", "channel": a.Channel != "", "creature": a.Creature != "",
		"direction": a.Direction != "", "alias": a.Alias != "", "merge": a.Merge, "on_collision": a.OnCollision != "",
	}
	for _, name := range needed {
		if !given[name] {
			return errtext.Invalid("group_channel", fmt.Sprintf("%s needs the argument %s", a.Action, name), "add it")
		}
		delete(given, name)
	}
	for _, name := range may[a.Action] {
		delete(given, name)
	}
	for _, name := range []string{"name", "description", "channel", "creature", "direction", "alias", "merge", "on_collision"} {
		if given[name] {
			return errtext.Invalid("group_channel", fmt.Sprintf("%s does not take the argument %s", a.Action, name), "leave it out")
		}
	}
	return a.checkValues()
}

func (a *ChannelArgs) checkValues() error {
	if a.Direction != "" && a.Direction != "listen" && a.Direction != "send" {
		return errtext.Invalid("group_channel", fmt.Sprintf("%s is not a direction", errtext.Quoted([]byte(a.Direction))), "use listen or send")
	}
	if _, ok := collisions[a.OnCollision]; !ok {
		return errtext.Invalid("group_channel", fmt.Sprintf("on_collision is %s", errtext.Quoted([]byte(a.OnCollision))), "use rename, unify or reject")
	}
	if a.Action == "create" {
		return deploy.CheckName("group_channel", "channel", a.Name)
	}
	return deploy.CheckAlias("group_channel", a.Alias)
}

// channelToWire finds the channel named by the call: in the caller's graph or,
// if the call allows a merge, anywhere by its id.
func (s *Stage) channelToWire(a *ChannelArgs) (topology.Channel, error) {
	ch, err := s.channel(a.Channel)
	if err != nil && a.Merge {
		if foreign, ok := s.Topology().Channel(journal.ChannelID(a.Channel)); ok {
			return foreign, nil
		}
	}
	return ch, err
}

// creatureToWire does the same for the creature.
func (s *Stage) creatureToWire(a *ChannelArgs) (topology.Creature, error) {
	c, err := s.Find(a.Creature)
	if err != nil && a.Merge {
		if foreign, ok := s.Topology().Creature(journal.CreatureID(a.Creature)); ok {
			return foreign, nil
		}
	}
	return c, err
}

// createChannel is the operation of group_channel with create.
type createChannel struct {
	id                journal.ChannelID
	name, description string
}

func (o *createChannel) stage(ctx context.Context, s *Stage) (any, error) {
	if err := s.mayEdit(); err != nil {
		return nil, err
	}
	s.AddChannel(draft.Channel{ID: o.id, Label: o.name, Description: o.description, Deployment: s.caller.Deployment})
	d, err := s.Do(ctx, topology.AddChannel{ID: o.id, With: s.caller.ID, Name: o.name})
	if err != nil {
		return nil, err
	}
	return ChannelResult{o.id, o.name, journal.NewDelta(d)}, nil
}

// deleteChannel is the operation of group_channel with delete.
type deleteChannel struct{ id journal.ChannelID }

func (o *deleteChannel) stage(ctx context.Context, s *Stage) (any, error) {
	if err := s.mayEdit(); err != nil {
		return nil, err
	}
	ch, err := s.ownChannel(o.id)
	if err != nil {
		return nil, err
	}
	if ch.Report {
		return nil, s.keepsReport(ch)
	}
	d, err := s.Do(ctx, topology.RemoveChannel{ID: o.id})
	if err != nil {
		return nil, err
	}
	return ChannelResult{Channel: o.id, Delta: journal.NewDelta(d)}, nil
}

// ownChannel finds a channel that must still be in the caller's graph.
func (s *Stage) ownChannel(id journal.ChannelID) (topology.Channel, error) {
	ch, ok := s.Topology().Channel(id)
	if !ok || s.Topology().ChannelGraph(id) != s.home() {
		return ch, errtext.Gone("channel", string(id))
	}
	return ch, nil
}

func (s *Stage) keepsReport(ch topology.Channel) error {
	return &abi.Error{
		Code: abi.Denied, Op: "group_channel", Message: fmt.Sprintf("the deployment reports to its root on %s", ch.Name),
		Remedy: "remove the root, which also removes this channel", IDs: map[string]string{"channel": string(ch.ID)},
	}
}

// wireChannel is the operation of group_channel with wire and unwire.
type wireChannel struct {
	creature  journal.CreatureID
	channel   journal.ChannelID
	direction journal.Direction
	on        bool
	alias     string
	merge     bool
	collision topology.Collision
}

func (o *wireChannel) stage(ctx context.Context, s *Stage) (any, error) {
	if err := s.mayEdit(); err != nil {
		return nil, err
	}
	own, there := s.home(), s.Topology().GraphOf(o.creature)
	of := s.Topology().ChannelGraph(o.channel)
	switch {
	case there == "":
		return nil, errtext.Gone("creature", string(o.creature))
	case of == "":
		return nil, errtext.Gone("channel", string(o.channel))
	case there != own && of != own:
		return nil, errtext.Invalid("group_channel", "neither the creature nor the channel is in the caller's graph", "name one from the caller's graph and one from the other")
	case there != own || of != own:
		if err := s.mayMerge(o, there, of); err != nil {
			return nil, err
		}
	}
	if ch, _ := s.Topology().Channel(o.channel); ch.Report && !o.on {
		return nil, s.keepsReport(ch)
	}
	d, err := s.Do(ctx, topology.SetEdge{Creature: o.creature, Channel: o.channel, Direction: o.direction, On: o.on, Alias: o.alias, OnCollision: o.collision})
	if err != nil {
		return nil, err
	}
	ch, _ := s.Topology().Channel(o.channel)
	return ChannelResult{o.channel, ch.Name, journal.NewDelta(d)}, nil
}

// mayMerge refuses to merge graphs unless the call requests it and the
// deployments of both allow it.
func (s *Stage) mayMerge(o *wireChannel, there, of journal.GraphID) error {
	if !o.on || !o.merge {
		return &abi.Error{
			Code: abi.NotFound, Op: "group_channel", Message: "the target is not in this graph",
			Remedy: "set merge: true to merge the two graphs, if both deployments allow it", IDs: map[string]string{"creature": string(o.creature), "channel": string(o.channel)},
		}
	}
	foreign := there
	if there == s.home() {
		foreign = of
	}
	for _, g := range []journal.GraphID{s.home(), foreign} {
		if name, allowed := s.allowsMerge(g); !allowed {
			return &abi.Error{
				Code: abi.Denied, Op: "group_channel", Message: fmt.Sprintf("the deployment %q does not allow its sessions to be merged by a tool", name),
				Remedy: `write session { merge = "allow" } in its recipe, or let the operator connect them`, IDs: map[string]string{"graph": string(g), "deployment": name},
			}
		}
	}
	return nil
}

// allowsMerge reports whether every deployment that has members in a graph
// allows a tool to merge it. Creatures without a deployment belong to the
// operator, and never allow it.
func (s *Stage) allowsMerge(g journal.GraphID) (deployment string, allowed bool) {
	info, _ := s.Topology().Graph(g)
	for _, id := range info.Creatures {
		m, _ := s.Member(id)
		if !s.letsMerge(m) {
			return m.Deployment, false
		}
	}
	return "", true
}

// letsMerge reports whether the deployment of a creature allows a merge:
// according to its recipe or, if the session continues without the recipe, to
// the store's record of it.
func (s *Stage) letsMerge(m draft.Member) bool {
	if of := s.Deployment(m.Deployment); of != nil {
		return of.Session.AllowMerge
	}
	return s.live.LetsMerge(m.ID, m.Deployment)
}
