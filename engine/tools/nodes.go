package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"path"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// ToolWire names a channel that a new node listens or sends on.
type ToolWire struct {
	Channel string `json:"channel" bounds:"minLength=1" jsonschema:"id or name of a channel in the caller's graph"`
	Alias   string `json:"alias,omitempty" jsonschema:"the worker's alias for the channel; default: the channel's name"`
}

// AddNodeArgs holds the arguments of the tool group_add_node.
type AddNodeArgs struct {
	Species     string          `json:"species" bounds:"minLength=1" jsonschema:"the species to spawn; group_status lists them"`
	Name        string          `json:"name,omitempty" jsonschema:"unique in the graph; default: the species and a number"`
	Config      json.RawMessage `json:"config,omitempty" bounds:"type=object" jsonschema:"configuration attributes, which replace those of the species"`
	Description string          `json:"description,omitempty" jsonschema:"what the worker is for; default: the description of the species"`
	Listen      []ToolWire      `json:"listen,omitempty"`
	Send        []ToolWire      `json:"send,omitempty"`
	TwoWay      bool            `json:"two_way,omitempty" jsonschema:"give the worker a direct channel on which both the caller and the worker send and listen"`
	Task        journal.Payload `json:"task,omitempty" jsonschema:"first message, which is sent directly to the worker"`
}

// Message returns the task as a message with the given id.
func (a *AddNodeArgs) Message(id string) (Message, error) {
	return newMessage("group_add_node", id, a.Task, nil, "")
}

// AddNodeResult is the result of group_add_node.
type AddNodeResult struct {
	Creature journal.CreatureID `json:"creature"`
	Name     string             `json:"name"`
	Channel  journal.ChannelID  `json:"channel,omitempty"` // id of its direct channel, if it has one
	Listen   []GroupEdge        `json:"listen"`            // what it listens on
	Send     []GroupEdge        `json:"send"`              // what it may send on
	Message  string             `json:"message,omitempty"` // id of the task, if there is one
}

// addNode is the operation of group_add_node.
type addNode struct {
	node   Prepared // nil once applied or discarded
	op     topology.AddCreature
	twoWay bool
}

func groupAddNode(ctx context.Context, t Turn, args []byte) (any, error) {
	a, err := decodeArgs[AddNodeArgs](args)
	if err != nil {
		return nil, err
	}
	if a.Name != "" {
		if err := deploy.CheckName("group_add_node", "creature", a.Name); err != nil {
			return nil, err
		}
	}
	node, err := t.Prepare(ctx, &a, (*Stage).mayEdit)
	if err != nil {
		return nil, err
	}
	var task Message
	result, err := edit(ctx, t, func(s *Stage) (op operation, err error) {
		if a.Task != nil {
			if task, err = a.Message(s.ids.NewMessage()); err != nil {
				return nil, err
			}
		}
		return s.addNode(node, &a)
	})
	if err != nil {
		node.Discard()
		return nil, err
	}
	if a.Task == nil {
		return result, nil
	}
	out := result.(AddNodeResult)
	if err := t.SendTo(out.Creature, task); err != nil {
		t.Use().takeBack()
		return nil, err
	}
	out.Message = task.ID
	return out, nil
}

// addNode makes the operation, in which everything is named by id.
func (s *Stage) addNode(node Prepared, a *AddNodeArgs) (operation, error) {
	name := a.Name
	if name == "" {
		name = s.freeName(path.Base(a.Species)) // without the path of the catalog
	}
	node.Assign(s.ids.NewCreature(), name)
	m := node.Member()
	op := &addNode{node: node, op: topology.AddCreature{
		ID: m.ID, Name: name, Parent: s.caller.ID, Join: s.home(), Stopped: m.Spec.Stopped, Direct: a.TwoWay,
	}, twoWay: a.TwoWay}
	for _, side := range []struct {
		wires     []ToolWire
		direction journal.Direction
	}{{a.Listen, journal.Listen}, {a.Send, journal.Send}} {
		for _, w := range side.wires {
			ch, err := s.channel(w.Channel)
			if err != nil {
				return nil, err
			}
			if err := deploy.CheckAlias("group_add_node", w.Alias); err != nil {
				return nil, err
			}
			op.op.Edges = append(op.op.Edges, topology.Wire{Channel: ch.ID, Direction: side.direction, Alias: w.Alias})
		}
	}
	return op, nil
}

// freeName returns a name that no member of the caller's graph has.
func (s *Stage) freeName(base string) string {
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s-%d", base, n)
		if _, taken := s.Topology().FindCreature(s.home(), name); !taken {
			return name
		}
	}
}

