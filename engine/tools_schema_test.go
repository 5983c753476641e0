package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/tools"
)

func resolve(t testing.TB, text json.RawMessage) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// usable are calls that succeed in this order when the lead of a crew makes them: each
// tool at least once.
var usable = []toolCall{
	{"group_channel", args{"action": "create", "name": "notes", "description": "what was found"}},
	{"group_add_node", args{"species": "scribe", "name": "eve", "config": args{"pen": "red"}, "listen": []args{{"channel": "notes", "alias": "n"}}}},
	{"group_add_node", args{"species": "clerk", "description": "files things", "two_way": true, "task": "file this"}},
	{"group_channel", args{"action": "wire", "channel": "notes", "creature": "lead", "direction": "send", "alias": "out", "on_collision": "rename"}},
	{"send_channel", args{"channel": "out", "payload": "hello", "headers": args{"a": "b"}}},
	{"send_channel", args{"channel": "out", "payload": args{"base64": "/w=="}}},
	{"group_send", args{"creature": "eve", "payload": "psst", "reply_to": "m0123456789abcdef"}},
	{"group_pause_node", args{"creature": "eve"}},
	{"group_resume_node", args{"creature": "eve"}},
	{"group_stop_node", args{"creature": "eve"}},
	{"group_start_node", args{"creature": "eve"}},
	{"group_wire", args{"action": "add", "from": "ann", "to": "eve", "with_content": true, "prompt": "ann: {output}", "name": "told"}},
	{"group_wire", args{"action": "list"}},
	{"group_status", nil},
	{"group_wire", args{"action": "remove", "wire": "told", "from": "ann"}},
	{"group_remove_node", args{"creature": "eve"}},
	{"group_channel", args{"action": "unwire", "channel": "notes", "creature": "lead", "direction": "send"}},
	{"group_channel", args{"action": "delete", "channel": "notes"}},
}

func TestResultsAreWhatTheirSchemasSay(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	lead := s.apply(crew("crew")).Creatures["creature.lead"]
	untried := map[string]*jsonschema.Resolved{}
	schemas := map[string]*jsonschema.Resolved{}
	for _, info := range tools.List() {
		schemas[info.Name] = resolve(t, info.Result)
		untried[info.Name] = schemas[info.Name]
	}
	for _, c := range usable {
		text, err := json.Marshal(c.Args)
		if err != nil || c.Args == nil {
			text = nil
		}
		result, err := s.Tool(t.Context(), lead, c.Tool, text)
		if err != nil {
			t.Fatalf("%s %s: %v", c.Tool, text, err)
		}
		var value any
		if err := json.Unmarshal(result, &value); err != nil {
			t.Fatal(err)
		}
		if err := schemas[c.Tool].Validate(value); err != nil {
			t.Errorf("%s returns %s, which its schema does not allow: %v", c.Tool, result, err)
		}
		delete(untried, c.Tool)
	}
	for name := range untried {
		t.Errorf("%s is not tried: add it to usable", name)
	}
}

// spoilt returns arguments that a schema does not allow, made from arguments that it allows:
// one set lacks a required argument, one has an unknown argument, and one has a value of a
// wrong type.
func spoilt(schema *jsonschema.Schema, good args) map[string]string {
	out := map[string]string{"null": "null", "a list": "[]", "a string": `"x"`, "nothing whole": "{", "two": "{} {}", "not UTF-8": "{\"\xff\": 1}"}
	put := func(what, name string, value any, keep bool) {
		bad := args{}
		for k, v := range good {
			bad[k] = v
		}
		bad[name] = value
		if !keep {
			delete(bad, name)
		}
		text, _ := json.Marshal(bad)
		out[what+" "+name] = string(text)
	}
	put("surplus", "surplus", 1, true)
	for _, name := range schema.Required {
		put("without", name, nil, false)
	}
	for name, p := range schema.Properties {
		if p.Type == "integer" {
			put("text as", name, "7", true)
			put("too much as", name, 1<<20, true)
		} else {
			put("a number as", name, 7, true)
		}
		put("null as", name, nil, true)
		put("the case of", strings.ToUpper(name), "x", true)
		if len(p.Enum) > 0 {
			put("no value of", name, "neither", true)
		}
		if p.MinLength != nil {
			put("empty", name, "", true)
		}
	}
	return out
}

func TestWhatASchemaForbidsIsRefused(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	lead := s.apply(crew("crew")).Creatures["creature.lead"]
	before := shape(s.world)
	for _, info := range tools.List() {
		schema := resolve(t, info.Args)
		var good args
		for _, c := range usable {
			if a, ok := c.Args.(args); ok && c.Tool == info.Name {
				good = a
				break
			}
		}
		for what, bad := range spoilt(schema.Schema(), good) {
			var value any
			if json.Unmarshal([]byte(bad), &value) == nil && what != "not UTF-8" && schema.Validate(value) == nil {
				t.Errorf("%s: the schema allows %s: %s", info.Name, what, bad)
			}
			_, err := s.Tool(t.Context(), lead, info.Name, []byte(bad))
			var e *abi.Error
			if !errors.As(err, &e) || e.Code != abi.InvalidArgument || e.Remedy == "" && !strings.Contains(e.Message, ";") {
				t.Errorf("%s with %s: %v, want invalid_argument", info.Name, what, err)
			}
		}
	}
	if after := shape(s.world); after != before {
		t.Errorf("refused calls changed the graph from\n%s\nto\n%s", before, after)
	}
}

// shape is what tools can change in the graphs, as text.
func shape(w *world) string {
	var b strings.Builder
	for _, g := range w.status() {
		fmt.Fprintf(&b, "graph %s\n", g.ID)
		for _, c := range g.Creatures {
			fmt.Fprintf(&b, "  %s %s %s privileged=%v parent=%s listen=%v send=%v %v\n", c.ID, c.Name, c.State, c.Privileged, c.Parent, c.Listen, c.Send, c.Aliases)
		}
		for _, ch := range g.Channels {
			fmt.Fprintf(&b, "  %s %s head=%d\n", ch.ID, ch.Name, ch.Head)
		}
	}
	return b.String()
}

// FuzzToolCall calls tools with any names and arguments. Nothing panics, and a refused
// call changes nothing.
func FuzzToolCall(f *testing.F) {
	for _, c := range usable {
		text, err := json.Marshal(c.Args)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(c.Tool, text)
		f.Add(c.Tool, text[:len(text)/2])
	}
	f.Add("group_add_node", []byte(`{"species": "scribe", "config": `+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)+`}`))
	f.Add("group_dance\x00", []byte("\xff\xfe"))
	f.Add("", []byte{})
	shared := newWorld(f, engine.Options{Host: operators()})
	lead := shared.apply(crew("crew")).Creatures["creature.lead"]
	shared.wait()
	f.Fuzz(func(t *testing.T, name string, args []byte) {
		w := &world{shared.Engine, t, shared.host}
		before := shape(w)
		_, err := w.Tool(t.Context(), lead, name, args)
		if err == nil {
			w.wait()
			return
		}
		if abi.CodeOf(err) == abi.Internal {
			t.Errorf("%q %q: %v", name, args, err)
		}
		if after := shape(w); after != before {
			t.Errorf("%q %q was refused with %v, and changed the graph from\n%s\nto\n%s", name, args, err, before, after)
		}
	})
}
