package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/conformance"
	"github.com/seed47132306/terrarium/conformance/stage"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/replay"
)

// TestCallDoesWhatAnEngineDoes calls the creatures of the conformance cases and compares the
// effects with the transcripts that an engine must produce.
func TestCallDoesWhatAnEngineDoes(t *testing.T) {
	files, err := filepath.Glob("../../conformance/testdata/creatures/*.json")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	needTools := []string{"envoy.json", "foreman.json", "operator.json"} // group tools
	for _, file := range files {
		c := readCase(t, file)
		list, alone := deliveriesOf(c)
		if !alone || slices.Contains(needTools, filepath.Base(file)) {
			continue // it needs a graph
		}
		for _, fresh := range []bool{false, true} {
			compared++
			t.Run(fmt.Sprintf("%s fresh=%v", filepath.Base(file), fresh), func(t *testing.T) {
				got, want := transcriptOf(t, c, list, fresh), sorted(c.Transcript)
				if !slices.Equal(got, want) {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			})
		}
	}
	if compared < 10 {
		t.Errorf("only %d comparisons", compared)
	}
}

func readCase(t *testing.T, file string) *conformance.Case {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := &conformance.Case{}
	if err := json.Unmarshal(text, c); err != nil {
		t.Fatal(err)
	}
	return c
}

// deliveriesOf returns the deliveries of a case; alone is false if it needs more than the
// creature.
func deliveriesOf(c *conformance.Case) (list []stage.Delivery, alone bool) {
	list = []stage.Delivery{{Kind: "start"}}
	for _, d := range c.Deliveries {
		next := stage.Delivery{Kind: "message", Alias: d.Alias, Payload: d.Payload, Headers: d.Headers}
		switch {
		case len(d.Join) > 0:
			return nil, false
		case d.AdvanceMS > 0:
			next = stage.Delivery{Advance: (time.Duration(d.AdvanceMS) * time.Millisecond).String()}
		case d.Request:
			next.Kind = "request"
		}
		list = append(list, next)
	}
	return list, !c.Privileged && len(c.Peers)+len(c.Species) == 0
}

// transcriptOf calls the creature and writes its effects as a transcript does. What fires
// while the clock advances belongs to one step.
func transcriptOf(t *testing.T, c *conformance.Case, list []stage.Delivery, fresh bool) []string {
	t.Helper()
	s := streams{out: io.Discard, err: io.Discard}
	module := strings.ReplaceAll(c.Module, "testdata/", "../../conformance/testdata/")
	wasm, err := moduleBytes(t.Context(), s, module)
	if err != nil {
		t.Fatal(err)
	}
	f := &callFlags{config: string(c.Config), send: c.Send, fresh: fresh, cache: cacheFlags{off: true}}
	report, err := f.call(context.WithoutCancel(t.Context()), s, wasm, list)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	next := 0
	for i := range list {
		lines := []string{stepTitle(&list[i])}
		for next < len(report.Deliveries) {
			r := report.Deliveries[next]
			if (list[i].Advance != "") != (r.Kind == "timer") {
				break
			}
			next++
			if r.Refused {
				return sorted([]string{"> start", "refused " + r.Error.Message})
			}
			for _, e := range r.Effects {
				lines = append(lines, effectLine(e))
			}
			if r.Error != nil {
				lines = append(lines, "failed "+r.Status)
				if r.Kind == "request" {
					lines = append(lines, "refused "+r.Status)
				}
			}
			if list[i].Advance == "" {
				break
			}
		}
		out = append(out, lines...)
	}
	out = slices.DeleteFunc(out, func(line string) bool { return line == "" })
	return sorted(out)
}

func stepTitle(d *stage.Delivery) string {
	shown, _ := d.Payload.MarshalJSON()
	switch {
	case d.Advance != "":
		return fmt.Sprintf("> advance %d ms", d.Step().Milliseconds())
	case d.Kind == "start":
		return "> start"
	case d.Kind == "request":
		return "> request " + string(shown)
	case d.Alias == "":
		return "> direct " + string(shown)
	}
	return "> " + d.Alias + " " + string(shown)
}

func effectLine(e replay.Effect) string {
	shown, _ := operations.Payload(e.Payload).MarshalJSON()
	headers := ""
	if len(e.Headers) > 0 {
		var pairs []string
		for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
			pairs = append(pairs, name+"="+e.Headers[name])
		}
		headers = " [" + strings.Join(pairs, ", ") + "]"
	}
	switch e.Kind {
	case replay.EffectTimer:
		return "" // a transcript has no timers
	case replay.EffectState:
		if e.Detail != "" {
			return "delete " + e.Target
		}
		return "state " + e.Target + " " + string(shown)
	case replay.EffectLog:
		return "log " + e.Target + " " + string(e.Payload)
	case replay.EffectOutput, replay.EffectReply:
		return string(e.Kind) + " " + string(shown)
	}
	return string(e.Kind) + " " + e.Target + " " + string(shown) + headers
}

// sorted orders the lines of each step, because a transcript has them in the order of the
// log.
func sorted(lines []string) []string {
	var out []string
	for len(lines) > 0 {
		end := 1
		for end < len(lines) && !strings.HasPrefix(lines[end], "> ") {
			end++
		}
		step := slices.Clone(lines[:end])
		slices.Sort(step[1:])
		out, lines = append(out, step...), lines[end:]
	}
	return out
}
