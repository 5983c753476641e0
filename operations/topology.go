package operations

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// AddCreatureArgs are the arguments of add_creature.
type AddCreatureArgs struct {
	Name        string          `json:"name" op:"required" doc:"unique in its graph"`
	Description string          `json:"description,omitempty" doc:"what it is for, at most 4,096 bytes; default: that of the species"`
	Module      string          `json:"module,omitempty" doc:"path, or builtin:NAME"`
	Species     string          `json:"species,omitempty" doc:"instead of a module: a species that may be spawned, which also sets limits, grants, restart and mailbox"`
	Deployment  string          `json:"deployment,omitempty" doc:"deployment of the species, if several recipes have a species of this name"`
	Join        string          `json:"join,omitempty" doc:"graph to join; without it and without channels, the creature gets a graph of its own"`
	Parent      string          `json:"parent,omitempty" doc:"creature to which it belongs"`
	Workers     string          `json:"workers,omitempty" doc:"what happens to its workers when it is removed: keep or remove"`
	Privileged  bool            `json:"privileged,omitempty" doc:"whether it may use the group tools"`
	Stopped     bool            `json:"stopped,omitempty" doc:"add it without starting it"`
	Listen      []string        `json:"listen,omitempty" doc:"channels on which it listens, by id or name"`
	Send        []string        `json:"send,omitempty" doc:"channels on which it may send, by id or name"`
	Config      json.RawMessage `json:"config,omitempty" doc:"configuration object"`
	Limits      *LimitsArgs     `json:"limits,omitempty" doc:"limits on the resources it may use"`
	Grants      *journal.Grants `json:"grants,omitempty" doc:"capabilities that it gets"`
	Restart     *RestartArgs    `json:"restart,omitempty" doc:"restart policy after a failure"`
	Mailbox     *MailboxArgs    `json:"mailbox,omitempty" doc:"deliveries held in memory"`
	Address     string          `json:"address,omitempty" doc:"its address, by which a later run finds its state"`
}

// LimitsArgs are the limits of a creature. A limit that is left out has its default.
type LimitsArgs struct {
	Memory      int64    `json:"memory,omitempty" doc:"bytes of linear memory"`
	Fuel        int64    `json:"fuel,omitempty" doc:"units per turn"`
	Stack       int64    `json:"stack,omitempty" doc:"bytes of nested calls"`
	Deadline    Duration `json:"deadline,omitempty" doc:"time per turn"`
	Message     int64    `json:"message,omitempty" doc:"bytes of one message"`
	Sends       int      `json:"sends,omitempty" doc:"messages per turn"`
	SendBytes   int64    `json:"send_bytes,omitempty" doc:"bytes sent per turn"`
	Output      int64    `json:"output,omitempty" doc:"bytes of output per turn"`
	LogLines    int      `json:"log_lines,omitempty" doc:"log lines per turn"`
	LogBytes    int64    `json:"log_bytes,omitempty" doc:"bytes of log per turn"`
	StateKey    int64    `json:"state_key,omitempty" doc:"bytes of one state key"`
	StateValue  int64    `json:"state_value,omitempty" doc:"bytes of one state value"`
	State       int64    `json:"state,omitempty" doc:"bytes of all state"`
	StateWrites int      `json:"state_writes,omitempty" doc:"state writes per turn"`
	Calls       int64    `json:"calls,omitempty" doc:"hostcalls per turn"`
	Handles     int      `json:"handles,omitempty" doc:"channel handles"`
	Timers      int      `json:"timers,omitempty" doc:"timers of the creature"`
	Requests    int      `json:"requests,omitempty" doc:"requests waiting for a reply"`
	TimerBytes  int64    `json:"timer_bytes,omitempty" doc:"bytes of all timers"`
	Tools       int      `json:"tools,omitempty" doc:"tool calls per turn"`
	Table       int64    `json:"table,omitempty" doc:"elements of all tables"`
	Mailbox     int      `json:"mailbox,omitempty" doc:"deliveries held in memory"`
	StoreRate   int64    `json:"store_rate,omitempty" doc:"bytes added to the store per second"`
	TimerRate   int      `json:"timer_rate,omitempty" doc:"deliveries of timers per second"`
}

