package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// twoDesks makes two graphs with the same names: in each, a creature clerk passes on what
// arrives on the channel letters, and a creature count counts it.
func twoDesks(t *testing.T, tr *terrarium.Terrarium) (left, right desk) {
	t.Helper()
	return newDesk(t, tr), newDesk(t, tr)
}

// desk has the ids of one of the two graphs of twoDesks.
type desk struct {
	clerk, count terrarium.CreatureID
	letters      terrarium.ChannelID
}

func newDesk(t *testing.T, tr *terrarium.Terrarium) desk {
	t.Helper()
	clerk := add(t, tr, "clerk", "builtin:relay")
	count := add(t, tr, "count", "builtin:tally")
	letters := terrarium.ChannelID(do(t, tr, "connect", fmt.Sprintf(`{"from":%q,"to":%q,"channel":"letters"}`, clerk, count))["channel"].(string))
	return desk{clerk, count, letters}
}

func add(t *testing.T, tr *terrarium.Terrarium, name, module string) terrarium.CreatureID {
	t.Helper()
	added := do(t, tr, "add_creature", fmt.Sprintf(`{"name":%q,"module":%q}`, name, module))
	return terrarium.CreatureID(added["creature"].(string))
}

// whole runs an operation and returns the delta in its result.
func whole(t *testing.T, tr *terrarium.Terrarium, op, args string) journal.Delta {
	t.Helper()
	result, err := Do(context.Background(), tr, op, json.RawMessage(args))
	if err != nil {
		t.Fatalf("%s %s: %v", op, args, err)
	}
	b, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	var out struct{ Delta *journal.Delta }
	if err := json.Unmarshal(b, &out); err != nil || out.Delta == nil {
		t.Fatalf("%s answers %s, %v", op, b, err)
	}
	return *out.Delta
}

// tell sends a creature a message and waits until all its consequences have been handled.
func tell(t *testing.T, tr *terrarium.Terrarium, c terrarium.CreatureID, payload string) {
	t.Helper()
	do(t, tr, "send_to", fmt.Sprintf(`{"creature":%q,"payload":%q}`, c, payload))
	do(t, tr, "wait_idle", ``)
}

// counted returns what a tally has counted.
func counted(t *testing.T, tr *terrarium.Terrarium, c terrarium.CreatureID) map[string]any {
	t.Helper()
	return do(t, tr, "state", fmt.Sprintf(`{"creature":%q,"prefix":"count/"}`, c))["state"].(map[string]any)
}

func graphOf(t *testing.T, tr *terrarium.Terrarium, c terrarium.CreatureID) inspect.GraphStatus {
	t.Helper()
	g, err := tr.FindGraph(t.Context(), string(c))
	if err != nil {
		t.Fatal(err)
	}
	list, err := tr.Status(g)
	if err != nil || len(list) != 1 {
		t.Fatalf("status of %s: %v, %v", g, list, err)
	}
	return list[0]
}

// A merge that renames lists what it renamed, and no creature notices: each clerk
// still sends to its own counter, by the alias that it has always used.
func TestConnectRenames(t *testing.T) {
	for _, how := range []string{``, `,"on_collision":"rename"`} {
		tr := open(t, terrarium.Options{Scratch: true})
		left, right := twoDesks(t, tr)
		stays, goes := graphOf(t, tr, left.clerk).ID, graphOf(t, tr, right.clerk).ID
		got := whole(t, tr, "connect", fmt.Sprintf(`{"from":%q,"to":%q,"channel":"help"%s}`, right.clerk, left.count, how))
		want := journal.Delta{
			Kind: "merge", OldGraphs: []terrarium.GraphID{stays, goes}, NewGraphs: []terrarium.GraphID{stays},
			Affected: []terrarium.CreatureID{right.clerk, right.count},
			Renamed: []journal.Renamed{
				{Creature: right.clerk, Old: "clerk", New: "clerk~2"},
				{Creature: right.count, Old: "count", New: "count~2"},
				{Channel: right.letters, Old: "letters", New: "letters~2"},
			},
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("connect%s answers\n%+v, want\n%+v", how, got, want)
		}
		tell(t, tr, left.clerk, "from the left")
		tell(t, tr, right.clerk, "from the right")
		if c := counted(t, tr, left.count); len(c) != 2 || c["count/from the right"] != "1" {
			t.Errorf("the left counter has %v, want what both clerks sent", c)
		}
		if c := counted(t, tr, right.count); len(c) != 1 || c["count/from the right"] != "1" {
			t.Errorf("the right counter has %v, want what its clerk sent by its old alias", c)
		}
	}
}