func (o *addNode) stage(ctx context.Context, s *Stage) (any, error) {
	if err := s.mayEdit(); err != nil {
		return nil, err
	}
	m := o.node.Member()
	if err := s.MaySpawn(m); err != nil {
		return nil, err
	}
	op := o.op
	op.Join = s.home() // another change may have merged it into a different graph
	for _, w := range op.Edges {
		if s.Topology().ChannelGraph(w.Channel) != op.Join {
			return nil, errtext.Gone("channel", string(w.Channel))
		}
	}
	s.Add(m)
	d, err := s.Do(ctx, op)
	if err != nil {
		return nil, err
	}
	out := AddNodeResult{Creature: op.ID, Name: op.Name, Channel: d.Channel, Listen: []GroupEdge{}, Send: []GroupEdge{}}
	if o.twoWay {
		for _, e := range []topology.SetEdge{
			{Creature: op.ID, Channel: out.Channel, Direction: journal.Send, On: true},
			{Creature: s.caller.ID, Channel: out.Channel, Direction: journal.Listen, On: true},
		} {
			if _, err := s.Do(ctx, e); err != nil {
				return nil, err
			}
		}
	}
	c, _ := s.Topology().Creature(op.ID)
	for _, e := range c.Edges {
		if e.Direction == journal.Listen {
			addBounded(&out.Listen, GroupEdge{e.Channel, e.Alias})
		} else {
			addBounded(&out.Send, GroupEdge{e.Channel, e.Alias})
		}
	}
	return out, nil
}

// NodeArgs names a worker of the caller's graph.
type NodeArgs struct {
	Creature string `json:"creature" bounds:"minLength=1" jsonschema:"id or name of a worker in the caller's graph"`
}

// DeltaResult says how the graphs have changed.
type DeltaResult struct {
	Delta journal.Delta `json:"delta"`
}

// removeNode is the operation of group_remove_node.
type removeNode struct{ id journal.CreatureID }

func groupRemoveNode(ctx context.Context, t Turn, args []byte) (any, error) {
	return onNode(ctx, t, args, func(id journal.CreatureID) operation { return &removeNode{id} })
}

// onNode stages an operation on a worker.
func onNode(ctx context.Context, t Turn, args []byte, op func(id journal.CreatureID) operation) (any, error) {
	a, err := decodeArgs[NodeArgs](args)
	if err != nil {
		return nil, err
	}
	return edit(ctx, t, func(s *Stage) (operation, error) {
		c, err := s.Find(a.Creature)
		if err != nil {
			return nil, err
		}
		return op(c.ID), nil
	})
}

func (o *removeNode) stage(ctx context.Context, s *Stage) (any, error) {
	if err := s.mayEdit(); err != nil {
		return nil, err
	}
	if _, err := s.worker(o.id); err != nil {
		return nil, err
	}
	d, err := s.Do(ctx, topology.RemoveCreature{ID: o.id})
	if err != nil {
		return nil, err
	}
	return DeltaResult{journal.NewDelta(d)}, nil
}

// NodeState is the result of the tools that stop, start, pause and resume.
type NodeState struct {
	Creature journal.CreatureID    `json:"creature"`
	State    journal.CreatureState `json:"state" bounds:"enum=running|stopped|paused"`
}

// setState is the operation of these tools.
type setState struct {
	id journal.CreatureID
	to journal.CreatureState
	// from is the only state in which a creature may be; empty: any.
	from journal.CreatureState
}

func groupStartNode(ctx context.Context, t Turn, args []byte) (any, error) {
	return onNode(ctx, t, args, func(id journal.CreatureID) operation { return &setState{id: id, to: journal.Running} })
}

func groupStopNode(ctx context.Context, t Turn, args []byte) (any, error) {
	return onNode(ctx, t, args, func(id journal.CreatureID) operation { return &setState{id: id, to: journal.Stopped} })
}

func groupPauseNode(ctx context.Context, t Turn, args []byte) (any, error) {
	return onNode(ctx, t, args, func(id journal.CreatureID) operation {
		return &setState{id: id, to: journal.Paused, from: journal.Running}
	})
}

func groupResumeNode(ctx context.Context, t Turn, args []byte) (any, error) {
	return onNode(ctx, t, args, func(id journal.CreatureID) operation {
		return &setState{id: id, to: journal.Running, from: journal.Paused}
	})
}

func (o *setState) stage(ctx context.Context, s *Stage) (any, error) {
	if err := s.mayEdit(); err != nil {
		return nil, err
	}
	c, err := s.worker(o.id)
	if err != nil {
		return nil, err
	}
	state := stateOf(c)
	if o.from != "" && state == journal.Running && s.isQuarantined(o.id) {
		state = journal.Quarantined
	}
	if o.from != "" && state != o.from && state != o.to {
		return nil, &abi.Error{
			Code: abi.Stopped, Op: "tool", Message: fmt.Sprintf("the creature %s is %s", o.id, state),
			Remedy: "only a running creature can be paused, and only a paused one resumed; group_start_node starts one that is stopped or quarantined", IDs: map[string]string{"creature": string(o.id)},
		}
	}
	if _, err := s.Do(ctx, topology.SetStopped{ID: o.id, Stopped: o.to != journal.Running, Paused: o.to == journal.Paused}); err != nil {
		return nil, err
	}
	return NodeState{o.id, o.to}, nil
}

// isQuarantined reports whether a creature of the caller's running graph is in quarantine.
func (s *Stage) isQuarantined(id journal.CreatureID) (yes bool) {
	s.live.Inside(func(g Graph) {
		now, _ := g.Member(id)
		yes = now.State == journal.Quarantined
	})
	return yes
}

// stateOf is the state that the topology gives a creature.
func stateOf(c topology.Creature) journal.CreatureState {
	switch {
	case c.Paused:
		return journal.Paused
	case c.Stopped:
		return journal.Stopped
	}
	return journal.Running
}
