package engine

import (
	"cmp"
	"context"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/storemeta"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/tools"
)

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
	if code := t.Effect(); code != abi.OK {
		return code
	}
	if t.handsOver() {
		return t.Fail(abi.Unavailable, "end the turn; it will run again", "the turn is run in another place")
	}
	if t.asking.Waits {
		return t.refuse(errtext.Awaiting)
	}
	if t.tools == nil {
		t.tools = &toolUse{}
	}
	if t.tools.Calls++; t.tools.Calls > t.c.limits.Tools {
		return t.OverLimit("tools", int64(t.c.limits.Tools))
	}
	if size := int64(len(name) + len(args)); size > t.c.limits.Message {
		return t.Fail(abi.TooLarge, "use smaller arguments, or raise the limit", "the call has %d bytes; the limit message is %d", size, t.c.limits.Message)
	} else if t.tools.bytes += size; t.tools.bytes > t.c.limits.SendBytes {
		return t.OverLimit("send_bytes", t.c.limits.SendBytes)
	}
	return abi.OK
}

// callTool runs a tool.
func (t *turn) callTool(name, args []byte) ([]byte, abi.Code) {
	f := tools.ByName(string(name))
	if f == nil {
		return nil, t.Fail(abi.NotFound, "the tools are "+tools.Names(), "there is no tool %s", errtext.Quoted(name))
	}
	if err := f.Check(args); err != nil {
		return nil, t.refuse(err)
	}
	t.tools.Tool = f.Name
	err := t.judgeTool(f.Name, args)
	var result []byte
	if err == nil {
		result, err = f.Call(t.ctx, callingTurn{t}, args)
	}
	if t.asking.Waits {
		err = errtext.Awaiting
	}
	if err != nil {
		return nil, t.refuse(err)
	}
	return result, abi.OK
}

// refuse keeps an error for the guest to read, with its remedy and the ids concerned.
func (t *turn) refuse(err error) abi.Code {
	e := errtext.Refusal(err)
	code := t.Fail(e.Code, e.Remedy, "%s", e.Message)
	t.Fault.IDs = e.IDs
	return code
}

// draftOptions returns the options for a draft of the turn's changes to its graph.
func (t *turn) draftOptions() (o draft.Options, ids *draft.DerivedIDs) {
	m := t.d.msg
	from := draft.Source{Creature: t.c.id, Message: m.ID, Channel: m.Channel, Seq: m.Seq, Kind: byte(t.kind)}
	if t.kind == kindTool {
		from.Call = m.SenderName
	}
	ids = draft.NewDerivedIDs(from)
	return draft.Options{IDs: ids, Caller: t.c.party(), Now: m.Time, Answer: t.answerEvent}, ids
}

// stage prepares a draft for the tools.
func (t *turn) stage(l locked, d *draft.Draft, ids *draft.DerivedIDs) *tools.Stage {
	return tools.NewStage(d, t.c.member(), ids, callersGraph{l, t.c})
}

// look calls f with the topology as the turn sees it. Operations that f stages are undone.
func (t *turn) look(ctx context.Context, f func(l locked, s *tools.Stage) error) error {
	use := t.tools
	l, release := t.takeLock()
	defer release()
	g := t.c.home.enter()
	if g.none() {
		return errtext.Gone("creature", string(t.c.id))
	}
	shape := g.shape // a quarantine changes it without the mutation lock
	g.leave()
	switch {
	case use.graph == nil:
		use.graph, use.shape = g.graph, shape
	case use.conflict || use.graph != g.graph || use.shape != shape:
		return t.conflicts()
	}
	o, ids := t.draftOptions()
	s := t.stage(l, l.newDraft(o), ids)
	defer s.Undo()
	if err := use.Replay(ctx, s); err != nil {
		return t.conflicts()
	}
	s.Begin(&use.Use)
	return f(l, s)
}

// takeLock takes the mutation lock, unless the turn holds it.
func (t *turn) takeLock() (l locked, release func()) {
	if t.alone != nil {
		return *t.alone, func() {}
	}
	l = t.e.lock()
	return l, l.unlock
}

// conflicts notes that the topology differs from the one that the turn has seen.
func (t *turn) conflicts() error {
	t.tools.conflict = true
	return errtext.GraphChanged
}

// addition finds a creature that the turn has added to its own graph with a tool.
func (t *turn) addition(ref string) (c *creature) {
	err := t.look(t.ctx, func(_ locked, s *tools.Stage) error {
		found, err := s.Find(ref)
		c = t.tools.added(found.ID)
		return err
	})
	if err != nil {
		return nil // none was found, or the turn is run again
	}
	return c
}

