package archtest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/conformance/hostile"
)

// targets are the processors that are tested, each as make dist and as qemu name it, with the
// size that the program has at most, in bytes. It may only be lowered.
var targets = []struct {
	dist, qemu string
	size       int64
}{
	{"linux/arm64", "qemu-aarch64", 41_800_000},
	{"linux/arm/7", "qemu-arm", 41_400_000},
	{"linux/riscv64", "qemu-riscv64", 39_400_000},
}

// TestArchitectures compares programs for other processors with the one for this machine:
// what they print, the verdicts of conformance, the fuel of turns, sessions that they share,
// and files of more bytes than 31 bits count.
func TestArchitectures(t *testing.T) {
	if os.Getenv("TERRARIUM_ARCH") == "" {
		t.Skip("TERRARIUM_ARCH=1 builds terrarium for other processors and runs it with qemu-user, which takes minutes")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	here := program{root: root, argv: []string{filepath.Join(t.TempDir(), "terrarium")}}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", here.argv[0], "./cmd/terrarium")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building it for this machine: %v\n%s", err, out)
	}
	t.Run("qemu-arm, C", func(t *testing.T) {
		t.Parallel()
		there := crossBuilt(t, root, "dist-c", "linux/arm/7", "qemu-arm")
		t.Run("Quickstart", func(t *testing.T) { testQuickstart(t, here, there) })
		t.Run("Kill", func(t *testing.T) { testKill(t, here, there) })
	})
	for _, target := range targets {
		t.Run(target.qemu, func(t *testing.T) {
			t.Parallel()
			there := crossBuilt(t, root, "dist", target.dist, target.qemu)
			if file, err := os.Stat(there.argv[1]); err != nil {
				t.Error(err)
			} else if file.Size() > target.size {
				t.Errorf("the program has %d bytes, and %d at most are allowed", file.Size(), target.size)
			}
			t.Run("Quickstart", func(t *testing.T) { testQuickstart(t, here, there) })
			t.Run("Conformance", func(t *testing.T) { testConformance(t, here, there) })
			t.Run("Fuel", func(t *testing.T) { testFuel(t, here, there) })
			t.Run("Limits", func(t *testing.T) { testLimits(t, here, there) })
			t.Run("Kill", func(t *testing.T) { testKill(t, here, there) })
			t.Run("PowerLoss", func(t *testing.T) { testPowerLoss(t, root, target.dist, there.argv[0]) })
			t.Run("LargeFiles", func(t *testing.T) { testLargeFiles(t, here, there) })
			t.Run("Disks", func(t *testing.T) { testDisks(t, here, there) })
			if target.qemu == "qemu-arm" {
				t.Run("Addresses", func(t *testing.T) { testAddresses(t, there, target.qemu) })
			}
		})
	}
}

// program is a build of terrarium.
type program struct {
	root string   // of the repository
	argv []string // the emulator, if it needs one, and the file
}

// crossBuilt builds the program for another processor as make dist or make dist-c does.
func crossBuilt(t *testing.T, root, target, dist, qemu string) program {
	t.Helper()
	emulator, err := exec.LookPath(qemu)
	if err != nil {
		t.Fatalf("TERRARIUM_ARCH is set, and %s of the package qemu-user is missing", qemu)
	}
	build := exec.CommandContext(t.Context(), "make", "bin/"+target+"/"+dist)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building it for %s: %v\n%s", dist, err, out)
	}
	return program{root, []string{emulator, filepath.Join(root, "bin", target, "terrarium-"+strings.ReplaceAll(dist, "/", "-"))}}
}

// command returns the program with arguments, to run in a folder. Compiled code comes from
// and goes to a cache of that folder. Creatures that ship run as compiled code here, and as
// Go code there.
func (p program) command(t *testing.T, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), p.argv[0], append(p.argv[1:len(p.argv):len(p.argv)], args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TERRARIUM_CACHE="+filepath.Join(dir, "cache"))
	if len(p.argv) == 1 {
		cmd.Env = append(cmd.Env, "TERRARIUM_TRANSLATIONS=off")
	}
	return cmd
}

