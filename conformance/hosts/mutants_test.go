package hosts_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/conformance/hosts"
	"github.com/seed47132306/terrarium/conformance/report"
	"github.com/seed47132306/terrarium/conformance/requirements"
)

var update = flag.Bool("update", false, "write the table of mutants again")

// mutant is a wrong host: it changes some answers of a right one.
type mutant struct {
	wrong   string // what is wrong with it
	change  func(q *hosts.Request, r *hosts.Response)
	changed bool // it has changed an answer
}

// recording is an adapter that repeats recorded answers, changed by a mutant.
type recording struct {
	answers []recorded
	mutant  *mutant
	next    int
}

// recorded is an answer as JSON, and what it answers.
type recorded struct {
	op   hosts.Op
	text []byte
}

func (a *recording) Do(_ context.Context, q *hosts.Request) (*hosts.Response, error) {
	for a.answers[a.next].op != q.Op && q.Op == hosts.OpReset {
		a.next++ // the rest of a check that has failed
	}
	var r hosts.Response
	if err := json.Unmarshal(a.answers[a.next].text, &r); err != nil {
		return nil, err
	}
	a.next++
	a.mutant.change(q, &r)
	after, err := json.Marshal(&r)
	a.mutant.changed = a.mutant.changed || !bytes.Equal(after, a.answers[a.next-1].text)
	r.ID = q.ID
	return &r, err
}

func (a *recording) Close(context.Context) error { return nil }

// recorder records the answers of an adapter.
type recorder struct {
	hosts.Adapter
	answers *[]recorded
}

func (a recorder) Do(ctx context.Context, q *hosts.Request) (*hosts.Response, error) {
	r, err := a.Adapter.Do(ctx, q)
	if err == nil {
		var text []byte
		text, err = json.Marshal(r)
		*a.answers = append(*a.answers, recorded{q.Op, text})
	}
	return r, err
}

// turns returns a change of every turn of some operations.
func turns(change func(q *hosts.Request, t *hosts.Turn), ops ...hosts.Op) func(*hosts.Request, *hosts.Response) {
	return func(q *hosts.Request, r *hosts.Response) {
		if len(ops) > 0 && !slices.Contains(ops, q.Op) {
			return
		}
		for i := range r.Turns {
			change(q, &r.Turns[i])
		}
	}
}

// results returns a change of the probe's results of one function. What the probe
// reports is what the host gave to a guest.
func results(number int, change func(v int64) int64) func(*hosts.Request, *hosts.Response) {
	return func(q *hosts.Request, r *hosts.Response) {
		for i := range r.Turns {
			t := &r.Turns[i]
			called := calls(q, t)
			for n := range t.Logs {
				if t.Logs[n][0] == "debug" {
					t.Logs[n][1] = changed(t.Logs[n][1], called, number, change)
				}
			}
			for n := range t.Effects {
				if t.Effects[n].Kind == hosts.EffectOutput {
					t.Effects[n].Payload = []byte(changed(string(t.Effects[n].Payload), called, number, change))
				}
			}
		}
	}
}

// calls returns the numbers of the functions that the probe called, by its script.
func calls(q *hosts.Request, t *hosts.Turn) []int {
	text := string(q.Payload)
	if q.Op == hosts.OpLoad || !strings.HasPrefix(text, "TPRB") {
		return handled[t.Creature+" "+string(q.Op)]
	}
	return scriptCalls(text)
}

// handled has the calls of the scripts in configurations, by creature and operation.
var handled = map[string][]int{}

func scriptCalls(script string) (out []int) {
	if len(script) < 16 || !strings.HasPrefix(script, "TPRB") {
		return nil
	}
	for i := range int(script[12]) {
		out = append(out, int(script[16+64*i]))
	}
	return out
}

func changed(text string, called []int, number int, change func(int64) int64) string {
	parts := strings.Split(text, " ")
	if len(parts) != len(called) {
		return text
	}
	for i, part := range parts {
		digits, dump, buffer := strings.Cut(part, ":")
		v, err := strconv.ParseUint(digits, 16, 64)
		if err != nil || called[i] != number {
			continue
		}
		parts[i] = fmt.Sprintf("%016x", uint64(change(int64(v))))
		if buffer {
			parts[i] += ":" + dump
		}
	}
	return strings.Join(parts, " ")
}

