package tools_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/tools"
	"github.com/seed47132306/terrarium/engine/topology"
)

// TestMessagesHaveIDs proves that every message has an id of its own, which is the same
// when the turn is run again, and with which the message arrives.
func TestMessagesHaveIDs(t *testing.T) {
	event := journal.EventID{Origin: journal.Origin{1, 2, 3}, Seq: 7}.String()
	sends := func() (ids, sent []string) {
		turn := begin(t, crew(t), "lead-id")
		first := ok[tools.SendChannelResult](turn, "send_channel", `{"channel":"out","payload":"a"}`)
		second := ok[tools.GroupSendResult](turn, "group_send", `{"creature":"ann","payload":"b","reply_to":"`+first.Message+`"}`)
		third := ok[tools.SendChannelResult](turn, "send_channel", `{"channel":"out","payload":"c","headers":{"z":"1"},"reply_to":"`+event+`"}`)
		task := ok[tools.AddNodeResult](turn, "group_add_node", `{"species":"clerk","task":"d"}`)
		return []string{first.Message, second.Message, third.Message, task.Message}, turn.sent
	}
	ids, sent := sends()
	if again, _ := sends(); !slices.Equal(ids, again) {
		t.Errorf("the ids are %v, and then %v", ids, again)
	}
	if all := slices.Compact(slices.Sorted(slices.Values(ids))); len(all) != 4 || slices.Contains(all, "") {
		t.Errorf("the ids are %v", ids)
	}
	for i, want := range []string{
		fmt.Sprintf("map[terrarium-message:%s]", ids[0]), fmt.Sprintf("map[terrarium-message:%s terrarium-reply-to:%s]", ids[1], ids[0]),
		fmt.Sprintf("map[terrarium-message:%s terrarium-reply-to:%s z:1]", ids[2], event), fmt.Sprintf("map[terrarium-message:%s]", ids[3]),
	} {
		if !strings.HasSuffix(sent[i], want) {
			t.Errorf("sent is %q, want the headers %q", sent[i], want)
		}
	}
}

func TestWhatCannotBeAnswered(t *testing.T) {
	for _, id := range []string{"x", "m", "m\\u0000", "ann-id", "m1234567890123456l", "m" + strings.Repeat("l", 16), "1:", ":1"} {
		for tool, target := range map[string]string{"send_channel": "channel", "group_send": "creature"} {
			turn := begin(t, crew(t), "lead-id")
			name := map[string]string{"channel": "out", "creature": "ann"}[target]
			_, err := turn.call(tool, fmt.Sprintf(`{"%s":"%s","payload":"x","reply_to":"%s"}`, target, name, id))
			refused(t, err, abi.InvalidArgument, "is not the id of a message")
			if len(turn.sent) != 0 {
				t.Errorf("%s has sent %q", tool, turn.sent)
			}
		}
	}
}

// TestANodeWithEverything adds a worker with a direct channel in both directions, another
// channel, and its first message.
func TestANodeWithEverything(t *testing.T) {
	w := crew(t)
	turn := begin(t, w, "lead-id")
	r := ok[tools.AddNodeResult](turn, "group_add_node", `{"species":"clerk","name":"eve","description":"counts","listen":[{"channel":"talk","alias":"t"}],"two_way":true,"task":"count"}`)
	if !slices.Contains(r.Listen, tools.GroupEdge{Channel: r.Channel, Alias: "eve"}) || !slices.Contains(r.Listen, tools.GroupEdge{Channel: "talk-id", Alias: "t"}) ||
		!slices.Contains(r.Send, tools.GroupEdge{Channel: r.Channel, Alias: "eve"}) || len(r.Listen) != 2 || len(r.Send) != 2 {
		t.Errorf("the worker is %+v", r)
	}
	if len(turn.sent) != 1 || !strings.HasPrefix(turn.sent[0], string(r.Creature)+": count map[]") {
		t.Errorf("sent is %q", turn.sent)
	}
	ok[tools.SendChannelResult](turn, "send_channel", `{"channel":"eve","payload":"go on"}`)
	status := ok[tools.GroupStatus](turn, "group_status", ``)
	if eve := status.Creatures[3]; eve.Description != "counts" || eve.ID != r.Creature {
		t.Errorf("eve is %+v", eve)
	}
	turn.commit()
	direct, _ := w.Topo.Channel(r.Channel)
	want := []string{"lead-id listen", "lead-id send", string(r.Creature) + " listen", string(r.Creature) + " send"}
	var got []string
	for _, e := range direct.Edges {
		got = append(got, fmt.Sprint(e.Creature, " ", e.Direction))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("on the direct channel are %v, want %v", got, want)
	}
	// The channel goes with the worker, although the caller listens on it.
	ok[tools.DeltaResult](turn, "group_remove_node", `{"creature":"eve"}`)
	turn.commit()
	if _, there := w.Topo.Channel(r.Channel); there {
		t.Error("the direct channel of a removed worker is there still")
	}
}

