package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/seed47132306/terrarium/internal/fresh"
	"github.com/seed47132306/terrarium/internal/ramdisk"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/internal/unhurried"
)

var update = flag.Bool("update", false, "rewrite the golden files and scripts")

// The tests run the command as a process of its own: this binary, under the
// name terrarium. Under another name it is what TestKillPipelines kills.
func TestMain(m *testing.M) {
	unhurried.Policies = unhurried.Plenty // here, in the commands and in their processes for policies
	command := func() {
		os.Args = fresh.Arguments(os.Args)
		main()
	}
	if len(os.Args) == 2 && (os.Args[1] == policiesName || os.Args[1] == compilerName) {
		main() // a process for policies or a compiler, which is started by what this binary is, not by its name
		return
	}
	if _, set := os.LookupEnv(cacheVariable); !set { // the user's own cache is not for tests
		if err := os.Setenv(cacheVariable, cacheOff); err != nil {
			panic(err)
		}
	}
	testscript.Main(ramdisk.Tests(m), map[string]func(){"terrarium": command, "pipelines": victimMain})
}

// TestScripts runs testdata/script, which shows how the command is used and
// what it says. make test has every second script.
func TestScripts(t *testing.T) {
	plugins, err := filepath.Abs("../../plugins")
	if err != nil {
		t.Fatal(err)
	}
	command, err := exec.LookPath("terrarium")
	if err != nil {
		t.Fatal(err)
	}
	// The scripts have one cache, as the commands of a user have, so that each module is
	// compiled once. They need one key as well: entries with the tag of another are refused.
	cache, config := filepath.Join(t.TempDir(), "compiled"), t.TempDir()
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scripts", err)
	}
	var now []string
	for i, script := range scripts {
		if *update || seeded.Part(i, 6) {
			now = append(now, script)
		}
	}
	testscript.Run(t, testscript.Params{
		Files:               now,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PLUGINS", plugins)
			e.Setenv("TERRARIUM", command) // for scripts that change PATH
			e.Setenv("GOGC", "400")        // hundreds of short processes need not collect their garbage so often
			e.Setenv(cacheVariable, cache)
			e.Setenv("XDG_CONFIG_HOME", config)
			e.Setenv("TMPDIR", filepath.Join(e.WorkDir, ".tmp"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  exits,
			"module": module,
			"talk":   talk,
			"first":  first,
			"bytes":  writeBytes,
		},
	})
}

// exits runs a command and compares its exit code: exits CODE COMMAND ARG…
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		got = ended.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// module writes a small module that does not do what a creature has to, or with
// the word alarm for its fault one that sets a timer: module FAULT FILE
func module(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: module FAULT FILE")
	}
	var content []byte
	switch args[0] {
	case "alarm":
		content = alarmModule()
	case "refuses":
		content = refusingModule()
	default:
		content = faultyModule(args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), content, 0o644))
}

// faultyModule assembles a module with one fault, with none or, with the fault nothing, with
// all of them.
func faultyModule(fault string) []byte {
	imports, exports, count, first := []byte{}, []byte{}, byte(0), byte(0)
	all := fault == "nothing"
	if all || fault == "unknown-import" {
		imports = section(2, slices.Concat([]byte{1}, name("terrarium_v1"), name("sned"), []byte{0, 0})...)
		first = 1 // the functions of the module come after the imported ones
	}
	export := func(n string, kind, index byte) {
		exports = append(append(exports, name(n)...), kind, index)
		count++
	}
	if !all && fault != "no-memory" {
		export("memory", 2, 0)
	}
	if !all && fault != "no-handle" {
		export("creature_handle", 0, first)
	}
	if !all && fault != "no-marker" {
		export("terrarium_abi_v1", 0, first+1)
	}
	out := []byte("\x00asm\x01\x00\x00\x00")
	out = append(out, section(1, 2, 0x60, 2, 0x7f, 0x7f, 1, 0x7f, 0x60, 0, 0)...)
	out = append(out, imports...)
	out = append(out, section(3, 2, 0, 1)...)
	out = append(out, section(5, 1, 0, 1)...)
	out = append(out, section(7, append([]byte{count}, exports...)...)...)
	return append(out, section(10, 2, 4, 0, 0x41, 0, 0x0b, 2, 0, 0x0b)...)
}

// section and name are parts of a module of less than 128 bytes.
func section(id byte, content ...byte) []byte {
	return append([]byte{id, byte(len(content))}, content...)
}
func name(s string) []byte { return append([]byte{byte(len(s))}, s...) }

