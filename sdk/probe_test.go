package sdk_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/conformance"
	"github.com/seed47132306/terrarium/operations"
)

const probes = "reference/probes.txt"

// TestProbes proves that reference/probes.txt has the answers of the host. The tests of
// every kit compare their fake hosts with this file.
func TestProbes(t *testing.T) {
	for _, tool := range []string{"clang-14", "wasm-ld-14"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is missing", tool)
		}
	}
	text, err := os.ReadFile(probes)
	if err != nil {
		t.Fatal(err)
	}
	module := probeModule(t)
	head, groups, found := strings.Cut(string(text), "\n\n")
	if !found {
		t.Fatalf("%s has no groups", probes)
	}
	var got strings.Builder
	got.WriteString(head + "\n")
	for group := range strings.SplitSeq(groups, "\n\n") {
		title, lines, _ := strings.Cut(group, "\n")
		got.WriteString("\n" + title + "\n" + hostAnswers(t, module, title, strings.TrimRight(lines, "\n")+"\n"))
	}
	if *update {
		if err := os.WriteFile(probes, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got.String() != string(text) {
		t.Errorf("%s is stale; run go test ./sdk -run TestProbes -update. The host has\n%s", probes, got.String())
	}
}

func probeModule(t *testing.T) string {
	module := filepath.Join(t.TempDir(), "probe.wasm")
	build := exec.CommandContext(t.Context(), "clang-14", "--target=wasm32", "-std=c11", "-Wall", "-Wextra", "-Werror", "-Os", "-ffreestanding",
		"-mbulk-memory", "-nostdlib", "-fuse-ld=/usr/bin/wasm-ld-14", "-Wl,--no-entry", "-Ic", "c/examples/probe.c", "-o", module)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return module
}

// hostAnswers makes the calls of a group on the host, and returns the lines with the
// answers.
func hostAnswers(t *testing.T, module, title, lines string) string {
	c := conformance.Case{
		Module: module, CacheDir: cache(t), Privileged: title == "turn tools", Listen: []string{"in"}, Send: []string{"out"}, Peers: []conformance.Peer{{Name: "frog"}},
		Config:     json.RawMessage(`{"text":"a","list":[1,"b"],"null":null}`),
		Deliveries: []conformance.Delivery{{Alias: "in", Payload: operations.Payload(lines)}},
	}
	if strings.HasPrefix(title, "request ") {
		c.Deliveries[0].Alias, c.Deliveries[0].Request = "", true
	}
	transcript, err := conformance.RunCreature(t.Context(), &c, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range transcript {
		if text, ok := strings.CutPrefix(line, "output "); ok && strings.HasSuffix(text, `\n"`) {
			answers, err := strconv.Unquote(text)
			if err != nil {
				t.Fatal(err)
			}
			return answers[strings.LastIndexByte(answers, 0)+1:]
		}
	}
	t.Fatalf("%s: no output in %.2000s", title, strings.Join(transcript, "\n"))
	return ""
}
