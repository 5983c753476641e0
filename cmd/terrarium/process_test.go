package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// deadline is how long any step of these tests may take before it counts as
// stuck.
const deadline = 5 * time.Minute

// process is a terrarium that is running.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *lockedBuffer
}

// programs counts the processes that were started.
var programs atomic.Uint64

// program is the command to start. TERRARIUM_OTHER names one that was built with the other
// library of SQLite. Every second process is then that one, so that both libraries use the
// same sessions, also with the write-ahead log that a killed process has left.
func program() string {
	if other := os.Getenv("TERRARIUM_OTHER"); other != "" && programs.Add(1)%2 == 0 {
		return other
	}
	return "terrarium"
}

// start runs the command in a folder, with its input and output at hand.
func start(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	return startWith(t, dir, t.TempDir(), args...)
}

// startWith is start with a directory for temporary files that other processes have used.
func startWith(t *testing.T, dir, tmp string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(program(), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	return launch(t, cmd)
}

// launch starts a command, with its input and output at hand.
func launch(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, stderr: newLockedBuffer()}
	p.cmd.Stderr = p.stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(deadline, func() { p.cmd.Process.Kill() })
	t.Cleanup(func() {
		stuck.Stop()
		p.cmd.Process.Kill()
		p.cmd.Wait()
	})
	return p
}

// line reads the next line of the output.
func (p *process) line() string {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatalf("after %q: %v\n%s", line, err, p.stderr)
	}
	return strings.TrimSuffix(line, "\n")
}

// ask sends a request to exec and returns the result.
func (p *process) ask(request string) json.RawMessage {
	p.t.Helper()
	if _, err := io.WriteString(p.in, request+"\n"); err != nil {
		p.t.Fatal(err)
	}
	var answer struct {
		OK     bool
		Result json.RawMessage
		Error  json.RawMessage
	}
	if err := json.Unmarshal([]byte(p.line()), &answer); err != nil {
		p.t.Fatal(err)
	}
	if !answer.OK {
		p.t.Fatalf("%s: %s", request, answer.Error)
	}
	return answer.Result
}

// signal sends a signal and returns what the process ends with: its exit code,
// or -1 when the signal ended it.
func (p *process) signal(s os.Signal) int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
	return p.wait()
}

func (p *process) wait() int {
	io.Copy(io.Discard, p.out)
	p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

// once runs the command to its end and returns its output.
func once(t *testing.T, dir string, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program(), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("terrarium %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

const relayAndCount = `
terrarium { name = "count" }
channel "lines" {}
channel "seen" {}
creature "relay" {
  module = "builtin:relay"
  listen = [channel.lines]
  send   = [channel.seen]
}
creature "counts" {
  module = "builtin:tally"
  listen = [channel.lines]
  config = { key = "field:1" }
}
creature "again" {
  module = "builtin:tally"
  listen = [channel.seen]
  config = { key = "field:1" }
}
`

func TestInterrupt(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "count.hcl", relayAndCount)
	p := start(t, dir, "run", "count.hcl", "--input", "lines=-", "--output", "seen", "--session", "S S")
	io.WriteString(p.in, "a 1\n")
	if got := p.line(); got != "a 1" {
		t.Fatalf("printed %q", got)
	}
	// Standard input is still open, and nothing comes from it.
	if code := p.signal(os.Interrupt); code != exitInterrupted(syscall.SIGINT) {
		t.Fatalf("exit code %d\n%s", code, p.stderr)
	}
	for _, want := range []string{"Everything was kept; resume with: ", "--input lines=- --output seen --session 'S S'", "the same standard input again"} {
		if !strings.Contains(p.stderr.String(), want) {
			t.Errorf("standard error does not say %q:\n%s", want, p.stderr)
		}
	}
	if got := once(t, dir, "a 1\nb 2\n", "run", "count.hcl", "--input", "lines=-", "--output", "seen", "--session", "S S", "--exit-when-idle"); got != "b 2\n" {
		t.Errorf("the next run printed %q", got)
	}
}

func TestInterruptWithoutSession(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "count.hcl", relayAndCount)
	write(t, dir, "lines.txt", "a\n")
	p := start(t, dir, "run", "count.hcl", "--input", "lines=lines.txt", "--output", "seen")
	p.line()
	p.stderr.await(t, "press Ctrl-C to stop")
	if code := p.signal(syscall.SIGTERM); code != exitInterrupted(syscall.SIGTERM) {
		t.Fatalf("exit code %d\n%s", code, p.stderr)
	}
	if !strings.Contains(p.stderr.String(), "use --session DIR to be able to resume") {
		t.Errorf("standard error:\n%s", p.stderr)
	}
}

// A process that a signal asks to end leaves nothing behind, and its exit code shows the
// signal. The next process removes what a killed one has left.
func TestSignals(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL} {
		t.Run(s.String(), func(t *testing.T) {
			if signal.Ignored(s) {
				t.Skip("the tests were started by nohup, and so are their processes")
			}
			t.Parallel()
			tmp := t.TempDir()
			p := startWith(t, t.TempDir(), tmp, "exec")
			p.ask(`{"op":"add_creature","name":"a","module":"builtin:echo"}`)
			left, err := filepath.Glob(filepath.Join(tmp, "terrarium-scratch-*"))
			if err != nil || len(left) != 1 {
				t.Fatalf("temporary sessions %v, %v; want one", left, err)
			}
			want := map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129, syscall.SIGKILL: -1}[s]
			if code := p.signal(s); code != want {
				t.Errorf("exit code %d, want %d\n%s", code, want, p.stderr)
			}
			if s == syscall.SIGKILL {
				long := time.Now().Add(-time.Hour)
				if err := os.Chtimes(left[0], long, long); err != nil {
					t.Fatal(err)
				}
				p = startWith(t, t.TempDir(), tmp, "exec")
				p.in.Close()
				p.wait()
			}
			if entries, err := os.ReadDir(tmp); err != nil || len(entries) > 0 {
				t.Errorf("left behind: %v, %v", entries, err)
			}
		})
	}
}

