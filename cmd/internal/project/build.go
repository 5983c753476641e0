package project

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/abi/pack"
	"github.com/seed47132306/terrarium/host"
)

// Options say how to build.
type Options struct {
	// Debug keeps the names of functions and the lines of the source in the module.
	Debug bool
}

// Built is a module that a host accepts.
type Built struct {
	Name string // the name of its file without .wasm
	Wasm []byte
	Info *abi.ModuleInfo
	// Output is what the compiler printed, cut at [MaxOutput].
	Output string
}

// MaxOutput is the size in bytes of the output of a compiler that is kept.
const MaxOutput = 64 << 10

// maxAnswer is the size in bytes of the longest output of a tool that this package reads.
const maxAnswer = 4 << 20

// patience is how long an interrupted tool may take to end before it is killed.
const patience = 5 * time.Second

// build is a build that is running.
type build struct {
	*Project
	Options
	output bounded
}

// Build compiles the project and checks the module as a host does. The result has the output
// of the compiler, even if there is an error; it is nil if nothing was compiled. Temporary
// files are removed; files that a compiler keeps in the folder of the project remain.
//
// The error has the code [abi.Unavailable] if a tool is missing, and [abi.Failed] if the
// compiler reports errors.
func (p *Project) Build(ctx context.Context, o Options) (*Built, error) {
	b := &build{Project: p, Options: o, output: bounded{most: MaxOutput}}
	out, err := os.MkdirTemp("", "terrarium-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(out)
	file, err := p.Language.compile(ctx, b, out)
	built := &Built{Name: p.Name, Output: b.output.String()}
	if err == nil {
		if built.Name == "" {
			built.Name = strings.TrimSuffix(filepath.Base(file), ".wasm")
		}
		built.Wasm, err = readModule(file)
	}
	if err == nil {
		built.Wasm, err = p.addManifest(built.Wasm)
	}
	if err == nil {
		built.Info, err = inspect(ctx, built.Wasm)
	}
	return built, err
}

func readModule(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, abi.MaxModuleBytes+1)) // the host refuses a larger one
}

// addManifest packs manifest.json into the module, if the folder has one.
func (p *Project) addManifest(module []byte) ([]byte, error) {
	manifest, err := p.read("manifest.json")
	if errors.Is(err, fs.ErrNotExist) {
		return module, nil
	}
	if err != nil {
		return nil, err
	}
	return pack.Manifest(module, manifest)
}

// inspect checks a module as the host does when it compiles one.
func inspect(ctx context.Context, wasm []byte) (info *abi.ModuleInfo, err error) {
	h, err := host.New(ctx, host.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Close(context.WithoutCancel(ctx))) }()
	return h.Inspect(ctx, wasm)
}

// run runs a tool in the folder of the project, and keeps its output.
func (b *build) run(ctx context.Context, env []string, args ...string) error {
	return b.start(ctx, env, &b.output, args...)
}

// ask runs a tool, returns its standard output, and keeps its standard error.
func (b *build) ask(ctx context.Context, env []string, args ...string) ([]byte, error) {
	answer := bounded{most: maxAnswer}
	err := b.start(ctx, env, &answer, args...)
	if err == nil && answer.lost > 0 {
		err = b.refuse(abi.TooLarge, fmt.Sprintf("%s printed more than %d bytes", args[0], maxAnswer), "report this as a bug", nil)
	}
	return answer.kept.Bytes(), err
}

func (b *build) start(ctx context.Context, env []string, stdout io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.Dir, stdout, &b.output
	cmd.Env = append(os.Environ(), env...)
	// An interrupted compiler removes its own temporary files and ends the processes that
	// it has started.
	cmd.Cancel = func() error {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			return cmd.Process.Kill() // Windows has no such signal
		}
		return nil
	}
	cmd.WaitDelay = patience
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return b.refuse(abi.Failed, filepath.Base(args[0])+" cannot build the creature", "correct what it reports", err)
	}
	return nil
}

// found returns the path of a tool.
func (b *build) found(t *tool) (string, error) {
	if path, ok := t.path(); ok {
		return path, nil
	}
	return "", b.missing(t)
}

// missing returns the error for a tool that is not installed.
func (b *build) missing(t *tool) error {
	return b.refuse(abi.Unavailable, "creatures in "+b.Language.Title+" are built with "+t.name()+", which is missing", t.get, nil)
}

// bounded keeps the first bytes that are written to it, and counts the others. It must not
// embed the buffer, whose ReadFrom would keep everything.
type bounded struct {
	kept       bytes.Buffer
	most, lost int
}

// Write never fails, so that a tool with a long output continues.
func (w *bounded) Write(text []byte) (int, error) {
	keep := min(len(text), w.most-w.kept.Len())
	w.lost += len(text) - keep
	w.kept.Write(text[:keep])
	return len(text), nil
}

// String returns the text that is kept, and says how much is missing.
func (w *bounded) String() string {
	if w.lost == 0 {
		return w.kept.String()
	}
	return fmt.Sprintf("%s\n… %d more bytes\n", w.kept.String(), w.lost)
}
