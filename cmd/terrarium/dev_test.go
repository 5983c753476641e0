package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/cmd/internal/project"
	"github.com/seed47132306/terrarium/internal/guesttools"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/plugins"
)

// devLanguage says where a creature of testdata/dev is put, and how a test breaks it.
type devLanguage struct{ source, entry, fault string }

var devLanguages = map[string]devLanguage{
	"c":              {"counter.c", "counter.c", "__builtin_trap();"},
	"cpp":            {"counter.cpp", "counter.cpp", "__builtin_trap();"},
	"rust":           {"counter.rs", "src/lib.rs", `if turn.kind() == Kind::Message { panic!("broken") }`},
	"zig":            {"counter.zig", "counter.zig", `if (t.kind == .message) @panic("broken");`},
	"assemblyscript": {"counter.ts", "counter.ts", "if (t.kind == Kind.Message) unreachable();"},
	"javascript":     {"counter.js", "counter.js", "turn.nothing.at.all;"},
	"go":             {"counter.go", "main.go", `if t.Kind() == terrarium.KindMessage { panic("broken") }`},
	"wat":            {"counter.wat", "counter.wat", "unreachable"},
}

// TestDev makes a creature in every language and, in one dev session while messages keep
// arriving, upgrades, breaks and repairs it. In the end every message has been answered
// exactly once, and the count in the creature's state has no gap.
func TestDev(t *testing.T) {
	seeded.Long(t)
	devToolchains(t)
	for _, l := range project.All {
		t.Run(l.Name, func(t *testing.T) {
			if l.Name != "javascript" { // which needs no toolchain
				guesttools.Use(t)
			}
			dir, files := t.TempDir(), devLanguages[l.Name]
			once(t, dir, "", "new", "counter", "--lang", l.Name)
			folder := filepath.Join(dir, "counter")
			buildOrSkip(t, folder)
			once(t, folder, "", "test", "counter.hcl")
			text, err := os.ReadFile(filepath.Join("testdata", "dev", files.source))
			if err != nil {
				t.Fatal(err)
			}
			version := func(name, fault string) {
				source := strings.NewReplacer("VERSION", name, "// FAULT", fault, ";; FAULT", fault).Replace(string(text))
				rewrite(t, filepath.Join(folder, filepath.FromSlash(files.entry)), source)
			}
			s := startDev(t, dir, "dev", "counter", "--input", "in=-", "--output", "out", "--session", "S", "-o", "json", "--exit-when-idle", "-v")
			s.await("applied")
			s.read.Go(s.sendAll)
			s.answers(50)
			version("one", "")
			if ev := s.await("applied"); len(ev.Changed) != 1 {
				t.Errorf("the first upgrade reports %+v", ev)
			}
			s.answers(50)
			version("one", "( [ {")
			if l.Name == "javascript" {
				s.await("refused") // a script is read when its creature starts
			} else if ev := s.await("build_failed"); ev.Output == "" || ev.Error == nil {
				t.Errorf("a build that fails reports %+v", ev)
			}
			s.answers(50) // from the last good module
			version("bad", files.fault)
			s.await("applied")
			s.p.stderr.await(t, "became a dead letter")
			version("two", "")
			if ev := s.await("applied"); ev.Redelivered == 0 {
				t.Errorf("the repair reports %+v", ev)
			}
			s.answers(50)
			s.finish()
		})
	}
}

// devToolchains puts the compilers that make toolchains installs on the PATH.
func devToolchains(t *testing.T) {
	root, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	path := []string{os.Getenv("PATH"), filepath.Join(root, "toolchains", "node_modules", ".bin"), filepath.Join(root, "toolchains", "python", "ziglang")}
	t.Setenv("PATH", strings.Join(path, string(os.PathListSeparator)))
	t.Setenv("ZIG_GLOBAL_CACHE_DIR", filepath.Join(root, "kits", "cache-zig", "global"))
}

// buildOrSkip builds a creature, and skips a test whose language has no compiler here.
func buildOrSkip(t *testing.T, folder string) {
	t.Helper()
	p, err := project.Detect(folder)
	if err != nil {
		t.Fatal(err)
	}
	built, err := p.Build(t.Context(), project.Options{})
	if abi.CodeOf(err) == abi.Unavailable {
		guesttools.Missing(t, err.Error())
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, built.Output)
	}
	write(t, folder, built.Name+".wasm", string(built.Wasm))
}

