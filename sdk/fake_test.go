package sdk_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/conformance"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/sdk/go/terrarium"
	"github.com/seed47132306/terrarium/sdk/go/terrarium/terrariumtest"
	"github.com/seed47132306/terrarium/sdk/internal/probe"
)

const probeConfig = `{"text": "a", "escapes": "\u0000\"\\\/\b\ud800x", "pair": "\ud83d\ude00", "nested": {"a":{"b":[1,"]}<&>"]}}, "list": [], "number": 1000, "null": null}`

// TestFakeHandsOverAsTheHost proves that the fake host of the kit for Go hands the same
// configuration, timers and channels to a creature as the real one, and keeps the same log
// lines.
func TestFakeHandsOverAsTheHost(t *testing.T) {
	module := filepath.Join(t.TempDir(), "probe.wasm")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-o", module, "./internal/probe/module")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, command := range probe.Commands {
		t.Run(command, func(t *testing.T) {
			c := conformance.Case{
				Module: module, CacheDir: cache(t), Config: json.RawMessage(probeConfig), Listen: []string{"in"}, Send: []string{"out"},
				Deliveries: []conformance.Delivery{{Alias: "in", Payload: operations.Payload(command)}, {AdvanceMS: 5}},
			}
			lines, err := conformance.RunCreature(t.Context(), &c, false)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, line := range lines {
				if strings.HasPrefix(line, "output ") || strings.HasPrefix(line, "log ") || strings.HasPrefix(line, "failed ") {
					want = append(want, line)
				}
			}
			got := fakeLines(t, command)
			slices.Sort(got) // the log of a turn comes before its output in one of them
			slices.Sort(want)
			for i := range max(len(got), len(want)) {
				if i >= len(got) || i >= len(want) || got[i] != want[i] {
					t.Fatalf("the fake host has\n%s\nand the real one\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
		})
	}
}

func fakeLines(t *testing.T, command string) (lines []string) {
	f := terrariumtest.New(terrarium.Creature{Handle: probe.Handle})
	f.Name, f.Channels, f.Time = "subject", []string{"out"}, conformance.Begin*int64(time.Second)
	if err := json.Unmarshal([]byte(probeConfig), &f.Config); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{f.Start(), f.Message("in", command), f.Advance(5 * time.Millisecond)} {
		if err != nil {
			t.Error(err)
		}
	}
	for _, line := range f.Logs {
		lines = append(lines, "log "+line)
	}
	for _, out := range f.Outputs {
		text, err := json.Marshal(operations.Payload(out))
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, "output "+string(text))
	}
	return lines
}
