package project

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"time"
)

// tool is a program, or a part of one, that a build needs.
type tool struct {
	what     string   // the name in messages; if it is "", they name its programs
	programs []string // the first one that is installed is used
	version  []string // the arguments with which it prints its version
	get      string   // how to get it
	// probe looks for a tool that is not a program on the PATH. It returns the version.
	probe func(ctx context.Context) (version string, ok bool)
}

var (
	clang      = tool{programs: []string{"clang-14", "clang"}, version: []string{"--version"}, get: getClang}
	clangPlus  = tool{programs: []string{"clang++-14", "clang++"}, version: []string{"--version"}, get: getClang}
	wasmLinker = tool{programs: []string{"wasm-ld-14", "wasm-ld"}, version: []string{"--version"}, get: getClang}
	cargo      = tool{programs: []string{"cargo"}, version: []string{"--version"}, get: getRust}
	rustLib    = tool{what: "the target " + rustTarget + " of Rust", get: getRustTarget, probe: findRustLib}
	zigTool    = tool{what: "zig", get: getZig, probe: func(ctx context.Context) (string, bool) {
		_, version, ok := findZig(ctx)
		return version, ok
	}}
	node      = tool{programs: []string{"node"}, version: []string{"--version"}, get: getNode}
	goCommand = tool{programs: []string{"go"}, version: []string{"version"}, get: getGo}
	wat2wasm  = tool{programs: []string{"wat2wasm"}, version: []string{"--version"}, get: getWabt}
)

// findRustLib looks for the library of the target. Without it, the compiler prints the
// folder where it would be.
func findRustLib(ctx context.Context) (string, bool) {
	lib, ok := firstLine(ctx, "rustc", "--print", "target-libdir", "--target", rustTarget)
	if !ok {
		return "", false
	}
	info, err := os.Stat(lib)
	return rustTarget, err == nil && info.IsDir()
}

// findZig returns the command of Zig, which is also a package of Python, and its version.
func findZig(ctx context.Context) (args []string, version string, ok bool) {
	for _, args := range [][]string{{"zig"}, {"python3", "-m", "ziglang"}} {
		if version, ok := firstLine(ctx, append(args[:len(args):len(args)], "version")...); ok {
			return args, version, true
		}
	}
	return nil, "", false
}

// path returns where the program is installed.
func (t *tool) path() (string, bool) {
	for _, program := range t.programs {
		if path, err := exec.LookPath(program); err == nil {
			return path, true
		}
	}
	return "", false
}

func (t *tool) name() string {
	if t.what != "" {
		return t.what
	}
	return strings.Join(t.programs, " or ")
}

// find returns the version of the tool; ok is false if it is missing or does not run.
func (t *tool) find(ctx context.Context) (version string, ok bool) {
	if t.probe != nil {
		return t.probe(ctx)
	}
	path, ok := t.path()
	if !ok {
		return "", false
	}
	return firstLine(ctx, append([]string{path}, t.version...)...)
}

// Toolchain is what a machine has of the tools of a language.
type Toolchain struct {
	Version string // of the first tool; "" if the language needs none
	Missing string // the first tool that is missing, or ""
	Get     string // how to get it
}

// Toolchain looks for the tools with which creatures in the language are built, and runs
// them to learn their versions.
func (l *Language) Toolchain(ctx context.Context) (out Toolchain) {
	for _, t := range l.needs {
		version, ok := t.find(ctx)
		if !ok {
			return Toolchain{Missing: t.name(), Get: t.get}
		}
		if out.Version == "" {
			out.Version = version
		}
	}
	return out
}

// versionTimeout is how long a tool may take to print its version.
const versionTimeout = 10 * time.Second

// firstLine returns the first line that a command prints; ok is false if it fails.
func firstLine(ctx context.Context, args ...string) (line string, ok bool) {
	ctx, stop := context.WithTimeout(ctx, versionTimeout)
	defer stop()
	answer := bounded{most: maxAnswer}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout = &answer
	cmd.WaitDelay = time.Second // for what it has started
	err := cmd.Run()
	line, _, _ = strings.Cut(answer.kept.String(), "\n")
	return strings.TrimSpace(line), err == nil
}