// rewrite changes a file as editors do: it renames a new one over it.
func rewrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+"~", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
}

// reported has the members of an event that the tests read.
type reported struct {
	Event, Module, Output string
	Changed               []string
	Created, Removed      []string
	Workers               []string
	Redelivered           int
	Turns, Differ         int
	Difference            json.RawMessage
	Error, Diagnostics    json.RawMessage
}

// devSession is a dev command that gets numbered messages.
type devSession struct {
	t       *testing.T
	p       *process
	events  chan reported
	read    sync.WaitGroup // the readers and writers of the process
	mu      sync.Mutex     // guards the rest
	changed *sync.Cond
	sent    int
	enough  bool     // nothing more is sent
	ended   bool     // the output has ended
	got     []string // the answers in their order
}

// window is how many messages may wait for their answers.
const window = 300

func startDev(t *testing.T, dir string, args ...string) *devSession {
	s := &devSession{t: t, p: start(t, dir, args...), events: make(chan reported, 1000)}
	s.changed = sync.NewCond(&s.mu)
	s.read.Go(s.readAll)
	t.Cleanup(func() { // before the process is waited for
		s.p.cmd.Process.Kill()
		s.read.Wait()
	})
	return s
}

func (s *devSession) readAll() {
	defer func() {
		close(s.events)
		s.update(func() { s.ended = true })
	}()
	for {
		line, err := s.p.out.ReadBytes('\n')
		if err != nil {
			return
		}
		var ev reported
		var message struct{ Payload string }
		if err := json.Unmarshal(line, &ev); err == nil && ev.Event != "" {
			s.events <- ev
			continue
		}
		if err := json.Unmarshal(line, &message); err != nil || message.Payload == "" {
			s.t.Errorf("dev printed %s", line)
		}
		s.update(func() { s.got = append(s.got, message.Payload) })
	}
}

func (s *devSession) sendAll() {
	defer s.p.in.Close()
	for {
		s.mu.Lock()
		for s.sent-len(s.got) >= window && !s.enough && !s.ended {
			s.changed.Wait()
		}
		over := s.enough || s.ended
		if !over {
			s.sent++
		}
		n := s.sent
		s.mu.Unlock()
		if over {
			return
		}
		if _, err := fmt.Fprintln(s.p.in, n); err != nil {
			s.update(func() { s.ended = true })
			return
		}
	}
}

func (s *devSession) update(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.changed.Broadcast()
}

// await waits for the next event of a kind.
func (s *devSession) await(kind string) reported {
	s.t.Helper()
	for ev := range s.events {
		if ev.Event == kind {
			return ev
		}
		if kind == eventApplied && (ev.Event == eventBuildFailed || ev.Event == eventRefused) {
			s.t.Fatalf("instead of %s: %s, %s%s%s", kind, ev.Event, ev.Output, ev.Error, ev.Diagnostics)
		}
	}
	s.t.Fatalf("dev ended before %s:\n%s", kind, s.p.stderr)
	return reported{}
}

// answers waits for more answers.
func (s *devSession) answers(more int) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for from := len(s.got); len(s.got) < from+more; s.changed.Wait() {
		if s.ended {
			s.t.Fatalf("dev ended after %d answers:\n%s", len(s.got), s.p.stderr)
		}
	}
}

// finish ends the input and compares all answers with what was sent.
func (s *devSession) finish() {
	s.t.Helper()
	s.update(func() { s.enough = true })
	s.read.Wait()
	if code := s.p.wait(); code != exitOK {
		s.t.Errorf("exit code %d\n%s", code, s.p.stderr)
	}
	answered, counted, versions := map[int]int{}, 0, []string{}
	for _, answer := range s.got {
		words := strings.Fields(answer)
		if len(words) == 1 { // of the creature as it was made
			words = []string{"new", words[0], ""}
		}
		n, err := strconv.Atoi(words[1])
		if err != nil {
			s.t.Errorf("the answer %q has no number", answer)
		}
		answered[n]++
		if count, _ := strconv.Atoi(words[2]); words[0] != "new" {
			if counted++; count != counted {
				s.t.Errorf("the answer %q is number %d of those that are counted", answer, counted)
			}
		}
		if len(versions) == 0 || versions[len(versions)-1] != words[0] {
			versions = append(versions, words[0])
		}
	}
	if want := "new one two"; strings.Join(versions, " ") != want {
		s.t.Errorf("the versions that answered are %v, want %s", versions, want)
	}
	for n := 1; n <= s.sent; n++ {
		if answered[n] != 1 {
			s.t.Errorf("message %d was answered %d times", n, answered[n])
		}
	}
	if len(answered) != s.sent {
		s.t.Errorf("%d messages were sent, %d answered", s.sent, len(answered))
	}
}

