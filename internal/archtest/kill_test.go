package archtest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// counting counts lines: the report for line n has this number and the line.
const counting = `
channel "lines" {}
channel "numbered" {}
channel "report" {}

creature "relay" {
  module = "builtin:relay"
  listen = [channel.lines]
  send   = [channel.numbered]
}

creature "census" {
  module = "builtin:tally"
  listen = [channel.numbered]
  send   = [channel.report]
  config = { key = "field:1", every = 1 }
}
`

// testKill has a session that the two programs use in turn. Each is killed while it reads
// lines, after it has printed some reports, so that the other finds a write-ahead log. Every
// line is then counted once, and each finds the session of the other complete, with turns
// that have the same effects when they run again.
func testKill(t *testing.T, here, there program) {
	const lines = 60
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "count.hcl"), []byte(counting), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "count.hcl", "--session", "session", "--input", "lines=-", "--output", "report", "--exit-when-idle"}
	input := make([]string, lines)
	for i := range input {
		input[i] = fmt.Sprintf("frog %d\n", i+1)
	}
	for i, p := range []program{there, here, there} {
		written := 15 * (i + 1)
		p.kill(t, dir, strings.Join(input[:written], ""), written-5, args...)
	}
	there.prints(t, dir, strings.Join(input, ""), args...)

	for _, p := range []program{here, there} {
		if out := p.prints(t, dir, "", "session", "verify", "session"); !strings.Contains(out, "is intact") {
			t.Errorf("%v finds that\n%s", p.argv, out)
		}
		if out := p.prints(t, dir, "", "replay", "session"); !strings.Contains(out, fmt.Sprint(2*lines+2, " turns run again, and none differs")) {
			t.Errorf("%v has other effects:\n%s", p.argv, out)
		}
	}
	events := here.prints(t, dir, "", "session", "events", "session", "--channel", "report", "--kind", "channel_message")
	got := strings.Split(strings.TrimSpace(events), "\n")
	if len(got) != lines {
		t.Fatalf("the channel has %d reports:\n%s", len(got), events)
	}
	for i, event := range got {
		if want := fmt.Sprintf(`\"total\":%d}"`, i+1); !strings.HasSuffix(event, want) {
			t.Fatalf("report %d is %s, without %s", i+1, event, want)
		}
	}
}

// kill runs the program on the beginning of an input without its end, and kills it once the last
// of the printed reports counts at least so many lines.
func (p program) kill(t *testing.T, dir, input string, counted int, args ...string) {
	t.Helper()
	cmd := p.command(t, dir, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }() // it was killed
	defer func() { _ = cmd.Process.Kill() }()
	if _, err := io.WriteString(in, input); err != nil { // it fits the pipe
		t.Fatal(err)
	}
	reports := bufio.NewScanner(out)
	for reports.Scan() {
		var total int
		if _, after, ok := strings.Cut(reports.Text(), `"total":`); ok {
			if _, err := fmt.Sscanf(after, "%d}", &total); err != nil {
				t.Fatal(err)
			}
		}
		if total >= counted {
			return
		}
	}
	t.Fatalf("it printed no report of line %d, and ended by itself (%v)\n%s", counted, reports.Err(), stderr.String())
}
