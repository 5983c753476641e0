package operations

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
)

// The reference pages are made from the table, so nothing in it may lack a name or a
// description.
func TestOperationsAreDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, op := range Table() {
		if seen[op.Name] {
			t.Errorf("%s is there twice", op.Name)
		}
		seen[op.Name] = true
		if op.Doc == "" || !strings.HasSuffix(op.Doc, ".") {
			t.Errorf("%s: %q is no sentence", op.Name, op.Doc)
		}
		for _, f := range reflect.VisibleFields(op.Args) {
			if jsonName(f) == "" || f.Tag.Get("doc") == "" {
				t.Errorf("%s: the field %s has no name or no description", op.Name, f.Name)
			}
		}
	}
}

// Every operation refuses a field that it does not have, a wrong type and, if
// there is a required field, an empty object, in words that name the field.
func TestOperationsCheckFields(t *testing.T) {
	tr := open(t, terrarium.Options{})
	refused := func(name, args, word string) {
		t.Helper()
		_, err := Do(context.Background(), tr, name, json.RawMessage(args))
		if abi.CodeOf(err) != abi.InvalidArgument || !strings.Contains(err.Error(), word) {
			t.Errorf("%s %s: %v does not say %s", name, args, err, word)
		}
	}
	for _, op := range Table() {
		refused(op.Name, `{"surplus":1}`, `"surplus"`)
		refused(op.Name, `[]`, "not a JSON object")
		for _, f := range reflect.VisibleFields(op.Args) {
			field := jsonName(f)
			if f.Type.Kind() == reflect.String {
				refused(op.Name, fmt.Sprintf(`{%q:[]}`, field), fmt.Sprintf("%q", field))
			}
			if strings.Contains(f.Tag.Get("op"), "required") {
				refused(op.Name, `{}`, "missing")
			}
		}
	}
	refused("history", `{"limit":-1}`, "negative")
	refused("subscribe", `{"buffer":-1}`, "negative")
	refused("add_creature", `{"name":"a","module":"builtin:echo","limits":{"memory":-1}}`, "memory: it must not be negative")
	refused("add_creature", `{"name":"a","module":"builtin:echo","limits":{"memry":1}}`, `unknown field "memry" in the field "limits"`)
	refused("add_creature", `{"name":"a","module":"builtin:echo","limits":{"memory":"1"}}`, `"limits.memory" cannot be a JSON string`)
	refused("send", `{"channel":"c","payload":7}`, `"payload" is malformed`)
	if _, err := Do(context.Background(), tr, "stauts", nil); err == nil || !strings.Contains(err.Error(), "did you mean status?") {
		t.Errorf("a misspelt operation: %v", err)
	}
}