// interrupt ends dev as Ctrl-C does.
func (s *devSession) interrupt() {
	s.t.Helper()
	if err := s.p.cmd.Process.Signal(os.Interrupt); err != nil {
		s.t.Fatal(err)
	}
	s.read.Wait()
	if code := s.p.wait(); code != exitInterrupted(syscall.SIGINT) {
		s.t.Errorf("exit code %d\n%s", code, s.p.stderr)
	}
}

// say sends a line, and returns the next answer.
func (s *devSession) say(line string) string {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.got)
	if _, err := fmt.Fprintln(s.p.in, line); err != nil {
		s.t.Fatal(err)
	}
	for ; len(s.got) == n; s.changed.Wait() {
		if s.ended {
			s.t.Fatalf("dev ended without an answer to %s:\n%s", line, s.p.stderr)
		}
	}
	return s.got[n]
}

// devRecipe passes on what matches a word, and may have more blocks.
func devRecipe(word, more string) string {
	return fmt.Sprintf(`
channel "in" {}
channel "out" {}
creature "gate" {
  module = "builtin:gate"
  config = { match = %q }
  listen = [channel.in]
  send   = [channel.out]
}
%s`, word, more)
}

// TestDevRecipe edits a recipe while it runs: its settings, a mistake, another creature with a
// module of a folder below, a policy in a file of its own, and the removal of all of these.
func TestDevRecipe(t *testing.T) {
	dir := t.TempDir()
	recipe := filepath.Join(dir, "team.hcl")
	rewrite(t, recipe, devRecipe("frog", ""))
	s := startDev(t, dir, "dev", "team.hcl", "--input", "in=-", "--output", "out", "-o", "json")
	s.await("applied")
	if got := s.say("a frog"); got != "a frog" {
		t.Errorf("the first answer is %s", got)
	}
	rewrite(t, recipe, devRecipe("newt", ""))
	if ev := s.await("applied"); !slices.Equal(ev.Changed, []string{"creature.gate"}) || ev.Created != nil {
		t.Errorf("another setting: %+v", ev)
	}
	rewrite(t, recipe, devRecipe("olm", "creatur"))
	if ev := s.await("refused"); !strings.Contains(string(ev.Diagnostics), "team.hcl") {
		t.Errorf("a mistake: %+v", ev)
	}
	if got := s.say("a newt and an olm"); got != "a newt and an olm" {
		t.Errorf("after the mistake the answer is %s", got)
	}
	rewrite(t, recipe, strings.Replace(devRecipe("olm", ""), `channel "out" {}`, "", 1))
	s.await("refused")
	rewrite(t, recipe, strings.ReplaceAll(devRecipe("olm", ""), "out", "loud"))
	if ev := s.await("refused"); !strings.Contains(string(ev.Error), "its channels are in, loud") {
		t.Errorf("without the channel of --output: %+v", ev)
	}
	const echo = `creature "echo" { module = "echo/echo.wasm" }`
	rewrite(t, recipe, devRecipe("olm", echo))
	if ev := s.await("build_failed"); !strings.Contains(string(ev.Error), "cannot be read") {
		t.Errorf("a folder that is missing: %+v", ev)
	}
	if err := os.Mkdir(filepath.Join(dir, "echo"), 0o755); err != nil {
		t.Fatal(err)
	}
	rewrite(t, filepath.Join(dir, "echo", "echo.js"), "export default {};")
	if ev := s.await("applied"); !slices.Equal(ev.Created, []string{"creature.echo"}) || !slices.Equal(ev.Changed, []string{"creature.gate"}) {
		t.Errorf("another creature: %+v", ev)
	}
	rewrite(t, recipe, devRecipe("olm", ""))
	if ev := s.await("applied"); !slices.Equal(ev.Removed, []string{"creature.echo"}) || ev.Changed != nil {
		t.Errorf("without it: %+v", ev)
	}
	s.interrupt()
}

