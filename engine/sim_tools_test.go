package engine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/tools"
)

// edits is what a simulation knows about turns that edit their graph.
type edits struct {
	changes int      // of the topology, so far
	frames  []*frame // of the current turns, the innermost last
	staged  []madeBy // what turns have added
	doubt   *madeBy  // the turn in whose commit the process may have died
	// doubtHeads are the last numbers before that commit, or before another change in
	// which the process may have died.
	doubtHeads map[journal.ChannelID]uint64
}

// frame is a turn in progress. After tool calls, it has the state before its commit:
// nothing else happens between that and the commit.
type frame struct {
	caller   journal.CreatureID
	made     madeBy
	want     *tools.GroupStatus // the graph as the turn has left it; nil if it has called no tool
	changes  int                // number of changes by then
	edges    map[engine.Edge]engine.Listens
	heads    map[journal.ChannelID]uint64
	was      situation
	graphs   string // as described returns them
	unlogged engine.Unlogged
	dead     bool // the process had died before the commit
}

// madeBy is what a turn has added to its graph.
type madeBy struct {
	creature  journal.CreatureID
	message   string // that the turn has handled
	creatures []journal.CreatureID
	channels  []journal.ChannelID
	volatile  bool // its message may have got another id when it entered a log
}

// serve lets one creature run a turn, and reports its changes to the model.
func (s *simulation) serve() bool {
	f := &frame{}
	s.frames = append(s.frames, f)
	ok := s.e.Serve(s.ctx, s.random.IntN)
	s.frames = s.frames[:len(s.frames)-1]
	if f.want != nil {
		s.landed(f)
	}
	return ok
}

// freeze notes the state right before a turn's commit.
func (s *simulation) freeze() {
	if len(s.frames) == 0 {
		return
	}
	f := s.frames[len(s.frames)-1]
	if f.want == nil {
		return
	}
	defer s.calm()()
	s.e.Unlocked(func() {
		f.edges, f.heads, f.was, f.unlogged = s.edgesNow(), s.e.Heads(), s.situation(), s.e.Unlogged()
		f.graphs, f.dead = s.describedAll(), s.disk.Crashed()
		f.made.volatile = f.made.volatile || s.e.Volatile(journal.InboxOf(f.caller))
	})
}

// landed follows a turn that has called tools: either everything staged has happened, or
// nothing.
func (s *simulation) landed(f *frame) {
	if s.disk.Crashed() {
		if s.unknown, s.doubt = true, &f.made; !f.dead {
			s.noteUnlogged(f.unlogged) // the commit may have brought it into a log
			s.doubtHeads = f.heads
		}
		return
	}
	noisy := s.calm()
	defer noisy()
	after := s.edgesNow()
	// Listeners are not enough: a turn may only have allowed a creature to send.
	if s.describedAll() == f.graphs && !s.someExist(&f.made) {
		return
	}
	s.changed = true
	what := fmt.Sprintf("the tools of %s in its turn of %s", f.caller, f.made.message)
	s.say("%s have changed the graph", what)
	for edge, l := range after {
		l.Head = f.heads[edge.Channel] // the turn's own messages come after its changes
		after[edge] = l
	}
	if s.changes == f.changes { // staged operations apply to other graphs too, if possible
		s.checkStaged(what, f)
	}
	s.changes++
	s.checkParentage(what, f.was)
	s.noteUnlogged(f.unlogged)
	s.noteChange(s.disk, f.edges, after, f.was.sessions)
	s.staged = append(s.staged, f.made)
}

// described returns the part of a graph that a turn can see and its tools can change.
func described(g *inspect.GraphStatus) string {
	var b strings.Builder
	for _, c := range g.Creatures {
		fmt.Fprintln(&b, c.ID, c.Name, sorted(c.Listen), sorted(c.Send), slices.Sorted(maps.Keys(c.Aliases.Send)), c.Privileged)
	}
	for _, ch := range g.Channels {
		fmt.Fprintln(&b, ch.ID, ch.Name)
	}
	return b.String()
}

// describedAll describes all graphs, with their ids and sessions.
func (s *simulation) describedAll() string {
	var b strings.Builder
	for _, g := range s.statusNow() {
		fmt.Fprintf(&b, "%s %s\n%s", g.ID, g.Session, described(&g))
	}
	return b.String()
}

func (s *simulation) statusNow() []inspect.GraphStatus {
	status, err := s.e.Status("")
	if err != nil {
		s.failf("Status: %v", err)
	}
	return status
}

