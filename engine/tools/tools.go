// Package tools implements the group tools, with which a guest reads and
// changes its graph. Each tool decodes its arguments, checks the caller, and
// stages operations in a draft of the graph. A turn collects the operations in
// a [Use], and commits them with its other effects.
package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
	"github.com/seed47132306/terrarium/internal/plainly"
)

// rootRef names the root of the caller's deployment as a target.
const rootRef = "root"

// Turn is what a tool needs from the calling turn. Only one goroutine may use
// it.
type Turn interface {
	// Use returns the turn's use of the tools.
	Use() *Use
	// Look calls f with the graph as the turn sees it. Operations that f
	// stages are undone.
	Look(ctx context.Context, f func(s *Stage) error) error
	// Prepare makes a creature of a species of the caller's deployment ready to be added.
	// It first calls may, inside Look. Then it starts the first instance, during which
	// other callers can change the graph.
	Prepare(ctx context.Context, n *AddNodeArgs, may func(*Stage) error) (Prepared, error)
	// Send sends a message on a channel under the caller's alias. The channel
	// may be one that the turn creates.
	Send(channel journal.ChannelID, alias string, m Message) error
	// SendTo sends a message to a creature. The creature may be one that the
	// turn adds.
	SendTo(to journal.CreatureID, m Message) error
	// Refused records the reasons that policies gave for refusals.
	Refused(words []draft.HomedWord)
}

// Prepared is a creature that is ready to be added.
type Prepared interface {
	// Assign sets the creature's id and name.
	Assign(id journal.CreatureID, name string)
	// Member returns the creature's data for a draft.
	Member() draft.Member
	// Discard closes the creature.
	Discard()
}

// Live is what the tools need from running graphs.
type Live interface {
	// Inside calls f with the running state of the caller's graph, which does
	// not change during the call.
	Inside(f func(Graph))
	// Species lists the species of a deployment that may be spawned, in any
	// order.
	Species(deployment string) []*deploy.SpeciesSpec
	// LetsMerge reports, from the store's record, whether a tool may merge the
	// session of a creature whose deployment is not applied. A creature added
	// by a turn counts as the turn's caller.
	LetsMerge(id journal.CreatureID, deployment string) bool
}

// Graph is the running state of the caller's graph, without staged operations.
type Graph interface {
	// Member returns false for a creature of another graph.
	Member(journal.CreatureID) (Running, bool)
	// Head returns the number of a channel's last message; 0 for a channel of
	// another graph.
	Head(journal.ChannelID) uint64
}

// Running is the running state of a creature.
type Running struct {
	State   journal.CreatureState
	Halted  bool   // its recipe has stopped
	Pending uint64 // deliveries waiting for it
}

// Use collects what a turn does with the group tools. Its graph operations are
// staged: each call sees the effects of earlier calls, and the turn's commit
// applies them.
type Use struct {
	Calls int    // calls made by the turn, refused ones included
	Tool  string // the tool being called
	ops   []stagedOp
}

// operation is a graph operation requested by a turn. It is staged when the
// tool is called, to check it and get its result, and again at every later
// call and at the commit. It refers to everything by id.
type operation interface {
	stage(ctx context.Context, s *Stage) (result any, err error)
}

// stagedOp is an operation with the number of its call. The ids of added
// creatures and channels derive from that number, so that they are the same in
// another run of the turn, whatever earlier calls return then.
type stagedOp struct {
	operation
	call int
	tool string // the tool that was called
}

// Len returns how many operations are staged.
func (u *Use) Len() int { return len(u.ops) }

