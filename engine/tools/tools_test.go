package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/tools"
)

func TestRefusals(t *testing.T) {
	for what, c := range map[string]struct {
		caller     journal.CreatureID
		tool, args string
		code       abi.Code
		says       string
	}{
		"status of a worker":      {"ann-id", "group_status", ``, abi.NotPrivileged, "only privileged creatures"},
		"a worker adds":           {"ann-id", "group_add_node", `{"species":"clerk"}`, abi.NotPrivileged, ""},
		"a worker removes":        {"ann-id", "group_remove_node", `{"creature":"bob"}`, abi.NotPrivileged, ""},
		"a worker stops":          {"ann-id", "group_stop_node", `{"creature":"bob"}`, abi.NotPrivileged, ""},
		"a worker starts":         {"ann-id", "group_start_node", `{"creature":"bob"}`, abi.NotPrivileged, ""},
		"a worker pauses":         {"ann-id", "group_pause_node", `{"creature":"bob"}`, abi.NotPrivileged, ""},
		"a worker resumes":        {"ann-id", "group_resume_node", `{"creature":"bob"}`, abi.NotPrivileged, ""},
		"a worker makes channels": {"ann-id", "group_channel", `{"action":"create","name":"n"}`, abi.NotPrivileged, ""},
		"a worker wires":          {"ann-id", "group_wire", `{"action":"add","from":"ann","to":"bob"}`, abi.NotPrivileged, ""},
		"a worker lists wires":    {"ann-id", "group_wire", `{"action":"list"}`, abi.NotPrivileged, ""},
		"a worker to a worker":    {"ann-id", "group_send", `{"creature":"bob","payload":""}`, abi.NotPrivileged, "a worker may send only to privileged creatures"},

		"send to no member":     {"lead-id", "group_send", `{"creature":"eve","payload":""}`, abi.NotFound, `no creature "eve" in this graph`},
		"send to another graph": {"lead-id", "group_send", `{"creature":"x-id","payload":""}`, abi.NotFound, "in this graph"},
		"send to no root":       {"x-id", "group_send", `{"creature":"root","payload":""}`, abi.NotFound, ""},
		"send too much":         {"lead-id", "group_send", `{"creature":"ann","payload":"too much"}`, abi.LimitExceeded, ""},
		"no such alias":         {"lead-id", "send_channel", `{"channel":"in","payload":""}`, abi.NotConnected, `it sends on "out"`},
		"on nothing yet":        {"bob-id", "send_channel", `{"channel":"talk","payload":""}`, abi.NotConnected, `it sends on "report_to_root"`},
		"a header":              {"lead-id", "send_channel", `{"channel":"out","payload":"","headers":{"":"x"}}`, abi.InvalidArgument, "a header has no name"},
		"send on too much":      {"lead-id", "send_channel", `{"channel":"out","payload":"too much"}`, abi.LimitExceeded, ""},

		"no species":          {"lead-id", "group_add_node", `{"species":"bear"}`, abi.NotFound, ""},
		"a bad name":          {"lead-id", "group_add_node", `{"species":"clerk","name":"a\u0000"}`, abi.InvalidArgument, ""},
		"a name that is used": {"lead-id", "group_add_node", `{"species":"clerk","name":"ann"}`, abi.AlreadyExists, ""},
		"on no channel":       {"lead-id", "group_add_node", `{"species":"clerk","listen":[{"channel":"none"}]}`, abi.NotFound, `no channel "none"`},
		"on a far channel":    {"lead-id", "group_add_node", `{"species":"clerk","send":[{"channel":"far-id"}]}`, abi.NotFound, ""},
		"a bad alias":         {"lead-id", "group_add_node", `{"species":"clerk","send":[{"channel":"talk","alias":"\u0000"}]}`, abi.InvalidArgument, ""},
		"remove no member":    {"lead-id", "group_remove_node", `{"creature":"eve"}`, abi.NotFound, ""},
		"remove itself":       {"lead-id", "group_remove_node", `{"creature":"lead"}`, abi.NotPrivileged, "tools cannot remove, stop, start or pause a privileged creature"},
		"stop the root":       {"lead-id", "group_stop_node", `{"creature":"root"}`, abi.NotPrivileged, ""},
		"start another graph": {"lead-id", "group_start_node", `{"creature":"x-id"}`, abi.NotFound, ""},

		"no action":            {"lead-id", "group_channel", `{}`, abi.InvalidArgument, ""},
		"another action":       {"lead-id", "group_channel", `{"action":"paint"}`, abi.InvalidArgument, ""},
		"create without name":  {"lead-id", "group_channel", `{"action":"create"}`, abi.InvalidArgument, "create needs the argument name"},
		"create wired":         {"lead-id", "group_channel", `{"action":"create","name":"n","creature":"ann"}`, abi.InvalidArgument, "create does not take the argument creature"},
		"delete named":         {"lead-id", "group_channel", `{"action":"delete","channel":"talk","name":"n"}`, abi.InvalidArgument, "does not take"},
		"unwire and merge":     {"lead-id", "group_channel", `{"action":"unwire","channel":"talk","creature":"ann","direction":"send","merge":true}`, abi.InvalidArgument, "does not take the argument merge"},
		"a channel twice":      {"lead-id", "group_channel", `{"action":"create","name":"talk"}`, abi.AlreadyExists, ""},
		"a bad channel name":   {"lead-id", "group_channel", `{"action":"create","name":"\u0000"}`, abi.InvalidArgument, ""},
		"delete nothing":       {"lead-id", "group_channel", `{"action":"delete","channel":"none"}`, abi.NotFound, ""},
		"delete far":           {"lead-id", "group_channel", `{"action":"delete","channel":"far-id"}`, abi.NotFound, ""},
		"delete the report":    {"lead-id", "group_channel", `{"action":"delete","channel":"report_to_root"}`, abi.Denied, "the deployment reports to its root"},
		"unwire the report":    {"lead-id", "group_channel", `{"action":"unwire","channel":"report_to_root","creature":"ann","direction":"send"}`, abi.Denied, "remove the root, which also removes this channel"},
		"wire no member":       {"lead-id", "group_channel", `{"action":"wire","channel":"talk","creature":"eve","direction":"send"}`, abi.NotFound, ""},
		"wire sideways":        {"lead-id", "group_channel", `{"action":"wire","channel":"talk","creature":"ann","direction":"up"}`, abi.InvalidArgument, ""},
		"wire far":             {"lead-id", "group_channel", `{"action":"wire","channel":"far-id","creature":"ann","direction":"send"}`, abi.NotFound, ""},
		"merge without leave":  {"lead-id", "group_channel", `{"action":"wire","channel":"far-id","creature":"ann","direction":"send","merge":true}`, abi.Denied, `"crew" does not allow`},
		"merge a creature":     {"lead-id", "group_channel", `{"action":"wire","channel":"talk","creature":"x-id","direction":"listen","merge":true}`, abi.Denied, "does not allow"},
		"merge elsewhere":      {"lead-id", "group_channel", `{"action":"wire","channel":"far-id","creature":"x-id","direction":"listen","merge":true}`, abi.InvalidArgument, "neither the creature nor the channel"},
		"far by name":          {"lead-id", "group_channel", `{"action":"wire","channel":"talk","creature":"x","direction":"listen","merge":true}`, abi.NotFound, ""},
		"an alias that is bad": {"lead-id", "group_channel", `{"action":"wire","channel":"talk","creature":"ann","direction":"send","alias":"\u0000"}`, abi.InvalidArgument, ""},

		"wire without target":   {"lead-id", "group_wire", `{"action":"add","from":"ann"}`, abi.InvalidArgument, "add needs the argument to"},
		"wire with after":       {"lead-id", "group_wire", `{"action":"add","from":"ann","to":"bob","after":"w"}`, abi.InvalidArgument, "does not take the argument after"},
		"list with prompt":      {"lead-id", "group_wire", `{"action":"list","prompt":"p"}`, abi.InvalidArgument, "does not take"},
		"wire from no member":   {"lead-id", "group_wire", `{"action":"add","from":"eve","to":"bob"}`, abi.NotFound, ""},
		"wire to no member":     {"lead-id", "group_wire", `{"action":"add","from":"bob","to":"eve"}`, abi.NotFound, ""},
		"wire to another graph": {"lead-id", "group_wire", `{"action":"add","from":"bob","to":"x-id"}`, abi.NotFound, ""},
		"wire by no predicate":  {"lead-id", "group_wire", `{"action":"add","from":"bob","to":"ann","when":"big"}`, abi.NotFound, "no predicate"},
		"remove no wire":        {"lead-id", "group_wire", `{"action":"remove","wire":"w"}`, abi.NotFound, ""},
		"remove none of bob":    {"lead-id", "group_wire", `{"action":"remove","wire":"w","from":"bob"}`, abi.NotFound, ""},
		"remove of no member":   {"lead-id", "group_wire", `{"action":"remove","wire":"w","from":"eve"}`, abi.NotFound, `"eve"`},
		"list of no member":     {"lead-id", "group_wire", `{"action":"list","from":"eve"}`, abi.NotFound, ""},
		"list behind nothing":   {"lead-id", "group_wire", `{"action":"list","after":"w"}`, abi.NotFound, "to continue after"},
		"list too many":         {"lead-id", "group_wire", `{"action":"list","limit":65}`, abi.InvalidArgument, ""},
		"status behind nothing": {"lead-id", "group_status", `{"after":"w"}`, abi.NotFound, "to continue after"},
		"status of too many":    {"lead-id", "group_status", `{"limit":257}`, abi.InvalidArgument, ""},
		"a name twice":          {"lead-id", "group_status", `{"limit":1,"LIMIT":2}`, abi.InvalidArgument, "twice"},
		"a surplus name":        {"lead-id", "group_status", `{"color":1}`, abi.InvalidArgument, "the tool takes after, limit"},
		"not UTF-8":             {"lead-id", "group_status", "{\"\xff\":1}", abi.InvalidArgument, "not UTF-8"},
	} {
		t.Run(what, func(t *testing.T) {
			turn := begin(t, crew(t), c.caller)
			before := turn.w.Topo.Snapshot()
			_, err := turn.call(c.tool, c.args)
			refused(t, err, c.code, c.says)
			if !reflect.DeepEqual(turn.w.Topo.Snapshot(), before) || turn.use.Len() != 0 || len(turn.sent) != 0 {
				t.Error("a refused call leaves something")
			}
			for _, n := range turn.nodes {
				if n.discarded != 1 {
					t.Errorf("a prepared node is discarded %d times", n.discarded)
				}
			}
		})
	}
}