// checkStaged checks that the graph is as the turn has last seen it.
func (s *simulation) checkStaged(what string, f *frame) {
	got := ""
	for _, g := range s.statusNow() {
		if slices.ContainsFunc(g.Creatures, func(c inspect.CreatureStatus) bool { return c.ID == f.caller }) {
			got = described(&g)
		}
	}
	want := ""
	for _, c := range f.want.Creatures {
		listen, _ := endsOf(c.Listen)
		send, aliases := endsOf(c.Send)
		want += fmt.Sprintln(c.ID, c.Name, listen, send, aliases, c.Privileged)
	}
	for _, ch := range f.want.Channels {
		want += fmt.Sprintln(ch.ID, ch.Name)
	}
	if got != want {
		s.failf("%s: the graph is\n%s, but the turn saw\n%s", what, got, want)
	}
}

// beforeDoubt is the last number of a channel before a change that is in doubt: what a
// change itself sends comes after it, as a turn's own messages do.
func (e *edits) beforeDoubt(ch journal.ChannelID, last uint64) uint64 {
	if e.doubtHeads == nil {
		return last
	}
	return min(last, e.doubtHeads[ch])
}

func sorted(channels []journal.ChannelID) []journal.ChannelID {
	return slices.Sorted(slices.Values(channels))
}

func endsOf(edges []tools.GroupEdge) (channels []journal.ChannelID, aliases []string) {
	for _, e := range edges {
		channels, aliases = append(channels, e.Channel), append(aliases, e.Alias)
	}
	slices.Sort(aliases)
	return sorted(channels), aliases
}

// exist counts which additions of a turn exist, running or dormant.
func (s *simulation) exist(m *madeBy) (n int) {
	creatures, channels, _ := s.e.Members()
	for edge := range s.e.Dormant() {
		creatures = append(creatures, edge.Creature)
	}
	for _, c := range m.creatures {
		if slices.Contains(creatures, c) {
			n++
		}
	}
	for _, ch := range m.channels {
		if slices.Contains(channels, ch) {
			n++
		}
	}
	return n
}

// saves counts which additions of a turn are saved.
func (s *simulation) saves(m *madeBy) (n int) {
	for _, g := range s.e.Saved() {
		for i := range g.Creatures {
			if slices.Contains(m.creatures, g.Creatures[i].ID) {
				n++
			}
		}
		for i := range g.Channels {
			if slices.Contains(m.channels, g.Channels[i].ID) {
				n++
			}
		}
	}
	return n
}

func (s *simulation) someExist(m *madeBy) bool { return s.exist(m) > 0 }

// logged returns which messages are in the log, and which turns, by their creatures and messages.
func (s *simulation) logged() (messages map[string]bool, whole func(m *madeBy) bool) {
	done, messages := map[string]bool{}, map[string]bool{}
	for _, ev := range s.disk.Log() {
		messages[ev.ID.String()] = true
		if ev.Kind == journal.EventTurnEnded {
			done[string(ev.Creature)+" "+ev.Cause.String()] = true
		}
	}
	return messages, func(m *madeBy) bool { return done[string(m.creature)+" "+m.message] }
}

// checkEdits checks, after a restart, that no addition of a turn exists that is not in the log.
func (s *simulation) checkEdits() {
	known, whole := s.logged()
	for i := range s.staged {
		if m := &s.staged[i]; known[m.message] && !m.volatile && !whole(m) && s.someExist(m) {
			s.failf("additions of the turn of %s on %s exist, but the turn is not in the log", m.creature, m.message)
		}
	}
}

// checkDoubt checks that either everything or nothing was saved of a turn during whose commit the
// process died.
func (s *simulation) checkDoubt() {
	known, whole := s.logged()
	m := s.doubt
	if s.doubt = nil; m == nil || m.volatile || !known[m.message] {
		return
	}
	if n := s.saves(m); whole(m) != (n > 0) && len(m.creatures)+len(m.channels) > 0 || n > 0 && n < len(m.creatures)+len(m.channels) {
		s.failf("%d additions of the turn of %s on %s exist: %+v; the turn is in the log: %v", n, m.creature, m.message, m, whole(m))
	}
	s.staged = append(s.staged, *m)
}