// added is a creature that the turn adds, or nil.
func (u *toolUse) added(id journal.CreatureID) *creature {
	for node := range u.Prepared {
		if c := node.(preparedNode).creature; c.id == id {
			return c
		}
	}
	return nil
}

// callingTurn is a turn as the tools see it.
type callingTurn struct{ *turn }

// Use implements [tools.Turn], as the methods below do.
func (t callingTurn) Use() *tools.Use { return &t.tools.Use }

func (t callingTurn) Look(ctx context.Context, f func(s *tools.Stage) error) error {
	return t.look(ctx, func(_ locked, s *tools.Stage) error { return f(s) })
}

func (t callingTurn) Prepare(ctx context.Context, a *tools.AddNodeArgs, may func(*tools.Stage) error) (tools.Prepared, error) {
	var spec deploy.CreatureSpec
	var module abi.Module
	err := t.look(ctx, func(l locked, s *tools.Stage) (err error) {
		if err = may(s); err != nil {
			return err
		}
		if t.c.deployment == "" {
			return errtext.NotSpawnable("", a.Species, nil) // a species belongs to a recipe
		}
		spec, module, err = l.ofSpecies(deploy.CreatureSpec{
			Name: cmp.Or(a.Name, a.Species), Description: a.Description, Species: a.Species, Deployment: t.c.deployment, Config: a.Config, Parent: t.c.id,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	// The instance outlives the turn; the species' limits bound its start.
	c, err := startFirst(context.WithoutCancel(ctx), t.e, adding, spec, module, nil)
	if err != nil {
		return nil, err
	}
	c.deployment = spec.Deployment
	return preparedNode{t.e, c}, nil
}

func (t callingTurn) Send(id journal.ChannelID, alias string, m tools.Message) error {
	if code := t.Room(1, m.Payload, m.Own); code != abi.OK {
		return t.Fault.Error("tool")
	}
	l, release := t.takeLock()
	ch := l.channels[id] // nil if this turn makes it; the commit looks it up by its alias
	release()
	t.sends = append(t.sends, sendEffect{alias: alias, ch: ch, payload: t.Keep(m.Payload), headers: t.Keep(m.Headers)})
	return nil
}

func (t callingTurn) SendTo(to journal.CreatureID, m tools.Message) error {
	if code := t.Room(1, m.Payload, m.Own); code != abi.OK {
		return t.Fault.Error("tool")
	}
	c := t.tools.added(to)
	if c == nil {
		l, release := t.takeLock()
		c = l.creatures[to]
		release()
	}
	t.sends = append(t.sends, sendEffect{to: c, payload: t.Keep(m.Payload), headers: t.Keep(m.Headers)})
	return nil
}

func (t callingTurn) Refused(words []draft.HomedWord) { // the rest of the turn may still succeed
	for _, w := range words {
		t.verdicts = append(t.verdicts, w.Word)
	}
}

// preparedNode is a creature that a turn adds to its graph.
type preparedNode struct {
	e *core
	*creature
}

// Assign implements [tools.Prepared], as the methods below do.
func (n preparedNode) Assign(id journal.CreatureID, name string) {
	n.id, n.name, n.spec.Name = id, name, name
}

func (n preparedNode) Member() draft.Member { return n.member() }

func (n preparedNode) Discard() { n.e.discardPrepared(context.Background(), n.creature) }

// callersGraph is the running graph of a caller.
type callersGraph struct {
	e locked
	c *creature
}

// Inside implements [tools.Live], as the methods below do.
func (l callersGraph) Inside(f func(tools.Graph)) {
	g := l.c.home.enter()
	defer g.leave()
	f(shownGraph{g})
}

func (l callersGraph) Species(of string) []*deploy.SpeciesSpec { return l.e.species.Of(of) }

func (l callersGraph) LetsMerge(id journal.CreatureID, deployment string) bool {
	g := l.c.home.load()
	if c := l.e.creatures[id]; c != nil {
		g = c.home.load()
	}
	return deployment != "" && storemeta.Parse(g.meta).Of[deployment][MetaMerge] == storemeta.MergeAllowed
}

// shownGraph is a graph as the tools see it.
type shownGraph struct{ section }

// Member implements [tools.Graph].
func (g shownGraph) Member(id journal.CreatureID) (now tools.Running, ok bool) {
	c := g.creatures[id]
	if c == nil {
		return now, false
	}
	return tools.Running{State: c.stateName(g.section), Halted: c.halted(g.section), Pending: c.mb.pending()}, true
}

// Head implements [tools.Graph].
func (g shownGraph) Head(id journal.ChannelID) uint64 {
	if ch := g.channels[id]; ch != nil {
		return ch.head
	}
	return 0
}