func TestSends(t *testing.T) {
	turn := begin(t, crew(t), "lead-id")
	for _, ref := range []string{"out", "talk", "talk-id"} {
		if r := ok[tools.SendChannelResult](turn, "send_channel", `{"channel":"`+ref+`","payload":"hi","headers":{"a":"b"}}`); r.Channel != "talk-id" {
			t.Errorf("%s is %s", ref, r.Channel)
		}
	}
	for _, ref := range []string{"ann", "ann-id"} {
		if r := ok[tools.GroupSendResult](turn, "group_send", `{"creature":"`+ref+`","payload":{"base64":"aGk="}}`); r.Creature != "ann-id" {
			t.Errorf("%s is %s", ref, r.Creature)
		}
	}
	added := ok[tools.AddNodeResult](turn, "group_add_node", `{"species":"clerk","name":"eve"}`)
	ok[tools.GroupSendResult](turn, "group_send", `{"creature":"eve","payload":"you"}`)
	ok[tools.SendChannelResult](turn, "send_channel", `{"channel":"`+string(added.Channel)+`","payload":"you"}`)
	want := []string{"talk-id as out: hi map[a:b]", "talk-id as out: hi map[a:b]", "talk-id as out: hi map[a:b]", "ann-id: hi map[]", "ann-id: hi map[]", string(added.Creature) + ": you map[]", string(added.Channel) + " as eve: you map[]"}
	if len(turn.sent) != len(want) {
		t.Fatalf("sent is %q", turn.sent)
	}
	for i, got := range turn.sent {
		if !strings.HasPrefix(got, want[i]+" ") {
			t.Errorf("sent is %q, want %q", got, want[i])
		}
	}
	worker := begin(t, turn.w, "ann-id")
	for _, ref := range []string{"root", "lead", "lead-id"} {
		if r := ok[tools.GroupSendResult](worker, "group_send", `{"creature":"`+ref+`","payload":""}`); r.Creature != "lead-id" {
			t.Errorf("%s is %s", ref, r.Creature)
		}
	}
}

