package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
	"pgregory.net/rapid"
)

// toolProgram is a random program of turns that call group tools, next to a toolModel. Turns
// fail on purpose, conflict with changes of their graph, and outlive restarts. Each of them has
// the same results and effects as an undisturbed turn.
type toolProgram struct {
	*program
	*toolModel
	n int
	// The sends and the additions of the turn that is being composed, in order.
	sends  []toolSend
	things []newThing

	mu       sync.Mutex
	attempts map[string][][]toolReply // results that the attempts of each turn got, as far as they came
}

// toolTurn is the content of a payload: what a creature must do.
type toolTurn struct {
	Name    string
	Fail    int // number of attempts that fail at their end
	Disturb int // number of attempts that meet a change of the graph in the middle
	Calls   []toolCall
}

// mostAttempts is the maximum number of attempts at a delivery.
const mostAttempts = 3

func (p *toolProgram) hand(t abi.Turn, kind abi.Kind) error {
	if kind != abi.KindMessage {
		return nil
	}
	payload, _ := t.Source(abi.SourcePayload)
	var turn toolTurn
	if err := json.Unmarshal(payload, &turn); err != nil {
		old, _ := t.StateGet([]byte("heard"))
		return codeErr(t, t.StateSet([]byte("heard"), append(append(slices.Clone(old), payload...), '\n')))
	}
	p.mu.Lock()
	p.attempts[turn.Name] = append(p.attempts[turn.Name], nil)
	attempt := len(p.attempts[turn.Name])
	p.mu.Unlock()
	replies := []toolReply{}
	for i, c := range turn.Calls {
		r := callTool(t, c)
		if r.Code == "conflict" {
			break // in any case, the turn is run again
		}
		replies = append(replies, r)
		p.mu.Lock()
		p.attempts[turn.Name][attempt-1] = slices.Clone(replies)
		p.mu.Unlock()
		if i == 0 && attempt <= turn.Disturb {
			self, _ := t.Source(abi.SourceSelf)
			p.disturb(string(self))
		}
	}
	b, err := json.Marshal(replies)
	if err != nil {
		return err
	}
	if err := codeErr(t, t.StateSet([]byte("replies"), b)); err != nil {
		return err
	}
	if attempt <= turn.Fail {
		return &abi.Error{Code: abi.Trapped, Message: "as told"}
	}
	return nil
}

func callTool(t abi.Turn, c toolCall) toolReply {
	b, _ := json.Marshal(c.Args)
	result, code := t.Tool([]byte(c.Tool), b)
	r := toolReply{Result: slices.Clone(result)}
	if code != abi.OK {
		r.Code, r.Error = code.String(), t.LastError()
	}
	return r
}

// disturb changes every graph without a trace.
func (p *toolProgram) disturb(string) {
	status, err := p.e.Status("")
	if err != nil {
		return
	}
	for _, g := range status {
		out, err := p.e.AddChannel(p.ctx(), g.ID, "passing", "")
		if err == nil {
			_, err = p.e.RemoveChannel(p.ctx(), out.Channel)
		}
		if err != nil {
			return
		}
	}
}

// toolCrew is a deployment with a privileged lead and two workers, with names of its own.
func toolCrew(name string, allow bool) *deploy.Deployment {
	d := &deploy.Deployment{Name: name}
	d.Session.AllowMerge = allow
	member := func(n, listen, send string) deploy.CreatureSpec {
		c := spec(n+name, "hand")
		c.Address = "creature." + n
		c.Restart = deploy.RestartPolicy{Attempts: mostAttempts, Max: 1 << 20, Backoff: time.Microsecond}
		c.Listen = []deploy.WireSpec{{Channel: "channel." + listen}}
		c.Send = []deploy.WireSpec{{Channel: "channel." + send}}
		return c
	}
	for _, ch := range []string{"orders", "work"} {
		d.Channels = append(d.Channels, deploy.ChannelSpec{Address: "channel." + ch, Name: ch + name})
	}
	d.Creatures = []deploy.CreatureSpec{member("lead", "orders", "work"), member("ann", "work", "orders"), member("bob", "work", "orders")}
	d.Creatures[0].Privileged = true
	worker := deploy.CreatureSpec{Module: "hand", Wasm: []byte("hand"), Restart: d.Creatures[0].Restart}
	d.Species = []deploy.SpeciesSpec{{Name: "scribe" + name, Spec: worker, Spawnable: 2}, {Name: "hidden" + name, Spec: worker}}
	return d
}

