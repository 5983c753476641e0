package docstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/internal/guesttools"
	"github.com/seed47132306/terrarium/internal/seeded"
)

// TestCommands runs the commands of every page, in order; in make test, of every sixth page.
func TestCommands(t *testing.T) {
	running := 0
	for _, p := range pages(t) {
		if !p.runs() {
			continue
		}
		running++
		if !*update && !seeded.Part(running, 6) {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.needs(t)
			env := append(environment(t), p.broker(t)...)
			for attempt := 1; !p.carriedOut(t, t.TempDir(), env, attempt < mostAttempts); attempt++ {
			}
		})
	}
}

// mostAttempts is how often the commands of a page are run in a new folder if a policy or a
// turn has not ended in time, which a busy machine explains.
const mostAttempts = 5

// tooSlow is what a command prints then. No page shows it.
var tooSlow = regexp.MustCompile(`it ran for longer than |the guest ran longer than the limit deadline`)

// carriedOut runs the commands of a page, and reports false if they should run again.
func (p *page) carriedOut(t *testing.T, dir string, env []string, again bool) bool {
	for i := range p.blocks {
		if !p.carryOut(t, dir, env, &p.blocks[i], again) {
			return false
		}
	}
	return true
}

// environment is what a reader has set up by the README: the command is on the PATH,
// and TERRARIUM is where the repository is. The tools of make toolchains are found too,
// as if npm and pip had installed them.
func environment(t *testing.T) []string {
	list := func(paths ...string) string { // an empty name would be the working directory
		paths = slices.DeleteFunc(paths, func(path string) bool { return path == "" })
		return strings.Join(paths, string(os.PathListSeparator))
	}
	return []string{
		"PATH=" + list(commandFolder(t), npmTools(t), os.Getenv("PATH")),
		"PYTHONPATH=" + list(filepath.Join(repository(t), "bin", "toolchains", "python"), os.Getenv("PYTHONPATH")),
		"TERRARIUM=" + repository(t),
	}
}