// session calls each tool that edits, and returns the results.
func session(turn *turn) []string {
	var said []string
	for _, c := range [][2]string{
		{"group_add_node", `{"species":"clerk"}`}, {"group_add_node", `{"species":"lib/scribe","listen":[{"channel":"talk","alias":"t"}]}`},
		{"group_channel", `{"action":"create","name":"notes","description":"found"}`},
		{"group_channel", `{"action":"wire","channel":"notes","creature":"clerk-1","direction":"send","alias":"n"}`},
		{"group_wire", `{"action":"add","from":"ann","to":"clerk-1","name":"told"}`}, {"group_wire", `{"action":"add","from":"ann","to":"root"}`},
		{"group_wire", `{"action":"list","from":"ann"}`}, {"group_stop_node", `{"creature":"bob"}`}, {"group_start_node", `{"creature":"scribe-1"}`},
		{"group_status", ``}, {"group_wire", `{"action":"remove","from":"ann","wire":"told"}`},
		{"group_channel", `{"action":"unwire","channel":"notes","creature":"clerk-1","direction":"send"}`},
		{"group_channel", `{"action":"delete","channel":"notes"}`}, {"group_remove_node", `{"creature":"bob"}`},
	} {
		text, err := turn.call(c[0], c[1])
		if err != nil {
			turn.t.Fatalf("%s %s: %v", c[0], c[1], err)
		}
		said = append(said, text)
	}
	return said
}