// result is what a process leaves.
type result struct {
	code           int
	stdout, stderr string
}

// run runs the program to its end in a folder.
func (p program) run(t *testing.T, dir, stdin string, args ...string) result {
	t.Helper()
	cmd := p.command(t, dir, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// prints runs the program to its end and returns what it prints; it has to succeed.
func (p program) prints(t *testing.T, dir, stdin string, args ...string) string {
	t.Helper()
	r := p.run(t, dir, stdin, args...)
	if r.code != 0 {
		t.Fatalf("%s ends with %d:\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

// same fails if the program there does not print what the one here prints, which contains
// the given text.
func same(t *testing.T, here, there program, contains string, args ...string) {
	t.Helper()
	want := here.prints(t, t.TempDir(), "", args...)
	if !strings.Contains(want, contains) {
		t.Fatalf("here, %s prints\n%s\nwithout %s", strings.Join(args, " "), want, contains)
	}
	if got := there.prints(t, t.TempDir(), "", args...); got != want {
		t.Errorf("%s prints\n%s\nhere it prints\n%s", strings.Join(args, " "), got, want)
	}
}

func testQuickstart(t *testing.T, here, there program) {
	example := filepath.Join(here.root, "examples/quickstart")
	same(t, here, there, `"total":6`,
		"run", example, "--input", "lines="+filepath.Join(example, "lines.txt"), "--output", "report", "--exit-when-idle")
	if out := there.prints(t, t.TempDir(), "", "test", example); !strings.Contains(out, "1 test passed, 0 failed") {
		t.Errorf("the test of the recipe says\n%s", out)
	}
}

// testConformance leaves out builtin:js: an interpreter of JavaScript, in one of WebAssembly,
// in an emulator takes half a minute to start a script once. testFuel does that.
func testConformance(t *testing.T, here, there program) {
	creatures := []string{"clerk", "echo", "envoy", "foreman", "gate", "join", "operator", "relay", "split", "tally"}
	args := []string{"conformance", "creature", "--no-cache", "-o", "json"}
	for _, name := range creatures {
		args = append(args, "builtin:"+name)
	}
	same(t, here, there, `"conforms": true`, args...)
	same(t, here, there, `"conforms": true`, "conformance", "creature", "--no-cache", "-o", "json", "--config", `{"to":["out"]}`, "builtin:select")
}

// testFuel compares transcripts of calls, which list the fuel of each delivery.
func testFuel(t *testing.T, here, there program) {
	for _, args := range [][]string{
		{"builtin:echo", "--send", "out", "--payload", strings.Repeat("frog ", 1000)},
		{"builtin:gate", "--send", "out", "--config", `{"match": "^(f|n)[a-z]+[0-9]+$"}`, "--file", messages("frog17", "snail", "newt04", "frog", strings.Repeat("f", 4000)+"12")},
		{"builtin:tally", "--send", "report", "--config", `{"key": "field:2", "every": 2}`, "--state", "total=41", "--file", messages("7 frog", "8 newt", "9 frog", "")},
		{"builtin:relay", "--send", "a", "--send", "b", "--header", "x=y", "--payload", "frog"},
		{"builtin:split", "--send", "a", "--send", "b", "--config", `{"to": ["a", "b"]}`, "--file", messages("one", "two", "three")},
		{"builtin:join", "--send", "out", "--config", `{"count": 2, "key": "field:1", "as": "json"}`, "--file", messages("7 frog", "8 newt", "7 toad", "7 late")},
		{"builtin:select", "--send", "a", "--send", "b", "--config", `{"to": ["a", "b"], "mode": "weighted", "weights": {"a": 0, "b": 3}}`, "--file", messages("one", "two", "three", "four")},
		{"builtin:clerk", "--file", messages("factor 100160063", "sha256 frog", "words a b  c", "nonsense")},
		{"builtin:js", "--send", "out", "--config", `{"script": "export default { message(turn) { turn.send('out', String(Math.hypot(3, turn.payload.length) / 7)) } }"}`, "--payload", "frog"},
	} {
		t.Run(args[0], func(t *testing.T) {
			args = append([]string{"call", "--no-cache", "-o", "json"}, args...)
			dir := t.TempDir()
			for i, arg := range args {
				if i > 0 && args[i-1] == "--file" {
					args[i] = filepath.Join(dir, "deliveries.json")
					if err := os.WriteFile(args[i], []byte(arg), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			want, got := here.run(t, dir, "", args...), there.run(t, dir, "", args...)
			if got != want {
				t.Errorf("%v:\n%+v\nhere:\n%+v", args, got, want)
			}
			if !strings.Contains(want.stdout, `"fuel": `) || strings.Contains(want.stdout, `"fuel": 0,`) {
				t.Errorf("a delivery here takes no fuel:\n%+v", want)
			}
		})
	}
}

// testLimits compares transcripts of turns that reach a limit: fuel, memory, tables, stack; and
// of one that traps. A loop of a billion steps is left out, which reaches the deadline first in
// an emulator, and so is a recursion of many calls with small frames, which interpreters end
// earlier.
func testLimits(t *testing.T, here, there program) {
	ends := map[string]string{ // of modules of the gallery of attacks
		"memory-fill-chain": `"code": "out_of_fuel"`, "memory-grow": `"code": "trapped"`, "table-grow": `"code": "trapped"`,
		"recursion-huge-frames": `"code": "limit"`, "long-function-name": `"code": "trapped"`, "memory-of-everything": "a memory of 4 GiB",
	}
	for _, m := range hostile.Modules() {
		end, chosen := ends[m.Name]
		if !chosen {
			continue
		}
		delete(ends, m.Name)
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "m.wasm"), m.Build(), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"call", "--no-cache", "--no-start", "-o", "json", "--payload", "x", "m.wasm"}
		want, got := here.run(t, dir, "", args...), there.run(t, dir, "", args...)
		if got != want {
			t.Errorf("%s:\n%+v\nhere:\n%+v", m.Name, got, want)
		}
		if !strings.Contains(want.stdout+want.stderr, end) {
			t.Errorf("%s does not end with %s:\n%+v", m.Name, end, want)
		}
	}
	if len(ends) > 0 {
		t.Errorf("the gallery lacks %v", ends)
	}
}

// messages returns deliveries as call reads them.
func messages(payloads ...string) string {
	var all []string
	for _, p := range payloads {
		all = append(all, `{"alias": "in", "payload": "`+p+`"}`)
	}
	return "[" + strings.Join(all, ",") + "]"
}

// testLargeFiles has files of more bytes than 31 bits count, which are refused alike.
func testLargeFiles(t *testing.T, here, there program) {
	dir := t.TempDir()
	large, err := os.Create(filepath.Join(dir, "large"))
	if err != nil {
		t.Fatal(err)
	}
	defer large.Close()
	example := filepath.Join(here.root, "examples/quickstart")
	for _, size := range []int64{1<<31 + 1, 1<<32 + 1} {
		if err := large.Truncate(size); err != nil { // a hole, which takes no room
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"inspect", "large"},
			{"call", "builtin:echo", "--no-start", "--payload-file", "large"},
			{"run", example, "--input", "lines=large", "--output", "report", "--exit-when-idle"},
		} {
			want, got := here.run(t, dir, "", args...), there.run(t, dir, "", args...)
			want.stderr, got.stderr = untimed(want.stderr), untimed(got.stderr)
			if want.code == 0 || got != want {
				t.Errorf("%v with %d bytes:\n%+v\nhere:\n%+v", args, size, got, want)
			}
		}
	}
}

// timed is a line that says how long a run has taken, or that it still runs.
var timed = regexp.MustCompile(`(?m)^(Failed in |(\d+m)?\d+s: ).*\n`)

func untimed(stderr string) string { return timed.ReplaceAllString(stderr, "") }
