// Package kits builds the reference creatures of every kit in sdk/ whose toolchain is
// installed.
//
// The last build of each language is kept in bin/kits under a sum of its inputs, so that
// only a change of the sources, or of the compiler, builds it again.
package kits

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/seed47132306/terrarium/abi"
)

// Creatures are the reference creatures that every kit has, in the order of
// sdk/reference/README.md.
var Creatures = []string{"shout", "tally", "ticker", "oracle", "scout", picky}

const picky = "picky"

// A Kit builds the reference creatures of one language.
type Kit struct {
	// Language is how the language is called in pages and tests.
	Language string
	// Dirs are the folders of its sources, below the top folder of the repository.
	Dirs []string
	// Tool returns the command that prints the version of the toolchain, and "" or what
	// is missing.
	Tool func(root string) (version []string, missing string)
	// Build builds all creatures from the sources below root into out, as NAME.wasm. It
	// writes nothing below root but what git ignores.
	Build func(ctx context.Context, root, out string) error
	// Lines builds picky with debugging information, which tells the lines of traps, as
	// Build does. It is nil for a language without.
	Lines func(ctx context.Context, root, out string) error
	// ShoutBytes is the most that shout may have, in bytes.
	ShoutBytes int64
	// Place is a pattern of the place in the source that a panic names, or "" if panics of the
	// language name none.
	Place string
}

// All holds the kits, in the order of the table in sdk/README.md.
var All = []Kit{
	goKit,
	rustKit,
	cKit,
	cppKit,
	zigKit,
	assemblyScriptKit,
	jsKit,
}

// Missing returns what is missing to build the kit's creatures on this machine, or "".
func (k *Kit) Missing(root string) string {
	_, missing := k.Tool(root)
	return missing
}

// building begins the names of folders of builds that are not finished.
const building = "building-"

// Modules builds the creatures unless they are in bin/kits already, and returns the
// folder with NAME.wasm for each. root is the top folder of the repository. The error has
// the code [abi.Unavailable] if the toolchain is missing.
func (k *Kit) Modules(ctx context.Context, root string) (string, error) {
	version, missing := k.Tool(root)
	if missing != "" {
		return "", &abi.Error{Code: abi.Unavailable, Op: "build the kit for " + k.Language, Message: missing + " is missing", Remedy: "run make toolchains"}
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	sum, err := k.sum(ctx, root, version)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "bin", "kits", strings.ToLower(k.Language)+"-"+sum)
	if complete(dir) == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	return dir, k.locked(ctx, filepath.Dir(dir), func() error {
		if complete(dir) == nil {
			return nil // another process has built it meanwhile
		}
		if err := k.build(ctx, root, dir); err != nil {
			return fmt.Errorf("build the kit for %s: %w", k.Language, err)
		}
		return k.tidy(dir)
	})
}

// lockRetry is the interval for retrying the lock of another process that builds.
const lockRetry = 100 * time.Millisecond

// locked calls f while no other process builds the same language, or fails when ctx is
// done. Toolchains share folders between builds, such as the target folder of cargo, so
// that two builds at once could take modules that the other one is writing.
func (k *Kit) locked(ctx context.Context, parent string, f func() error) error {
	lock := flock.New(filepath.Join(parent, "lock-"+strings.ToLower(k.Language)))
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return fmt.Errorf("wait for another build of the kit for %s: %w", k.Language, err)
	}
	return errors.Join(f(), lock.Unlock())
}

// build builds the creatures into a new folder that replaces dir.
func (k *Kit) build(ctx context.Context, root, dir string) error {
	// The folder gets its name when it is complete, so that an interrupted build is not
	// taken for a finished one.
	out, err := os.MkdirTemp(filepath.Dir(dir), building)
	if err != nil {
		return err
	}
	defer os.RemoveAll(out)
	if err := k.Build(ctx, root, out); err != nil {
		return err
	}
	if err := complete(out); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil { // it may have lost files
		return err
	}
	return os.Rename(out, dir)
}

// complete returns an error unless a folder has a module for every creature. A toolchain
// that does nothing, and reports no error, would otherwise be taken for a finished build.
func complete(dir string) error {
	for _, name := range Creatures {
		file := filepath.Join(dir, name+".wasm")
		module, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(module, []byte("\x00asm")) {
			return fmt.Errorf("%s is not a Wasm module", file)
		}
	}
	return nil
}

// abandoned is the age at which a folder of a build belongs to a process that was killed.
const abandoned = 24 * time.Hour

// tidy removes the former builds of the language, and what killed processes have left.
func (k *Kit) tidy(dir string) error {
	parent := filepath.Dir(dir)
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		former := strings.HasPrefix(e.Name(), strings.ToLower(k.Language)+"-") && e.Name() != filepath.Base(dir)
		if strings.HasPrefix(e.Name(), building) {
			info, err := e.Info()
			former = err == nil && time.Since(info.ModTime()) > abandoned
		}
		if former {
			errs = append(errs, os.RemoveAll(filepath.Join(parent, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// sum identifies the sources and the compiler.
func (k *Kit) sum(ctx context.Context, root string, version []string) (string, error) {
	h := sha256.New()
	if len(version) > 0 {
		out, err := exec.CommandContext(ctx, version[0], version[1:]...).Output()
		if err != nil {
			return "", fmt.Errorf("%s: %w", strings.Join(version, " "), err)
		}
		h.Write(out)
	}
	for _, dir := range append([]string{"sdk/internal/kits"}, k.Dirs...) {
		names, err := sources(filepath.Join(root, filepath.FromSlash(dir)))
		if err != nil {
			return "", err
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(h, "%s %d\n", strings.TrimPrefix(name, root), len(text))
			h.Write(text)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// notSources are folders that toolchains fill.
var notSources = []string{"target", "node_modules", "zig-out", ".zig-cache", "build"}

func sources(dir string) (names []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(notSources, d.Name()):
			return filepath.SkipDir
		case d.Type().IsRegular():
			names = append(names, path)
		}
		return nil
	})
	return names, err
}

// run runs a command in a folder. Its error has what the command printed.
func run(ctx context.Context, dir string, env []string, args ...string) error {
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &output, &output
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, output.String())
	}
	return nil
}

// found reports whether a program is installed.
func found(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}