func TestASession(t *testing.T) {
	w := crew(t)
	turn := begin(t, w, "lead-id")
	before := w.Topo.Snapshot()
	first := session(turn)
	if !reflect.DeepEqual(w.Topo.Snapshot(), before) {
		t.Error("what is staged is real already")
	}
	again := begin(t, w, "lead-id")
	if second := session(again); !reflect.DeepEqual(first, second) {
		t.Errorf("the same calls answer\n%q\nand\n%q", first, second)
	}
	var prepared int
	for range again.use.Prepared {
		prepared++
	}
	again.use.Discard()
	again.use.Discard()
	for _, n := range again.nodes {
		if n.discarded != 1 || prepared != 2 {
			t.Errorf("%d are prepared, and one is discarded %d times", prepared, n.discarded)
		}
	}
	kept := turn.use
	turn.commit()
	kept.Discard() // kept creatures must not be discarded
	for _, n := range turn.nodes {
		if n.discarded != 0 {
			t.Error("a node that lives is discarded")
		}
		if c, ok := w.Topo.Creature(n.member.ID); !ok || c.Name != n.member.Spec.Name || c.Parent != "lead-id" || c.Stopped {
			t.Errorf("%+v has become %+v", n.member, c)
		}
	}
	var added tools.AddNodeResult
	if err := json.Unmarshal([]byte(first[0]), &added); err != nil || added.Name != "clerk-1" || added.Creature != turn.nodes[0].member.ID || w.Topo.ChannelGraph(added.Channel) == "" {
		t.Errorf("%s: %v", first[0], err)
	}
	if wires := w.Members["ann-id"].Wires; len(wires) != 1 || wires[0].To != journal.ToRoot || !wires[0].WithContent {
		t.Errorf("the wires are %+v", wires)
	}
	if _, there := w.Members["bob-id"]; there {
		t.Error("bob is there still")
	}
	_, err := begin(t, w, "lead-id").call("group_add_node", `{"species":"lib/scribe"}`)
	refused(t, err, abi.LimitExceeded, "spawnable: 1, alive: 1")
}

// If another change removes a target between a call and the commit, the commit
// is refused.
func TestReplayRefusesWhatIsGone(t *testing.T) {
	for _, c := range map[string]struct {
		tool, args string
		gone       string // the call that another turn makes in between
		code       abi.Code
	}{
		"a creature":        {"group_remove_node", `{"creature":"bob"}`, `{"creature":"bob"}`, abi.NotFound},
		"a node to stop":    {"group_stop_node", `{"creature":"bob"}`, `{"creature":"bob"}`, abi.NotFound},
		"the wire's source": {"group_wire", `{"action":"add","from":"bob","to":"ann"}`, `{"creature":"bob"}`, abi.NotFound},
		"the edge's end":    {"group_channel", `{"action":"wire","channel":"talk","creature":"bob","direction":"send"}`, `{"creature":"bob"}`, abi.NotFound},
	} {
		w := crew(t)
		turn, other := begin(t, w, "lead-id"), begin(t, w, "lead-id")
		ok[map[string]any](turn, c.tool, c.args)
		ok[map[string]any](other, "group_remove_node", c.gone)
		other.commit()
		s := turn.stage()
		refused(t, turn.use.Replay(t.Context(), s), c.code, "")
		s.Undo()
	}
}

