package engine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// toolUse is what a turn does with the group tools. Its graph operations are
// staged: each call sees what those before it did, and the turn's commit carries
// them out.
type toolUse struct {
	calls int
	bytes int64      // of the calls and their answers, which are read, judged and noted
	ops   []stagedOp // that succeeded, in the order of the calls
	name  string     // of the tool that is being called
	// recalled is what policies recalled that judge calls.
	recalled recollection
	// graph and revision are what the turn sees: one topology, and its own
	// operations. If it is another one by a later call, the turn is run again.
	graph    *graph
	shape    uint64
	conflict bool
	log      []journal.NotedCall
}

// groupOp is an operation on the graph that a turn has called for. It is staged
// when it is called, to be checked and answered, and again at every later call and
// at the commit. Everything it names is an id by then.
type groupOp interface {
	stage(s *staging) (result any, err error)
}

// stagedOp is an operation with the number of the call that it comes from. The ids of
// what it adds derive from that number, so that they are the same in another run of
// the turn, whatever the calls before it answer then.
type stagedOp struct {
	groupOp
	call int
	tool string // by which
}

// discarder is a groupOp that holds something until it is carried out.
type discarder interface{ discard(e *Engine) }

// tool is one group tool.
type tool struct {
	name       string
	privileged bool
	doc        string
	// call decodes the arguments, and does what the tool is for.
	call func(t *turn, args []byte) (any, error)
	// args and result are values of the types of both, for the schema.
	args, result any
}

// toolByName finds a tool.
func toolByName(name string) *tool {
	for i := range tools {
		if tools[i].name == name {
			return &tools[i]
		}
	}
	return nil
}

// Tool implements [abi.Turn].
func (t *turn) Tool(name, args []byte) ([]byte, abi.Code) {
	if code := t.mayCallTool(name, args); code != abi.OK {
		return nil, code
	}
	result, code := t.callTool(name, args)
	t.tools.bytes += int64(len(result))
	t.noteCall(name, args, result, code)
	return result, code
}

// mayCallTool checks what does not depend on the graph, and counts the call.
func (t *turn) mayCallTool(name, args []byte) abi.Code {
	if code := t.effect(); code != abi.OK {
		return code
	}
	if t.tools == nil {
		t.tools = &toolUse{}
	}
	if t.tools.calls++; t.tools.calls > t.c.limits.Tools {
		return t.overLimit("tools", int64(t.c.limits.Tools))
	}
	if size := int64(len(name) + len(args)); size > t.c.limits.Message {
		return t.fail(abi.TooLarge, "use smaller arguments, or raise the limit", "the call has %d bytes; the limit message is %d", size, t.c.limits.Message)
	} else if t.tools.bytes += size; t.tools.bytes > t.c.limits.SendBytes {
		return t.overLimit("send_bytes", t.c.limits.SendBytes)
	}
	return abi.OK
}

// callTool does what a tool is for.
func (t *turn) callTool(name, args []byte) ([]byte, abi.Code) {
	f := toolByName(string(name))
	if f == nil {
		return nil, t.fail(abi.NotFound, "the tools are "+toolNames(), "there is no tool %s", errtext.Quoted(name))
	}
	if err := f.check(args); err != nil {
		return nil, t.refuse(err)
	}
	t.tools.name = f.name
	err := t.judgeTool(f, args)
	var result any
	if err == nil {
		result, err = f.call(t, args)
	}
	if err != nil {
		return nil, t.refuse(err)
	}
	return journal.JSON(result), abi.OK
}

func toolNames() string {
	names := make([]string, len(tools))
	for i := range tools {
		names[i] = tools[i].name
	}
	return strings.Join(names, ", ")
}

