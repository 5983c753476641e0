package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// toolCall is a call of a group tool by a member of the crew.
type toolCall struct{ caller, name, args string }

// toolScript has one successful call of every tool, in an order in which they succeed.
var toolScript = []toolCall{
	{"lead", "group_channel", `{"action": "create", "name": "notes", "description": "what was found"}`},
	{"lead", "group_add_node", `{"species": "scribe", "name": "eve", "listen": [{"channel": "notes"}]}`},
	{"lead", "send_channel", `{"channel": "work", "payload": "dig here"}`},
	{"lead", "group_send", `{"creature": "eve", "payload": "welcome"}`},
	{"lead", "group_stop_node", `{"creature": "eve"}`},
	{"lead", "group_start_node", `{"creature": "eve"}`},
	{"lead", "group_wire", `{"action": "add", "from": "ann", "to": "eve", "with_content": true}`},
	{"lead", "group_status", `{}`},
	{"lead", "group_remove_node", `{"creature": "eve"}`},
}

// toolRefusals lists calls that are refused, each for another reason.
var toolRefusals = []toolCall{
	{"ann", "group_status", `{}`},
	{"ann", "group_send", `{"creature": "bob", "payload": "hello"}`},
	{"ann", "send_channel", `{"channel": "orders", "payload": "hello"}`},
	{"lead", "group_dance", `{}`},
	{"lead", "group_add_node", `{"species": `},
	{"lead", "group_add_node", `{"name": "eve"}`},
	{"lead", "group_add_node", `{"species": "scribe", "privileged": true}`},
	{"lead", "group_add_node", `{"species": 7}`},
	{"lead", "group_add_node", `{"species": "dragon"}`},
	{"lead", "group_add_node", `{"species": "clerk"}`},
	{"lead", "group_add_node", `{"species": "scribe", "name": "ann"}`},
	{"lead", "group_add_node", `{"species": "scribe", "listen": [{"channel": "nowhere"}]}`},
	{"lead", "group_remove_node", `{"creature": "lead"}`},
	{"lead", "group_remove_node", `{"creature": "stranger"}`},
	{"lead", "group_channel", `{"action": "wire", "channel": "work"}`},
	{"lead", "group_channel", `{"action": "wire", "channel": "work", "creature": "$STRANGER", "direction": "listen"}`},
	{"lead", "group_channel", `{"action": "wire", "channel": "work", "creature": "$STRANGER", "direction": "listen", "merge": true}`},
	{"lead", "group_channel", `{"action": "delete", "channel": "report_to_root"}`},
	{"lead", "group_wire", `{"action": "add", "from": "ann", "to": "stranger"}`},
	{"lead", "group_wire", `{"action": "remove", "wire": "unknown"}`},
}

// refusal is a refused call and its error.
type refusal struct {
	call toolCall
	err  *abi.Error
}

// runTools runs the calls in an engine of their own.
func runTools(ctx context.Context) (examples map[string]example, refusals []refusal, err error) {
	seed := uint64(1)
	t, err := terrarium.New(ctx, terrarium.Options{Scratch: true, Seed: &seed, Workers: 1})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, t.Close(ctx)) }()
	crew, err := furnish(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	names, examples := newShortener(), map[string]example{}
	for _, c := range toolScript {
		result, err := t.Tool(ctx, crew[c.caller], c.name, []byte(c.args))
		if err != nil {
			return nil, nil, fmt.Errorf("%s %s: %w", c.name, c.args, err)
		}
		if err := t.WaitIdle(ctx); err != nil {
			return nil, nil, err
		}
		shown, err := names.show(result)
		if err != nil {
			return nil, nil, err
		}
		examples[c.name] = example{c.args, shown}
	}
	if _, err := t.Tool(ctx, crew["lead"], "group_add_node", []byte(`{"species": "clerk"}`)); err != nil {
		return nil, nil, err
	}
	for _, c := range toolRefusals {
		_, err := t.Tool(ctx, crew[c.caller], c.name, []byte(strings.ReplaceAll(c.args, "$STRANGER", string(crew["stranger"]))))
		var refused *abi.Error
		if !errors.As(err, &refused) {
			return nil, nil, fmt.Errorf("%s %s is not refused: %w", c.name, c.args, err)
		}
		refusals = append(refusals, refusal{c, refused})
	}
	return examples, refusals, nil
}

// furnish adds a graph with a privileged lead, and a stranger in another graph. It
// returns the creatures by name.
func furnish(ctx context.Context, t *terrarium.Terrarium) (map[string]journal.CreatureID, error) {
	on := func(channel string) []deploy.WireSpec { return []deploy.WireSpec{{Channel: channel}} }
	member := func(name string) deploy.CreatureSpec {
		return deploy.CreatureSpec{Address: name, Name: name, Module: "builtin:tally", Privileged: name == "lead"}
	}
	lead, ann, bob, stranger := member("lead"), member("ann"), member("bob"), member("stranger")
	lead.Send, ann.Listen, bob.Listen, lead.Listen = on("work"), on("work"), on("orders"), on("orders")
	species := deploy.CreatureSpec{Module: "builtin:tally"}
	crew, err := t.ApplyDeployment(ctx, &deploy.Deployment{
		Name: "crew", Root: "lead", Channels: []deploy.ChannelSpec{{Address: "orders", Name: "orders"}, {Address: "work", Name: "work"}},
		Creatures: []deploy.CreatureSpec{lead, ann, bob},
		Species:   []deploy.SpeciesSpec{{Name: "scribe", Spec: species, Spawnable: 3}, {Name: "clerk", Spec: species, Spawnable: 1}},
	})
	if err != nil {
		return nil, err
	}
	other, err := t.ApplyDeployment(ctx, &deploy.Deployment{Name: "other", Creatures: []deploy.CreatureSpec{stranger}})
	if err != nil {
		return nil, err
	}
	crew.Creatures["stranger"] = other.Creatures["stranger"]
	return crew.Creatures, t.WaitIdle(ctx)
}

func writeRefusals(b *bytes.Buffer, list []refusal) {
	b.WriteString("| call | code | message and remedy |\n|---|---|---|\n")
	names := newShortener()
	for _, r := range list {
		by := ""
		if r.call.caller != "lead" {
			by = " by the worker " + r.call.caller
		}
		args := strings.ReplaceAll(r.call.args, "$STRANGER", "id of another graph's")
		text := strings.Join(strings.Fields(idPattern.ReplaceAllStringFunc(r.err.Message+"; "+r.err.Remedy, func(id string) string { return names.name(kindNames[id[:1]], id) })), " ")
		fmt.Fprintf(b, "| `%s` `%s`%s | `%s` | %s |\n", r.call.name, args, by, r.err.Code, cell(text))
	}
}