func newToolProgram(rt *rapid.T, dir string) *toolProgram {
	p := &toolProgram{
		program: &program{T: rt, dir: dir, host: newFakeHost()}, attempts: map[string][][]toolReply{},
		toolModel: &toolModel{creatures: map[journal.CreatureID]*toolCreature{}, channels: map[journal.ChannelID]*toolChannel{}, allow: map[string]bool{}, applied: true},
	}
	p.host.on("hand", p.hand)
	seed := uint64(1) // ids depend on it, so that programs get the same ones again
	p.o = engine.Options{
		Seed: &seed, Host: p.host, Workers: rapid.IntRange(1, 3).Draw(rt, "workers"), FreshInstances: rapid.Bool().Draw(rt, "fresh"),
		Load: func(_ context.Context, m string) ([]byte, error) { return []byte(m), nil },
	}
	p.open()
	for _, name := range []string{"1", "2"} {
		p.allow[name] = rapid.IntRange(0, 3).Draw(rt, "allow") > 0
		_, err := p.e.Apply(p.ctx(), toolCrew(name, p.allow[name]))
		p.must(err)
	}
	p.learn()
	return p
}

// learn copies the engine's initial state to the model.
func (p *toolProgram) learn() {
	status, err := p.e.Status("")
	p.must(err)
	for _, g := range status {
		for _, ch := range g.Channels {
			p.toolModel.channels[ch.ID] = &toolChannel{name: ch.Name}
		}
		for _, c := range g.Creatures {
			p.toolModel.creatures[c.ID] = &toolCreature{name: c.Name, deployment: c.Deployment, privileged: c.Privileged, edges: edgesOf(&c)}
		}
	}
}

func edgesOf(c *inspect.CreatureStatus) map[toolEdge]bool {
	out := map[toolEdge]bool{}
	for _, ch := range c.Listen {
		out[toolEdge{ch, "listen"}] = true
	}
	for _, ch := range c.Send {
		out[toolEdge{ch, "send"}] = true
	}
	return out
}

// creatureRef draws a creature, by id or name, or a reference to none.
func (p *toolProgram) creatureRef() string {
	refs := []string{"nobody"}
	for id, c := range p.toolModel.creatures {
		if !strings.HasPrefix(string(id), "new ") {
			refs = append(refs, string(id))
		}
		refs = append(refs, c.name)
	}
	return p.oneOf(refs)
}

func (p *toolProgram) channelRef() string {
	refs := []string{"nothing"}
	for id, ch := range p.toolModel.channels {
		if !strings.Contains(string(id), " ") {
			refs = append(refs, string(id))
		}
		if !strings.HasPrefix(ch.name, "?") {
			refs = append(refs, ch.name)
		}
	}
	return p.oneOf(refs)
}

