package engine

import (
	"cmp"
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
	Channel string `json:"channel" jsonschema:"minLength=1,description=a channel of the own graph by id or name"`
	Alias   string `json:"alias,omitempty" jsonschema:"description=what the node calls it; the channel's name if it is left out"`
}

// AddNodeArgs are the arguments of the tool group_add_node.
type AddNodeArgs struct {
	Species string          `json:"species" jsonschema:"minLength=1,description=what to spawn; group_status lists what there is"`
	Name    string          `json:"name,omitempty" jsonschema:"description=unique in the graph; the species with a number if it is left out"`
	Config  json.RawMessage `json:"config,omitempty" jsonschema:"type=object,description=attributes that replace those of the species"`
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
	c  *creature // prepared; nil once it is carried out or discarded
	op topology.AddCreature
}

func groupAddNode(t *turn, args []byte) (any, error) {
	a, err := decodeArgs[AddNodeArgs](args)
	if err != nil {
		return nil, err
	}
	if a.Name != "" {
		if err := deploy.CheckName("group_add_node", "creature", a.Name); err != nil {
			return nil, err
		}
	}
	c, err := t.prepareNode(&a)
	if err != nil {
		return nil, err
	}
	result, err := t.edit(func(s *staging) (groupOp, error) { return s.addNode(c, &a) })
	if err != nil {
		t.e.discardPrepared(context.Background(), c)
	}
	return result, err
}

// prepareNode makes a creature of a species ready to be added. Starting its first
// instance runs guest code, within the limits of the species, so nothing is locked
// meanwhile.
func (t *turn) prepareNode(a *AddNodeArgs) (*creature, error) {
	var spec deploy.CreatureSpec
	var module abi.Module
	err := t.look(func(s *staging) (err error) {
		if err = s.mayEdit(); err != nil {
			return err
		}
		if t.c.deployment == "" {
			return t.e.notSpawnable("", a.Species) // a species belongs to a recipe
		}
		spec, module, err = t.e.ofSpecies(deploy.CreatureSpec{
			Name: cmp.Or(a.Name, a.Species), Species: a.Species, Deployment: t.c.deployment, Config: a.Config, Parent: t.c.id,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	// The turn's context ends with the turn; this is bounded by the species' limits.
	c, err := t.e.startFirst(context.Background(), spec, module)
	if err != nil {
		return nil, err
	}
	c.deployment = spec.Deployment
	return c, nil
}

// addNode puts the operation together: from here on it goes by ids.
func (s *staging) addNode(c *creature, a *AddNodeArgs) (groupOp, error) {
	c.id = s.ids.newCreature()
	if a.Name == "" {
		c.spec.Name = s.freeName(path.Base(a.Species)) // without the catalog
		c.name = c.spec.Name
	}
	op := &addNode{c: c, op: topology.AddCreature{
		ID: c.id, Name: c.spec.Name, Parent: s.caller.id, Join: s.home(), Stopped: c.spec.Stopped,
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

// freeName is a name that nobody in the caller's graph has.
func (s *staging) freeName(base string) string {
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s-%d", base, n)
		if _, taken := s.topo().FindCreature(s.home(), name); !taken {
			return name
		}
	}
}

func (o *addNode) stage(s *staging) (any, error) {
	if err := s.mayEdit(); err != nil {
		return nil, err
	}
	if err := s.x.maySpawn(o.c); err != nil {
		return nil, err
	}
	op := o.op
	op.Join = s.home() // which another change may have merged into another
	for _, w := range op.Edges {
		if s.topo().ChannelGraph(w.Channel) != op.Join {
			return nil, errtext.Gone("channel", string(w.Channel))
		}
	}
	s.x.creatures[op.ID] = o.c
	d, err := s.do(op)
	if err != nil {
		return nil, err
	}
	s.fresh[op.ID] = o.c
	return AddNodeResult{Creature: op.ID, Name: op.Name, Channel: d.Channel}, nil
}

func (o *addNode) discard(e *Engine) {
	if o.c != nil {
		e.discardPrepared(context.Background(), o.c)
		o.c = nil
	}
}

// NodeArgs name a worker of the own graph.
type NodeArgs struct {
	Creature string `json:"creature" jsonschema:"minLength=1,description=a worker of the own graph by id or name"`
}

// DeltaResult says what became of the graphs.
type DeltaResult struct {
	Delta journal.Delta `json:"delta"`
}

// removeNode is the operation of group_remove_node.
type removeNode struct{ id journal.CreatureID }

func groupRemoveNode(t *turn, args []byte) (any, error) {
	return onNode(t, args, func(id journal.CreatureID) groupOp { return &removeNode{id} })
}

// onNode stages an operation on a worker.
func onNode(t *turn, args []byte, op func(id journal.CreatureID) groupOp) (any, error) {
	a, err := decodeArgs[NodeArgs](args)
	if err != nil {
		return nil, err
	}
	return t.edit(func(s *staging) (groupOp, error) {
		c, err := s.creature(a.Creature)
		if err != nil {
			return nil, err
		}
		return op(c.ID), nil
	})
}

func (o *removeNode) stage(s *staging) (any, error) {
	if err := s.mayEdit(); err != nil {
		return nil, err
	}
	if _, err := s.worker(o.id); err != nil {
		return nil, err
	}
	d, err := s.do(topology.RemoveCreature{ID: o.id})
	if err != nil {
		return nil, err
	}
	return DeltaResult{journal.NewDelta(d)}, nil
}

// NodeState is what group_start_node and group_stop_node answer.
type NodeState struct {
	Creature journal.CreatureID `json:"creature"`
	State    string             `json:"state" jsonschema:"enum=running,enum=stopped"`
}

// setStopped is the operation of group_start_node and group_stop_node.
type setStopped struct {
	id      journal.CreatureID
	stopped bool
}

func groupStartNode(t *turn, args []byte) (any, error) {
	return onNode(t, args, func(id journal.CreatureID) groupOp { return &setStopped{id, false} })
}

func groupStopNode(t *turn, args []byte) (any, error) {
	return onNode(t, args, func(id journal.CreatureID) groupOp { return &setStopped{id, true} })
}

func (o *setStopped) stage(s *staging) (any, error) {
	if err := s.mayEdit(); err != nil {
		return nil, err
	}
	if _, err := s.worker(o.id); err != nil {
		return nil, err
	}
	if _, err := s.do(topology.SetStopped{ID: o.id, Stopped: o.stopped}); err != nil {
		return nil, err
	}
	state := "running"
	if o.stopped {
		state = "stopped"
	}
	return NodeState{o.id, state}, nil
}
