package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
)

// script is a connection on which every operation is used. Steps that are not shown
// prepare the ones that are.
var script = []struct {
	hidden bool
	line   string
}{
	{false, `{"id": 1, "op": "subscribe", "kinds": ["topology_changed"]}`},
	{false, `{"id": 2, "op": "add_creature", "name": "alarms", "module": "builtin:gate", "config": {"match": "ERROR"}}`},
	{true, `{"id": 3, "op": "add_creature", "name": "census", "module": "builtin:tally", "config": {"key": "field:2"}}`},
	{true, `{"id": 4, "op": "wait_idle"}`},
	{false, `{"id": 5, "op": "connect", "from": "alarms", "to": "census", "channel": "errors"}`},
	{false, `{"id": 6, "op": "add_channel", "graph": "alarms", "name": "lines", "description": "the log"}`},
	{false, `{"id": 7, "op": "set_listen", "creature": "alarms", "channel": "lines", "on": true}`},
	{false, `{"id": 8, "op": "batch", "ops": [{"op": "add_channel", "graph": "census", "name": "reports"}, {"op": "promote", "creature": "census"}]}`},
	{false, `{"id": 9, "op": "set_send", "creature": "census", "channel": "reports", "on": true, "alias": "out"}`},
	{false, `{"id": 10, "op": "send", "channel": "lines", "payload": "12:03 ERROR no route to host", "durable": true}`},
	{false, `{"id": 11, "op": "wait_idle", "timeout": "10s"}`},
	{false, `{"id": 12, "op": "send_to", "creature": "census", "payload": "report, please"}`},
	{true, `{"id": 13, "op": "wait_idle"}`},
	{false, `{"id": 14, "op": "state", "creature": "census", "prefix": "count/"}`},
	{false, `{"id": 15, "op": "history", "kinds": ["channel_message"], "limit": 2}`},
	{true, `{"id": 61, "op": "history", "kinds": ["turn_ended"]}`},
	{false, `{"id": 62, "op": "replay_turn", "turn": "$TURN", "module": "builtin:echo"}`},
	{false, `{"id": 47, "op": "search", "query": "no AND rou*", "kinds": ["channel_message"], "limit": 1}`},
	{false, `{"id": 43, "op": "wire", "from": "census", "to": "alarms", "name": "echo", "with_content": false}`},
	{false, `{"id": 44, "op": "wires", "creature": "alarms"}`},
	{false, `{"id": 16, "op": "status", "graph": "alarms"}`},
	{false, `{"id": 45, "op": "unwire", "from": "census", "wire": "echo"}`},
	{false, `{"id": 17, "op": "lineage", "graph": "alarms"}`},
	{false, `{"id": 18, "op": "stop_creature", "creature": "census"}`},
	{false, `{"id": 19, "op": "start_creature", "creature": "census"}`},
	{false, `{"id": 20, "op": "demote", "creature": "census"}`},
	{false, `{"id": 21, "op": "promote", "creature": "census"}`},
	{true, `{"id": 22, "op": "wait_idle"}`},
	{false, `{"id": 23, "op": "sessions"}`},
	{false, `{"id": 24, "op": "request", "creature": "census", "payload": "report, please", "deadline": "10s"}`},
	{false, `{"id": 25, "op": "timers", "creature": "census"}`},
	{false, `{"id": 26, "op": "verify", "graph": "alarms"}`},
	{true, `{"id": 27, "op": "add_creature", "name": "picky", "module": "builtin:split", "config": {"to": ["nowhere"]}, "restart": {"mode": "never"}}`},
	{true, `{"id": 28, "op": "send_to", "creature": "picky", "payload": "hello"}`},
	{true, `{"id": 29, "op": "wait_idle"}`},
	{false, `{"id": 30, "op": "dead_letters", "graph": "picky"}`},
	{false, `{"id": 31, "op": "redeliver", "graph": "picky", "message": "$LETTER"}`},
	{true, `{"id": 32, "op": "wait_idle"}`},
	{false, `{"id": 48, "op": "replace_module", "creature": "alarms", "module": "builtin:gate", "check": 10}`},
	{true, `{"id": 33, "op": "remove_creature", "creature": "picky"}`},
	{false, `{"id": 34, "op": "disconnect", "from": "alarms", "to": "census"}`},
	{false, `{"id": 35, "op": "assign_root", "creature": "alarms"}`},
	{false, `{"id": 36, "op": "remove_channel", "channel": "reports"}`},
	{false, `{"id": 37, "op": "remove_creature", "creature": "census"}`},
	{false, `{"id": 38, "op": "apply", "recipe": "examples/quickstart"}`},
	{true, `{"id": 39, "op": "wait_idle"}`},
	{false, `{"id": 47, "op": "resume", "plan_only": true}`},
	{false, `{"id": 40, "op": "unsubscribe", "subscription": "s1"}`},
	{false, `{"id": 41, "op": "export", "graph": "alarms", "path": "$TMP/alarms.db"}`},
	{false, `{"id": 42, "op": "fork", "graph": "alarms", "dir": "$TMP/alarms"}`},
	{false, `{"id": 43, "op": "awareness", "creature": "tidy"}`},
	{true, `{"id": 44, "op": "promote", "creature": "alarms"}`},
	{false, `{"id": 45, "op": "tool", "caller": "alarms", "name": "group_channel", "args": {"action": "create", "name": "notes"}}`},
	{true, `{"id": 49, "op": "apply", "recipe": "$TMP/hand.hcl"}`},
	{true, `{"id": 50, "op": "send", "channel": "orders", "payload": "drain the pond"}`},
	{true, `{"id": 51, "op": "wait_idle"}`},
	{false, `{"id": 52, "op": "approvals"}`},
	{false, `{"id": 58, "op": "policies", "graphs": ["hand"]}`},
	{false, `{"id": 59, "op": "approval_content", "approval": "$APPROVAL"}`},
	{false, `{"id": 60, "op": "topology", "graph": "hand", "at": "2100-01-01T00:00:00Z"}`},
	{false, `{"id": 53, "op": "approve", "approval": "$APPROVAL", "by": "ann"}`},
	{true, `{"id": 54, "op": "send", "channel": "orders", "payload": "drain the lake"}`},
	{true, `{"id": 55, "op": "wait_idle"}`},
	{true, `{"id": 56, "op": "approvals"}`},
	{false, `{"id": 57, "op": "deny", "approval": "$APPROVAL", "by": "ann", "reason": "there is only one pond"}`},
	{false, `{"id": 46, "op": "shutdown"}`},
}