func TestMergesThatAreAllowed(t *testing.T) {
	const call = `{"action":"wire","channel":"far-id","creature":"ann","direction":"listen","merge":true,"on_collision":"unify"}`
	for what, c := range map[string]struct {
		change func(turn *turn)
		code   abi.Code
	}{
		"by both recipes": {func(turn *turn) {
			for _, d := range turn.w.Applied {
				d.Session.AllowMerge = true
			}
		}, abi.OK},
		"by one":       {func(turn *turn) { turn.w.Applied["crew"].Session.AllowMerge = true }, abi.Denied},
		"by the store": {func(turn *turn) { turn.merges = true; clear(turn.w.Applied) }, abi.OK},
		"by neither":   {func(turn *turn) { clear(turn.w.Applied) }, abi.Denied},
	} {
		turn := begin(t, crew(t), "lead-id")
		c.change(turn)
		text, err := turn.call("group_channel", call)
		if abi.CodeOf(err) != c.code && !(c.code == abi.OK && err == nil) {
			t.Errorf("%s: %v", what, err)
		}
		var r tools.ChannelResult
		if err == nil && (json.Unmarshal([]byte(text), &r) != nil || len(r.Delta.OldGraphs) != 2 || len(r.Delta.Unified) != 1) {
			t.Errorf("%s: %s", what, text)
		}
	}
}

func TestStatusAndWiresComeInParts(t *testing.T) {
	w := crew(t)
	turn := begin(t, w, "lead-id")
	w.States["bob-id"] = journal.Quarantined
	for i := range 5 {
		ok[tools.WireResult](turn, "group_wire", fmt.Sprintf(`{"action":"add","from":"ann","to":"bob","name":"w%d","prompt":%q}`, i, strings.Repeat("é", 200+i)))
	}
	whole := ok[tools.GroupStatus](turn, "group_status", ``)
	if whole.Next != "" || whole.Totals != (tools.GroupTotals{Creatures: 3, Channels: 2, Wires: 5}) || whole.Self != "lead-id" || len(whole.Spawnable) != 2 || whole.Spawnable[0].Species != "clerk" {
		t.Errorf("%+v", whole)
	}
	if bob := whole.Creatures[2]; bob.State != journal.Quarantined || bob.Pending != 3 || whole.Channels[0].Head != 9 || whole.Channels[0].Description != "talks" || !strings.HasPrefix(whole.Wires[0].Prompt, strings.Repeat("é", 120)) || len(whole.Wires[0].Prompt) > 256+len("…") {
		t.Errorf("%+v", whole)
	}
	var parts tools.GroupStatus
	for after, n := "", 0; ; n++ {
		p := ok[tools.GroupStatus](turn, "group_status", fmt.Sprintf(`{"limit":3,"after":%q}`, after))
		if got := len(p.Creatures) + len(p.Channels) + len(p.Wires); got > 3 || n > 0 && len(p.Spawnable) > 0 || p.Totals != whole.Totals {
			t.Errorf("part %d is %+v", n, p)
		}
		parts.Creatures, parts.Channels, parts.Wires = append(parts.Creatures, p.Creatures...), append(parts.Channels, p.Channels...), append(parts.Wires, p.Wires...)
		if after = p.Next; after == "" {
			break
		}
	}
	if !reflect.DeepEqual(parts.Creatures, whole.Creatures) || !reflect.DeepEqual(parts.Channels, whole.Channels) || !reflect.DeepEqual(parts.Wires, whole.Wires) {
		t.Errorf("the parts are\n%+v\nof\n%+v", parts, whole)
	}
	list := ok[tools.WireResult](turn, "group_wire", `{"action":"list","limit":4}`)
	rest := ok[tools.WireResult](turn, "group_wire", fmt.Sprintf(`{"action":"list","from":"ann","after":%q}`, list.Next))
	if len(list.Wires) != 4 || len(rest.Wires) != 1 || rest.Next != "" || len(rest.Wires[0].Prompt) < 400 {
		t.Errorf("%+v\n%+v", list, rest)
	}
	if none := ok[tools.WireResult](turn, "group_wire", `{"action":"list","from":"bob"}`); none.Wires == nil || len(none.Wires) != 0 {
		t.Errorf("%+v", none)
	}
}