func (l *LimitsArgs) limits() abi.Limits {
	if l == nil {
		return abi.Limits{}
	}
	return abi.Limits{
		Memory: l.Memory, Fuel: l.Fuel, Stack: l.Stack, Deadline: time.Duration(l.Deadline), Message: l.Message,
		Sends: l.Sends, SendBytes: l.SendBytes, Output: l.Output, LogLines: l.LogLines, LogBytes: l.LogBytes,
		StateKey: l.StateKey, StateValue: l.StateValue, State: l.State, StateWrites: l.StateWrites,
		Calls: l.Calls, Handles: l.Handles, Timers: l.Timers, Requests: l.Requests, TimerBytes: l.TimerBytes, Tools: l.Tools,
		Table: l.Table, Mailbox: l.Mailbox, StoreRate: l.StoreRate, TimerRate: l.TimerRate,
	}
}

// RestartArgs is a restart policy. A field that is left out has its default.
type RestartArgs struct {
	Mode       string   `json:"mode,omitempty" doc:"on_failure, never or always"`
	Attempts   int      `json:"attempts,omitempty" doc:"attempts for one delivery"`
	Max        int      `json:"max,omitempty" doc:"failures within the window before quarantine"`
	Within     Duration `json:"within,omitempty" doc:"the window"`
	Backoff    Duration `json:"backoff,omitempty" doc:"pause before the second attempt"`
	BackoffMax Duration `json:"backoff_max,omitempty" doc:"the longest pause"`
}

func (r *RestartArgs) policy() (deploy.RestartPolicy, error) {
	if r == nil {
		return deploy.RestartPolicy{}, nil
	}
	p := deploy.RestartPolicy{
		Attempts: r.Attempts, Max: r.Max, Within: time.Duration(r.Within),
		Backoff: time.Duration(r.Backoff), BackoffMax: time.Duration(r.BackoffMax),
	}
	if r.Mode != "" {
		mode, ok := deploy.ParseRestartMode(r.Mode)
		if !ok {
			return p, invalid("add_creature", "unknown restart mode "+r.Mode, "use on_failure, never or always")
		}
		p.Mode = mode
	}
	return p, nil
}

// MailboxArgs describes a mailbox.
type MailboxArgs struct {
	Size     int    `json:"size,omitempty" doc:"deliveries held in memory"`
	Overflow string `json:"overflow,omitempty" doc:"without a store: block, drop_oldest or dead_letter"`
}

// CreatureAdded is the result of add_creature.
type CreatureAdded struct {
	Creature terrarium.CreatureID `json:"creature"` // id of the new creature
	Name     string               `json:"name"`     // its name in the graph
	Graph    terrarium.GraphID    `json:"graph"`    // id of the graph to which it belongs
}

// CreatureArgs names a creature.
type CreatureArgs struct {
	Creature string `json:"creature" op:"required" doc:"id, or a name that is unique"`
}

// DeltaResult is the result of operations that may change the graphs.
type DeltaResult struct {
	Delta journal.Delta `json:"delta"`
}

// AddChannelArgs are the arguments of add_channel.
type AddChannelArgs struct {
	Graph       string `json:"graph" op:"required" doc:"graph in which to declare it"`
	Name        string `json:"name" op:"required" doc:"unique in the graph"`
	Description string `json:"description,omitempty" doc:"what it is for"`
}

// ChannelResult is the result of add_channel and connect.
type ChannelResult struct {
	Channel terrarium.ChannelID `json:"channel"`
	Delta   journal.Delta       `json:"delta"`
}

// ChannelArgs names a channel.
type ChannelArgs struct {
	Channel string `json:"channel" op:"required" doc:"id, or a name that is unique"`
	Graph   string `json:"graph,omitempty" doc:"graph in which to look up the name"`
}