// askingRecipe has a policy that asks.
const askingRecipe = `channel "orders" {}
channel "done" {}

creature "hand" {
  module = "builtin:relay"
  listen = [channel.orders]
  send   = [channel.done]
}

policy "send" "careful" {
  channel = channel.done
  run     = "() => ask('this cannot be undone')"
}
`

// example is a request and its answer.
type example struct{ request, answer string }

func (e example) write(b *bytes.Buffer) {
	fmt.Fprintf(b, "```json\n%s\n%s\n```\n", e.request, e.answer)
}

// runExamples runs the script and returns the examples to show, by operation.
func runExamples(ctx context.Context, root string) (out map[string]example, err error) {
	seed := uint64(1)
	t, err := terrarium.New(ctx, terrarium.Options{Scratch: true, Seed: &seed, Workers: 1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close(ctx)) }()
	tmp, err := os.MkdirTemp("", "opsdoc-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	if err := os.WriteFile(filepath.Join(tmp, "hand.hcl"), []byte(askingRecipe), 0o600); err != nil {
		return nil, err
	}
	requests, in := io.Pipe()
	answers, sink := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := operations.Serve(ctx, t, requests, sink)
		sink.CloseWithError(io.EOF)
		served <- err
	}()
	c := &conversation{in: in, lines: bufio.NewReader(answers), names: newShortener(), tmp: tmp}
	out, err = c.run(root, func() error { return settle(ctx, t) })
	in.Close()
	_, derr := io.Copy(io.Discard, c.lines) // events after the last answer
	return out, errors.Join(err, derr, <-served)
}

