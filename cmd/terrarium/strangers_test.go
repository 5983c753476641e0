package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/conformance/hostile/sessions"
	"github.com/seed47132306/terrarium/internal/seeded"
)

// strangerPatience is how long a command may take until the test stops waiting for it.
const strangerPatience = 2 * time.Minute

// strangersPart has no factor in common with how many commands takingTurns has, so that many
// cases meet all of them.
const strangersPart = 7

// TestStrangersSessions runs commands that open a session directory on every
// directory of the gallery: those that read all of it and those that write to it on
// each, and of the others some, so that every command meets every kind of attack. make test
// has one case in strangersPart, as of the other tests here; make test-every has all.
func TestStrangersSessions(t *testing.T) {
	sound := soundSession(t)
	all := sessions.Cases()
	if len(all) < 80 {
		t.Fatalf("there are only %d cases", len(all))
	}
	for i, c := range all {
		if !seeded.Part(i, strangersPart) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			attackWith(t, terrariumOn, sound, c, someCommands(i))
		})
	}
}

// TestStrangersColumns puts a value of another type into every column of every table.
func TestStrangersColumns(t *testing.T) {
	sound := soundSession(t)
	columns, err := sessions.Columns(t.Context(), sound)
	if err != nil || len(columns) < 80 {
		t.Fatal(len(columns), err)
	}
	for i, c := range columns {
		if !seeded.Part(i, strangersPart) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			attackWith(t, terrariumOn, sound, c, []command{onSession("list"), onSession("verify"), takingTurns(i), opening})
		})
	}
}

// TestStrangersTexts puts a text that a terminal would obey into every column of texts.
func TestStrangersTexts(t *testing.T) {
	sound := soundSession(t)
	texts, err := sessions.Texts(t.Context(), sound)
	if err != nil || len(texts) < 40 {
		t.Fatal(len(texts), err)
	}
	for i, c := range texts {
		if !seeded.Part(i, strangersPart) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			attackWith(t, terrariumOn, sound, c, []command{onSession("list"), onSession("show"), onSession("lineage"), onSession("verify"), takingTurns(i), opening, onSession("rebuild")})
		})
	}
}

// command is a command line in which DIR is the directory and OUT a place that is free.
type command struct {
	line  []string
	input string
}

func onSession(words ...string) command {
	return command{line: append([]string{"session", words[0], "DIR"}, words[1:]...)}
}

// opening opens the directory for writing and runs none of its creatures.
var opening = command{line: []string{"exec", "--session", "DIR"}, input: `{"op":"sessions"}` + "\n" + `{"op":"search","text":"frog"}` + "\n"}

// takingTurns are the commands of which each case runs some.
func takingTurns(i int) command {
	all := []command{
		onSession("show"), onSession("state"), onSession("lineage"), onSession("dead-letters"), onSession("events"), onSession("verify"),
		onSession("export", "SESSION", "OUT.db"), onSession("fork", "SESSION", "OUT"), onSession("prune", "--events", "1"), onSession("redeliver", "--all"),
		{line: []string{"graph", "DIR"}}, {line: []string{"events", "DIR", "--limit", "5"}}, {line: []string{"replay", "DIR"}},
		{line: []string{"resume", "DIR", "--plan"}}, {line: []string{"resume", "DIR", "--exit-when-idle"}},
		{line: []string{"run", "RECIPE", "--session", "DIR", "--exit-when-idle"}},
	}
	return all[i%len(all)]
}

func someCommands(i int) []command {
	return []command{onSession("list"), onSession("show"), onSession("search", "frog"), takingTurns(i), takingTurns(i + 5), takingTurns(i + 11), opening, onSession("rebuild")}
}