// broker is what a page about MQTT needs besides: the programs of Mosquitto. Where they are not
// installed, a program of this repository takes their place.
func (p *page) broker(t *testing.T) []string {
	if !strings.Contains(p.text, "$ mosquitto ") {
		return nil
	}
	if _, err := exec.LookPath("mosquitto"); err == nil {
		return nil
	}
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", undebuggable, "-o", filepath.Join(dir, "mosquitto"), "./internal/docstest/testdata/mosquitto")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the broker: %v\n%s", err, out)
	}
	for _, name := range []string{"mosquitto_pub", "mosquitto_sub"} {
		if err := os.Symlink("mosquitto", filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	path := strings.TrimPrefix(environment(t)[0], "PATH=")
	return []string{"PATH=" + dir + string(os.PathListSeparator) + path}
}

func (b *block) isScript() bool { return b.language == "sh" && b.has("run") }
func (b *block) isConsole() bool {
	return b.language == "console" && !b.has("not run")
}

// runs reports whether a page has commands to execute.
func (p *page) runs() bool {
	for i := range p.blocks {
		if b := &p.blocks[i]; b.isScript() || b.isConsole() {
			return true
		}
	}
	return false
}

// npmTools is the folder of the tools that make toolchains installs with npm.
func npmTools(t *testing.T) string {
	return filepath.Join(repository(t), "bin", "toolchains", "node_modules", ".bin")
}

// needs skips a page for which a guest toolchain is missing.
func (p *page) needs(t *testing.T) {
	for i := range p.blocks {
		if tool, ok := p.blocks[i].note("needs"); ok {
			guesttools.Use(t)
			// A tool without a program of its own is named by a command that succeeds.
			found := tool
			if !strings.Contains(tool, " ") {
				found = "command -v " + tool
			}
			if _, code := shell(t, t.TempDir(), found, environment(t)...); code != 0 {
				guesttools.Missing(t, tool+" is missing: make toolchains installs it")
			}
		}
	}
}

// carryOut runs the commands of a block. If again is set, it returns false when a policy was
// too slow.
func (p *page) carryOut(t *testing.T, dir string, env []string, b *block, again bool) bool {
	if name, ok := b.note("file"); ok {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(b.text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if tool, ok := b.note("if"); ok {
		if _, err := exec.LookPath(tool); err != nil {
			t.Logf("%s:%d: left out, there is no %s", p.name, b.line, tool)
			return true
		}
	}
	wantCode := 0
	if code, ok := b.note("exit"); ok {
		var err error
		if wantCode, err = strconv.Atoi(code); err != nil {
			t.Fatalf("%s:%d: exit %s", p.name, b.line, code)
		}
	}
	var steps []step
	switch {
	case b.isScript():
		steps = []step{{command: b.text}}
	case b.isConsole():
		steps = parseConsole(b.text)
	}
	for _, s := range steps {
		out, code := shell(t, dir, s.command, env...)
		if again && tooSlow.MatchString(out) {
			t.Logf("%s:%d: a policy or a turn was too slow", p.name, b.line)
			return false
		}
		if code != wantCode {
			t.Fatalf("%s:%d: %s\nends with %d instead of %d and prints\n%s", p.name, b.line, s.command, code, wantCode, out)
		}
		if s.want != "" && !matches(s.want, out) {
			t.Errorf("%s:%d: %s\nprints\n%s\ninstead of\n%s", p.name, b.line, s.command, out, s.want)
		}
	}
	return true
}

// progress is what a run prints on a busy machine, where it takes longer than two seconds.
var progress = regexp.MustCompile(`(?m)^(?:\d+[hms])+: [\d,]+ lines? read .*\n`)

// step is a command and what it prints; nothing means that it does not matter.
type step struct{ command, want string }

func parseConsole(text string) []step {
	var steps []step
	for _, line := range strings.SplitAfter(text, "\n") {
		command, isCommand := strings.CutPrefix(line, "$ ")
		more, continued := strings.CutPrefix(line, "> ")
		switch last := len(steps) - 1; {
		case isCommand:
			steps = append(steps, step{command: command})
		case last < 0:
		case continued && steps[last].want == "":
			steps[last].command += more
		default:
			steps[last].want += line
		}
	}
	return steps
}

// matches compares what a page shows with what was printed. … alone on a line
// stands for any lines, within a line for any text. Progress may be printed or not.
func matches(want, got string) bool {
	var pattern strings.Builder
	pattern.WriteString(`^`)
	for _, line := range strings.Split(strings.TrimRight(want, "\n"), "\n") {
		line = strings.TrimRight(line, " ")
		if line == "…" {
			pattern.WriteString(`(?:.*\n)*?`)
			continue
		}
		parts := strings.Split(line, "…")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		pattern.WriteString(strings.Join(parts, `.*?`) + ` *\n`)
	}
	pattern.WriteString(`$`)
	got = strings.TrimRight(progress.ReplaceAllString(got, ""), "\n ") + "\n"
	return regexp.MustCompile(pattern.String()).MatchString(got)
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		want, got string
		ok        bool
	}{
		{"a\nb\n", "a\nb\n", true},
		{"a\n", "a\nb\n", false},
		{"a\n…\n", "a\nb\nc\n", true},
		{"a\n…\nd\n", "a\nb\nc\nd\n", true},
		{"a\n…\nd\n", "a\nd\n", true},
		{"a\n…\nd\n", "a\nb\n", false},
		{"in …ms.\n", "in 12ms.\n", true},
		{"in …ms.\n", "in 12s.\n", false},
		{"a  b\n", "a  b   \n", true},
		{"a.b\n", "axb\n", false},
		{"Done in …\n", "3s: 3,000 lines read for lines\n1m13s: 1 line read for a, 4 printed\nDone in 99s\n", true},
		{"Done in …\n", "Done: 3,000 lines read for lines\nDone in 99s\n", false},
	} {
		if matches(c.want, c.got) != c.ok {
			t.Errorf("matches(%q, %q) is not %v", c.want, c.got, c.ok)
		}
	}
}

func TestParseConsole(t *testing.T) {
	steps := parseConsole("$ a \\\n> b\nout\n> no command\n$ c\n")
	if len(steps) != 2 || steps[0] != (step{"a \\\nb\n", "out\n> no command\n"}) || steps[1] != (step{"c\n", ""}) {
		t.Errorf("the steps are %q", steps)
	}
}