func TestListingsAreBounded(t *testing.T) {
	w := crew(t)
	turn := begin(t, w, "lead-id")
	for i := range 40 {
		ok[tools.ChannelResult](turn, "group_channel", fmt.Sprintf(`{"action":"create","name":"c%d"}`, i))
		ok[tools.ChannelResult](turn, "group_channel", fmt.Sprintf(`{"action":"wire","channel":"c%d","creature":"ann","direction":"send"}`, i))
	}
	turn.commit()
	for i := range 64 {
		ok[tools.WireResult](turn, "group_wire", fmt.Sprintf(`{"action":"add","from":"ann","to":"bob","name":"w%d","prompt":"%d"}`, i, i))
	}
	turn.commit()
	ok[tools.WireResult](turn, "group_wire", `{"action":"add","from":"bob","to":"ann"}`)
	list := ok[tools.WireResult](turn, "group_wire", `{"action":"list"}`)
	if len(list.Wires) != 64 || list.Next != string(list.Wires[63].ID) {
		t.Errorf("%d wires, next is %s", len(list.Wires), list.Next)
	}
	status := ok[tools.GroupStatus](turn, "group_status", ``)
	if ann := status.Creatures[1]; len(ann.Send) != 32 || ann.Truncated != 9 { // with the report
		t.Errorf("ann sends on %d and %d more", len(ann.Send), ann.Truncated)
	}
	_, err := begin(t, w, "ann-id").call("send_channel", `{"channel":"none","payload":""}`)
	refused(t, err, abi.NotConnected, "and 33 more, listed in its awareness document")
}

// no is a policy that denies every event.
type no struct{ deploy.Policy }

func (no) Judges(journal.PolicyKind) bool { return true }

func (no) Judge(context.Context, *deploy.PolicyEvent) deploy.Decision {
	return deploy.Decision{Words: deploy.Words{Denials: []deploy.Verdict{{Policy: "strict"}}}}
}

func TestWhatPoliciesRefuseIsNoted(t *testing.T) {
	w := crew(t)
	w.Applied["crew"].Policy = no{}
	for _, c := range [][2]string{{"group_add_node", `{"species":"clerk"}`}, {"group_remove_node", `{"creature":"ann"}`}, {"group_wire", `{"action":"add","from":"ann","to":"bob"}`}} {
		turn := begin(t, w, "lead-id")
		_, err := turn.call(c[0], c[1])
		refused(t, err, abi.Denied, "policy strict")
		if len(turn.refused) != 1 || turn.refused[0].Call != c[0] || turn.refused[0].Home != (draft.Home{Graph: w.Topo.GraphOf("lead-id")}) || turn.use.Len() != 0 {
			t.Errorf("%s notes %+v", c[0], turn.refused)
		}
	}
}

func TestWhichToolsThereAre(t *testing.T) {
	if all := strings.Join(tools.For(true), ", "); all != tools.Names() || strings.Join(tools.For(false), " ") != "send_channel group_send" || tools.ByName("dance") != nil {
		t.Errorf("the tools are %s; without privilege %v", all, tools.For(false))
	}
}

// FuzzTool passes any arguments to each tool. Valid arguments succeed or are
// refused, and a refusal changes nothing.
func FuzzTool(f *testing.F) {
	for i := range tools.List() {
		for _, text := range []string{`{}`, `{"creature":"bob","payload":"x"}`, `{"species":"clerk","config":{"a":1}}`, `{"action":"list","limit":1}`, `{"action":"create","name":"n"}`, `{"channel":"out","payload":{"base64":"AA=="}}`} {
			f.Add(i, []byte(text))
		}
	}
	w := crew(f)
	names := tools.For(true)
	f.Fuzz(func(t *testing.T, i int, args []byte) {
		turn, before := begin(t, w, "lead-id"), w.Topo.Snapshot()
		name := names[uint(i)%uint(len(names))]
		if _, err := turn.call(name, string(args)); err != nil && abi.CodeOf(err) == abi.Internal {
			t.Errorf("%s %q: %v", name, args, err)
		}
		if !reflect.DeepEqual(w.Topo.Snapshot(), before) {
			t.Errorf("%s %q leaves something", name, args)
		}
	})
}
