// Package tools has the group tools: what a guest may do to its graph. Each decodes its
// arguments, checks the caller, and stages operations in a draft of the graph; a turn
// gathers them in a [Use], and commits them with everything else that it does.
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
)

// rootRef is what a target is called that is the root of the own deployment.
const rootRef = "root"

// Turn is what a tool asks of the turn that calls it. It belongs to one goroutine.
type Turn interface {
	// Use is what the turn does with the tools.
	Use() *Use
	// Look calls f with the graph as the turn sees it. What f stages is taken back.
	Look(ctx context.Context, f func(s *Stage) error) error
	// Prepare makes a creature of a species of the caller's deployment ready to be
	// added. Its first instance starts, so nothing is locked meanwhile. May is called
	// before, while the turn looks at its graph.
	Prepare(ctx context.Context, n *AddNodeArgs, may func(*Stage) error) (Prepared, error)
	// Send sends a message on a channel under the caller's alias. The channel may be one
	// that the turn makes.
	Send(channel journal.ChannelID, alias string, payload, headers []byte) error
	// SendTo sends a message to a creature. It may be one that the turn adds.
	SendTo(to journal.CreatureID, payload []byte) error
	// Refused notes what policies have said of what they refused.
	Refused(words []draft.HomedWord)
}

// Prepared is a creature that is ready to be added.
type Prepared interface {
	// Assign gives it its id and its name.
	Assign(id journal.CreatureID, name string)
	// Member is what a draft knows of it.
	Member() draft.Member
	// Discard gives it up.
	Discard()
}

// Live is what the tools ask of graphs that run.
type Live interface {
	// Inside calls f with what does not change meanwhile in the caller's graph.
	Inside(f func(Graph))
	// Species lists those of a deployment that may be spawned, in any order.
	Species(deployment string) []*deploy.SpeciesSpec
	// LetsMerge reports whether a tool may merge the session of a creature whose
	// deployment is not applied, by what its store remembers. One that a turn adds
	// counts as its caller.
	LetsMerge(id journal.CreatureID, deployment string) bool
}

// Graph is the caller's graph as it runs, without what is staged.
type Graph interface {
	// Member answers false for a creature of another graph.
	Member(journal.CreatureID) (state journal.CreatureState, pending uint64, ok bool)
	// Head is the number of a channel's last message; 0 for a channel of another graph.
	Head(journal.ChannelID) uint64
}

// Use is what a turn does with the group tools. Its graph operations are staged: each
// call sees what those before it did, and the turn's commit carries them out.
type Use struct {
	Calls int    // that the turn has made, refused ones included
	Tool  string // that is being called
	ops   []stagedOp
}

// operation is one on the graph that a turn has called for. It is staged when it is
// called, to be checked and answered, and again at every later call and at the commit.
// Everything it names is an id by then.
type operation interface {
	stage(ctx context.Context, s *Stage) (result any, err error)
}

// stagedOp is an operation with the number of the call that it comes from. The ids of
// what it adds derive from that number, so that they are the same in another run of
// the turn, whatever the calls before it answer then.
type stagedOp struct {
	operation
	call int
	tool string // by which
}

// Len is how many operations are staged.
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

// Prepared are the creatures that the operations add.
func (u *Use) Prepared(yield func(Prepared) bool) {
	for _, op := range u.ops {
		if add, ok := op.operation.(*addNode); ok && add.node != nil && !yield(add.node) {
			return
		}
	}
}

// Keep has the creatures that were added live on: the operations are carried out.
func (u *Use) Keep() {
	for _, op := range u.ops {
		if add, ok := op.operation.(*addNode); ok {
			add.node = nil
		}
	}
}

// Discard drops what has been staged and not carried out.
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
	// call decodes the arguments, and does what the tool is for.
	call func(ctx context.Context, t Turn, args []byte) (any, error)
	// args and result are values of the types of both, for the schema.
	args, result any
}

// ByName finds a tool; nil if there is none.
func ByName(name string) *Tool {
	for i := range table {
		if table[i].Name == name {
			return &table[i]
		}
	}
	return nil
}

// Names lists the tools for a reader.
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

// Call does what the tool is for, with arguments that [Tool.Check] has let through, and
// returns the answer as JSON. The turn has counted the call in its [Use].
func (f *Tool) Call(ctx context.Context, t Turn, args []byte) ([]byte, error) {
	result, err := f.call(ctx, t, args)
	if err != nil {
		return nil, err
	}
	return journal.JSON(result), nil
}

