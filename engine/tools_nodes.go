package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/seed47132306/terrarium/abi"
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
	Creature CreatureID `json:"creature"`
	Name     string     `json:"name"`
	// Channel is the node's direct channel, if it has one.
	Channel ChannelID `json:"channel,omitempty"`
}

// addNode is the operation of group_add_node.
type addNode struct {
	c  *creature // prepared; nil once it is carried out or discarded
	op topology.AddCreature
	// species may have so many that were spawned.
	species   string
	spawnable int
}

func groupAddNode(t *turn, args []byte) (any, error) {
	a, err := decodeArgs[AddNodeArgs](args)
	if err != nil {
		return nil, err
	}
	if a.Name != "" {
		if err := checkName("group_add_node", "creature", a.Name); err != nil {
			return nil, err
		}
	}
	var species *SpeciesSpec
	if err := t.look(func(s *staging) (err error) {
		if err = s.mayEdit(); err == nil {
			species, err = s.spawnable(a.Species)
		}
		return err
	}); err != nil {
		return nil, err
	}
	c, err := t.e.prepareNode(species, t.c, &a)
	if err != nil {
		return nil, err
	}
	result, err := t.edit(func(s *staging) (groupOp, error) { return s.addNode(c, species, &a) })
	if err != nil {
		t.e.discardPrepared(context.Background(), c)
	}
	return result, err
}

// spawnable finds a species of the caller's deployment that its creatures may
// spawn.
func (s *staging) spawnable(name string) (*SpeciesSpec, error) {
	d := s.x.e.deployments[s.caller.deployment]
	var names []string
	if d != nil {
		for i := range d.Species {
			if sp := &d.Species[i]; sp.Spawnable > 0 {
				if sp.Name == name {
					return sp, nil
				}
				names = append(names, sp.Name)
			}
		}
	}
	return nil, &abi.Error{
		Code: abi.NotFound, Op: "group_add_node", Message: fmt.Sprintf("no species %s may be spawned here", quoted([]byte(name))),
		Remedy: fmt.Sprintf("give a species of the recipe the attribute spawnable; there are now: %v", names), IDs: map[string]string{"species": clip(name)},
	}
}

// prepareNode makes a creature of a species ready to be added. Starting its first
// instance runs guest code, within the limits of the species, so nothing is locked
// meanwhile.
func (e *Engine) prepareNode(species *SpeciesSpec, parent *creature, a *AddNodeArgs) (*creature, error) {
	spec := species.Spec
	spec.Species, spec.Name, spec.Privileged, spec.Parent = species.Name, a.Name, false, parent.id
	if spec.Name == "" {
		spec.Name = species.Name // until the topology says which are taken
	}
	spec.Address, spec.Join, spec.Listen, spec.Send = "", "", nil, nil
	config, err := mergeConfig(spec.Config, a.Config)
	if err != nil {
		return nil, err
	}
	spec.Config = config
	// The turn's context ends with the turn; this is bounded by the species' limits.
	c, err := e.prepare(context.Background(), spec)
	if err != nil {
		return nil, err
	}
	c.deployment = parent.deployment
	return c, nil
}

// mergeConfig replaces attributes of a configuration.
func mergeConfig(base, by json.RawMessage) (json.RawMessage, error) {
	if len(by) == 0 {
		return base, nil
	}
	out := map[string]json.RawMessage{}
	if len(base) > 0 {
		if err := json.Unmarshal(base, &out); err != nil {
			return nil, err
		}
	}
	var own map[string]json.RawMessage
	if err := json.Unmarshal(by, &own); err != nil || own == nil {
		return nil, invalid("group_add_node", "the configuration is not a JSON object", `write an object such as {"key": "value"}`)
	}
	for k, v := range own {
		out[k] = v
	}
	return mustJSON(out), nil
}