// Replay stages the operations again.
func (u *Use) Replay(ctx context.Context, s *Stage) error {
	for _, op := range u.ops {
		s.ids.Stage(op.call)
		s.Calling(op.tool)
		if _, err := op.stage(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// Prepared iterates over the creatures that the operations add.
func (u *Use) Prepared(yield func(Prepared) bool) {
	for _, op := range u.ops {
		if add, ok := op.operation.(*addNode); ok && add.node != nil && !yield(add.node) {
			return
		}
	}
}

// Keep hands the added creatures over to the engine, after the operations have been
// applied.
func (u *Use) Keep() {
	for _, op := range u.ops {
		if add, ok := op.operation.(*addNode); ok {
			add.node = nil
		}
	}
}

// takeBack drops the last operation, which adds a creature.
func (u *Use) takeBack() {
	last := len(u.ops) - 1
	u.ops[last].operation.(*addNode).node.Discard()
	u.ops = u.ops[:last]
}

// Discard drops the operations that were staged and not applied.
func (u *Use) Discard() {
	for node := range u.Prepared {
		node.Discard()
	}
	u.Keep()
}

// Tool is one group tool.
type Tool struct {
	Name       string
	Privileged bool // only privileged creatures may call it
	Doc        string
	// call decodes the arguments and runs the tool.
	call func(ctx context.Context, t Turn, args []byte) (any, error)
	// args and result are zero values of their types, for the schemas.
	args, result any
}

// ByName finds a tool, or returns nil.
func ByName(name string) *Tool {
	for i := range table {
		if table[i].Name == name {
			return &table[i]
		}
	}
	return nil
}

// Names lists the tools for messages.
func Names() string {
	names := make([]string, len(table))
	for i := range table {
		names[i] = table[i].Name
	}
	return strings.Join(names, ", ")
}

// For lists the tools that a creature may call.
func For(privileged bool) []string {
	out := []string{}
	for i := range table {
		if f := &table[i]; privileged || !f.Privileged {
			out = append(out, f.Name)
		}
	}
	return out
}

// Call runs the tool with arguments that [Tool.Check] has accepted, and
// returns the result as JSON. The turn has already counted the call in its
// [Use].
func (f *Tool) Call(ctx context.Context, t Turn, args []byte) ([]byte, error) {
	result, err := f.call(ctx, t, args)
	if err != nil {
		return nil, err
	}
	return journal.JSON(result), nil
}

// decodeArgs reads the arguments of a tool: one JSON object without unknown
// members.
func decodeArgs[A any](args []byte) (a A, err error) {
	if len(bytes.TrimSpace(args)) == 0 {
		args = []byte("{}")
	}
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return a, errtext.Invalid("tool", "the arguments do not match: "+plainly.JSON(args, err).Error(), "see the schema of the tool")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return a, errtext.Invalid("tool", "there is data after the arguments", "pass one JSON object")
	}
	return a, nil
}

// edit stages one more operation, which f makes from the arguments of the
// call.
func edit(ctx context.Context, t Turn, f func(s *Stage) (operation, error)) (result any, err error) {
	u := t.Use()
	err = t.Look(ctx, func(s *Stage) error {
		if err := s.mayEdit(); err != nil {
			return err
		}
		op, err := f(s)
		if err != nil {
			return err
		}
		s.ids.Stage(u.Calls)
		if result, err = op.stage(ctx, s); err != nil {
			t.Refused(s.Refused())
			return err
		}
		u.ops = append(u.ops, stagedOp{op, u.Calls, u.Tool})
		return nil
	})
	return result, err
}

// Stage is the caller's graph as its turn sees it: a draft with the operations
// that the turn has staged.
type Stage struct {
	*draft.Draft
	caller draft.Member
	ids    *draft.DerivedIDs
	live   Live
}

// NewStage makes the stage of a call. The draft takes its ids from ids.
func NewStage(d *draft.Draft, caller draft.Member, ids *draft.DerivedIDs, live Live) *Stage {
	return &Stage{Draft: d, caller: caller, ids: ids, live: live}
}

// Begin starts the current call.
func (s *Stage) Begin(u *Use) {
	s.ids.Begin(u.Calls)
	s.Calling(u.Tool)
}

// home returns the caller's graph.
func (s *Stage) home() journal.GraphID { return s.Topology().GraphOf(s.caller.ID) }

// Find finds a member of the caller's graph: by its id, else the root of the
// caller's deployment by the word root, else by its name.
func (s *Stage) Find(ref string) (topology.Creature, error) {
	if c, ok := s.Topology().Creature(journal.CreatureID(ref)); ok && c.Graph == s.home() {
		return c, nil
	}
	if ref == rootRef {
		if c, err := s.ownRoot(); err == nil {
			return c, nil // even if another creature has that name
		}
	}
	if id, ok := s.Topology().FindCreature(s.home(), ref); ok {
		c, _ := s.Topology().Creature(id)
		return c, nil
	}
	return topology.Creature{}, &abi.Error{
		Code: abi.NotFound, Op: "tool", Message: fmt.Sprintf("there is no creature %s in this graph", errtext.Quoted([]byte(ref))),
		Remedy: s.otherCreatures(ref), IDs: map[string]string{"creature": errtext.Clip(ref)},
	}
}

// ownRoot returns the root of the caller's deployment.
func (s *Stage) ownRoot() (topology.Creature, error) {
	if id := s.RootIn(s.caller.Deployment, s.home()); id != "" {
		c, _ := s.Topology().Creature(id)
		return c, nil
	}
	return topology.Creature{}, &abi.Error{
		Code: abi.NotFound, Op: "tool", Message: "the deployment of the creature has no root in this graph",
		Remedy: "name a member of the graph, or have the operator assign a root", IDs: map[string]string{"creature": string(s.caller.ID)},
	}
}

// channel finds a channel of the caller's graph by its id or, if none has it, its
// name.
func (s *Stage) channel(ref string) (topology.Channel, error) {
	if ch, ok := s.Topology().Channel(journal.ChannelID(ref)); ok && s.Topology().ChannelGraph(ch.ID) == s.home() {
		return ch, nil
	}
	if id, ok := s.Topology().FindChannel(s.home(), ref); ok {
		ch, _ := s.Topology().Channel(id)
		return ch, nil
	}
	return topology.Channel{}, &abi.Error{
		Code: abi.NotFound, Op: "tool", Message: fmt.Sprintf("there is no channel %s in this graph", errtext.Quoted([]byte(ref))),
		Remedy: s.otherChannels(ref), IDs: map[string]string{"channel": errtext.Clip(ref)},
	}
}

// mayEdit refuses callers that may not use the tools that edit the graph.
func (s *Stage) mayEdit() error {
	if s.Topology().IsPrivileged(s.caller.ID) {
		return nil
	}
	return &abi.Error{
		Code: abi.NotPrivileged, Op: "tool", Message: "only privileged creatures may edit their graph",
		Remedy: "send a request to one of them, or have the operator promote this creature", IDs: map[string]string{"creature": string(s.caller.ID)},
	}
}

// worker finds a member of the caller's graph that tools may remove, stop and
// start: one that is not privileged.
func (s *Stage) worker(id journal.CreatureID) (topology.Creature, error) {
	c, ok := s.Topology().Creature(id)
	switch {
	case !ok || c.Graph != s.home():
		return c, &abi.Error{
			Code: abi.NotFound, Op: "tool", Message: fmt.Sprintf("the creature %s is no longer in this graph", id),
			Remedy: "group_status lists the members", IDs: map[string]string{"creature": string(id)},
		}
	case c.Privileged:
		return c, &abi.Error{
			Code: abi.NotPrivileged, Op: "tool", Message: "tools cannot remove, stop, start or pause a privileged creature",
			Remedy: "the operator can do it", IDs: map[string]string{"creature": string(id)},
		}
	}
	return c, nil
}