// refuse keeps an error for the guest to ask for, with its remedy and the ids
// concerned.
func (t *turn) refuse(err error) abi.Code {
	var e *abi.Error
	if !errors.As(err, &e) {
		return t.fail(abi.CodeOf(err), "", "%s", errtext.Clip(err.Error()))
	}
	text := cmp.Or(e.Message, e.Code.String())
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if err != error(e) { // what is around it says where that was
		text = err.Error()
	}
	if e.Remedy != "" {
		text = strings.Replace(text, "; "+e.Remedy, "", 1)
	}
	code := t.fail(e.Code, e.Remedy, "%s", errtext.Clip(text))
	t.fault.ids = e.IDs
	return code
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

// staging is a look at the topology as a turn sees it: with the operations that it
// has staged.
type staging struct {
	x      *change
	caller *creature
	ids    *derivedIDs
	fresh  map[journal.CreatureID]*creature // that earlier operations add
}

func (s *staging) topo() *topology.State { return s.x.e.topo }

// do stages one operation of the topology.
func (s *staging) do(op topology.Op) (*topology.Delta, error) { return s.x.do(op) }

// home is the graph that the caller is in.
func (s *staging) home() journal.GraphID { return s.topo().GraphOf(s.caller.id) }

// creature finds a member of the caller's graph: by its id, else by the word root if
// it is that of the caller's deployment, else by its name.
func (s *staging) creature(ref string) (topology.Creature, error) {
	if c, ok := s.topo().Creature(journal.CreatureID(ref)); ok && s.topo().GraphOf(c.ID) == s.home() {
		return c, nil
	}
	if ref == rootRef {
		if c, err := s.ownRoot(); err == nil {
			return c, nil // whoever else has that name
		}
	}
	if id, ok := s.topo().FindCreature(s.home(), ref); ok {
		c, _ := s.topo().Creature(id)
		return c, nil
	}
	return topology.Creature{}, &abi.Error{
		Code: abi.NotFound, Op: "tool", Message: fmt.Sprintf("there is no creature %s in this graph", errtext.Quoted([]byte(ref))),
		Remedy: "name a member of the own graph, by id or name; group_status lists them", IDs: map[string]string{"creature": errtext.Clip(ref)},
	}
}

// channel finds a channel of the caller's graph by its id or, if none has it, its
// name.
func (s *staging) channel(ref string) (topology.Channel, error) {
	if ch, ok := s.topo().Channel(journal.ChannelID(ref)); ok && s.topo().ChannelGraph(ch.ID) == s.home() {
		return ch, nil
	}
	if id, ok := s.topo().FindChannel(s.home(), ref); ok {
		ch, _ := s.topo().Channel(id)
		return ch, nil
	}
	return topology.Channel{}, &abi.Error{
		Code: abi.NotFound, Op: "tool", Message: fmt.Sprintf("there is no channel %s in this graph", errtext.Quoted([]byte(ref))),
		Remedy: "name a channel of the own graph, by id or name; group_status lists them", IDs: map[string]string{"channel": errtext.Clip(ref)},
	}
}

// mayEdit refuses those who may not use the tools that edit the graph.
func (s *staging) mayEdit() error {
	if s.topo().IsPrivileged(s.caller.id) {
		return nil
	}
	return &abi.Error{
		Code: abi.NotPrivileged, Op: "tool", Message: "only privileged creatures edit their graph",
		Remedy: "ask one of them, or have the owner promote this creature", IDs: map[string]string{"creature": string(s.caller.id)},
	}
}

// worker finds a member of the caller's graph that the tools may remove, stop and
// start: one that is not privileged.
func (s *staging) worker(id journal.CreatureID) (topology.Creature, error) {
	c, ok := s.topo().Creature(id)
	switch {
	case !ok || s.topo().GraphOf(id) != s.home():
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

// look calls f with the topology as the turn sees it. What f stages is taken back.
func (t *turn) look(f func(s *staging) error) error {
	e, use := t.e, t.tools
	if !t.alone {
		e.mu.Lock()
		defer e.mu.Unlock()
	}
	g := t.c.home.load()
	switch {
	case g == nil:
		return errtext.Gone("creature", string(t.c.id))
	case use.graph == nil:
		use.graph, use.shape = g, g.shape
	case use.conflict || use.graph != g || use.shape != g.shape:
		return t.conflicts()
	}
	s := t.newStaging()
	defer s.x.undo()
	if err := s.replay(use.ops); err != nil {
		return t.conflicts()
	}
	s.ids.begin(use.calls)
	s.x.judging.call = use.name
	return f(s)
}

// conflicts notes that the topology is another one than the turn has seen.
func (t *turn) conflicts() error {
	t.tools.conflict = true
	return &abi.Error{
		Code: abi.Conflict, Op: "tool", Message: "the graph has changed since the turn looked at it",
		Remedy: "end the turn: it is run again",
	}
}

func (t *turn) newStaging() *staging {
	x := t.e.newChange("tool")
	s := &staging{x: x, caller: t.c, ids: newDerivedIDs(t), fresh: map[journal.CreatureID]*creature{}}
	x.derived = s.ids
	x.judging.caller, x.judging.now = t.c.party(), t.d.msg.time
	return s
}

// replay stages operations again.
func (s *staging) replay(ops []stagedOp) error {
	for _, op := range ops {
		s.ids.stage(op.call)
		s.x.judging.call = op.tool
		if _, err := op.stage(s); err != nil {
			return err
		}
	}
	return nil
}

// edit stages one more operation, that f puts together from what the call names.
func (t *turn) edit(f func(s *staging) (groupOp, error)) (result any, err error) {
	err = t.look(func(s *staging) error {
		if err := s.mayEdit(); err != nil {
			return err
		}
		op, err := f(s)
		if err != nil {
			return err
		}
		s.ids.stage(t.tools.calls)
		if result, err = op.stage(s); err != nil {
			t.noteRefusals(s.x)
			return err
		}
		t.tools.ops = append(t.tools.ops, stagedOp{op, t.tools.calls, t.tools.name})
		return nil
	})
	return result, err
}

// forget gives up what a turn has staged and not carried out.
func (u *toolUse) forget(e *Engine) {
	for _, op := range u.ops {
		if d, ok := op.groupOp.(discarder); ok {
			d.discard(e)
		}
	}
}