// A process started by nohup continues when its terminal is closed.
func TestNoHangup(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("sh", "-c", `trap '' HUP; exec terrarium exec`)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	p := launch(t, cmd)
	p.ask(`{"op":"status"}`)
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.ask(`{"op":"status"}`)
	p.in.Close()
	if code := p.wait(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, p.stderr)
	}
}

// A process that may open few files has more stores than it can keep open: it closes those
// that nothing is written to, and loses nothing, not even when it is killed.
func TestFewOpenFiles(t *testing.T) {
	dir, tmp := t.TempDir(), t.TempDir()
	begin := func() *process {
		cmd := exec.Command("sh", "-c", `ulimit -n 64; exec terrarium exec --session S`)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
		return launch(t, cmd)
	}
	const creatures = 40
	p := begin()
	for n := range creatures { // each in a graph of its own, with a store of its own
		p.ask(fmt.Sprintf(`{"op":"add_creature","name":"c%d","module":"builtin:echo"}`, n))
	}
	work := func() {
		for n := range creatures {
			p.ask(fmt.Sprintf(`{"op":"send_to","creature":"c%d","payload":"x","durable":true}`, n))
		}
		p.ask(`{"op":"wait_idle"}`)
		for n := range 3 { // merge, and split
			pair := fmt.Sprintf(`"from":"c%d","to":"c%d"`, n, creatures-1-n)
			p.ask(`{"op":"connect",` + pair + `}`)
			p.ask(`{"op":"disconnect",` + pair + `}`)
		}
	}
	work()
	p.signal(syscall.SIGKILL)
	p = begin()
	work()
	p.in.Close()
	if code := p.wait(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, p.stderr)
	}
	turns := map[string]int{}
	for line := range strings.Lines(once(t, dir, "", "session", "events", "S", "--kind", "turn_ended", "-o", "json")) {
		var turn struct{ Creature string }
		if err := json.Unmarshal([]byte(line), &turn); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		turns[turn.Creature]++
	}
	for creature, n := range turns {
		if n != 3 {
			t.Errorf("%s has taken %d turns, want the first and two", creature, n)
		}
	}
	if len(turns) != creatures {
		t.Errorf("%d creatures have taken turns, want %d", len(turns), creatures)
	}
	var list struct{ Sessions []struct{ Session string } }
	if err := json.Unmarshal([]byte(once(t, dir, "", "session", "list", "S", "-o", "json")), &list); err != nil || len(list.Sessions) < creatures {
		t.Fatalf("%d sessions: %v", len(list.Sessions), err)
	}
	for _, s := range list.Sessions[len(list.Sessions)-8:] { // the newest: those of the merges and splits, and some others
		if said := once(t, dir, "", "session", "verify", "S", s.Session); !strings.Contains(said, "is intact") {
			t.Error(said)
		}
	}
}

func TestInterruptExec(t *testing.T) {
	p := start(t, t.TempDir(), "exec")
	p.ask(`{"op":"add_creature","name":"a","module":"builtin:echo"}`)
	if code := p.signal(os.Interrupt); code != exitInterrupted(syscall.SIGINT) {
		t.Fatalf("exit code %d\n%s", code, p.stderr)
	}
}

// A cycle is never idle; it runs until it is interrupted.
func TestInterruptCycle(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "cycle.hcl", `
terrarium { name = "cycle" }
channel "a" {}
channel "b" {}
creature "one" {
  module = "builtin:relay"
  listen = [channel.a]
  send   = [channel.b]
}
creature "two" {
  module = "builtin:relay"
  listen = [channel.b]
  send   = [channel.a]
}
`)
	p := start(t, dir, "run", "cycle.hcl", "--input", "a=-", "--output", "b", "--exit-when-idle")
	io.WriteString(p.in, "round\n")
	p.in.Close()
	for range 100 {
		if got := p.line(); got != "round" {
			t.Fatalf("printed %q", got)
		}
	}
	if code := p.signal(os.Interrupt); code != exitInterrupted(syscall.SIGINT) {
		t.Fatalf("exit code %d\n%s", code, p.stderr)
	}
}