// buffers changes the first byte of every buffer that a call was given.
func buffers(_ *hosts.Request, t *hosts.Turn) {
	for n := range t.Logs {
		if head, dump, ok := strings.Cut(t.Logs[n][1], ":"); ok && len(head) >= 16 && len(dump) > 1 && t.Logs[n][0] == "debug" {
			t.Logs[n][1] = strings.ReplaceAll(t.Logs[n][1], ":"+dump[:2], ":5a")
		}
	}
}

func mutants() []mutant {
	list := []mutant{
		{wrong: "accepts every module", change: func(q *hosts.Request, r *hosts.Response) { r.Problems = nil }},
		{wrong: "refuses every module", change: func(q *hosts.Request, r *hosts.Response) {
			if q.Op == hosts.OpCheck {
				r.Problems = []hosts.Problem{{Code: "unsupported", Text: "no"}}
			}
		}},
		{wrong: "starts creatures that refuse to start", change: turns(func(_ *hosts.Request, t *hosts.Turn) { t.Status, t.Text = "ok", "" }, hosts.OpLoad)},
		{wrong: "does not start a creature", change: turns(func(_ *hosts.Request, t *hosts.Turn) { t.Status = "internal" }, hosts.OpLoad)},
		{wrong: "counts every failed turn as handled", change: turns(func(_ *hosts.Request, t *hosts.Turn) { t.Status, t.Text = "ok", "" }, hosts.OpDeliver)},
		{wrong: "fails every turn", change: turns(func(_ *hosts.Request, t *hosts.Turn) { t.Status = "failed" }, hosts.OpDeliver)},
		{wrong: "fails creature_stop", change: turns(func(_ *hosts.Request, t *hosts.Turn) { t.Status = "trapped" }, hosts.OpStop)},
		{wrong: "keeps the effects of a failed turn", change: turns(func(_ *hosts.Request, t *hosts.Turn) {
			if t.Status != "ok" {
				t.Effects = append(t.Effects, hosts.Effect{Kind: hosts.EffectState, To: "k", Payload: []byte("v")})
			}
		})},
		{wrong: "loses the log lines of a failed turn", change: turns(func(_ *hosts.Request, t *hosts.Turn) {
			if t.Status != "ok" {
				t.Logs = nil
			}
		})},
		{wrong: "loses log lines", change: turns(func(_ *hosts.Request, t *hosts.Turn) {
			if len(t.Logs) > 1 {
				t.Logs = t.Logs[1:]
			}
		})},
		{wrong: "loses the headers of messages", change: turns(func(_ *hosts.Request, t *hosts.Turn) {
			for i := range t.Effects {
				t.Effects[i].Headers = nil
			}
		})},
		{wrong: "sends every message twice", change: turns(func(_ *hosts.Request, t *hosts.Turn) {
			if len(t.Effects) > 0 && t.Effects[0].Kind == hosts.EffectSend {
				t.Effects = append(t.Effects, t.Effects[0])
			}
		})},
		{wrong: "sends messages in the opposite order", change: turns(func(_ *hosts.Request, t *hosts.Turn) { slices.Reverse(t.Effects) })},
		{wrong: "never discards an instance", change: func(q *hosts.Request, r *hosts.Response) { r.Instances = min(r.Instances, 1) }},
		{wrong: "fires timers twice", change: func(q *hosts.Request, r *hosts.Response) {
			if n := len(r.Turns); q.Op == hosts.OpAdvance && n > 0 && r.Turns[n-1].Kind == int32(abi.KindTimer) {
				r.Turns = append(r.Turns, r.Turns[n-1])
			}
		}},
		{wrong: "delivers to all listeners but one", change: func(q *hosts.Request, r *hosts.Response) {
			if n := len(r.Turns); q.Op == hosts.OpAdvance && n > 0 {
				r.Turns = r.Turns[:n-1]
			}
		}},
		{wrong: "says nothing in the texts of failures", change: turns(func(_ *hosts.Request, t *hosts.Turn) { t.Text = "" })},
		{wrong: "says deadline for every limit", change: turns(func(_ *hosts.Request, t *hosts.Turn) {
			if t.Status == "limit" || t.Status == "out_of_fuel" {
				t.Status = "deadline"
			}
		})},
		{wrong: "says out_of_fuel at the deadline", change: turns(func(_ *hosts.Request, t *hosts.Turn) {
			if t.Status == "deadline" {
				t.Status = "out_of_fuel"
			}
		})},
		{wrong: "ignores the limit calls", change: turns(func(q *hosts.Request, t *hosts.Turn) {
			if t.Status == "limit" || t.Status == "unknown_outcome" {
				t.Status, t.Text = "ok", ""
			}
		}, hosts.OpDeliver)},
		{wrong: "copies other bytes", change: turns(buffers)},
	}
	names := map[int]string{}
	for i, f := range abi.Functions {
		names[i] = f.Name
	}
	maps.Copy(names, map[int]string{100: "memory.grow", 104: "linear memory", 105: "_initialize", 106: "the kind of a delivery", 107: "the size of a delivery", 109: "the order of phases", 110: "a byte in memory"})
	for _, i := range slices.Sorted(maps.Keys(names)) {
		list = append(list,
			mutant{wrong: names[i] + ": succeeds where it fails", change: results(i, func(v int64) int64 {
				if v < 0 {
					return 0
				}
				return v
			})},
			mutant{wrong: names[i] + ": returns one more", change: results(i, func(v int64) int64 {
				if v >= 0 {
					return v + 1
				}
				return v
			})},
			mutant{wrong: names[i] + ": reports another error", change: results(i, func(v int64) int64 {
				if v < 0 {
					return -18
				}
				return v
			})})
	}
	return list
}