// A merge with unify makes two channels into one: both counters hear both clerks, after
// everything that was sent on their own channel before.
func TestConnectUnifies(t *testing.T) {
	tr := open(t, terrarium.Options{Scratch: true})
	left, right := twoDesks(t, tr)
	tell(t, tr, left.clerk, "left before")
	tell(t, tr, right.clerk, "right before")
	got := whole(t, tr, "connect", fmt.Sprintf(`{"from":%q,"to":%q,"channel":%q,"on_collision":"unify"}`, right.clerk, left.count, right.letters))
	want := []journal.Renamed{
		{Creature: right.clerk, Old: "clerk", New: "clerk~2"},
		{Creature: right.count, Old: "count", New: "count~2"},
	}
	unified := []journal.Unified{{Survivor: left.letters, Absorbed: right.letters}}
	if got.Kind != "merge" || !reflect.DeepEqual(got.Renamed, want) || !reflect.DeepEqual(got.Unified, unified) {
		t.Errorf("connect answers %+v, want the creatures renamed and the channels unified", got)
	}
	graph := graphOf(t, tr, left.clerk)
	if len(graph.Channels) != 1 || graph.Channels[0].ID != left.letters {
		t.Fatalf("the channels are %+v, want the survivor's alone", graph.Channels)
	}
	tell(t, tr, left.clerk, "left after")
	tell(t, tr, right.clerk, "right after")
	for counter, own := range map[terrarium.CreatureID]string{left.count: "left", right.count: "right"} {
		want := map[string]any{"count/" + own + " before": "1", "count/left after": "1", "count/right after": "1"}
		if got := counted(t, tr, counter); !maps.Equal(got, want) {
			t.Errorf("the %s counter has %v, want %v", own, got, want)
		}
	}
	refused(t, tr, "send", fmt.Sprintf(`{"channel":%q,"payload":"x"}`, right.letters), abi.NotFound, string(right.letters))
}

// The report channels of two deployments are never made into one, so each root hears its
// own members.
func TestReportsAreNeverUnified(t *testing.T) {
	tr := open(t, terrarium.Options{Scratch: true})
	left := do(t, tr, "apply", `{"recipe":"../testdata/left.hcl"}`)
	right := do(t, tr, "apply", `{"recipe":"../testdata/right.hcl"}`)
	creature := func(of map[string]any, address string) string {
		return of["creatures"].(map[string]any)[address].(string)
	}
	report := right["channels"].(map[string]any)["channel."+deploy.ReportChannel].(string)
	got := whole(t, tr, "connect", fmt.Sprintf(`{"from":%q,"to":%q,"channel":"help","on_collision":"unify"}`,
		creature(left, "creature.clerk"), creature(right, "creature.clerk")))
	renaming := journal.Renamed{Channel: terrarium.ChannelID(report), Old: deploy.ReportChannel, New: deploy.ReportChannel + "~2"}
	if !slices.Contains(got.Renamed, renaming) {
		t.Errorf("connect answers %+v, want %+v among what was renamed", got, renaming)
	}
	graph := graphOf(t, tr, terrarium.CreatureID(creature(left, "creature.chief")))
	names := map[string]int{}
	for _, ch := range graph.Channels {
		names[ch.Name]++
	}
	if want := map[string]int{"letters": 1, "help": 1, deploy.ReportChannel: 1, deploy.ReportChannel + "~2": 1}; !maps.Equal(names, want) {
		t.Errorf("the channels are %v, want %v", names, want)
	}
}

