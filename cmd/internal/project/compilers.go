package project

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

const (
	rustTarget    = "wasm32-unknown-unknown"
	getRustTarget = "rustup target add " + rustTarget + "; Debian: apt-get install libstd-rust-dev-wasm32"
	getRust       = "install Rust from https://rustup.rs"
	getZig        = "install it from https://ziglang.org, or with pip install ziglang"
	getGo         = "install it from https://go.dev"
	getWabt       = "Debian: apt-get install wabt; macOS: brew install wabt"
)

// compileC builds C and C++. It compiles and links in separate steps, because clang would
// otherwise run wasm-opt if that is installed.
func compileC(ctx context.Context, b *build, out string) (string, error) {
	tool, flags := &clang, []string{"-std=c11"}
	if b.Language.Name == "cpp" {
		tool, flags = &clangPlus, []string{"-std=c++20", "-fno-exceptions", "-fno-rtti"}
	}
	compiler, err := b.found(tool)
	if err != nil {
		return "", err
	}
	linker, err := b.found(&wasmLinker)
	if err != nil {
		return "", err
	}
	flags = append(flags, "--target=wasm32", "-Wall", "-Wextra", "-Os", "-ffreestanding", "-mbulk-memory", "-I"+kitFolder)
	link := []string{linker, "--no-entry", "--gc-sections", "--compress-relocations", "--stack-first", "-z", "stack-size=16384"}
	if b.Debug {
		flags = append(flags, "-g")
		link = []string{linker, "--no-entry", "--gc-sections", "--stack-first", "-z", "stack-size=16384"} // compressed code has no lines
	} else {
		link = append(link, "--strip-all")
	}
	for _, source := range b.Sources {
		object := filepath.Join(out, source+".o")
		link = append(link, object)
		if err := b.run(ctx, nil, append(append([]string{compiler}, flags...), "-c", source, "-o", object)...); err != nil {
			return "", err
		}
	}
	file := filepath.Join(out, b.Name+".wasm")
	return file, b.run(ctx, nil, append(link, "-o", file)...)
}

// compileRust builds with cargo, which keeps its files in the folder target.
func compileRust(ctx context.Context, b *build, _ string) (string, error) {
	command, err := b.found(&cargo)
	if err != nil {
		return "", err
	}
	if _, ok := rustLib.find(ctx); !ok {
		return "", b.missing(&rustLib)
	}
	var env []string
	if b.Debug {
		env = []string{"CARGO_PROFILE_RELEASE_STRIP=none", "CARGO_PROFILE_RELEASE_DEBUG=2"}
	}
	answer, err := b.ask(ctx, env, command, "build", "--quiet", "--release", "--target", rustTarget, "--message-format=json-render-diagnostics")
	if err != nil {
		return "", err
	}
	return b.artifact(answer)
}

// artifact returns the path of the module, which is in the messages of cargo.
func (b *build) artifact(messages []byte) (file string, err error) {
	for d := json.NewDecoder(bytes.NewReader(messages)); ; {
		var m struct {
			ManifestPath string `json:"manifest_path"`
			Filenames    []string
		}
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return "", b.refuse(abi.Failed, "cargo printed a message that is not JSON", "install a current Rust", err)
		}
		for _, name := range m.Filenames {
			if strings.HasSuffix(name, ".wasm") && filepath.Dir(m.ManifestPath) == b.Dir {
				file = name
			}
		}
	}
	if file == "" {
		return "", b.refuse(abi.Failed, "the crate does not make a module", `write crate-type = ["cdylib"] in the section lib of Cargo.toml`, nil)
	}
	return file, nil
}

// compileZig runs the build file of the author.
func compileZig(ctx context.Context, b *build, out string) (string, error) {
	args, _, ok := findZig(ctx)
	if !ok {
		return "", b.missing(&zigTool)
	}
	args = append(args, "build", "--prefix", out)
	if b.Debug {
		args = append(args, "-Ddebug")
	}
	if err := b.run(ctx, nil, args...); err != nil {
		return "", err
	}
	modules, err := filepath.Glob(filepath.Join(out, "bin", "*.wasm"))
	if err == nil && len(modules) != 1 {
		return "", b.refuse(abi.Failed, "build.zig must install one module", "call terrarium.addCreature once", nil)
	}
	return modules[0], err
}

// compileAssemblyScript uses the compiler of the project, or one that is on the PATH.
func compileAssemblyScript(ctx context.Context, b *build, out string) (string, error) {
	command, err := b.found(&node)
	if err != nil {
		return "", err
	}
	args := []string{command, filepath.Join(b.Dir, "node_modules", "assemblyscript", "bin", "asc.js")}
	if _, err := os.Stat(args[1]); err != nil {
		asc, err := exec.LookPath("asc")
		if err != nil {
			return "", b.missing(&tool{what: "assemblyscript", get: "run npm install in the folder, which needs a network once"})
		}
		args = []string{asc}
	}
	file := filepath.Join(out, b.Name+".wasm")
	args = append(args, b.Sources[0], "-O", "--runtime", "minimal", "-o", file)
	if b.Debug {
		args = append(args, "--debug")
	}
	return file, b.run(ctx, nil, args...)
}

// compileJavaScript puts the script into the module that runs it.
func compileJavaScript(_ context.Context, b *build, out string) (string, error) {
	module, err := PackScript(filepath.Join(b.Dir, b.Sources[0]), "")
	if err != nil {
		return "", err
	}
	file := filepath.Join(out, b.Name+".wasm")
	return file, os.WriteFile(file, module, 0o600)
}

func compileGo(ctx context.Context, b *build, out string) (string, error) {
	command, err := b.found(&goCommand)
	if err != nil {
		return "", err
	}
	file := filepath.Join(out, b.Name+".wasm")
	args := []string{command, "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-o", file}
	if !b.Debug {
		args = append(args, "-ldflags=-s -w")
	}
	return file, b.run(ctx, []string{"GOOS=wasip1", "GOARCH=wasm"}, append(args, ".")...)
}

func compileWAT(ctx context.Context, b *build, out string) (string, error) {
	command, err := b.found(&wat2wasm)
	if err != nil {
		return "", err
	}
	file := filepath.Join(out, b.Name+".wasm")
	args := []string{command, b.Sources[0], "-o", file}
	if b.Debug {
		args = append(args, "--debug-names")
	}
	return file, b.run(ctx, nil, args...)
}
