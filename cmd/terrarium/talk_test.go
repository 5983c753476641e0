package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// talk holds a conversation with terrarium exec and writes it down:
// talk REQUESTS TRANSCRIPT FLAG…
//
// A request is sent when the one before is answered, so that the transcript is
// always the same. Events follow at its end. Ids and times are replaced.
func talk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: talk REQUESTS TRANSCRIPT FLAG...")
	}
	cmd := exec.Command("terrarium", append([]string{"exec"}, args[2:]...)...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "TMPDIR="+ts.Getenv("TMPDIR"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	c := &conversation{answers: bufio.NewScanner(out)}
	c.answers.Buffer(nil, 16<<20)
	for _, line := range strings.SplitAfter(ts.ReadFile(args[0]), "\n") {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			c.transcript.WriteString(line)
			continue
		}
		c.transcript.WriteString("> " + line)
		_, err := in.Write([]byte(c.fill(line)))
		ts.Check(err)
		if err := c.hear(); err != nil {
			ts.Fatalf("after %s: %v\n%s", line, err, stderr.String())
		}
	}
	ts.Check(in.Close())
	for c.answers.Scan() {
		c.note(c.answers.Bytes())
	}
	if err := cmd.Wait(); err != nil {
		ts.Fatalf("exec: %v\n%s", err, stderr.String())
	}
	if len(c.events) > 0 {
		fmt.Fprintf(&c.transcript, "\n# events\n%s", strings.Join(c.events, ""))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(c.scrub(c.transcript.String())), 0o644))
}

// conversation is the state of one talk.
type conversation struct {
	answers    *bufio.Scanner
	transcript strings.Builder
	events     []string
}

// hear reads up to the next answer.
func (c *conversation) hear() error {
	for c.answers.Scan() {
		if c.note(c.answers.Bytes()) {
			return nil
		}
	}
	return fmt.Errorf("there is no answer: %w", c.answers.Err())
}

// note writes a line down, and reports whether it is an answer.
func (c *conversation) note(line []byte) bool {
	var head struct{ Event json.RawMessage }
	if json.Unmarshal(line, &head) == nil && head.Event != nil {
		c.events = append(c.events, "< "+string(line)+"\n")
		return false
	}
	c.transcript.WriteString("< " + string(line) + "\n")
	return true
}

// fill puts the session and the channel that were mentioned last for $SESSION
// and $CHANNEL in a request.
func (c *conversation) fill(line string) string {
	for word, letter := range map[string]string{"$SESSION": "S", "$CHANNEL": "H"} {
		if all := identifiers[letter].FindAllString(c.transcript.String(), -1); len(all) > 0 {
			line = strings.ReplaceAll(line, word, all[len(all)-1])
		}
	}
	return line
}

// identifiers are the things in a transcript that are different every time, by
// the letter that stands for them, followed by a number in the order of their
// appearance.
var identifiers = map[string]*regexp.Regexp{
	"S": regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`),
	"E": regexp.MustCompile(`\b[0-9a-f]{32}-\d+\b`),
	"C": regexp.MustCompile(`\bc[0-9a-z]{16}\b`),
	"H": regexp.MustCompile(`\bh[0-9a-z]{16}\b`),
	"G": regexp.MustCompile(`\bg[0-9a-z]{16}\b`),
}

var (
	cursors = regexp.MustCompile(`"cursor":"[\w-]+"`)
	times   = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)
	counts  = regexp.MustCompile(`"events":\d+`)
	// Members that say which files have the history at the moment, because it moves in the
	// background.
	kept       = regexp.MustCompile(`"(store_path|bytes)":("[^"]*"|\d+),`)
	complete   = regexp.MustCompile(`"complete":(true|false)`)
	incomplete = regexp.MustCompile(`"incomplete_from":\[[^\]]*\]`)
)

func (c *conversation) scrub(s string) string {
	s = times.ReplaceAllString(s, "TIME")
	s = cursors.ReplaceAllString(s, `"cursor":"CURSOR"`)
	s = counts.ReplaceAllString(s, `"events":N`)
	s = kept.ReplaceAllString(s, "")
	s = complete.ReplaceAllString(s, `"complete":BOOL`)
	s = incomplete.ReplaceAllString(s, `"incomplete_from":LIST`)
	for letter, re := range identifiers {
		seen := map[string]string{}
		s = re.ReplaceAllStringFunc(s, func(id string) string {
			if seen[id] == "" {
				seen[id] = fmt.Sprintf("%s%d", letter, len(seen)+1)
			}
			return seen[id]
		})
	}
	return s
}