// addNode puts the operation together: from here on it goes by ids.
func (s *staging) addNode(c *creature, species *SpeciesSpec, a *AddNodeArgs) (groupOp, error) {
	c.id = s.ids.newCreature()
	if a.Name == "" {
		c.spec.Name = s.freeName(species.Name)
		c.name = c.spec.Name
	}
	op := &addNode{c: c, species: species.Name, spawnable: species.Spawnable, op: topology.AddCreature{
		ID: c.id, Name: c.spec.Name, Parent: s.caller.id, Join: s.home(), Stopped: c.spec.Stopped,
	}}
	for _, side := range []struct {
		wires     []ToolWire
		direction Direction
	}{{a.Listen, Listen}, {a.Send, Send}} {
		for _, w := range side.wires {
			ch, err := s.channel(w.Channel)
			if err != nil {
				return nil, err
			}
			if w.Alias != "" {
				if err := checkName("group_add_node", "alias", w.Alias); err != nil {
					return nil, err
				}
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
	if err := s.mayStillSpawn(o); err != nil {
		return nil, err
	}
	op := o.op
	op.Join = s.home() // which another change may have merged into another
	for _, w := range op.Edges {
		if s.topo().ChannelGraph(w.Channel) != op.Join {
			return nil, gone("channel", string(w.Channel))
		}
	}
	d, err := s.do(op)
	if err != nil {
		return nil, err
	}
	s.x.creatures[op.ID] = o.c
	s.fresh[op.ID] = o.c
	return AddNodeResult{Creature: op.ID, Name: op.Name, Channel: d.Channel}, nil
}

// mayStillSpawn refuses more of a species than it may have.
func (s *staging) mayStillSpawn(o *addNode) error {
	if s.alive(o.species) < o.spawnable {
		return nil
	}
	return &abi.Error{
		Code: abi.LimitExceeded, Op: "group_add_node", Message: fmt.Sprintf("the limit spawnable (%d) of the species %s is reached", o.spawnable, o.species),
		Remedy: "remove one first, or raise the limit in the recipe", IDs: map[string]string{"species": o.species},
	}
}

// alive counts the creatures of a species that the caller's deployment has spawned.
func (s *staging) alive(species string) int {
	kind := spawnKind{s.caller.deployment, species}
	n := s.x.e.spawned[kind]
	for _, c := range s.fresh {
		if k, ok := c.spawnKind(); ok && k == kind {
			n++
		}
	}
	for i := range s.x.deltas {
		for _, change := range s.x.deltas[i].Changes {
			if change.Kind != topology.CreatureRemoved {
				continue
			}
			c := s.x.e.creatures[change.Creature]
			if c == nil {
				c = s.fresh[change.Creature]
			}
			if k, ok := c.spawnKind(); ok && k == kind {
				n--
			}
		}
	}
	return n
}

// spawnKind is what spawned creatures are counted by.
type spawnKind struct{ deployment, species string }

// spawnKind answers ok for a creature that was spawned: of a species, and not
// declared.
func (c *creature) spawnKind() (k spawnKind, ok bool) {
	return spawnKind{c.deployment, c.spec.Species}, c.spec.Species != "" && c.spec.Address == ""
}

// countSpawned keeps count of who lives.
func (e *Engine) countSpawned(c *creature, by int) {
	k, ok := c.spawnKind()
	if !ok {
		return
	}
	if e.spawned[k] += by; e.spawned[k] == 0 {
		delete(e.spawned, k)
	}
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
	Delta Delta `json:"delta"`
}

// removeNode is the operation of group_remove_node.
type removeNode struct{ id CreatureID }

func groupRemoveNode(t *turn, args []byte) (any, error) {
	return onNode(t, args, func(id CreatureID) groupOp { return &removeNode{id} })
}

// onNode stages an operation on a worker.
func onNode(t *turn, args []byte, op func(id CreatureID) groupOp) (any, error) {
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
	return DeltaResult{NewDelta(d)}, nil
}

// NodeState is what group_start_node and group_stop_node answer.
type NodeState struct {
	Creature CreatureID `json:"creature"`
	State    string     `json:"state" jsonschema:"enum=running,enum=stopped"`
}

// setStopped is the operation of group_start_node and group_stop_node.
type setStopped struct {
	id      CreatureID
	stopped bool
}

func groupStartNode(t *turn, args []byte) (any, error) {
	return onNode(t, args, func(id CreatureID) groupOp { return &setStopped{id, false} })
}

func groupStopNode(t *turn, args []byte) (any, error) {
	return onNode(t, args, func(id CreatureID) groupOp { return &setStopped{id, true} })
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