// soundSession makes a session directory with an index for searching.
func soundSession(t *testing.T) sessions.Directory {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sound")
	engine, err := terrarium.New(t.Context(), terrarium.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	team, err := engine.Apply(t.Context(), "../../examples/quickstart", terrarium.RecipeOptions{})
	if err == nil {
		for _, line := range []string{"07:02 frog", "07:41 newt", "08:00 frog"} {
			if _, err := engine.Send(t.Context(), team.Channels["channel.lines"], terrarium.Outgoing{Payload: []byte(line), Durable: true}); err != nil {
				t.Error(err)
			}
		}
		err = engine.WaitIdle(t.Context())
	}
	if closeErr := engine.Close(t.Context()); err != nil || closeErr != nil {
		t.Fatal(err, closeErr)
	}
	d := sessions.Directory{Path: dir}
	if code, _, said := terrariumOn(t, d, "", command{line: []string{"session", "search", "DIR", "frog"}}); code != 0 {
		t.Fatal(said)
	}
	return d
}

// attackWith spoils a copy of a sound directory, and runs commands on it.
func attackWith(t *testing.T, terrariumOn launcher, sound sessions.Directory, c sessions.Case, commands []command) {
	t.Helper()
	top := t.TempDir()
	d := sessions.Directory{Path: filepath.Join(top, "s"), Outside: filepath.Join(top, "outside")}
	if err := os.CopyFS(d.Path, os.DirFS(sound.Path)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(d.Outside, 0o755); err != nil {
		t.Fatal(err)
	}
	const precious = "precious"
	for _, name := range []string{"notes.txt", "notes.db"} {
		if err := os.WriteFile(filepath.Join(d.Outside, name), []byte(precious), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	session := sessionIn(t, d)
	switch err := c.Spoil(t.Context(), d); {
	case errors.Is(err, errors.ErrUnsupported):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	var all strings.Builder
	for _, command := range commands {
		code, out, said := terrariumOn(t, d, session, command)
		if code < 0 {
			t.Errorf("%v: a signal has ended it: %s", command.line, said)
		}
		all.WriteString(out + said)
		name := strings.Join(command.line, " ")
		for _, bad := range []string{"panic", "goroutine ", "runtime error", "internal:", "there is no operation"} {
			if strings.Contains(said, bad) || strings.Contains(out, bad) {
				t.Errorf("%s: it says %q: %s%s", name, bad, out, said)
			}
		}
		obeyed := "\x1b\a\u009b\u202e"
		if command.line[0] == "exec" { // it writes JSON, in which names are as they are
			obeyed = "\x1b\a"
		}
		if printed := out + said; !utf8.ValidString(printed) || strings.ContainsAny(printed, obeyed) {
			t.Errorf("%s: it prints what a terminal obeys: %q", name, printed)
		}
		if code != 0 && out+said == "" {
			t.Errorf("%s: exit code %d without a word", name, code)
		}
		for _, file := range []string{"notes.txt", "notes.db"} {
			if content, err := os.ReadFile(filepath.Join(d.Outside, file)); err != nil || string(content) != precious {
				t.Fatalf("%s: the file outside is %.40q, %v", name, content, err)
			}
		}
		if files, err := os.ReadDir(d.Outside); err != nil || len(files) != 2 {
			t.Fatalf("%s: outside there is %v, %v", name, files, err)
		}
	}
	if c.Says != "" && !strings.Contains(all.String(), c.Says) {
		t.Errorf("nothing says %q:\n%s", c.Says, all.String())
	}
}

func sessionIn(t *testing.T, d sessions.Directory) string {
	t.Helper()
	path, err := d.Store()
	if err != nil {
		t.Fatal(err)
	}
	id, _, _ := strings.Cut(filepath.Base(path), ".")
	return id
}

// launcher runs a command line on a directory.
type launcher func(t *testing.T, d sessions.Directory, session string, c command) (code int, out, said string)

// terrariumOn runs a command line in this process.
func terrariumOn(t *testing.T, d sessions.Directory, session string, c command) (code int, out, said string) {
	t.Helper()
	line := c.on(t, d, session)
	ctx, cancel := context.WithTimeout(t.Context(), strangerPatience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	code = run(ctx, line, streams{io.NopCloser(strings.NewReader(c.input)), &stdout, &stderr})
	if ctx.Err() != nil {
		t.Fatalf("%s takes too long", strings.Join(c.line, " "))
	}
	return code, stdout.String(), stderr.String()
}

// on is the command line for a directory.
func (c command) on(t *testing.T, d sessions.Directory, session string) []string {
	t.Helper()
	line := slices.Clone(c.line)
	for i, word := range line {
		switch word {
		case "DIR":
			line[i] = d.Path
		case "SESSION":
			line[i] = session
		case "OUT", "OUT.db":
			line[i] = filepath.Join(t.TempDir(), word)
		case "RECIPE":
			recipe, err := filepath.Abs("../../examples/quickstart")
			if err != nil {
				t.Fatal(err)
			}
			line[i] = recipe
		}
	}
	return line
}