// harmless changes answers, but breaks no rule: only differences of fuel have a meaning.
const harmless = "fuel_left: returns one more"

// TestEveryRequirementHasAMutant runs the suite over wrong hosts. Every mutant that
// changes an answer is caught, and every requirement that hosts are scored by is missed by
// at least one mutant. The table says what catches what.
func TestEveryRequirementHasAMutant(t *testing.T) {
	list := cases(t)
	var answers []recorded
	run(t, func(ctx context.Context) (hosts.Adapter, error) {
		a, err := ownHost(ctx)
		return recorder{a, &answers}, err
	}, list)
	set, err := requirements.Load("abi-1")
	if err != nil {
		t.Fatal(err)
	}
	missed := map[string]int{}
	table := "# Faulty hosts: how many checks catch each, and the first of these checks.\n"
	for _, m := range mutants() {
		m.change = rememberingScripts(m.change)
		r := run(t, func(context.Context) (hosts.Adapter, error) { return &recording{answers: answers, mutant: &m}, nil }, list)
		r.Settle(set, nil, func(string) bool { return true })
		var by []string
		for _, x := range r.Results {
			switch x.Verdict {
			case report.Failed:
				by = append(by, x.Check)
			case report.Passed:
			default:
				t.Errorf("%s: %s is %s: %q", m.wrong, x.Check, x.Verdict, x.Seen)
			}
		}
		for _, o := range r.Requirements {
			if o.Verdict == report.Failed {
				missed[o.Rule]++
			}
		}
		switch {
		case len(by) > 0:
			table += fmt.Sprintf("%-50s %3d  %s\n", m.wrong, len(by), by[0])
		case m.changed && m.wrong != harmless:
			t.Errorf("%s: no check notices that", m.wrong)
		}
	}
	table += "\n# The rules, and how many of the hosts violate each.\n"
	for _, q := range set.Requirements {
		if len(q.Host) == 0 {
			continue
		}
		if missed[q.Rule] == 0 {
			t.Errorf("no mutant misses %s: %s", q.Rule, q.Words)
		}
		table += fmt.Sprintf("%-10s %3d\n", q.Rule, missed[q.Rule])
	}
	const golden = "testdata/mutants.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || string(want) != table {
		t.Errorf("%s is stale (%v): run go test ./conformance/hosts -run Mutant -update\n%s", golden, err, table)
	}
}

// rememberingScripts keeps the calls of scripts in configurations for the turns that run
// them.
func rememberingScripts(change func(*hosts.Request, *hosts.Response)) func(*hosts.Request, *hosts.Response) {
	return func(q *hosts.Request, r *hosts.Response) {
		if q.Op == hosts.OpReset {
			clear(handled)
		}
		if q.Op == hosts.OpLoad {
			var config map[string]any
			_ = json.Unmarshal(q.Config, &config) // an invalid configuration has no scripts
			for attribute, op := range map[string]hosts.Op{"init": hosts.OpLoad, "handle": hosts.OpDeliver, "stop": hosts.OpStop} {
				digits, _ := config[attribute].(string)
				var script []byte
				if _, err := fmt.Sscanf(digits, "%x", &script); err == nil {
					handled[q.Creature+" "+string(op)] = scriptCalls(string(script))
					if op == hosts.OpDeliver {
						handled[q.Creature+" "+string(hosts.OpAdvance)] = scriptCalls(string(script))
					}
				}
			}
		}
		change(q, r)
	}
}