// alarmModule assembles a creature that, whatever it hears, sets its timer "egg"
// to ring in an hour.
func alarmModule() []byte {
	return slices.Concat(
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1, 3, 0x60, 2, 0x7f, 0x7f, 1, 0x7f, 0x60, 0, 0, 0x60, 6, 0x7f, 0x7f, 0x7e, 0x7e, 0x7f, 0x7f, 1, 0x7f),
		section(2, slices.Concat([]byte{1}, name("terrarium_v1"), name("timer_set"), []byte{0, 2})...),
		section(3, 2, 0, 1),
		section(5, 1, 0, 1),
		section(7, slices.Concat([]byte{3}, name("memory"), []byte{2, 0}, name("creature_handle"), []byte{0, 1}, name("terrarium_abi_v1"), []byte{0, 2})...),
		section(10, 2,
			// timer_set(name "egg", 3,600,000 ms, once, payload "ring"), and ok
			22, 0, 0x41, 0, 0x41, 3, 0x42, 0x80, 0xdd, 0xdb, 0x01, 0x42, 0, 0x41, 3, 0x41, 4, 0x10, 0, 0x1a, 0x41, 0, 0x0b,
			2, 0, 0x0b),
		section(11, slices.Concat([]byte{1, 0, 0x41, 0, 0x0b}, name("eggring"))...),
	)
}

// refusingModule assembles a creature whose creature_init logs why it refuses to start.
func refusingModule() []byte {
	export := func(n string, index byte) []byte { return append(name(n), 0, index) }
	const reason = "no bucket is given"
	return slices.Concat(
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1, 4, 0x60, 2, 0x7f, 0x7f, 1, 0x7f, 0x60, 0, 0, 0x60, 3, 0x7f, 0x7f, 0x7f, 1, 0x7f, 0x60, 0, 1, 0x7f),
		section(2, slices.Concat([]byte{1}, name("terrarium_v1"), name("log"), []byte{0, 2})...),
		section(3, 3, 0, 1, 3),
		section(5, 1, 0, 1),
		section(7, slices.Concat([]byte{4}, name("memory"), []byte{2, 0}, export("creature_handle", 1), export("terrarium_abi_v1", 2), export("creature_init", 3))...),
		section(10, 3, 4, 0, 0x41, 0, 0x0b, 2, 0, 0x0b,
			13, 0, 0x41, 3, 0x41, 0, 0x41, byte(len(reason)), 0x10, 0, 0x1a, 0x41, 0x7f, 0x0b), // log(error, reason), and -1
		section(11, slices.Concat([]byte{1, 0, 0x41, 0, 0x0b}, name(reason))...),
	)
}

// first copies the beginning of a file: first BYTES FROM TO
func first(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: first BYTES FROM TO")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	b, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), b[:n], 0o644))
}

// writeBytes writes a file with the text, which has the syntax of a Go string: bytes TEXT FILE
func writeBytes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: bytes TEXT FILE")
	}
	text, err := strconv.Unquote(`"` + args[0] + `"`)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o644))
}

// TestHelp compares the help texts of the commands.
func TestHelp(t *testing.T) {
	for _, words := range [][]string{{}, {"run"}, {"resume"}, {"validate"}, {"plan"}, {"apply"}, {"fmt"}, {"schema"}, {"lsp"}, {"console"}, {"test"}, {"exec"}, {"top"}, {"completion"}, {"man"}, {"session"}, {"session", "list"}, {"session", "show"}, {"session", "events"}, {"session", "lineage"}, {"pack"}, {"new"}, {"build"}, {"dev"}, {"inspect"}, {"call"}, {"conformance"}, {"conformance", "creature"}, {"conformance", "host"}, {"conformance", "store"}, {"doctor"}, {"version"}} {
		file := "terrarium"
		for _, w := range words {
			file += "-" + w
		}
		t.Run(file, func(t *testing.T) {
			got, err := exec.CommandContext(context.Background(), "terrarium", append(words, "--help")...).Output()
			if err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", "help", file+".txt"), got)
		})
	}
}

// TestSchema compares the description of the language, as data.
func TestSchema(t *testing.T) {
	got, err := exec.CommandContext(t.Context(), "terrarium", "schema", "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("testdata", "schema.json"), got)
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != string(got) {
		t.Errorf("%s differs; rewrite it with -update if that is right.\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

// isRoot says that permissions do not hold this process back.
func isRoot() bool { return syscall.Geteuid() == 0 }

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain, tab\t, é and 日本":  "plain, tab\t, é and 日本",
		"\x1b[2J\a":               `\x1b[2J\a`,
		"\r over":                 `\r over`,
		"\u009b31m":               `\u009b31m`,
		"not \xff UTF-8":          `not \xff UTF-8`,
		"replaced \ufffd already": "replaced \ufffd already",
	} {
		if got := printable(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}
