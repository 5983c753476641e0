package operations

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// office applies a deployment with a privileged operator, which answers on the
// channel answers, a worker of the same module, and a species that may be spawned three
// times.
func office(t *testing.T, tr *terrarium.Terrarium) *engine.Applied {
	t.Helper()
	on := func(ch string) []deploy.WireSpec { return []deploy.WireSpec{{Channel: ch}} }
	operator := func(name string) deploy.CreatureSpec {
		return deploy.CreatureSpec{
			Address: name, Name: name, Module: "builtin:operator", Config: json.RawMessage(`{"stop_on_error": false}`),
			Listen: on(name + "-orders"), Send: on("answers"), Privileged: name == "boss",
		}
	}
	applied, err := tr.ApplyDeployment(t.Context(), &deploy.Deployment{
		Name:      "office",
		Channels:  []deploy.ChannelSpec{{Address: "boss-orders", Name: "boss-orders"}, {Address: "temp-orders", Name: "temp-orders"}, {Address: "answers", Name: "answers"}},
		Creatures: []deploy.CreatureSpec{operator("boss"), operator("temp")},
		Species:   []deploy.SpeciesSpec{{Name: "scribe", Spec: deploy.CreatureSpec{Module: "builtin:tally", Config: json.RawMessage(`{"key": "line"}`)}, Spawnable: 3}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

func TestToolOperation(t *testing.T) {
	tr := open(t, terrarium.Options{Dir: t.TempDir()})
	office(t, tr)
	added := do(t, tr, "tool", `{"caller": "boss", "name": "group_add_node", "args": {"species": "scribe", "name": "eve"}}`)
	if added["name"] != "eve" || added["channel"] == "" {
		t.Errorf("the result is %v", added)
	}
	refused := func(args string, want abi.Code, words string) {
		t.Helper()
		_, err := Do(t.Context(), tr, "tool", json.RawMessage(args))
		if abi.CodeOf(err) != want || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v; want %v with %q", args, err, want, words)
		}
	}
	refused(`{"caller": "eve", "name": "group_status"}`, abi.NotPrivileged, "privileged")
	refused(`{"caller": "temp", "name": "group_remove_node", "args": {"creature": "eve"}}`, abi.NotPrivileged, "privileged")
	refused(`{"caller": "boss", "name": "group_dance"}`, abi.NotFound, "the tools are send_channel")
	refused(`{"caller": "boss", "name": "group_add_node", "args": {"species": 7}}`, abi.InvalidArgument, "species")
	refused(`{"caller": "absent", "name": "group_status"}`, abi.NotFound, "absent")
	do(t, tr, "stop_creature", `{"creature": "boss"}`)
	refused(`{"caller": "boss", "name": "group_status"}`, abi.Stopped, "start it first")
}

// orders sends a message to an operator and returns its answer.
func orders(t *testing.T, tr *terrarium.Terrarium, a *engine.Applied, to, message string) []map[string]any {
	t.Helper()
	answers, err := tr.Read(a.Channels["answers"], "test", engine.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer answers.Close()
	if _, err := tr.Send(t.Context(), a.Channels[to+"-orders"], terrarium.Outgoing{Payload: []byte(message)}); err != nil {
		t.Fatal(err)
	}
	in, err := answers.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	answers.Ack(in.Seq)
	var answer struct {
		ID      string           `json:"id"`
		Results []map[string]any `json:"results"`
	}
	if err := json.Unmarshal(in.Payload, &answer); err != nil || answer.ID != "q" {
		t.Fatalf("it answers %s: %v", in.Payload, err)
	}
	return answer.Results
}

// outcomes returns the codes of results, ok for those that succeeded.
func outcomes(results []map[string]any) []string {
	var list []string
	for _, r := range results {
		if r["ok"] == true {
			list = append(list, "ok")
		} else {
			list = append(list, fmt.Sprint(r["code"]))
		}
	}
	return list
}

// TestToolsThroughWasm makes a module call the tools: privileged, it spawns a specialist,
// sends it a message in the same turn, and meets every bound; unprivileged, the same
// module is always refused.
func TestToolsThroughWasm(t *testing.T) {
	tr := open(t, terrarium.Options{Dir: t.TempDir()})
	a := office(t, tr)
	spawn := `{"tool": "group_add_node", "args": {"species": "scribe"}}`
	got := outcomes(orders(t, tr, a, "boss", `{"id": "q", "calls": [
		{"tool": "group_channel", "args": {"action": "create", "name": "notes"}},
		{"tool": "group_channel", "args": {"action": "wire", "channel": "notes", "creature": "boss", "direction": "send"}},
		{"tool": "group_add_node", "args": {"species": "scribe", "name": "eve", "listen": [{"channel": "notes"}]}},
		{"tool": "send_channel", "args": {"channel": "notes", "payload": "hello"}},
		`+spawn+`, `+spawn+`, `+spawn+`, `+spawn+`,
		{"tool": "group_remove_node", "args": {"creature": "boss"}},
		{"tool": "group_remove_node", "args": {"creature": "cforged"}}
	]}`))
	if want := []string{"ok", "ok", "ok", "ok", "ok", "ok", "limit", "limit", "not_privileged", "not_found"}; !slices.Equal(got, want) {
		t.Errorf("the outcomes are %v, want %v", got, want)
	}
	if err := tr.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	state := do(t, tr, "state", `{"creature": "eve"}`)
	if text := fmt.Sprint(state); !strings.Contains(text, "count/hello") {
		t.Errorf("eve has counted %v", state)
	}
	before := graphShape(t, tr)
	got = outcomes(orders(t, tr, a, "temp", `{"id": "q", "calls": [`+spawn+`, {"tool": "group_status"}, {"tool": "group_remove_node", "args": {"creature": "eve"}}]}`))
	if want := slices.Repeat([]string{"not_privileged"}, 3); !slices.Equal(got, want) {
		t.Errorf("the worker's outcomes are %v, want %v", got, want)
	}
	// One turn may make this many calls and no more.
	got = outcomes(orders(t, tr, a, "boss", `{"id": "q", "calls": [`+strings.Repeat(`{"tool": "group_status"},`, 70)+`{"tool": "group_status"}]}`))
	if n := slices.Index(got, "limit"); n != abi.DefaultLimits.Tools {
		t.Errorf("the first refusal is call %d of %v", n, got)
	}
	if after := graphShape(t, tr); after != before {
		t.Errorf("refused calls changed the graph from\n%s\nto\n%s", before, after)
	}
}

// graphShape describes the graphs, with their creatures and channels, as text.
func graphShape(t *testing.T, tr *terrarium.Terrarium) string {
	t.Helper()
	graphs, err := tr.Status("")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, g := range graphs {
		for _, c := range g.Creatures {
			fmt.Fprintln(&b, g.ID, c.ID, c.Name, c.State, c.Privileged, c.Listen, c.Send)
		}
	}
	return b.String()
}

// TestOperatorRepliesToRequests also proves that an atomic request undoes everything.
func TestOperatorRepliesToRequests(t *testing.T) {
	tr := open(t, terrarium.Options{})
	do(t, tr, "add_creature", `{"name": "op", "module": "builtin:operator", "privileged": true, "config": {"atomic": true}, "restart": {"mode": "never"}}`)
	request := func(message string) (any, error) {
		text, err := json.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		return Do(context.Background(), tr, "request", fmt.Appendf(nil, `{"creature": "op", "payload": %s, "deadline": "30s"}`, text))
	}
	create := `{"tool": "group_channel", "args": {"action": "create", "name": "%s"}}`
	if _, err := request(`{"calls": [` + fmt.Sprintf(create, "kept") + `]}`); err != nil {
		t.Fatal(err)
	}
	if _, err := request(`{"calls": [` + fmt.Sprintf(create, "lost") + `, {"tool": "group_dance"}]}`); err == nil {
		t.Error("a request with a refused call is answered")
	}
	g, err := tr.FindGraph(t.Context(), "op")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.FindChannel(g, "kept"); err != nil {
		t.Error(err)
	}
	if _, err := tr.FindChannel(g, "lost"); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("what was taken back: %v", err)
	}
}