// Disconnecting separates two creatures, and no third one on the same channel.
func TestDisconnectCutsOnlyThePair(t *testing.T) {
	tr := open(t, terrarium.Options{Scratch: true})
	one, two := add(t, tr, "one", "builtin:relay"), add(t, tr, "two", "builtin:relay")
	near, far := add(t, tr, "near", "builtin:tally"), add(t, tr, "far", "builtin:tally")
	for _, from := range []string{"one", "two"} {
		for _, to := range []string{"near", "far"} {
			do(t, tr, "connect", fmt.Sprintf(`{"from":%q,"to":%q,"channel":"talk"}`, from, to))
		}
	}
	cut := do(t, tr, "disconnect", `{"from":"one","to":"near"}`)
	if channels := cut["channels"].([]any); len(channels) != 2 {
		t.Errorf("disconnect answers the channels %v, want the one that was cut and the one that was made", channels)
	}
	tell(t, tr, one, "from one")
	tell(t, tr, two, "from two")
	if got := counted(t, tr, near); !maps.Equal(got, map[string]any{"count/from two": "1"}) {
		t.Errorf("near has heard %v, want two alone", got)
	}
	if got := counted(t, tr, far); !maps.Equal(got, map[string]any{"count/from one": "1", "count/from two": "1"}) {
		t.Errorf("far has heard %v, want both", got)
	}
}

// A creature that is connected to itself hears what others send there, and
// never what it sent itself.
func TestConnectToItself(t *testing.T) {
	tr := open(t, terrarium.Options{Scratch: true})
	loop, other := add(t, tr, "loop", "builtin:echo"), add(t, tr, "other", "builtin:relay")
	if got := whole(t, tr, "connect", `{"from":"loop","to":"loop","channel":"round"}`); got.Kind != "none" {
		t.Errorf("connecting a creature to itself answers %+v", got)
	}
	do(t, tr, "set_send", `{"creature":"other","channel":"round","on":true}`)
	tell(t, tr, loop, "a")
	tell(t, tr, other, "b")
	var sent []string
	for _, ev := range do(t, tr, "history", `{"graph":"loop","kinds":["channel_message"]}`)["events"].([]any) {
		ev := ev.(map[string]any)
		sent = append(sent, fmt.Sprint(ev["payload"], " by ", map[string]string{string(loop): "loop", string(other): "other"}[ev["creature"].(string)]))
	}
	// The loop echoes "b", which it heard from outside, and none of its own echoes.
	if want := []string{"a by loop", "b by other", "b by loop"}; !slices.Equal(sent, want) {
		t.Errorf("the messages are %q, want %q", sent, want)
	}
	if got := whole(t, tr, "disconnect", `{"from":"loop","to":"loop"}`); got.Kind != "none" {
		t.Errorf("disconnecting it answers %+v", got)
	}
}

// Adding an edge resolves name collisions as connecting does.
func TestEdgesSettleCollisions(t *testing.T) {
	tr := open(t, terrarium.Options{Scratch: true})
	left, right := twoDesks(t, tr)
	args := fmt.Sprintf(`{"creature":%q,"channel":%q,"on":true,"on_collision":%%q}`, left.count, right.letters)
	refused(t, tr, "set_listen", fmt.Sprintf(args, "reject"), abi.AlreadyExists, "letters")
	refused(t, tr, "set_listen", fmt.Sprintf(args, "mix"), abi.InvalidArgument, "rename, unify or reject")
	if got := whole(t, tr, "set_listen", fmt.Sprintf(args, "unify")); got.Kind != "merge" || len(got.Renamed) != 2 {
		t.Errorf("set_listen answers %+v, want a merge that renames two creatures", got)
	}
}