// call draws a call by the caller, applies it to the model, and returns the expected
// code.
func (p *toolProgram) call(caller journal.CreatureID) (toolCall, string) {
	m, dep := p.toolModel, p.toolModel.creatures[caller].deployment
	p.n++
	payload := fmt.Sprintf("m%d", p.n)
	switch rapid.SampledFrom([]string{"add", "add", "remove", "stop", "create", "delete", "wire", "wire", "wire", "unwire", "channel", "send", "send", "status", "bad"}).Draw(p.T, "tool") {
	case "add":
		species, limit := "scribe"+dep, 2
		if rapid.IntRange(0, 5).Draw(p.T, "hidden") == 0 {
			species, limit = "hidden"+dep, 0
		}
		a := args{"species": species}
		name := ""
		if p.flag("named") {
			name = p.oneOf([]string{"eve" + dep, "ann" + dep, "max" + dep})
			a["name"] = name
		}
		var listen, send []string
		if p.flag("wired") {
			listen, send = []string{p.channelRef()}, []string{p.channelRef()}
			a["listen"], a["send"] = []args{{"channel": listen[0]}}, []args{{"channel": send[0]}}
		}
		twoWay, task := p.n%3 == 0, p.n%4 > 1 // not drawn, so that recorded programs stay as they are
		a["two_way"] = twoWay
		code, made := m.addNode(caller, species, name, limit, listen, send, twoWay)
		p.things = append(p.things, made)
		if task {
			if a["task"] = payload; code == "" {
				p.sends = append(p.sends, toolSend{to: made.creature, payload: payload})
			}
		}
		return toolCall{"group_add_node", a}, code
	case "remove":
		ref := p.creatureRef()
		return toolCall{"group_remove_node", args{"creature": ref}}, m.removeNode(caller, ref)
	case "stop":
		ref, stop := p.creatureRef(), p.flag("stop")
		how := map[bool][]string{true: {"stop", "pause"}, false: {"start", "resume"}}[stop][p.n%2]
		return toolCall{"group_" + how + "_node", args{"creature": ref}}, m.setStopped(caller, ref, how)
	case "create":
		name := p.oneOf([]string{"x" + dep, "y" + dep, "z" + dep})
		code, made := m.createChannel(caller, name)
		p.things = append(p.things, made)
		return toolCall{"group_channel", args{"action": "create", "name": name}}, code
	case "delete":
		ref := p.channelRef()
		return toolCall{"group_channel", args{"action": "delete", "channel": ref}}, m.deleteChannel(caller, ref)
	case "wire", "unwire":
		return p.wireCall(caller)
	case "channel":
		ref := p.channelRef()
		ch, code := journal.ChannelID(""), "not_connected"
		for e := range m.creatures[caller].edges {
			if e.direction == "send" && (string(e.channel) == ref || m.channels[e.channel].name == ref) {
				ch, code = e.channel, ""
				p.sends = append(p.sends, toolSend{channel: ch, payload: payload})
			}
		}
		return toolCall{"send_channel", args{"channel": ref, "payload": payload}}, code
	case "send":
		ref := p.creatureRef()
		code, to := m.groupSend(caller, ref)
		if code == "" {
			p.sends = append(p.sends, toolSend{to: to, payload: payload})
		}
		return toolCall{"group_send", args{"creature": ref, "payload": payload}}, code
	case "status":
		if !m.creatures[caller].privileged {
			return toolCall{"group_status", args{}}, "not_privileged"
		}
		return toolCall{"group_status", args{}}, ""
	}
	return toolCall{"group_channel", args{"action": "dance"}}, "invalid_argument"
}

func (p *toolProgram) wireCall(caller journal.CreatureID) (toolCall, string) {
	ch, c, direction := p.channelRef(), p.creatureRef(), p.oneOf([]string{"listen", "send"})
	on, merge := rapid.IntRange(0, 2).Draw(p.T, "on") > 0, p.flag("merge")
	a := args{"action": "wire", "channel": ch, "creature": c, "direction": direction}
	if !on {
		a["action"] = "unwire"
	} else if merge {
		a["merge"] = true
	}
	return toolCall{"group_channel", a}, p.wire(caller, ch, c, direction, on, merge && on)
}

// caller draws a running creature.
func (p *toolProgram) caller() (journal.CreatureID, bool) {
	var refs, leads []string
	for id, c := range p.toolModel.creatures {
		if !c.stopped {
			refs = append(refs, string(id))
			if c.privileged {
				leads = append(leads, string(id))
			}
		}
	}
	if rapid.IntRange(0, 3).Draw(p.T, "lead") > 0 {
		refs = leads
	}
	if len(refs) == 0 {
		return "", false
	}
	return journal.CreatureID(p.oneOf(refs)), true
}

// turn makes a creature run a turn of a few calls.
func (p *toolProgram) turn() {
	caller, ok := p.caller()
	if !ok {
		return
	}
	before := p.clone()
	p.sends, p.things, p.vague = nil, nil, false
	p.n++
	turn := toolTurn{
		Name: fmt.Sprintf("turn%d", p.n), Fail: rapid.SampledFrom([]int{0, 0, 0, 1, mostAttempts}).Draw(p.T, "fail"),
		Disturb: rapid.SampledFrom([]int{0, 0, 0, 1, 5}).Draw(p.T, "disturb"),
	}
	if turn.Fail > 0 {
		turn.Disturb = 0
	}
	var want []string
	for range rapid.IntRange(1, 5).Draw(p.T, "calls") {
		call, code := p.call(caller)
		turn.Calls, want = append(turn.Calls, call), append(want, code)
		if p.vague {
			break
		}
	}
	if turn.Disturb > 0 { // an attempt that runs alone cannot be disturbed
		turn.Disturb = min(turn.Disturb, 3)
	}
	payload, err := json.Marshal(turn)
	p.must(err)
	_, err = p.e.SendTo(p.ctx(), caller, engine.Outgoing{Payload: payload})
	p.must(err)
	p.idle()
	if p.sameIDs(turn.Name); turn.Fail == mostAttempts {
		p.toolModel = before
	} else {
		p.answered(caller, turn, want)
		p.land(caller, p.sends)
	}
	p.compare()
}

