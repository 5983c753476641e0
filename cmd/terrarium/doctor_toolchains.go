package main

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"strings"
	"time"
)

// toolchainRecord is what doctor finds of the toolchain of a language.
type toolchainRecord struct {
	Language string `json:"language"`
	Version  string `json:"version,omitempty"`
	Missing  string `json:"missing,omitempty"` // the tool
	Remedy   string `json:"remedy,omitempty"`  // how to get it
}

// toolchains lists the languages of the kits, in the order of sdk/README.md. Each of the
// commands has to succeed; the first line of the first one is the version.
var toolchains = []struct {
	language string
	commands []toolCommand
}{
	{"C and C++", []toolCommand{
		{args: []string{"clang", "--version"}, remedy: "install clang (Debian: apt-get install clang)"},
		{args: []string{"wasm-ld", "--version"}, remedy: "install lld (Debian: apt-get install lld)"},
	}},
	{"Rust", []toolCommand{
		{args: []string{"cargo", "--version"}, remedy: "install Rust from https://rustup.rs"},
		{args: []string{"rustc", "--print", "target-libdir", "--target", rustTarget}, tool: rustTarget, folder: true,
			remedy: "run rustup target add " + rustTarget + " (Debian: apt-get install libstd-rust-dev-wasm32)"},
	}},
	{"Zig", []toolCommand{
		{args: []string{"zig", "version"}, or: "python3 -m ziglang version", remedy: "run pip install ziglang"},
	}},
	{"AssemblyScript", []toolCommand{
		{args: []string{"node", "--version"}, remedy: "install Node.js, and run npm install assemblyscript in the folder of the creature"},
	}},
	{"Go", []toolCommand{
		{args: []string{"go", "version"}, remedy: "install Go from https://go.dev/dl"},
	}},
}

// rustTarget is the target of the kit for Rust.
const rustTarget = "wasm32-unknown-unknown"

// toolCommand prints the version of a tool.
type toolCommand struct {
	args   []string
	or     string // another way to run it, or empty
	tool   string // the name of the tool, unless it is that of the command
	folder bool   // it prints a folder that has to exist
	remedy string
}

// version runs the command; ok is false if the tool is missing.
func (c *toolCommand) version(ctx context.Context) (line string, ok bool) {
	line, ok = firstLine(ctx, c.args)
	if !ok && c.or != "" {
		line, ok = firstLine(ctx, strings.Fields(c.or))
	}
	if ok && c.folder {
		info, err := os.Stat(line)
		ok = err == nil && info.IsDir()
	}
	return line, ok
}

// versionTimeout is how long a tool may take to print its version.
const versionTimeout = 10 * time.Second

// findToolchains runs the commands. JavaScript needs none.
func findToolchains(ctx context.Context) []toolchainRecord {
	var out []toolchainRecord
	for _, t := range toolchains {
		record := toolchainRecord{Language: t.language}
		for _, c := range t.commands {
			version, ok := c.version(ctx)
			if !ok {
				record = toolchainRecord{Language: t.language, Missing: cmp.Or(c.tool, c.args[0]), Remedy: c.remedy}
				break
			}
			if record.Version == "" {
				record.Version = version
			}
		}
		out = append(out, record)
	}
	return append(out, toolchainRecord{Language: "JavaScript", Version: "needs none: terrarium pack --js"})
}

// firstLine returns the first line that a command prints; ok is false if it fails.
func firstLine(ctx context.Context, args []string) (line string, ok bool) {
	ctx, stop := context.WithTimeout(ctx, versionTimeout)
	defer stop()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.WaitDelay = time.Second // for what it has started
	out, err := cmd.Output()
	line, _, _ = strings.Cut(string(out), "\n")
	return strings.TrimSpace(line), err == nil
}
