package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
)

// sampleOf makes a sample, seconds after the first, of creatures with turns.
func sampleOf(seconds int, turns map[string]uint64) *sample {
	g := inspect.GraphStatus{ID: "g1"}
	for name, n := range turns {
		g.Creatures = append(g.Creatures, inspect.CreatureStatus{
			ID: journal.CreatureID("id of " + name), Name: name, State: journal.Running, MemoryBytes: 65536, Approvals: 1,
			Counters: inspect.Counters{Turns: n, Fuel: n * 1000}, Cursors: map[journal.ChannelID]inspect.Cursor{"a": {Pending: n}, "b": {Pending: 1}},
		})
	}
	return &sample{StatusResult: operations.StatusResult{Graphs: []inspect.GraphStatus{g}}, at: time.Unix(int64(seconds), 0)}
}

// A creature that is new has done everything since, and one whose counters have started over
// has done nothing that is known.
func TestTopRates(t *testing.T) {
	v := viewOf(sampleOf(0, map[string]uint64{"calm": 5, "busy": 100, "reset": 50}), sampleOf(2, map[string]uint64{"calm": 5, "busy": 160, "reset": 7, "new": 4}), "turns")
	got := ""
	for _, c := range v.Creatures {
		got += c.Name + " " + perSecond(c.Turns) + " " + perSecond(c.Fuel) + " " + count(int(c.Waiting), "message") + "\n"
	}
	want := "busy 30 30k 161 messages\nnew 2.0 2000 5 messages\ncalm 0 0 6 messages\nreset 0 0 8 messages\n"
	if got != want {
		t.Errorf("top shows\n%s, want\n%s", got, want)
	}
	if v.Turns != 32 || v.Waiting != 180 || v.Memory != 4*65536 || v.Approvals != 4 || v.Count != 4 {
		t.Errorf("the sums are %+v", v)
	}
	for order, first := range map[string]string{"name": "busy", "waiting": "busy", "memory": "busy", "failures": "busy", "fuel": "busy"} {
		if v := viewOf(sampleOf(0, nil), sampleOf(1, map[string]uint64{"calm": 1, "busy": 9}), order); v.Creatures[0].Name != first {
			t.Errorf("by %s, %s is first, want %s", order, v.Creatures[0].Name, first)
		}
	}
}

// On a screen, no line is longer than its width, names cannot control the terminal, and
// creatures that do not fit are counted.
func TestTopScreen(t *testing.T) {
	turns := map[string]uint64{"evil\x1b[2J\nname": 1}
	for i := range 30 {
		turns[strings.Repeat("x", i+1)] = 0
	}
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	h := &holder{run: func(_ context.Context, operation string, _ []byte) ([]byte, error) {
		asked++
		if asked == 4 {
			cancel()
		}
		return json.Marshal(sampleOf(0, turns).StatusResult)
	}}
	var out bytes.Buffer
	f := &topFlags{sort: "turns", every: minEvery}
	err := f.watch(ctx, streams{out: &out, err: io.Discard}, h, &screen{size: func() (int, int, error) { return 40, 12, nil }})
	if err != nil {
		t.Fatal(err)
	}
	pictures := strings.Split(out.String(), home)[1:]
	if len(pictures) != 3 {
		t.Fatalf("it drew %d times, want after each of 3 answers but the first", len(pictures))
	}
	lines := strings.Split(strings.TrimSuffix(pictures[0], "\n"+clearRest), "\n")
	if len(lines) > 11 {
		t.Errorf("%d lines leave no room for the cursor on a screen of 12", len(lines))
	}
	for _, line := range lines {
		plain := strings.TrimSuffix(line, clearLine)
		if len([]rune(plain)) > 40 || strings.ContainsRune(plain, '\x1b') {
			t.Errorf("the line %q is too long or controls the terminal", plain)
		}
	}
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "… and 25 creatures") {
		t.Errorf("the last line is %q", last)
	}
}

// The screen ends without an error when it is interrupted, even during an answer.
func TestTopIsInterrupted(t *testing.T) {
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		asked := 0
		h := &holder{run: func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			if asked++; asked == 2 {
				cancel()
				return nil, ctx.Err()
			}
			return json.Marshal(sampleOf(0, map[string]uint64{"a": 1}).StatusResult)
		}}
		f := &topFlags{sort: "turns", every: minEvery}
		if err := f.watch(ctx, streams{out: io.Discard, err: io.Discard}, h, &screen{size: func() (int, int, error) { return 40, 12, nil }}); err != nil || asked != 2 {
			t.Fatalf("interrupted at answer %d: %v", asked, err)
		}
	}
}

// Every page of the manual has the flags and the commands that help has.
func TestManualIsComplete(t *testing.T) {
	root := newRoot(streams{})
	pages := manual(root)
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		page := pages[manName(cmd)+".1"]
		for _, sub := range available(cmd) {
			if !strings.Contains(page, "\n.B "+roff(sub.Name())+"\n") {
				t.Errorf("the page of %s lacks %s", cmd.CommandPath(), sub.Name())
			}
			walk(sub)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(page, roff("--"+f.Name)) {
				t.Errorf("the page of %s lacks --%s", cmd.CommandPath(), f.Name)
			}
		})
		for _, line := range strings.Split(page, "\n") {
			if strings.HasPrefix(line, "'") {
				t.Errorf("the page of %s has the line %q, which is a request", cmd.CommandPath(), line)
			}
		}
	}
	walk(root)
}

// Text that looks like a request or an escape of roff stays text.
func TestRoff(t *testing.T) {
	for in, want := range map[string]string{
		".TH evil\nplain": "\\&.TH evil\nplain",
		`back\slash`:      `back\eslash`,
		"'quoted'":        `\(aqquoted\(aq`,
		"--flag":          `\-\-flag`,
	} {
		if got := roff(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
