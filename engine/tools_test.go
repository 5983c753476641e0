package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/tools"
	"github.com/seed47132306/terrarium/engine/topology"
)

// toolCall is a call that a message requests of an operator.
type toolCall struct {
	Tool string `json:"tool"`
	Args any    `json:"args,omitempty"`
}

// toolReply is its result.
type toolReply struct {
	Result json.RawMessage `json:"result,omitempty"`
	Code   string          `json:"code,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// operate calls the tools that a message requests, and stores the results in its state.
func operate(t abi.Turn, kind abi.Kind) error {
	if kind != abi.KindMessage {
		return nil
	}
	payload, _ := t.Source(abi.SourcePayload)
	var calls []toolCall
	if err := json.Unmarshal(payload, &calls); err != nil {
		return codeErr(t, t.StateSet([]byte("heard"), payload))
	}
	replies := []toolReply{}
	for _, c := range calls {
		args, err := json.Marshal(c.Args)
		if err != nil {
			return err
		}
		if c.Args == nil {
			args = nil
		}
		result, code := t.Tool([]byte(c.Tool), args)
		r := toolReply{Result: slices.Clone(result)}
		if code != abi.OK {
			r.Code, r.Error = code.String(), t.LastError()
		}
		replies = append(replies, r)
	}
	b, err := json.Marshal(replies)
	if err != nil {
		return err
	}
	return codeErr(t, t.StateSet([]byte("replies"), b))
}

// args are the arguments of a tool.
type args map[string]any

// crew is a deployment with a privileged lead, a root, two members and two species.
func crew(name string, more ...func(*deploy.Deployment)) *deploy.Deployment {
	member := func(n, module string, listen, send []string) deploy.CreatureSpec {
		spec := deploy.CreatureSpec{Address: "creature." + n, Name: n, Module: module, Wasm: []byte(module)}
		for _, ch := range listen {
			spec.Listen = append(spec.Listen, deploy.WireSpec{Channel: "channel." + ch})
		}
		for _, ch := range send {
			spec.Send = append(spec.Send, deploy.WireSpec{Channel: "channel." + ch})
		}
		return spec
	}
	d := &deploy.Deployment{
		Name:     name,
		Channels: []deploy.ChannelSpec{{Address: "channel.orders", Name: "orders"}, {Address: "channel.work", Name: "work"}},
		Creatures: []deploy.CreatureSpec{
			member("lead", "operator", []string{"orders"}, []string{"work"}),
			member("ann", "record", []string{"work"}, nil),
			member("bob", "operator", []string{"work"}, []string{"orders"}),
		},
		Species: []deploy.SpeciesSpec{
			{Name: "scribe", Spec: deploy.CreatureSpec{Module: "record", Wasm: []byte("record")}, Spawnable: 3},
			{Name: "clerk", Spec: deploy.CreatureSpec{Module: "operator", Wasm: []byte("operator")}, Spawnable: 1},
			{Name: "hidden", Spec: deploy.CreatureSpec{Module: "record", Wasm: []byte("record")}},
		},
	}
	d.Creatures[0].Privileged = true
	for _, f := range more {
		f(d)
	}
	return d
}

func allowMerge(d *deploy.Deployment) { d.Session.AllowMerge = true }

func operators() *fakeHost {
	h := newFakeHost()
	h.on("operator", operate)
	return h
}

// ask sends calls to a creature and returns their results.
func (w *world) ask(c journal.CreatureID, calls ...toolCall) []toolReply {
	w.t.Helper()
	payload, err := json.Marshal(calls)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.SendTo(w.t.Context(), c, engine.Outgoing{Payload: payload}); err != nil {
		w.t.Fatal(err)
	}
	w.wait()
	var replies []toolReply
	if err := json.Unmarshal([]byte(w.state(c, "replies")), &replies); err != nil {
		w.t.Fatalf("the replies of %s: %v", c, err)
	}
	if len(replies) != len(calls) {
		w.t.Fatalf("%d replies to %d calls", len(replies), len(calls))
	}
	return replies
}

// answer decodes the result of a call that must succeed.
func answer[R any](t testing.TB, r toolReply) (out R) {
	t.Helper()
	if r.Code != "" {
		t.Fatalf("%s: %s", r.Code, r.Error)
	}
	if err := json.Unmarshal(r.Result, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func (w *world) creatureIn(id journal.CreatureID) (inspect.CreatureStatus, inspect.GraphStatus) {
	w.t.Helper()
	for _, g := range w.status() {
		for _, c := range g.Creatures {
			if c.ID == id {
				return c, g
			}
		}
	}
	return inspect.CreatureStatus{}, inspect.GraphStatus{}
}

func TestATurnSeesWhatItHasStaged(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	a := s.apply(crew("crew"))
	lead := a.Creatures["creature.lead"]
	replies := s.ask(lead,
		toolCall{"group_channel", args{"action": "create", "name": "notes"}},
		toolCall{"group_add_node", args{"species": "scribe", "name": "eve", "listen": []args{{"channel": "notes"}}}},
		toolCall{"group_channel", args{"action": "wire", "channel": "notes", "creature": "lead", "direction": "send"}},
		toolCall{"send_channel", args{"channel": "notes", "payload": "hello"}},
		toolCall{"group_send", args{"creature": "eve", "payload": "psst"}},
		toolCall{"group_status", nil},
	)
	eve := answer[tools.AddNodeResult](t, replies[1])
	status := answer[tools.GroupStatus](t, replies[5])
	if !slices.ContainsFunc(status.Creatures, func(m tools.GroupMember) bool { return m.ID == eve.Creature && m.Parent == lead && !m.Privileged }) {
		t.Errorf("the staged status lacks eve: %+v", status.Creatures)
	}
	if got := s.state(eve.Creature, "heard"); got != "notes:hello\neve:psst\n" && got != "notes:hello\ninbox:psst\n" {
		t.Errorf("eve heard %q", got)
	}
	c, _ := s.creatureIn(eve.Creature)
	if c.Parent != lead || c.Privileged || c.Deployment != "crew" {
		t.Errorf("eve is %+v", c)
	}
	s.reopen2(crew("crew"))
}

// reopen2 closes the engine and starts another one, without restoring anything.
func (s *saved) reopen2(*deploy.Deployment) { s.shut(); s.open() }

func TestToolsByCallerAndTarget(t *testing.T) {
	type outcome = string // "" or a code
	w := newWorld(t, engine.Options{Host: operators()})
	a := w.apply(crew("crew", func(d *deploy.Deployment) { d.Root = "creature.lead" }))
	other := w.apply(crew("other"))
	lead, ann, bob := a.Creatures["creature.lead"], a.Creatures["creature.ann"], a.Creatures["creature.bob"]
	clerk := answer[tools.AddNodeResult](t, w.ask(lead, toolCall{"group_add_node", args{"species": "clerk"}})[0]).Creature
	foreign, foreignChannel := other.Creatures["creature.ann"], other.Channels["channel.work"]

	callers := map[string]journal.CreatureID{"privileged": lead, "member": bob, "spawned": clerk}
	targets := map[string]string{
		"worker": string(ann), "worker by name": "ann", "privileged": string(lead), "privileged by name": "lead",
		"foreign worker": string(foreign), "nobody": "cnobody",
	}
	tools := map[string]func(target string) args{
		"group_remove_node": func(x string) args { return args{"creature": x} },
		"group_stop_node":   func(x string) args { return args{"creature": x} },
		"group_start_node":  func(x string) args { return args{"creature": x} },
		"group_send":        func(x string) args { return args{"creature": x, "payload": "p"} },
		"group_channel": func(x string) args {
			return args{"action": "wire", "channel": string(foreignChannel), "creature": x, "direction": "listen"}
		},
		"group_add_node": func(string) args { return args{"species": "hidden"} },
		"group_status":   func(string) args { return args{} },
	}
	want := func(tool, caller, target string) outcome {
		here, privileged := !strings.HasPrefix(target, "foreign") && target != "nobody", strings.HasPrefix(target, "privileged")
		switch {
		case tool == "group_send" && !here:
			return "not_found"
		case tool == "group_send" && caller != "privileged" && !privileged:
			return "not_privileged"
		case tool == "group_send":
			return ""
		case caller != "privileged":
			return "not_privileged"
		case tool == "group_status":
			return ""
		case tool == "group_add_node" || tool == "group_channel" || !here:
			return "not_found"
		case privileged:
			return "not_privileged"
		}
		return ""
	}
	for tool, arguments := range tools {
		for caller, id := range callers {
			for target, ref := range targets {
				if tool == "group_remove_node" && caller == "privileged" && strings.HasPrefix(target, "worker") {
					continue // it would be missing for the other cases
				}
				r := w.ask(id, toolCall{tool, arguments(ref)})[0]
				if want := want(tool, caller, target); r.Code != want {
					t.Errorf("%s by %s on %s: %q (%s), want %q", tool, caller, target, r.Code, r.Error, want)
				}
			}
		}
	}
	if c, _ := w.creatureIn(foreign); c.State != "running" {
		t.Errorf("the worker of the other recipe is %s", c.State)
	}
}

func TestAWorkerWithThePrivilegedOnesNameIsNotIt(t *testing.T) {
	w := newWorld(t, engine.Options{Host: operators()})
	a := w.apply(crew("crew", allowMerge))
	b := w.apply(crew("other", allowMerge))
	lead, foreign := a.Creatures["creature.lead"], b.Creatures["creature.bob"]
	// After the merge, the lead of the other recipe has another name, and its bob is an
	// ordinary member as before.
	r := w.ask(lead, toolCall{"group_channel", args{"action": "wire", "channel": "work", "creature": string(foreign), "direction": "listen", "merge": true}})
	if d := answer[tools.ChannelResult](t, r[0]).Delta; d.Kind != "merge" {
		t.Fatalf("the delta is %+v", d)
	}
	if r := w.ask(foreign, toolCall{"group_status", nil})[0]; r.Code != "not_privileged" {
		t.Errorf("a worker after a merge: %+v", r)
	}
	if r := w.ask(lead, toolCall{"group_remove_node", args{"creature": string(b.Creatures["creature.lead"])}})[0]; r.Code != "not_privileged" {
		t.Errorf("removing the lead of the other recipe: %+v, want not_privileged", r)
	}
}

func TestMergesNeedBothDeployments(t *testing.T) {
	for _, c := range []struct {
		name        string
		own, other  []func(*deploy.Deployment)
		merge       bool
		want        string
		wantRemains int
	}{
		{"neither", nil, nil, true, "denied", 2},
		{"own only", []func(*deploy.Deployment){allowMerge}, nil, true, "denied", 2},
		{"other only", nil, []func(*deploy.Deployment){allowMerge}, true, "denied", 2},
		{"not asked for", []func(*deploy.Deployment){allowMerge}, []func(*deploy.Deployment){allowMerge}, false, "not_found", 2},
		{"both", []func(*deploy.Deployment){allowMerge}, []func(*deploy.Deployment){allowMerge}, true, "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, engine.Options{Host: operators()})
			a, b := w.apply(crew("own", c.own...)), w.apply(crew("other", c.other...))
			arguments := args{"action": "wire", "channel": string(b.Channels["channel.work"]), "creature": "ann", "direction": "listen"}
			if c.merge {
				arguments["merge"] = true
			}
			r := w.ask(a.Creatures["creature.lead"], toolCall{"group_channel", arguments})[0]
			if r.Code != c.want {
				t.Errorf("%q (%s), want %q", r.Code, r.Error, c.want)
			}
			if n := len(w.status()); n != c.wantRemains {
				t.Errorf("%d graphs, want %d", n, c.wantRemains)
			}
		})
	}
}

func TestSpawnable(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	a := s.apply(crew("crew"))
	lead := a.Creatures["creature.lead"]
	add := toolCall{"group_add_node", args{"species": "scribe"}}
	replies := s.ask(lead, add, add, add, add)
	var names []string
	for _, r := range replies[:3] {
		names = append(names, answer[tools.AddNodeResult](t, r).Name)
	}
	if !slices.Equal(names, []string{"scribe-1", "scribe-2", "scribe-3"}) {
		t.Errorf("the names are %v", names)
	}
	if replies[3].Code != "limit" || !strings.Contains(replies[3].Error, "spawnable: 3") {
		t.Errorf("a spawn beyond the limit: %+v", replies[3])
	}
	replies = s.ask(lead, toolCall{"group_remove_node", args{"creature": "scribe-2"}}, add, add)
	if n := answer[tools.AddNodeResult](t, replies[1]).Name; n != "scribe-2" || replies[2].Code != "limit" {
		t.Errorf("after a removal: %s, %+v", n, replies[2])
	}
	if replies := s.ask(lead, toolCall{"group_add_node", args{"species": "hidden"}}); replies[0].Code != "not_found" {
		t.Errorf("a spawn of a species that may not be spawned: %+v", replies[0])
	}
}

func TestAFailedTurnLeavesNothingOfItsTools(t *testing.T) {
	h := operators()
	var calls atomic.Int32
	h.on("unlucky", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			return nil
		}
		if _, code := t.Tool([]byte("group_add_node"), []byte(`{"species": "scribe", "name": "eve"}`)); code != abi.OK {
			return codeErr(t, code)
		}
		if calls.Add(1) < 3 {
			return &abi.Error{Code: abi.Trapped, Message: "unreachable"}
		}
		return nil
	})
	s := newSaved(t, engine.Options{Host: h})
	a := s.apply(crew("crew", func(d *deploy.Deployment) {
		d.Creatures[0].Module, d.Creatures[0].Wasm = "unlucky", []byte("unlucky")
		d.Creatures[0].Restart = deploy.RestartPolicy{Attempts: 5, Backoff: 1}
	}))
	s.send(a.Channels["channel.orders"], "go")
	s.wait()
	n := 0
	for _, c := range s.status()[0].Creatures {
		if c.Name == "eve" {
			n++
		}
	}
	if n != 1 || calls.Load() != 3 {
		t.Errorf("%d creatures named eve after %d attempts, want one after three", n, calls.Load())
	}
}

// TestConflictsRunAgain makes a lead read the graph and then change it, after another lead has
// changed the graph in between.
func TestConflictsRunAgain(t *testing.T) {
	h := operators()
	looked, changed := make(chan struct{}), make(chan struct{})
	turn := func(i int, between func()) func(t abi.Turn, kind abi.Kind) error {
		return func(t abi.Turn, kind abi.Kind) error {
			if kind != abi.KindMessage {
				return nil
			}
			if _, code := t.Tool([]byte("group_status"), nil); code != abi.OK {
				return codeErr(t, code)
			}
			between()
			_, code := t.Tool([]byte("group_add_node"), fmt.Appendf(nil, `{"species": "scribe", "name": "of%d"}`, i))
			return codeErr(t, code)
		}
	}
	h.on("rival0", turn(0, func() { <-looked }))
	h.on("rival1", turn(1, sync.OnceFunc(func() { close(looked); <-changed })))
	w := newWorld(t, engine.Options{Host: h, Workers: 3})
	a := w.apply(crew("crew", func(d *deploy.Deployment) {
		for i := range 2 {
			name := fmt.Sprintf("rival%d", i)
			d.Creatures = append(d.Creatures, deploy.CreatureSpec{
				Address: "creature." + name, Name: name, Module: name, Wasm: []byte(name), Privileged: true,
				Listen: []deploy.WireSpec{{Channel: "channel.orders"}},
			})
		}
	}))
	count := func() (found int, conflicts uint64) {
		for _, c := range w.status()[0].Creatures {
			if strings.HasPrefix(c.Name, "of") {
				found++
			}
			conflicts += c.Counters.Conflicts
		}
		return found, conflicts
	}
	w.send(a.Channels["channel.orders"], `[]`)
	for found := 0; found == 0; found, _ = count() {
		runtime.Gosched()
	}
	close(changed)
	w.wait()
	if found, conflicts := count(); found != 2 || conflicts != 1 {
		t.Errorf("%d of 2 nodes were added, with %d conflicts", found, conflicts)
	}
}

// TestAlwaysInConflict covers a turn whose graph changes each time after the turn has read it.
func TestAlwaysInConflict(t *testing.T) {
	h := operators()
	look, changed := make(chan bool), make(chan bool)
	var runs atomic.Int32
	h.on("slow", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			return nil
		}
		if _, code := t.Tool([]byte("group_status"), nil); code != abi.OK {
			return codeErr(t, code)
		}
		if runs.Add(1) <= 3 { // the fourth time no other change is possible
			look <- true
			<-changed
		}
		_, code := t.Tool([]byte("group_channel"), []byte(`{"action": "create", "name": "mine"}`))
		return codeErr(t, code)
	})
	w := newWorld(t, engine.Options{Host: h})
	a := w.apply(crew("crew", func(d *deploy.Deployment) { d.Creatures[0].Module, d.Creatures[0].Wasm = "slow", []byte("slow") }))
	w.send(a.Channels["channel.orders"], "go")
	for i := range 3 {
		<-look
		if _, err := w.AddChannel(t.Context(), w.graph(a.Creatures["creature.lead"]), fmt.Sprint("theirs", i), ""); err != nil {
			t.Fatal(err)
		}
		changed <- true
	}
	w.wait()
	if _, err := w.FindChannel(w.graph(a.Creatures["creature.lead"]), "mine"); err != nil || runs.Load() != 4 {
		t.Errorf("after %d runs, want 4, looking up the channel: %v", runs.Load(), err)
	}
}

func TestToolAsOperation(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	a := s.apply(crew("crew"))
	lead, bob := a.Creatures["creature.lead"], a.Creatures["creature.bob"]
	result, err := s.Tool(t.Context(), lead, "group_add_node", []byte(`{"species": "scribe", "name": "eve"}`))
	var added tools.AddNodeResult
	if err == nil {
		err = json.Unmarshal(result, &added)
	}
	if err != nil || added.Name != "eve" || added.Channel == "" {
		t.Fatalf("%s, %v", result, err)
	}
	if _, err := s.Tool(t.Context(), lead, "send_channel", []byte(`{"channel": "work", "payload": "dig"}`)); err != nil {
		t.Error(err)
	}
	s.wait()
	if got := s.state(a.Creatures["creature.ann"], "heard"); got != "work:dig\n" {
		t.Errorf("ann heard %q", got)
	}
	for _, c := range []struct {
		caller     journal.CreatureID
		name, args string
		want       abi.Code
	}{
		{bob, "group_status", "", abi.NotPrivileged},
		{lead, "group_status", `{"verbose": true}`, abi.InvalidArgument},
		{lead, "group_dance", "", abi.NotFound},
		{lead, "group_add_node", `{"species": "scribe", "name": "eve"}`, abi.AlreadyExists},
		{lead, "group_add_node", `{`, abi.InvalidArgument},
		{lead, "group_remove_node", `{"creature": "lead"}`, abi.NotPrivileged},
		{"cnobody", "group_status", "", abi.NotFound},
	} {
		_, err := s.Tool(t.Context(), c.caller, c.name, []byte(c.args))
		if !errors.Is(err, &abi.Error{Code: c.want}) {
			t.Errorf("%s %s: %v, want %s", c.name, c.args, err, c.want)
		}
	}
	s.change(topology.SetStopped{ID: lead, Stopped: true})
	if _, err := s.Tool(t.Context(), lead, "group_status", nil); !errors.Is(err, &abi.Error{Code: abi.Stopped}) {
		t.Errorf("a call on behalf of a stopped creature: %v", err)
	}
}

// TestATurnThatCutsIsWhole sends, writes and requests a removal that splits the graph in one
// turn. All of that still holds after a restart.
func TestATurnThatCutsIsWhole(t *testing.T) {
	h := operators()
	h.on("cutter", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			return nil
		}
		if _, code := t.Tool([]byte("group_remove_node"), []byte(`{"creature": "bridge"}`)); code != abi.OK {
			return codeErr(t, code)
		}
		if code := t.StateSet([]byte("cut"), []byte("yes")); code != abi.OK {
			return codeErr(t, code)
		}
		if code := t.TimerSet([]byte("later"), 1<<50, 0, nil); code != abi.OK {
			return codeErr(t, code)
		}
		t.Output([]byte("cut"))
		return status(t, t.Send(abi.AllChannels, []byte("bye"), nil))
	})
	s := newSaved(t, engine.Options{Host: h})
	cutter := s.add("cutter", "cutter", func(c *deploy.CreatureSpec) { c.Privileged = true })
	near, bridge, far := s.add("near", "record"), s.add("bridge", "relay"), s.add("far", "record")
	s.connect(cutter, near, "near")
	s.connect(cutter, bridge, "middle")
	s.connect(bridge, far, "far")
	before := s.graph(cutter)
	if _, err := s.SendTo(t.Context(), cutter, engine.Outgoing{Payload: []byte("go")}); err != nil {
		t.Fatal(err)
	}
	s.wait()
	check := func(when string) {
		t.Helper()
		if got := s.state(near, "heard"); got != "near:bye\n" {
			t.Errorf("%s: near heard %q", when, got)
		}
		if s.state(cutter, "cut") != "yes" || s.graph(far) == s.graph(cutter) {
			t.Errorf("%s: state %q, graphs %s and %s", when, s.state(cutter, "cut"), s.graph(cutter), s.graph(far))
		}
		timers, err := s.Timers(cutter)
		if err != nil || len(timers) != 1 {
			t.Errorf("%s: timers %v, %v", when, timers, err)
		}
		if n := len(s.events(cutter, journal.EventTurnEnded)); n == 0 {
			t.Errorf("%s: no turn", when)
		}
		outputs := 0
		for _, ev := range s.events(cutter, journal.EventOutput) {
			if string(ev.Payload) == "cut" {
				outputs++
			}
		}
		if outputs != 1 {
			t.Errorf("%s: %d outputs", when, outputs)
		}
		if s.creatureGone(bridge) {
			return
		}
		t.Errorf("%s: the bridge still exists", when)
	}
	check("at once")
	if s.graph(cutter) != before && s.graph(far) != before {
		t.Errorf("no graph kept the id %s", before)
	}
	s.reopen()
	s.wait()
	check("after a restart")
}

func (w *world) creatureGone(id journal.CreatureID) bool {
	c, _ := w.creatureIn(id)
	return c.ID == ""
}