func topologyOperations() []Operation {
	return []Operation{
		changePrepared("add_creature", "Adds a creature and starts it.", prepareCreature, addCreature).needs(Admin),
		edit("remove_creature", "Removes a creature, and its workers if they are set to be removed with it. Its waiting deliveries become dead letters. Its graph may split.",
			onCreature(func(id terrarium.CreatureID) topology.Op { return topology.RemoveCreature{ID: id} })),
		edit("start_creature", "Starts a stopped, paused or quarantined creature. The operation is refused if the creature's recipe has stopped because of a stop_when block.",
			onCreature(func(id terrarium.CreatureID) topology.Op { return topology.SetStopped{ID: id} })),
		edit("stop_creature", "Stops a creature. It stays a member of its graph and keeps its edges, cursors and state.",
			onCreature(func(id terrarium.CreatureID) topology.Op { return topology.SetStopped{ID: id, Stopped: true} })),
		edit("promote", "Makes a creature privileged.",
			onCreature(func(id terrarium.CreatureID) topology.Op { return topology.SetPrivileged{ID: id, Privileged: true} })),
		edit("demote", "Removes a creature's privilege.",
			onCreature(func(id terrarium.CreatureID) topology.Op { return topology.SetPrivileged{ID: id} })),
		edit("assign_root", "Makes a creature the root of its deployment, and privileged, in place of the previous root. The graph may split.", assignRoot),
		edit("add_channel", "Declares a channel in a graph.", addChannel),
		edit("remove_channel", "Removes a channel and its edges. Its graph may split.", removeChannel),
		edit("connect", "Makes one creature send on a channel on which another listens. If they are in different graphs, the graphs merge.", connect),
		edit("disconnect", "Undoes connect, and affects no other creature. The graph may split.", disconnect),
		edit("set_listen", "Adds or removes a listen edge.", setEdge(journal.Listen)),
		edit("set_send", "Adds or removes a send edge.", setEdge(journal.Send)),
		read("batch", "Applies operations that change the topology, all or nothing.", batch).needs(Operate),
	}
}

// prepareCreature compiles the module and starts the creature, which may take a while.
func prepareCreature(ctx context.Context, s *client, a *AddCreatureArgs) (*engine.Prepared, error) {
	spec, err := a.spec()
	if err != nil {
		return nil, err
	}
	return s.t.Prepare(ctx, spec)
}

// spec converts the arguments to a specification.
func (a *AddCreatureArgs) spec() (deploy.CreatureSpec, error) {
	spec := deploy.CreatureSpec{
		Name: a.Name, Description: a.Description, Module: a.Module, Species: a.Species, Deployment: a.Deployment, Config: a.Config,
		Limits: a.Limits.limits(), Privileged: a.Privileged, Stopped: a.Stopped, Address: a.Address,
	}
	switch {
	case a.Module == "" && a.Species == "":
		return spec, invalid("add_creature", `neither the field "module" nor "species" is given`, "name a module, or a species that may be spawned")
	case a.Module != "" && (a.Species != "" || a.Deployment != ""):
		return spec, invalid("add_creature", "a species has a module of its own", `leave out "module", or "species" and "deployment"`)
	}
	var err error
	if spec.Restart, err = a.Restart.policy(); err != nil {
		return spec, err
	}
	if a.Workers != "" {
		var ok bool
		if spec.Workers, ok = deploy.ParseWorkers(a.Workers); !ok {
			return spec, invalid("add_creature", "unknown value of workers: "+a.Workers, "use keep or remove")
		}
	}
	if a.Grants != nil {
		spec.Grants = *a.Grants
	}
	if m := a.Mailbox; m != nil {
		spec.Limits.Mailbox = m.Size
		if m.Overflow != "" {
			overflow, ok := deploy.ParseOverflow(m.Overflow)
			if !ok {
				return spec, invalid("add_creature", "unknown overflow policy "+m.Overflow, "use block, drop_oldest or dead_letter")
			}
			spec.Overflow = overflow
		}
	}
	for _, name := range a.Listen {
		spec.Listen = append(spec.Listen, deploy.WireSpec{Channel: name})
	}
	for _, name := range a.Send {
		spec.Send = append(spec.Send, deploy.WireSpec{Channel: name})
	}
	return spec, nil
}

func addCreature(ctx context.Context, b *staging, a *AddCreatureArgs, p *engine.Prepared) (*CreatureAdded, error) {
	join, err := b.graphs.ifNamed(a.Join)
	if err != nil {
		return nil, err
	}
	var parent terrarium.CreatureID
	if a.Parent != "" {
		if parent, err = b.FindCreature(join, a.Parent); err != nil {
			return nil, err
		}
	}
	if err := eachOnce(b, join, "listen", a.Listen); err != nil {
		return nil, err
	}
	if err := eachOnce(b, join, "send", a.Send); err != nil {
		return nil, err
	}
	added, _, err := b.AddPrepared(ctx, p, join, parent)
	if err != nil {
		return nil, err
	}
	return &CreatureAdded{added.Creature, added.Name, added.Graph}, nil
}