// do runs an operation and returns its result as another program would see it.
func do(t *testing.T, tr *terrarium.Terrarium, op, args string) map[string]any {
	t.Helper()
	result, err := Do(context.Background(), tr, op, json.RawMessage(args))
	if err != nil {
		t.Fatalf("%s %s: %v", op, args, err)
	}
	b, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestStatusFields(t *testing.T) {
	tr := open(t, terrarium.Options{Scratch: true})
	do(t, tr, "apply", `{"recipe":"../testdata/count.hcl"}`)
	do(t, tr, "send", `{"channel":"lines","payload":"x","durable":true}`)
	do(t, tr, "wait_idle", ``)
	graph := do(t, tr, "status", `{}`)["graphs"].([]any)[0].(map[string]any)
	has(t, "a graph", graph, "id", "session", "store_path", "complete", "durability", "creatures", "channels", "wires")
	creature := graph["creatures"].([]any)[0].(map[string]any)
	has(t, "a creature", creature, "id", "name", "address", "state", "privileged", "root", "listen", "send", "aliases", "cursors",
		"incarnation", "instance_starts", "module_sha256", "limits", "counters")
	channels := graph["channels"].([]any)
	has(t, "a channel", channels[0].(map[string]any), "id", "name", "listeners", "senders", "head")
	for _, cursor := range creature["cursors"].(map[string]any) {
		has(t, "a cursor", cursor.(map[string]any), "seq", "pending")
	}
	if one := do(t, tr, "status", `{"graph":"counts"}`)["graphs"].([]any); len(one) != 1 {
		t.Errorf("status of one graph has %d", len(one))
	}
}

func has(t *testing.T, what string, m map[string]any, fields ...string) {
	t.Helper()
	for _, f := range fields {
		if _, ok := m[f]; !ok {
			t.Errorf("%s has no %s; it has %v", what, f, slices.Sorted(maps.Keys(m)))
		}
	}
}

// Two graphs that merge and split leave one history: every later store has every event
// once, and a lineage back to the roots.
func TestHistoryAcrossCuts(t *testing.T) {
	tr := open(t, terrarium.Options{Scratch: true})
	do(t, tr, "add_creature", `{"name":"a","module":"builtin:relay"}`)
	do(t, tr, "add_creature", `{"name":"b","module":"builtin:tally"}`)
	a := do(t, tr, "add_channel", `{"graph":"a","name":"in"}`)["channel"]
	do(t, tr, "set_listen", `{"creature":"a","channel":"in","on":true}`)
	merged := do(t, tr, "connect", `{"from":"a","to":"b","channel":"letters"}`)
	if kind := merged["delta"].(map[string]any)["kind"]; kind != "merge" {
		t.Fatalf("connect: %v", kind)
	}
	for i := range 5 {
		do(t, tr, "send", fmt.Sprintf(`{"channel":%q,"payload":"%d"}`, a, i))
	}
	do(t, tr, "wait_idle", ``)
	split := do(t, tr, "disconnect", `{"from":"a","to":"b"}`)
	if kind := split["delta"].(map[string]any)["kind"]; kind != "split" {
		t.Fatalf("disconnect: %v", kind)
	}
	do(t, tr, "connect", `{"from":"a","to":"b"}`)

	seen := map[any]int{}
	messages := 0
	for _, ev := range do(t, tr, "history", `{"graph":"b"}`)["events"].([]any) {
		ev := ev.(map[string]any)
		seen[ev["id"]]++
		if seen[ev["id"]] > 1 {
			t.Errorf("the event %v is there twice", ev["id"])
		}
		if ev["kind"] == "channel_message" {
			messages++
		}
	}
	if messages != 10 {
		t.Errorf("the history has %d messages, want 5 into a and 5 from a to b", messages)
	}

	roots, merges, splits := 0, 0, 0
	for _, s := range do(t, tr, "lineage", `{"graph":"b"}`)["lineage"].([]any) {
		s := s.(map[string]any)
		passedOn(t, tr, s["session"].(string), seen)
		switch parents := s["parents"].([]any); {
		case len(parents) == 0:
			roots++
		case s["merged_at"] != nil && len(parents) == 2:
			merges++
		case s["split_at"] != nil && len(parents) == 1:
			splits++
		default:
			t.Errorf("a session with parents %v that neither merged nor split", parents)
		}
	}
	if roots != 2 || merges != 2 || splits != 2 {
		t.Errorf("the lineage has %d roots, %d merges and %d splits", roots, merges, splits)
	}
}

// passedOn checks that an ended session has its events once, and that its successor has
// all of them.
func passedOn(t *testing.T, tr *terrarium.Terrarium, session string, successor map[any]int) {
	t.Helper()
	own := map[any]bool{}
	for _, ev := range do(t, tr, "history", fmt.Sprintf(`{"session":%q}`, session))["events"].([]any) {
		id := ev.(map[string]any)["id"]
		if own[id] || successor[id] != 1 {
			t.Errorf("the event %v is there twice in %s, or %d times in what became of it", id, session, successor[id])
		}
		own[id] = true
	}
	if len(own) == 0 {
		t.Errorf("the session %s has no history", session)
	}
}

func TestBatchIsAllOrNothing(t *testing.T) {
	tr := open(t, terrarium.Options{Scratch: true})
	do(t, tr, "add_creature", `{"name":"a","module":"builtin:relay"}`)
	do(t, tr, "wait_idle", ``)
	before := statusWithoutWear(t, tr)
	_, err := Do(context.Background(), tr, "batch", json.RawMessage(`{"ops":[
		{"op":"add_creature","name":"b","module":"builtin:relay"},
		{"op":"connect","from":"a","to":"b","channel":"c"},
		{"op":"add_channel","graph":"a","name":"d"},
		{"op":"stop_creature","creature":"a"},
		{"op":"remove_creature","creature":"absent"}]}`))
	if abi.CodeOf(err) != abi.NotFound || !strings.Contains(err.Error(), "operation 4 of the batch") {
		t.Errorf("batch answered %v", err)
	}
	if after := statusWithoutWear(t, tr); !reflect.DeepEqual(before, after) {
		t.Errorf("something has changed:\n%v\n%v", before, after)
	}
}

// statusWithoutWear returns the result of the operation status without the numbers of
// syncs and written bytes, which change at any time.
func statusWithoutWear(t *testing.T, tr *terrarium.Terrarium) map[string]any {
	t.Helper()
	status := do(t, tr, "status", ``)
	delete(status, "wear")
	return status
}

// Every limit can be given to add_creature, under its own name.
func TestLimitsArgsAreAllLimits(t *testing.T) {
	args := reflect.New(reflect.TypeFor[LimitsArgs]()).Elem()
	for i := range args.NumField() {
		switch f := args.Field(i); f.Kind() {
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(i + 1))
		}
	}
	given, _ := json.Marshal(args.Interface())
	limits := args.Interface().(LimitsArgs)
	var names map[string]any
	if err := json.Unmarshal(given, &names); err != nil {
		t.Fatal(err)
	}
	made := reflect.ValueOf(limits.limits())
	for i, l := range abi.LimitTable {
		if names[l.Name] == nil {
			t.Errorf("add_creature does not take the limit %s", l.Name)
		}
		if made.Field(i).IsZero() {
			t.Errorf("the limit %s gets lost", l.Name)
		}
	}
}