// job makes a creature call one tool by the operation.
func (p *toolProgram) job() {
	caller, ok := p.caller()
	if !ok {
		return
	}
	p.sends, p.things, p.vague = nil, nil, false
	call, want := p.call(caller)
	b, err := json.Marshal(call.Args)
	p.must(err)
	result, err := p.e.Tool(p.ctx(), caller, call.Tool, b)
	r := toolReply{Result: result}
	if err != nil {
		r.Code, r.Error = abi.CodeOf(err).String(), err.Error()
	}
	p.checkReplies([]toolCall{call}, []toolReply{r}, []string{want})
	p.idle()
	p.land(caller, p.sends)
	p.compare()
}

// sameIDs checks that all attempts of a turn got the same results, because every one of these
// turns sees the same graph.
func (p *toolProgram) sameIDs(turn string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.attempts[turn]
	for _, replies := range all[:len(all)-1] {
		for i, r := range replies {
			if last := all[len(all)-1]; i < len(last) && ids(r) != ids(last[i]) {
				p.Fatalf("call %d of %s returned %s and, when run again, %s", i+1, turn, r.Result, last[i].Result)
			}
		}
	}
}

// ids returns the ids of what a call has added.
func ids(r toolReply) string {
	var out struct{ Creature, Channel string }
	if json.Unmarshal(r.Result, &out) != nil {
		return r.Code
	}
	return out.Creature + " " + out.Channel
}

// answered checks the results that a turn got.
func (p *toolProgram) answered(caller journal.CreatureID, turn toolTurn, want []string) {
	entries, err := p.e.State(p.ctx(), caller, "replies")
	p.must(err)
	var replies []toolReply
	if len(entries) == 1 {
		p.must(json.Unmarshal(entries[0].Value, &replies))
	}
	p.checkReplies(turn.Calls, replies, want)
}

// checkReplies compares codes, and learns the ids of additions.
func (p *toolProgram) checkReplies(calls []toolCall, replies []toolReply, want []string) {
	if len(replies) != len(want) {
		p.Fatalf("%d replies to %d calls", len(replies), len(want))
	}
	for i, r := range replies {
		if r.Code != want[i] {
			p.Fatalf("%s %v returns %q (%s), want %q", calls[i].Tool, calls[i].Args, r.Code, r.Error, want[i])
		}
		if a, ok := calls[i].Args.(args); !ok || calls[i].Tool != "group_add_node" && a["action"] != "create" {
			continue
		}
		thing := p.things[0]
		if p.things = p.things[1:]; r.Code == "" {
			var added newThing
			p.must(json.Unmarshal(r.Result, &struct {
				Creature *journal.CreatureID
				Channel  *journal.ChannelID
			}{&added.creature, &added.channel}))
			p.rename(thing, added)
		}
	}
}

// rename gives additions their real ids.
func (p *toolProgram) rename(from, to newThing) {
	m, c, as, ch, id := p.toolModel, from.creature, to.creature, from.channel, to.channel
	if x := m.creatures[c]; x != nil {
		delete(m.creatures, c)
		m.creatures[as] = x
	}
	x := m.channels[ch]
	if x != nil {
		delete(m.channels, ch)
		m.channels[id] = x
	}
	for _, h := range m.channels {
		if h.with == c && c != "" {
			h.with = as
		}
		if h.direct == c && c != "" {
			h.direct = as
		}
	}
	for _, other := range m.creatures {
		for _, direction := range []string{"listen", "send"} {
			if e := (toolEdge{ch, direction}); x != nil && other.edges[e] {
				delete(other.edges, e)
				other.edges[toolEdge{id, direction}] = true
			}
		}
	}
	for i := range p.sends {
		if s := &p.sends[i]; c != "" && s.to == c {
			s.to = as
		} else if s.channel == ch && ch != "" {
			s.channel = id
		}
	}
}