// settle waits until all background work is done. Otherwise the answers would depend on
// its progress.
func settle(ctx context.Context, t *terrarium.Terrarium) error {
	for {
		if err := t.Settle(ctx); err != nil {
			return err
		}
		list, err := t.Sessions(ctx)
		if err != nil || !slices.ContainsFunc(list, func(i journal.SessionInfo) bool { return !i.Live && i.Path != "" && passedOn(list, i) }) {
			return err
		}
	}
}

// passedOn reports whether a session has successors, so that its file is not needed in
// the end.
func passedOn(list []journal.SessionInfo, ended journal.SessionInfo) bool {
	return slices.ContainsFunc(list, func(i journal.SessionInfo) bool { return slices.Contains(i.Parents, ended.Session) })
}

// conversation sends requests one by one.
type conversation struct {
	in       io.Writer
	lines    *bufio.Reader
	names    *shortener
	letter   string // id of the first listed dead letter
	approval string // id of the first listed approval
	turn     string // id of the last listed turn that handled a message of a channel
	tmp      string // directory for files
}

// run runs the script. Before each step it calls settle.
func (c *conversation) run(root string, settle func() error) (map[string]example, error) {
	out := map[string]example{}
	for _, step := range script {
		var request struct {
			ID json.Number `json:"id"`
			Op string      `json:"op"`
		}
		if err := json.Unmarshal([]byte(step.line), &request); err != nil {
			return nil, fmt.Errorf("%s: %w", step.line, err)
		}
		if err := settle(); err != nil {
			return nil, err
		}
		line := strings.Replace(step.line, `"examples/`, `"`+filepath.ToSlash(root)+`/examples/`, 1)
		answer, err := c.ask(strings.NewReplacer("$LETTER", c.letter, "$APPROVAL", c.approval, "$TURN", c.turn, "$TMP", filepath.ToSlash(c.tmp)).Replace(line), request.ID)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", step.line, err)
		}
		c.note(answer)
		shown, err := c.names.show(bytes.ReplaceAll(answer, []byte(filepath.ToSlash(c.tmp)+"/"), nil))
		if err != nil {
			return nil, err
		}
		if !step.hidden {
			out[request.Op] = example{c.names.events(strings.NewReplacer("$LETTER", c.letter, "$APPROVAL", c.approval, "$TURN", c.turn, "$TMP/", "").Replace(step.line)), shown}
		}
	}
	return out, nil
}

// note keeps the parts of an answer to which later requests refer.
func (c *conversation) note(answer []byte) {
	var a struct {
		Result struct {
			DeadLetters []struct{ ID string } `json:"dead_letters"`
			Approvals   []struct{ ID string }
			Events      []struct{ ID, Kind, Channel string }
		}
	}
	// Ignore dead_letters in the answer of wait_idle, where it is a number.
	if err := json.Unmarshal(answer, &a); err != nil {
		return
	}
	if len(a.Result.DeadLetters) > 0 {
		c.letter = a.Result.DeadLetters[0].ID
	}
	for _, e := range a.Result.Events {
		if e.Kind == "turn_ended" && strings.HasPrefix(e.Channel, "h") {
			c.turn = e.ID
		}
	}
	if len(a.Result.Approvals) > 0 {
		c.approval = a.Result.Approvals[0].ID
	}
}

// ask sends a request and reads until its answer, skipping events.
func (c *conversation) ask(line string, id json.Number) ([]byte, error) {
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		return nil, err
	}
	for {
		got, err := c.lines.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		var answer struct {
			ID json.Number `json:"id"`
			OK bool        `json:"ok"`
		}
		if err := json.Unmarshal(got, &answer); err != nil {
			return nil, err
		}
		if answer.ID != id {
			continue
		}
		if !answer.OK {
			return nil, fmt.Errorf("it answered %s", got)
		}
		return bytes.TrimSpace(got), nil
	}
}