// TestRemovedLock removes the file that keeps others out of a session. A second process
// is refused nevertheless, and nothing is lost that the first acknowledges.
func TestRemovedLock(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "count.hcl", relayAndCount)
	p := start(t, dir, "exec", "--session", "S", "--recipe", "count.hcl")
	p.ask(`{"op":"send","channel":"lines","payload":"a","durable":true}`)
	for round := range 2 { // the second time there is the file that the refused process made
		if round == 0 {
			if err := os.Remove(filepath.Join(dir, "S", "lock")); err != nil {
				t.Fatal(err)
			}
		}
		for _, args := range [][]string{{"run", "count.hcl", "--session", "S"}, {"session", "rebuild", "S"}} {
			second := start(t, dir, args...)
			if code := second.wait(); code != exitSession || !strings.Contains(second.stderr.String(), "is in use by") {
				t.Errorf("%v: exit code %d\n%s", args, code, second.stderr)
			}
		}
	}
	p.ask(`{"op":"send","channel":"lines","payload":"b","durable":true}`)
	p.in.Close()
	if code := p.wait(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, p.stderr)
	}
	if out := once(t, dir, "", "session", "events", "S", "--kind", "channel_message", "--channel", "lines"); strings.Count(out, "lines#") != 2 {
		t.Errorf("session events printed %q", out)
	}
}

func TestSecondProcess(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "count.hcl", relayAndCount)
	p := start(t, dir, "exec", "--session", "S", "--recipe", "count.hcl")
	p.ask(`{"op":"send","channel":"lines","payload":"a","durable":true}`)
	p.ask(`{"op":"wait_idle"}`)

	// Commands that only read work at the same time.
	for _, args := range [][]string{{"list", "S"}, {"show", "S"}, {"events", "S"}} {
		if out := once(t, dir, "", append([]string{"session"}, args...)...); out == "" {
			t.Errorf("session %v printed nothing", args)
		}
	}
	if out := once(t, dir, "", "session", "events", "S", "--kind", "channel_message", "--channel", "lines"); !strings.Contains(out, `lines#1`) {
		t.Errorf("session events printed %q", out)
	}

	// A second owner is refused.
	second := start(t, dir, "run", "count.hcl", "--session", "S")
	if code := second.wait(); code != exitSession {
		t.Errorf("exit code %d", code)
	}
	if pid := fmt.Sprint(p.cmd.Process.Pid); !strings.Contains(second.stderr.String(), pid) {
		t.Errorf("standard error does not name process %s:\n%s", pid, second.stderr)
	}
	p.ask(`{"op":"send","channel":"lines","payload":"b","durable":true}`)
	p.in.Close()
	if code := p.wait(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, p.stderr)
	}
}

// Everything that exec has answered is in the session, whatever happens to the process.
func TestAnsweredIsKept(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir, "exec", "--session", "S")
	p.ask(`{"op":"add_creature","name":"a","module":"builtin:relay"}`)
	p.ask(`{"op":"add_creature","name":"b","module":"builtin:tally"}`)
	p.ask(`{"op":"connect","from":"a","to":"b","channel":"lines"}`)
	p.ask(`{"op":"send","channel":"lines","payload":"x","durable":true,"producer":"p","offset":1}`)
	p.signal(os.Kill)

	p = start(t, dir, "exec", "--session", "S")
	var sent struct{ Duplicate bool }
	if err := json.Unmarshal(p.ask(`{"op":"send","channel":"lines","payload":"x","producer":"p","offset":1}`), &sent); err != nil || !sent.Duplicate {
		t.Errorf("the message is not known any more: %v", err)
	}
	p.ask(`{"op":"wait_idle"}`)
	if got := string(p.ask(`{"op":"state","creature":"b","prefix":"total"}`)); got != `{"state":{"total":"1"}}` {
		t.Errorf("state %s", got)
	}
}

func TestReadOnlyDirectory(t *testing.T) {
	if isRoot() {
		t.Log("permissions do not stop root: this shows only that nothing is damaged")
	}
	dir := t.TempDir()
	write(t, dir, "count.hcl", relayAndCount)
	once(t, dir, "a\n", "run", "count.hcl", "--session", "S", "--exit-when-idle", "--input", "lines=-")
	for _, path := range []string{"S/stores", "S"} {
		if err := os.Chmod(filepath.Join(dir, path), 0o555); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(filepath.Join(dir, path), 0o755)
	}
	p := start(t, dir, "run", "count.hcl", "--session", "S", "--exit-when-idle")
	if code := p.wait(); isRoot() && code != exitOK || !isRoot() && code != exitSession {
		t.Errorf("exit code %d\n%s", code, p.stderr)
	}
}
