// Package guestbuild builds the creatures of package plugins from their sources
// and proves that the prebuilt ones are current.
//
// Other versions of a compiler may give other bytes, so there are two proofs:
// a sum of all inputs of a module is checked everywhere, and where the same
// toolchain is installed the module is built again and compared.
package guestbuild

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/abi/pack"
)

// A Guest is one creature that ships with the project.
type Guest struct {
	Name string
	Dir  string // of its sources and its manifest, below the top folder
	// Embedded guests are prebuilt and kept beside their sources; the others
	// are built on demand.
	Embedded bool
	// Tools are the programs that build it.
	Tools []string
	// Inputs are patterns of its source files, below the top folder.
	Inputs []string

	commands func(g Guest, out string) []command
}

// A command is run in the top folder.
type command struct {
	args []string
	env  []string
}

// Guests holds all creatures, sorted by name.
var Guests = []Guest{
	fromC("clerk"),
	fromGo("digest"),
	fromWAT("echo"),
	fromC("envoy"),
	fromC("foreman"),
	fromC("gate"),
	fromC("join"),
	quickJS(),
	fromC("operator"),
	fromC("relay"),
	fromC("select"),
	fromC("split"),
	fromC("tally"),
}

// Examples holds the creatures of the examples. They are also kept beside
// their sources, but are not part of the program.
var Examples = []Guest{
	{
		Name: "numbers", Dir: "examples/embed/device", Tools: []string{"wat2wasm"}, Inputs: []string{"examples/embed/device/*.wat"},
		commands: func(g Guest, out string) []command {
			return []command{{args: []string{"wat2wasm", g.Dir + "/numbers.wat", "-o", out}}}
		},
	},
	fromCIn("examples/review-team/reviewer"),
	fromCIn("examples/review-team/writer"),
}

// kept returns the guests whose modules are kept beside their sources.
func kept() []Guest {
	out := slices.Clone(Examples)
	for _, g := range Guests {
		if g.Embedded {
			out = append(out, g)
		}
	}
	return out
}

// ByName returns the guest of that name.
func ByName(name string) (Guest, bool) {
	for _, g := range Guests {
		if g.Name == name {
			return g, true
		}
	}
	return Guest{}, false
}

func fromWAT(name string) Guest {
	dir := "plugins/" + name
	return Guest{
		Name: name, Dir: dir, Embedded: true, Tools: []string{"wat2wasm"},
		Inputs: []string{dir + "/*.wat", dir + "/manifest.json"},
		commands: func(g Guest, out string) []command {
			return []command{{args: []string{"wat2wasm", dir + "/" + name + ".wat", "-o", out}}}
		},
	}
}

// Compiling and linking are separate steps: in one step clang also runs
// wasm-opt if it is installed, and the bytes would depend on that.
func fromC(name string) Guest {
	g := fromCIn("plugins/" + name)
	g.Embedded = true
	return g
}

func fromCIn(dir string) Guest {
	name := path.Base(dir)
	return Guest{
		Name: name, Dir: dir, Tools: []string{"clang-14", "wasm-ld-14"},
		Inputs: []string{dir + "/*.c", dir + "/*.h", dir + "/manifest.json", "plugins/selector/*.h", "sdk/c/*.h"},
		commands: func(g Guest, out string) []command {
			object := out + ".o"
			return []command{
				{args: []string{"clang-14", "--target=wasm32", "-std=c11", "-Wall", "-Wextra", "-Werror", "-Os", "-ffreestanding", "-mbulk-memory",
					"-Isdk/c", "-Iplugins/selector", "-c", dir + "/" + name + ".c", "-o", object}},
				{args: []string{"wasm-ld-14", "--no-entry", "--gc-sections", "--strip-all", "--stack-first", "-z", "stack-size=16384",
					object, "-o", out}},
			}
		},
	}
}

func fromGo(name string) Guest {
	dir := "plugins/" + name
	return Guest{
		Name: name, Dir: dir, Tools: []string{"go"},
		Inputs: []string{dir + "/*.go", dir + "/manifest.json", "sdk/go/terrarium/*.go"},
		commands: func(g Guest, out string) []command {
			return []command{{
				args: []string{"go", "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, "./" + dir},
				env:  []string{"GOOS=wasip1", "GOARCH=wasm"},
			}}
		},
	}
}

// MissingTool returns the first of the guest's tools that is not installed.
func (g Guest) MissingTool() (name string, missing bool) {
	for _, tool := range g.Tools {
		if _, err := exec.LookPath(tool); err != nil {
			return tool, true
		}
	}
	return "", false
}

// Build builds the guest from source, and adds its manifest, if it has one. root is the top
// folder of the repository. Build blocks until the compiler is done.
func (g Guest) Build(ctx context.Context, root string) ([]byte, error) {
	if tool, missing := g.MissingTool(); missing {
		return nil, &abi.Error{Code: abi.Unavailable, Op: "build " + g.Name, Message: tool + " is not installed", Remedy: "run make toolchains"}
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "guest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, g.Name+".wasm")
	for _, c := range g.commands(g, out) {
		if err := c.run(ctx, root); err != nil {
			return nil, fmt.Errorf("%s: %w", g.Name, err)
		}
	}
	module, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(g.Inputs, g.Dir+"/manifest.json") {
		return module, nil
	}
	manifest, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(g.Dir), "manifest.json"))
	if err != nil {
		return nil, err
	}
	return pack.Manifest(module, manifest)
}

func (c command) run(ctx context.Context, dir string) error {
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &output, &output
	cmd.Env = append(os.Environ(), c.env...)
	if err := cmd.Run(); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", strings.Join(c.args, " "), err), errors.New(output.String()))
	}
	return nil
}

// Path returns the file of the guest's module below root.
func (g Guest) Path(root string) string {
	return filepath.Join(root, filepath.FromSlash(g.Dir), g.Name+".wasm")
}