// eachOnce rejects a list that has a channel twice, even by different names.
func eachOnce(b *staging, g terrarium.GraphID, field string, channels []string) error {
	seen := map[terrarium.ChannelID]bool{}
	for _, name := range channels {
		id, err := b.FindChannel(g, name)
		if err != nil {
			return err
		}
		if seen[id] {
			return invalid("add_creature", fmt.Sprintf("the field %q names the channel %s twice", field, name), "name it once").With("channel", string(id))
		}
		seen[id] = true
	}
	return nil
}

// onCreature returns an operation on one creature.
func onCreature(op func(terrarium.CreatureID) topology.Op) func(context.Context, *staging, *CreatureArgs) (*DeltaResult, error) {
	return func(ctx context.Context, b *staging, a *CreatureArgs) (*DeltaResult, error) {
		id, err := b.FindCreature("", a.Creature)
		if err != nil {
			return nil, err
		}
		return deltaOf(b.Do(ctx, op(id)))
	}
}

func assignRoot(ctx context.Context, b *staging, a *CreatureArgs) (*ChannelsResult, error) {
	id, err := b.FindCreature("", a.Creature)
	if err != nil {
		return nil, err
	}
	rooted, err := b.AssignRoot(ctx, id)
	if err != nil {
		return nil, err
	}
	return &ChannelsResult{rooted.Channels, rooted.Delta}, nil
}

func deltaOf(out engine.Outcome, err error) (*DeltaResult, error) {
	if err != nil {
		return nil, err
	}
	return &DeltaResult{out.Delta}, nil
}

func addChannel(ctx context.Context, b *staging, a *AddChannelArgs) (*ChannelResult, error) {
	g, err := b.graphs(a.Graph)
	if err != nil {
		return nil, err
	}
	out, err := b.AddChannel(ctx, g, a.Name, a.Description)
	if err != nil {
		return nil, err
	}
	return &ChannelResult{out.Channel, out.Delta}, nil
}

func removeChannel(ctx context.Context, b *staging, a *ChannelArgs) (*DeltaResult, error) {
	id, err := findChannelArg(b.graphs, b.FindChannel, a)
	if err != nil {
		return nil, err
	}
	return deltaOf(b.Do(ctx, topology.RemoveChannel{ID: id}))
}

func findChannelArg(graphs graphFinder, channels func(terrarium.GraphID, string) (terrarium.ChannelID, error), a *ChannelArgs) (terrarium.ChannelID, error) {
	g, err := graphs.ifNamed(a.Graph)
	if err != nil {
		return "", err
	}
	return channels(g, a.Channel)
}

// BatchArgs are the arguments of batch.
type BatchArgs struct {
	Ops []json.RawMessage `json:"ops" op:"required" doc:"operations as in requests, without id; later ones see the effects of earlier ones"`
}

// BatchResult is the result of batch.
type BatchResult struct {
	Results []any `json:"results"` // results of the operations, in their order
}

func batch(ctx context.Context, s *client, a *BatchArgs) (*BatchResult, error) {
	steps := make([]step, len(a.Ops))
	for i, raw := range a.Ops {
		name, args, err := splitRequest(raw)
		if err != nil {
			return nil, atStep(err, i)
		}
		op, err := findOperation(name)
		if err == nil && !op.Batchable {
			err = invalid("batch", "the operation "+name+" cannot be part of a batch", "use only operations that change the topology")
		}
		if err == nil {
			err = s.allow(name, op.Scope)
		}
		if err != nil {
			return nil, atStep(err, i)
		}
		decoded, err := op.decode(args)
		if err != nil {
			return nil, atStep(err, i)
		}
		steps[i] = step{op: op, args: decoded}
	}
	results, err := carryOut(ctx, s, steps, atStep)
	if err != nil {
		return nil, err
	}
	return &BatchResult{Results: results}, nil
}