// TestDevOtherTools runs a module that another tool writes. One that breaks the contract is
// refused, and one that differs from the record with --check.
func TestDevOtherTools(t *testing.T) {
	dir := t.TempDir()
	put := func(name string) {
		wasm, err := plugins.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		rewrite(t, filepath.Join(dir, "gate.wasm"), string(wasm))
	}
	write(t, dir, "team.hcl", strings.Replace(devRecipe("frog", ""), "builtin:gate", "gate.wasm", 1))
	s := startDev(t, dir, "dev", dir, "--input", "in=-", "--output", "out", "-o", "json", "--check", "5")
	s.await("waiting")
	put("gate")
	s.await("applied")
	if got := s.say("a frog"); got != "a frog" {
		t.Errorf("the first answer is %s", got)
	}
	rewrite(t, filepath.Join(dir, "gate.wasm"), "\x00asm\x01\x00\x00\x00")
	s.await("refused")
	put("gate")
	s.await("applied") // the same module, which changes nothing
	put("tally")
	if ev := s.await("checked"); ev.Turns != 2 || ev.Differ != 2 || len(ev.Difference) == 0 {
		t.Errorf("a tally in place of a gate: %d of %d turns differ", ev.Differ, ev.Turns)
	}
	s.await("refused")
	if got := s.say("one more frog"); got != "one more frog" {
		t.Errorf("after what was refused the answer is %s", got)
	}
	put("gate")
	s.await("built")
	s.interrupt()
}

// TestDevWorkers replaces the module of a species while its workers live.
func TestDevWorkers(t *testing.T) {
	dir := t.TempDir()
	wasm, err := plugins.Get("clerk")
	if err != nil {
		t.Fatal(err)
	}
	put := func(version byte) { // of a custom section
		rewrite(t, filepath.Join(dir, "clerk.wasm"), string(wasm)+string([]byte{0, 3, 1, 'v', version}))
	}
	put(1)
	recipe, err := os.ReadFile("../../examples/self-building/crew.hcl")
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "team.hcl", strings.Replace(string(recipe), "builtin:clerk", "clerk.wasm", 1))
	s := startDev(t, dir, "dev", "team.hcl", "--input", "tasks=-", "--output", "results", "-o", "json", "--var", "clerks=2", "--var", "linger=10000000")
	s.await("applied")
	before := s.say("factor 91")
	put(2)
	if ev := s.await("applied"); len(ev.Workers) != 1 || len(ev.Changed) != 0 {
		t.Errorf("workers %v and %v got the new module", ev.Workers, ev.Changed)
	}
	if after := s.say("factor 91"); after != before {
		t.Errorf("the worker answers %s, before %s", after, before)
	}
	s.interrupt()
}

// TestDevLeavesNothing runs dev in this process.
func TestDevLeavesNothing(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := t.TempDir()
	write(t, dir, "team.hcl", devRecipe("frog", `creature "echo" { module = "echo.wasm" }`))
	write(t, dir, "echo.js", "export default {};")
	var out, report bytes.Buffer
	in := io.NopCloser(strings.NewReader("a frog\n"))
	args := []string{"dev", dir, "--input", "in=-", "--output", "out", "--watch", "--exit-when-idle"}
	if code := run(t.Context(), args, streams{in, &out, &report}); code != exitOK || out.String() != "a frog\n" {
		t.Errorf("exit code %d, printed %q\n%s", code, &out, &report)
	}
	write(t, dir, "echo.js", "")
	if code := run(t.Context(), args, streams{io.NopCloser(strings.NewReader("")), &out, &report}); code != exitFailed {
		t.Errorf("after a failure the exit code is %d\n%s", code, &report)
	}
}

// The file of a recipe is taken by its name, though its tests are beside it.
func TestRecipeBesideItsTests(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "team.hcl", "")
	for _, name := range []string{"team.test.hcl", "team.test.hcl.json", ".hidden.hcl"} {
		write(t, dir, name, "")
	}
	if got, err := recipeIn(dir); err != nil || got != filepath.Join(dir, "team.hcl") {
		t.Errorf("%q, %v", got, err)
	}
}