// TestADirectChannelThatOthersHearOutlivesItsWorker wires a third party to the channel.
func TestADirectChannelThatOthersHearOutlivesItsWorker(t *testing.T) {
	turn := begin(t, crew(t), "lead-id")
	r := ok[tools.AddNodeResult](turn, "group_add_node", `{"species":"clerk","name":"eve","two_way":true}`)
	ok[tools.ChannelResult](turn, "group_channel", `{"action":"wire","channel":"eve","creature":"bob","direction":"listen"}`)
	ok[tools.DeltaResult](turn, "group_remove_node", `{"creature":"eve"}`)
	turn.commit()
	if _, there := turn.w.Topo.Channel(r.Channel); !there {
		t.Error("the channel that bob hears has been removed")
	}
}

// only is a policy that denies nothing but one kind of operation.
type only struct {
	deploy.Policy
	kind journal.PolicyKind
}

func (p only) Judges(kind journal.PolicyKind) bool { return kind == p.kind }

func (p only) Judge(ctx context.Context, _ *deploy.PolicyEvent) deploy.Decision {
	return no{}.Judge(ctx, nil)
}

// TestANodeWithEverythingOrNothing makes one part of the call invalid at a time: nothing
// is added.
func TestANodeWithEverythingOrNothing(t *testing.T) {
	for what, c := range map[string]struct {
		args   string
		policy deploy.Policy
		code   abi.Code
	}{
		"the task":              {`{"species":"clerk","two_way":true,"task":"too much"}`, nil, abi.LimitExceeded},
		"the species":           {`{"species":"bear","two_way":true,"task":"x"}`, nil, abi.NotFound},
		"a channel":             {`{"species":"clerk","send":[{"channel":"none"}],"two_way":true,"task":"x"}`, nil, abi.NotFound},
		"the name":              {`{"species":"clerk","name":"bob","two_way":true,"task":"x"}`, nil, abi.AlreadyExists},
		"the way back":          {`{"species":"clerk","two_way":true,"task":"x"}`, only{kind: journal.JudgeConnect}, abi.Denied},
		"the spawn, by policy":  {`{"species":"clerk","two_way":true,"task":"x"}`, only{kind: journal.JudgeSpawn}, abi.Denied},
		"a task that is a list": {`{"species":"clerk","two_way":true,"task":["x"]}`, nil, abi.InvalidArgument},
	} {
		t.Run(what, func(t *testing.T) {
			w := crew(t)
			w.Applied["crew"].Policy = c.policy
			turn := begin(t, w, "lead-id")
			before := w.Topo.Snapshot()
			_, err := turn.call("group_add_node", c.args)
			refused(t, err, c.code, "")
			if len(turn.sent) != 0 || turn.use.Len() != 0 || !reflect.DeepEqual(w.Topo.Snapshot(), before) {
				t.Errorf("something is left: sent %q, %d operations", turn.sent, turn.use.Len())
			}
			for _, n := range turn.nodes {
				if n.discarded != 1 {
					t.Errorf("a prepared node is discarded %d times", n.discarded)
				}
			}
			if w.Applied["crew"].Policy = nil; len(ok[tools.GroupStatus](turn, "group_status", ``).Creatures) != 3 {
				t.Error("a later call sees a worker")
			}
		})
	}
}

func TestErrorsListTheAlternatives(t *testing.T) {
	const all = `"lead" (lead-id), "ann" (ann-id), "bob" (bob-id); group_status lists them all`
	for what, c := range map[string]struct {
		caller           journal.CreatureID
		tool, args, says string
	}{
		"an unknown creature":          {"lead-id", "group_send", `{"creature":"eve","payload":""}`, "a member of the graph: " + all},
		"a slip":                       {"lead-id", "group_stop_node", `{"creature":"Bab"}`, `graph: "bob" (bob-id), "lead" (lead-id)`},
		"a part of a name":             {"lead-id", "group_remove_node", `{"creature":"worker ann"}`, `graph: "ann" (ann-id), "lead"`},
		"a worker that knows no name":  {"ann-id", "group_send", `{"creature":"eve","payload":""}`, `to a privileged creature: "lead" (lead-id)`},
		"a worker to a worker":         {"ann-id", "group_send", `{"creature":"bob","payload":""}`, `to a privileged creature: "lead" (lead-id)`},
		"a worker without a superior":  {"x-id", "group_send", `{"creature":"eve","payload":""}`, "to a privileged creature; there is none in this graph"},
		"an alias":                     {"lead-id", "send_channel", `{"channel":"outt","payload":""}`, `it sends on "out" (talk-id)`},
		"a channel":                    {"lead-id", "group_channel", `{"action":"delete","channel":"talks"}`, `a channel of the graph: "talk" (talk-id), "report_to_root" (`},
		"a channel for a worker":       {"lead-id", "group_add_node", `{"species":"clerk","listen":[{"channel":"talks"}]}`, `a channel of the graph: "talk" (talk-id)`},
		"the source of an output wire": {"lead-id", "group_wire", `{"action":"add","from":"eve","to":"bob"}`, all},
	} {
		_, err := begin(t, crew(t), c.caller).call(c.tool, c.args)
		if err == nil || !strings.Contains(err.(*abi.Error).Remedy, c.says) {
			t.Errorf("%s: %v, want %q", what, err, c.says)
		}
	}
}