// refused runs an operation that must fail with a code and an error that contains a word,
// and must change nothing.
func refused(t *testing.T, tr *terrarium.Terrarium, op, args string, code abi.Code, word string) {
	t.Helper()
	if err := tr.Settle(t.Context()); err != nil { // until then, what status reports about files may change
		t.Fatal(err)
	}
	before := statusWithoutWear(t, tr)
	result, err := Do(context.Background(), tr, op, json.RawMessage(args))
	switch {
	case err == nil:
		t.Errorf("%s %s answers %+v", op, args, result)
	case abi.CodeOf(err) != code || !strings.Contains(err.Error(), word):
		t.Errorf("%s %s answers the code %s and %q, want %s and %q", op, args, abi.CodeOf(err), err, code, word)
	}
	if after := statusWithoutWear(t, tr); !reflect.DeepEqual(before, after) {
		t.Errorf("%s %s has changed\n%v into\n%v", op, args, before, after)
	}
}

// An operation that is impossible is refused with an explanation, and changes nothing.
func TestTopologyMistakes(t *testing.T) {
	tr := open(t, terrarium.Options{Scratch: true})
	left, right := twoDesks(t, tr)
	stranger := add(t, tr, "stranger", "builtin:relay")
	gone := add(t, tr, "gone", "builtin:relay")
	lost := do(t, tr, "add_channel", fmt.Sprintf(`{"graph":%q,"name":"lost"}`, stranger))["channel"].(string)
	do(t, tr, "remove_channel", fmt.Sprintf(`{"channel":%q}`, lost))
	do(t, tr, "remove_creature", fmt.Sprintf(`{"creature":%q}`, gone))
	do(t, tr, "add_channel", fmt.Sprintf(`{"graph":%q,"name":"idle"}`, left.clerk))
	do(t, tr, "wait_idle", ``)
	names := strings.NewReplacer(
		"$clerk", string(left.clerk), "$count", string(left.count), "$letters", string(left.letters),
		"$CLERK", string(right.clerk), "$COUNT", string(right.count), "$lost", lost, "$gone", string(gone))
	for _, c := range []struct {
		op, args string
		code     abi.Code
		word     string
	}{
		{"connect", `{"from":"$clerk","to":"absent"}`, abi.NotFound, "absent"},
		{"connect", `{"from":"$gone","to":"$clerk"}`, abi.NotFound, "$gone"},
		{"connect", `{"from":"clerk","to":"$count"}`, abi.Ambiguous, "clerk"},
		{"connect", `{"from":"$clerk","to":"stranger","channel":"$lost"}`, abi.NotFound, "$lost"},
		{"connect", `{"from":"$CLERK","to":"stranger","channel":"$letters"}`, abi.InvalidArgument, "$letters"},
		{"connect", `{"from":"$clerk","to":"$COUNT","on_collision":"reject"}`, abi.AlreadyExists, "letters"},
		{"connect", `{"from":"$clerk","to":"stranger","channel":"new","alias":"letters"}`, abi.AlreadyExists, "letters"},
		{"connect", `{"from":"$clerk","to":"stranger","channel":"a\u0000b"}`, abi.InvalidArgument, "printable"},
		{"disconnect", `{"from":"$clerk","to":"absent"}`, abi.NotFound, "absent"},
		{"disconnect", `{"from":"$count","to":"$clerk"}`, abi.NotConnected, "$count"},
		{"disconnect", `{"from":"$clerk","to":"$COUNT"}`, abi.NotConnected, "$COUNT"},
		{"disconnect", `{"from":"$clerk","to":"$count","channel":"nothing"}`, abi.NotFound, "nothing"},
		{"set_listen", `{"creature":"absent","channel":"$letters","on":true}`, abi.NotFound, "absent"},
		{"set_listen", `{"creature":"stranger","channel":"nothing","on":true}`, abi.NotFound, "nothing"},
		{"set_send", `{"creature":"stranger","channel":"letters","on":true}`, abi.Ambiguous, "letters"},
		{"remove_creature", `{"creature":"$gone"}`, abi.NotFound, "$gone"},
		{"remove_channel", `{"channel":"$lost"}`, abi.NotFound, "$lost"},
		{"remove_channel", `{"channel":"letters","graph":"nowhere"}`, abi.NotFound, "nowhere"},
		{"add_channel", `{"graph":"$clerk","name":"letters"}`, abi.AlreadyExists, "$letters"},
		{"add_channel", `{"graph":"nowhere","name":"x"}`, abi.NotFound, "nowhere"},
		{"add_creature", `{"name":"clerk","module":"builtin:relay","join":"$clerk"}`, abi.AlreadyExists, "clerk"},
		{"add_creature", `{"name":"x","module":"builtin:relay","join":"nowhere"}`, abi.NotFound, "nowhere"},
		{"add_creature", `{"name":"x","module":"builtin:relay","listen":["$letters","$letters"]}`, abi.InvalidArgument, "twice"},
		{"add_creature", `{"name":"x","module":"builtin:relay","join":"$clerk","send":["letters","$letters"]}`, abi.InvalidArgument, "twice"},
		{"disconnect", `{"from":"$clerk","to":"$count","channel":"idle"}`, abi.NotConnected, "does not lead"},
		{"history", `{"graph":"nowhere"}`, abi.NotFound, "nowhere"},
		{"history", `{"graph":"clerk"}`, abi.Ambiguous, "clerk"},
		{"export", `{"graph":"clerk","path":"x"}`, abi.Ambiguous, "clerk"},
		{"history", `{"session":"nowhere"}`, abi.NotFound, "nowhere"},
		{"history", `{"graph":"stranger","session":"nowhere"}`, abi.InvalidArgument, "both"},
		{"history", `{"session":"nowhere","creature":"clerk"}`, abi.Ambiguous, "clerk"},
		{"lineage", `{"graph":"g0000000000000000"}`, abi.NotFound, "g0000000000000000"},
		{"verify", `{"session":"nowhere"}`, abi.NotFound, "nowhere"},
	} {
		refused(t, tr, c.op, names.Replace(c.args), c.code, names.Replace(c.word))
	}
}