// tool calls a tool and decodes its result. ok says whether the tool succeeded.
func tool[R any](s *simulation, t abi.Turn, name string, a args) (out R, ok bool) {
	b, err := json.Marshal(a)
	if err != nil {
		s.failf("%v", err)
	}
	result, code := t.Tool([]byte(name), b)
	s.say("%s %s: %s", name, b, code)
	switch {
	case code == abi.Internal || code == abi.InvalidArgument:
		s.failf("%s %s returns %s: %s", name, b, code, t.LastError())
	case code != abi.OK:
		return out, false
	}
	if err := json.Unmarshal(result, &out); err != nil {
		s.failf("%s %s: %v", name, b, err)
	}
	return out, true
}

// edit makes a turn edit its graph, as its number says. Other steps may happen in
// between.
func (s *simulation) edit(t abi.Turn, name string, n int) {
	before, ok := tool[tools.GroupStatus](s, t, "group_status", args{})
	if !ok || len(s.frames) == 0 {
		return
	}
	f := s.frames[len(s.frames)-1]
	id, _ := t.Source(abi.SourceMessageID)
	*f = frame{caller: before.Self, made: madeBy{creature: before.Self, message: string(id)}, want: &before, changes: s.changes}
	s.freeze()
	for i := range 1 + n%3 {
		s.editOnce(t, f, fmt.Sprint(name, "g", i), n/3+5*i)
		if i == 0 {
			s.interrupt()
		}
		if now, ok := tool[tools.GroupStatus](s, t, "group_status", args{}); ok {
			f.want, f.changes = &now, s.changes
		}
	}
	s.freeze()
}

// editOnce makes one call.
func (s *simulation) editOnce(t abi.Turn, f *frame, name string, n int) {
	g := f.want
	member := g.Creatures[n/7%len(g.Creatures)].ID
	direction := []string{"listen", "send"}[n/3%2]
	var channel journal.ChannelID
	if len(g.Channels) > 0 {
		channel = g.Channels[n/5%len(g.Channels)].ID
	}
	switch wire := (args{"action": "wire", "channel": channel, "creature": member, "direction": direction}); n % 8 {
	case 0:
		if len(g.Channels) < most {
			if r, ok := tool[tools.ChannelResult](s, t, "group_channel", args{"action": "create", "name": name}); ok {
				f.made.channels = append(f.made.channels, r.Channel)
			}
		}
	case 1:
		if len(g.Creatures) < most && len(g.Channels) < most {
			how := args{"species": "sp"}
			if n/8%2 == 0 {
				how["two_way"], how["task"] = true, name+"-task"
			}
			if r, ok := tool[tools.AddNodeResult](s, t, "group_add_node", how); ok {
				f.made.creatures = append(f.made.creatures, r.Creature)
				f.made.channels = append(f.made.channels, r.Channel)
				tool[tools.GroupSendResult](s, t, "group_send", args{"creature": r.Creature, "payload": name + "-told"})
			}
		}
	case 2:
		if channel != "" {
			if wire["action"] = "unwire"; n%3 == 0 {
				wire = args{"action": "delete", "channel": channel}
			}
			tool[tools.ChannelResult](s, t, "group_channel", wire)
			f.made.channels = slices.DeleteFunc(f.made.channels, func(ch journal.ChannelID) bool { return n%3 == 0 && ch == channel })
		}
	case 3:
		if _, ok := tool[tools.DeltaResult](s, t, "group_remove_node", args{"creature": member}); ok {
			f.made.creatures = slices.DeleteFunc(f.made.creatures, func(c journal.CreatureID) bool { return c == member })
		}
	case 4:
		tool[tools.NodeState](s, t, []string{"group_stop_node", "group_start_node", "group_pause_node", "group_resume_node"}[n/8%4], args{"creature": member})
	case 5:
		s.wireAcross(t, wire, n)
	default:
		if channel != "" {
			tool[tools.ChannelResult](s, t, "group_channel", wire)
			tool[tools.SendChannelResult](s, t, "send_channel", args{"channel": channel, "payload": name + toolPayload})
		}
	}
}

// toolPayload ends the payloads that tools send on channels.
const toolPayload = "-tool"

// wireAcross wires a creature of any graph, which becomes part of the turn's own graph.
func (s *simulation) wireAcross(t abi.Turn, wire args, n int) {
	var all []journal.CreatureID
	s.e.Unlocked(func() { all, _, _ = s.e.Members() })
	if wire["channel"] == journal.ChannelID("") || len(all) == 0 {
		return
	}
	wire["merge"], wire["creature"] = true, all[n/7%len(all)]
	tool[tools.ChannelResult](s, t, "group_channel", wire)
}

// ofTool reports whether a tool has sent a message on a channel.
func ofTool(payload string) bool { return strings.HasSuffix(payload, toolPayload) }