// TestAlternativesAreBounded proves that an error stays short in a large graph, because a
// name is only compared with those of the oldest members.
func TestAlternativesAreBounded(t *testing.T) {
	w := crew(t)
	d := w.Draft(draft.Options{})
	const many = 1300
	for i := range many {
		id := journal.CreatureID(fmt.Sprintf("n%d", i))
		d.Add(draft.Member{ID: id, Deployment: "crew", Spec: &deploy.CreatureSpec{Name: string(id)}})
		must(t, d, topology.AddCreature{ID: id, Name: strings.Repeat("n", 200) + fmt.Sprint(i), Join: w.Topo.GraphOf("lead-id")})
	}
	w.CarryOut(d)
	_, err := begin(t, w, "lead-id").call("group_send", `{"creature":"ben","payload":""}`)
	refused(t, err, abi.NotFound, fmt.Sprintf("and %d more; group_status", many+3-8))
	if len(err.Error()) > 1500 {
		t.Errorf("the error has %d bytes: %v", len(err.Error()), err)
	}
	for id, compared := range map[string]bool{"n990": true, "n1290": false} {
		_, err := begin(t, w, "lead-id").call("group_send", `{"creature":"`+strings.Repeat("N", 200)+id[1:]+`","payload":""}`)
		if found := strings.Contains(err.Error(), "("+id+")"); found != compared {
			t.Errorf("%s is named: %v, want %v: %v", id, found, compared, err)
		}
	}
}

// TestPauses pauses and resumes within a turn, as far as the state of the worker allows it.
func TestPauses(t *testing.T) {
	w := crew(t)
	turn := begin(t, w, "lead-id")
	state := func() journal.CreatureState {
		return ok[tools.GroupStatus](turn, "group_status", ``).Creatures[2].State
	}
	for _, step := range []struct {
		tool string
		code abi.Code
		then journal.CreatureState
	}{
		{"group_resume_node", abi.OK, journal.Running}, {"group_pause_node", abi.OK, journal.Paused}, {"group_pause_node", abi.OK, journal.Paused},
		{"group_resume_node", abi.OK, journal.Running}, {"group_pause_node", abi.OK, journal.Paused}, {"group_start_node", abi.OK, journal.Running},
		{"group_pause_node", abi.OK, journal.Paused}, {"group_stop_node", abi.OK, journal.Stopped}, {"group_pause_node", abi.Stopped, journal.Stopped},
		{"group_resume_node", abi.Stopped, journal.Stopped}, {"group_start_node", abi.OK, journal.Running}, {"group_pause_node", abi.OK, journal.Paused},
	} {
		_, err := turn.call(step.tool, `{"creature":"bob"}`)
		if step.code != abi.OK {
			refused(t, err, step.code, "group_start_node starts one that is stopped or quarantined")
		} else if err != nil {
			t.Errorf("%s: %v", step.tool, err)
		}
		if got := state(); got != step.then {
			t.Errorf("after %s bob is %s, want %s", step.tool, got, step.then)
		}
	}
	turn.commit()
	if bob, _ := w.Topo.Creature("bob-id"); !bob.Stopped || !bob.Paused {
		t.Errorf("after the commit bob is %+v", bob)
	}
	for caller, args := range map[journal.CreatureID]string{"ann-id": `{"creature":"bob"}`, "lead-id": `{"creature":"lead"}`} {
		_, err := begin(t, w, caller).call("group_pause_node", args)
		refused(t, err, abi.NotPrivileged, "")
	}
}

// TestIDsAreInOneForm proves that reply_to must be an id in its only valid form: the
// decoder alone would skip line ends, and accept numbers that begin with zeros.
func TestIDsAreInOneForm(t *testing.T) {
	for _, id := range []string{`m0123456789abcdef\n`, `m\r\n0123456789abcdef`, `m01234567` + strings.Repeat(`\n`, 99) + `89abcdef`, strings.Repeat("0", 32) + "-" + strings.Repeat("0", 99) + "7"} {
		turn := begin(t, crew(t), "lead-id")
		_, err := turn.call("group_send", `{"creature":"ann","payload":"x","reply_to":"`+id+`"}`)
		refused(t, err, abi.InvalidArgument, "is not the id of a message")
	}
}