// The same through the Go API, which takes ids only.
func TestChangeMistakes(t *testing.T) {
	tr := open(t, terrarium.Options{Scratch: true})
	left, right := twoDesks(t, tr)
	do(t, tr, "wait_idle", ``)
	if err := tr.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := statusWithoutWear(t, tr)
	for _, c := range []struct {
		op   topology.Op
		code abi.Code
	}{
		{topology.Connect{From: left.clerk, To: "c0"}, abi.NotFound},
		{topology.Connect{From: left.clerk, To: right.count, OnCollision: topology.Reject}, abi.AlreadyExists},
		{topology.Disconnect{From: left.clerk, To: right.count}, abi.NotConnected},
		{topology.SetEdge{Creature: left.clerk, Channel: "h0", Direction: journal.Send, On: true}, abi.NotFound},
		{topology.RemoveCreature{ID: "c0"}, abi.NotFound},
		{topology.RemoveChannel{ID: "h0"}, abi.NotFound},
	} {
		// The operations before the failing one are undone, too.
		_, err := tr.Change(t.Context(), topology.RemoveChannel{ID: left.letters}, topology.SetStopped{ID: right.clerk, Stopped: true}, c.op)
		var typed *abi.Error
		if abi.CodeOf(err) != c.code || !errors.As(err, &typed) || typed.Remedy == "" || len(typed.IDs) == 0 {
			t.Errorf("%+v answers %v, want the code %s, a remedy and ids", c.op, err, c.code)
		}
	}
	if after := statusWithoutWear(t, tr); !reflect.DeepEqual(before, after) {
		t.Errorf("mistakes have changed\n%v into\n%v", before, after)
	}
}