// decodeArgs reads the arguments of a tool: one JSON object without anything that
// the tool does not know.
func decodeArgs[A any](args []byte) (a A, err error) {
	if len(bytes.TrimSpace(args)) == 0 {
		args = []byte("{}")
	}
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return a, errtext.Invalid("tool", "the arguments do not fit: "+strings.TrimPrefix(err.Error(), "json: "), "see the schema of the tool")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return a, errtext.Invalid("tool", "there is something behind the arguments", "give one JSON object")
	}
	return a, nil
}

// edit stages one more operation, that f puts together from what the call names.
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

// Stage is the graph of a caller as its turn sees it: a draft with the operations that
// the turn has staged.
type Stage struct {
	*draft.Draft
	caller draft.Member
	ids    *draft.DerivedIDs
	live   Live
}

// NewStage makes the stage of a call. The draft gets its ids from those given.
func NewStage(d *draft.Draft, caller draft.Member, ids *draft.DerivedIDs, live Live) *Stage {
	return &Stage{Draft: d, caller: caller, ids: ids, live: live}
}

// Begin goes over to a call that is made now.
func (s *Stage) Begin(u *Use) {
	s.ids.Begin(u.Calls)
	s.Calling(u.Tool)
}

// home is the graph that the caller is in.
func (s *Stage) home() journal.GraphID { return s.Topology().GraphOf(s.caller.ID) }

// Find finds a member of the caller's graph: by its id, else by the word root if it is
// that of the caller's deployment, else by its name.
func (s *Stage) Find(ref string) (topology.Creature, error) {
	if c, ok := s.Topology().Creature(journal.CreatureID(ref)); ok && c.Graph == s.home() {
		return c, nil
	}
	if ref == rootRef {
		if c, err := s.ownRoot(); err == nil {
			return c, nil // whichever creature else has that name
		}
	}
	if id, ok := s.Topology().FindCreature(s.home(), ref); ok {
		c, _ := s.Topology().Creature(id)
		return c, nil
	}
	return topology.Creature{}, &abi.Error{
		Code: abi.NotFound, Op: "tool", Message: fmt.Sprintf("there is no creature %s in this graph", errtext.Quoted([]byte(ref))),
		Remedy: "name a member of the own graph, by id or name; group_status lists them", IDs: map[string]string{"creature": errtext.Clip(ref)},
	}
}

// ownRoot is the root of the caller's deployment, which a target may be called.
func (s *Stage) ownRoot() (topology.Creature, error) {
	if id := s.RootIn(s.caller.Deployment, s.home()); id != "" {
		c, _ := s.Topology().Creature(id)
		return c, nil
	}
	return topology.Creature{}, &abi.Error{
		Code: abi.NotFound, Op: "tool", Message: "the deployment of the creature has no root in this graph",
		Remedy: "name a member of the graph, or have the owner assign a root", IDs: map[string]string{"creature": string(s.caller.ID)},
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
		Remedy: "name a channel of the own graph, by id or name; group_status lists them", IDs: map[string]string{"channel": errtext.Clip(ref)},
	}
}

// mayEdit refuses callers that may not use the tools that edit the graph.
func (s *Stage) mayEdit() error {
	if s.Topology().IsPrivileged(s.caller.ID) {
		return nil
	}
	return &abi.Error{
		Code: abi.NotPrivileged, Op: "tool", Message: "only privileged creatures edit their graph",
		Remedy: "ask one of them, or have the owner promote this creature", IDs: map[string]string{"creature": string(s.caller.ID)},
	}
}

// worker finds a member of the caller's graph that the tools may remove, stop and
// start: one that is not privileged.
func (s *Stage) worker(id journal.CreatureID) (topology.Creature, error) {
	c, ok := s.Topology().Creature(id)
	switch {
	case !ok || c.Graph != s.home():
		return c, &abi.Error{
			Code: abi.NotFound, Op: "tool", Message: fmt.Sprintf("the creature %s is not in this graph any more", id),
			Remedy: "group_status lists who is", IDs: map[string]string{"creature": string(id)},
		}
	case c.Privileged:
		return c, &abi.Error{
			Code: abi.NotPrivileged, Op: "tool", Message: "no tool removes, stops or starts a privileged creature",
			Remedy: "the engine's owner may do it", IDs: map[string]string{"creature": string(id)},
		}
	}
	return c, nil
}
