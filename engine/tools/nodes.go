package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"path"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// ToolWire names a channel that a new node listens or sends on.
type ToolWire struct {
	Channel string `json:"channel" bounds:"minLength=1" jsonschema:"a channel of the own graph by id or name"`
	Alias   string `json:"alias,omitempty" jsonschema:"what the node calls it; the channel's name if it is left out"`
}

// AddNodeArgs are the arguments of the tool group_add_node.
type AddNodeArgs struct {
	Species string          `json:"species" bounds:"minLength=1" jsonschema:"what to spawn; group_status lists what there is"`
	Name    string          `json:"name,omitempty" jsonschema:"unique in the graph; the species with a number if it is left out"`
	Config  json.RawMessage `json:"config,omitempty" bounds:"type=object" jsonschema:"attributes that replace those of the species"`
	Listen  []ToolWire      `json:"listen,omitempty"`
	Send    []ToolWire      `json:"send,omitempty"`
}

// AddNodeResult is what group_add_node answers.
type AddNodeResult struct {
	Creature journal.CreatureID `json:"creature"`
	Name     string             `json:"name"`
	// Channel is the node's direct channel, if it has one.
	Channel journal.ChannelID `json:"channel,omitempty"`
}

// addNode is the operation of group_add_node.
type addNode struct {
	node Prepared // nil once it is carried out or discarded
	op   topology.AddCreature
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
	result, err := edit(ctx, t, func(s *Stage) (operation, error) { return s.addNode(node, &a) })
	if err != nil {
		node.Discard()
	}
	return result, err
}

// addNode puts the operation together: from here on it goes by ids.
func (s *Stage) addNode(node Prepared, a *AddNodeArgs) (operation, error) {
	name := a.Name
	if name == "" {
		name = s.freeName(path.Base(a.Species)) // without the catalog
	}
	node.Assign(s.ids.NewCreature(), name)
	m := node.Member()
	op := &addNode{node: node, op: topology.AddCreature{
		ID: m.ID, Name: name, Parent: s.caller.ID, Join: s.home(), Stopped: m.Spec.Stopped,
	}}
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

// freeName is a name that no member of the caller's graph has.
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
	op.Join = s.home() // which another change may have merged into another
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
	return AddNodeResult{Creature: op.ID, Name: op.Name, Channel: d.Channel}, nil
}

// NodeArgs name a worker of the own graph.
type NodeArgs struct {
	Creature string `json:"creature" bounds:"minLength=1" jsonschema:"a worker of the own graph by id or name"`
}

// DeltaResult says what became of the graphs.
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

// NodeState is what group_start_node and group_stop_node answer.
type NodeState struct {
	Creature journal.CreatureID    `json:"creature"`
	State    journal.CreatureState `json:"state" bounds:"enum=running|stopped"`
}

// setStopped is the operation of group_start_node and group_stop_node.
type setStopped struct {
	id      journal.CreatureID
	stopped bool
}

func groupStartNode(ctx context.Context, t Turn, args []byte) (any, error) {
	return onNode(ctx, t, args, func(id journal.CreatureID) operation { return &setStopped{id, false} })
}

func groupStopNode(ctx context.Context, t Turn, args []byte) (any, error) {
	return onNode(ctx, t, args, func(id journal.CreatureID) operation { return &setStopped{id, true} })
}

func (o *setStopped) stage(ctx context.Context, s *Stage) (any, error) {
	if err := s.mayEdit(); err != nil {
		return nil, err
	}
	if _, err := s.worker(o.id); err != nil {
		return nil, err
	}
	if _, err := s.Do(ctx, topology.SetStopped{ID: o.id, Stopped: o.stopped}); err != nil {
		return nil, err
	}
	state := journal.Running
	if o.stopped {
		state = journal.Stopped
	}
	return NodeState{o.id, state}, nil
}
