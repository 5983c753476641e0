package docstest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const commandLinePage = "docs/reference/command-line.md"

var (
	flagLine    = regexp.MustCompile(`^\s+(?:(-\w), |)(--[\w-]+)(?: ([A-Z=]+|\w+))?\s{2,}(.*)$`)
	commandLine = regexp.MustCompile(`^  ([\w-]+) +(.*)$`)
)

// TestCommandLine compares the tables of the page with the output of --help. With -update it
// writes them.
func TestCommandLine(t *testing.T) {
	dir := workplace(t)
	text := readRepository(t, commandLinePage)
	want := text
	seen := 0
	for _, command := range commands(t, dir, "") {
		want = fillRegion(t, want, command, flagTable(help(t, dir, command)))
		seen++
	}
	if n := strings.Count(text, "<!-- flags: "); n != seen {
		t.Errorf("the page describes %d commands, and there are %d", n, seen)
	}
	if *update {
		if err := os.WriteFile(filepath.Join(root, commandLinePage), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if text != want {
		t.Errorf("%s is not what --help says: run go test ./internal/docstest -update", commandLinePage)
	}
}

func help(t *testing.T, dir, command string) string {
	t.Helper()
	out, code := shell(t, dir, "bin/terrarium "+command+" --help")
	if code != 0 {
		t.Fatalf("%s --help ends with %d", command, code)
	}
	return out
}

// commands returns all commands that do something, found by their help.
func commands(t *testing.T, dir, command string) []string {
	text := help(t, dir, command)
	_, list, found := strings.Cut(text, "Available Commands:\n")
	if !found {
		return []string{command}
	}
	var out []string
	for _, line := range strings.Split(list, "\n") {
		m := commandLine.FindStringSubmatch(line)
		if m == nil {
			break
		}
		if m[1] != "help" {
			out = append(out, commands(t, dir, strings.TrimSpace(command+" "+m[1]))...)
		}
	}
	return out
}

// flagTable makes a table of the flags of a command, in the order of its help.
func flagTable(help string) string {
	var b strings.Builder
	_, usage, _ := strings.Cut(help, "Usage:\n")
	usage, _, _ = strings.Cut(usage, "\n")
	fmt.Fprintf(&b, "```\n%s\n```\n\n", strings.TrimSpace(usage))
	var rows strings.Builder
	_, flags, _ := strings.Cut(help, "\nFlags:\n")
	for _, line := range strings.Split(flags, "\n") {
		m := flagLine.FindStringSubmatch(line)
		if m == nil || m[2] == "--help" {
			continue
		}
		name := m[2]
		if m[3] != "" {
			name += " " + m[3]
		}
		if m[1] != "" {
			name = m[1] + ", " + name
		}
		fmt.Fprintf(&rows, "| `%s` | %s |\n", name, strings.ReplaceAll(m[4], "|", `\|`))
	}
	if rows.Len() == 0 {
		return b.String() + "It has no flags."
	}
	return b.String() + "| flag | meaning |\n|---|---|\n" + strings.TrimSpace(rows.String())
}

func fillRegion(t *testing.T, text, name, content string) string {
	t.Helper()
	start, end := "<!-- flags: "+name+" -->\n", "<!-- end: "+name+" -->\n"
	from, to := strings.Index(text, start), strings.Index(text, end)
	if from < 0 || to < from {
		t.Fatalf("%s does not describe the command %s: write %s%s", commandLinePage, name, start, end)
	}
	return text[:from+len(start)] + "\n" + content + "\n\n" + text[to:]
}

// TestExitCodes compares the page's exit codes with those of the help.
func TestExitCodes(t *testing.T) {
	text := readRepository(t, commandLinePage)
	out := help(t, workplace(t), "")
	_, codes, found := strings.Cut(out, "Exit codes:")
	codes, _, _ = strings.Cut(codes, "\n\n")
	if !found {
		t.Fatal("the help has no exit codes")
	}
	for _, m := range regexp.MustCompile(`(?m)(?:^|;|\s)\s*(\d+) `).FindAllStringSubmatch(codes, -1) {
		if !strings.Contains(text, "\n| "+m[1]+" |") {
			t.Errorf("%s does not explain the exit code %s", commandLinePage, m[1])
		}
	}
}