// compare compares the engine with the model: the creatures, their wiring, the resulting
// graphs, and the messages that every creature has received.
func (p *toolProgram) compare() {
	status, err := p.e.Status("")
	p.must(err)
	m, creatures, channels := p.toolModel, 0, 0
	for _, g := range status {
		for _, ch := range g.Channels {
			p.compareChannel(&ch, g.Creatures)
			channels++
		}
		near := m.around(g.Creatures[0].ID)
		if len(near) != len(g.Creatures) {
			p.Fatalf("%s has %d members, want %v", g.ID, len(g.Creatures), near)
		}
		for _, c := range g.Creatures {
			if !near[c.ID] {
				p.Fatalf("%s (%s) is in %s, want it elsewhere", c.ID, c.Name, g.ID)
			}
			p.compareCreature(&c)
			creatures++
		}
	}
	if creatures != len(m.creatures) || channels != len(m.channels) {
		p.Fatalf("%d creatures and %d channels, want %d and %d", creatures, channels, len(m.creatures), len(m.channels))
	}
}

func (p *toolProgram) compareChannel(ch *inspect.ChannelStatus, members []inspect.CreatureStatus) {
	x := p.toolModel.channels[ch.ID]
	if x == nil {
		p.Fatalf("there is a channel %s (%s) that should not be", ch.ID, ch.Name)
	}
	if p.vague || strings.HasPrefix(x.name, "?") {
		x.name = ch.Name
	}
	if x.name != ch.Name {
		p.Fatalf("%s is called %q, want %q", ch.ID, ch.Name, x.name)
	}
	keeper := p.keeper(ch.ID)
	in := slices.ContainsFunc(members, func(c inspect.CreatureStatus) bool { return c.ID == keeper })
	if !in && (!p.vague || len(ch.Listeners)+len(ch.Senders) > 0) {
		p.Fatalf("%s (%s) is not where %s is", ch.ID, ch.Name, keeper)
	}
	x.with = members[0].ID
}

func (p *toolProgram) compareCreature(c *inspect.CreatureStatus) {
	x := p.toolModel.creatures[c.ID]
	if p.vague {
		x.name = c.Name
	}
	if got := edgesOf(c); !equalEdges(got, x.edges) || c.Name != x.name || c.Privileged != x.privileged || (c.State == "stopped" || c.State == "paused") != x.stopped || (c.State == "paused") != x.paused {
		p.Fatalf("%s is %s, %s, privileged %v, %v; want %s, stopped %v, %v, %v", c.ID, c.Name, c.State, c.Privileged, got, x.name, x.stopped, x.privileged, x.edges)
	}
	entries, err := p.e.State(p.ctx(), c.ID, "heard")
	p.must(err)
	var heard []string
	if len(entries) == 1 {
		heard = strings.Fields(string(entries[0].Value))
	}
	want := slices.Sorted(slices.Values(x.heard))
	if slices.Sort(heard); !slices.Equal(heard, want) {
		p.Fatalf("%s (%s) has heard %q, want %q", c.ID, c.Name, heard, want)
	}
}

func equalEdges(a, b map[toolEdge]bool) bool {
	for e := range a {
		if !b[e] {
			return false
		}
	}
	return len(a) == len(b)
}

// restart closes the engine and restores everything; no recipe is applied from then on.
func (p *toolProgram) restart() {
	if p.dir == "" {
		return
	}
	p.shut()
	*p.o.Seed++ // otherwise ids would be used again
	p.open()
	_, problems, err := p.e.Restore(p.ctx())
	p.must(errors.Join(append(problems, err)...))
	p.applied = false
	p.idle()
	p.compare()
}

func runToolProgram(rt *rapid.T, dir string) {
	p := newToolProgram(rt, dir)
	defer p.shut()
	for range rapid.IntRange(1, 12).Draw(rt, "steps") {
		switch rapid.IntRange(0, 11).Draw(rt, "step") {
		case 0, 1:
			p.job()
		case 2:
			p.restart()
		default:
			p.turn()
		}
	}
}

func TestRandomToolProgramsAgainstAModel(t *testing.T) {
	usually(t, 200)
	rapid.Check(t, func(rt *rapid.T) { runToolProgram(rt, "") })
}

func TestRandomDurableToolProgramsAgainstAModel(t *testing.T) {
	usually(t, 15) // each opens files
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "session")
		if err != nil {
			rt.Fatal(err)
		}
		runToolProgram(rt, dir)
	})
}
