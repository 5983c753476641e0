package recipes

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/tools/txtar"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/internal/unhurried"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	unhurried.Policies = unhurried.Plenty
	goleak.VerifyTestMain(m)
}

// inspector recognizes kinds of module by their text: "manifest:" and a manifest,
// optionally after a line "imports:" with the imports; "memory:" and the number of bytes
// at the start; "refuse:" and a message; anything else is valid.
type inspector struct{ calls int }

func (i *inspector) Inspect(_ context.Context, wasm []byte) (*abi.ModuleInfo, error) {
	i.calls++
	info := &abi.ModuleInfo{Size: int64(len(wasm))}
	if text, ok := bytes.CutPrefix(wasm, []byte("refuse:")); ok {
		return nil, &abi.Error{Code: abi.InvalidArgument, Message: strings.TrimSpace(string(text)), Remedy: "build it again"}
	}
	if text, ok := bytes.CutPrefix(wasm, []byte("memory:")); ok {
		_, err := fmt.Sscan(string(text), &info.MemoryMin)
		return info, err
	}
	text, imports := bytes.CutPrefix(wasm, []byte("imports:"))
	if imports {
		list, rest, _ := bytes.Cut(text, []byte("\n"))
		for _, name := range bytes.Fields(list) {
			info.Imports = append(info.Imports, abi.Import{Module: "terrarium", Name: string(name)})
		}
		wasm = rest
	} else {
		info.Imports = []abi.Import{{Module: "terrarium", Name: "now"}, {Module: "terrarium", Name: "random"}}
	}
	if text, ok := bytes.CutPrefix(wasm, []byte("manifest:")); ok {
		m, err := abi.ParseManifest(text)
		if err != nil {
			return nil, err
		}
		info.Manifest = m
	}
	return info, nil
}

type builtins []string

func (b builtins) Names() []string { return b }

func (b builtins) Wasm(name string) ([]byte, error) {
	if !slices.Contains(b, name) {
		return nil, &abi.Error{Code: abi.NotFound, Message: "no such creature"}
	}
	return []byte(name), nil
}

// archive is a test case: files, and options in the comment, one "key: value"
// on a line.
type archive struct {
	path string
	*txtar.Archive
}

func archives(t *testing.T, pattern string) []archive {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no test cases in %s: %v", pattern, err)
	}
	var out []archive
	for _, p := range paths {
		a, err := txtar.ParseFile(p)
		if err != nil {
			t.Fatal(err)
		}
		p, err = filepath.Abs(p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, archive{p, a})
	}
	return out
}

func (a archive) name() string { return strings.TrimSuffix(filepath.Base(a.path), ".txtar") }

// load writes the files to a new folder, changes to it and loads the recipe.
func (a archive) load(t *testing.T) (*Recipe, Diagnostics, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range a.Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	path := "team.hcl"
	o := Options{Inspector: &inspector{}, Builtins: builtins{"echo", "gate", "relay", "tally"}, Version: "0.2.0", Vars: map[string]string{}, Tests: true}
	for line := range strings.Lines(string(a.Comment)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "path":
			path = value
		case "var":
			name, v, _ := strings.Cut(value, "=")
			o.Vars[name] = v
		case "env":
			o.Env = append(o.Env, value)
		case "varfile":
			o.VarFiles = append(o.VarFiles, value)
		case "symlink":
			to, from, _ := strings.Cut(value, " <- ")
			if err := os.Symlink(to, from); err != nil {
				t.Fatal(err)
			}
		}
	}
	r, d := Load(t.Context(), path, o)
	return r, d, dir
}

// golden compares got with the section want of the archive, or writes it.
func (a archive) golden(t *testing.T, got string) {
	t.Helper()
	i := slices.IndexFunc(a.Files, func(f txtar.File) bool { return f.Name == "want" })
	if *update {
		f := txtar.File{Name: "want", Data: []byte(got)}
		if i < 0 {
			a.Files = append(a.Files, f)
		} else {
			a.Files[i] = f
		}
		if err := os.WriteFile(a.path, txtar.Format(a.Archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if i < 0 {
		t.Fatalf("no golden text; run with -update\n%s", got)
	}
	if want := string(a.Files[i].Data); got != want {
		t.Errorf("--- got\n%s--- want\n%s", got, want)
	}
}

// write puts a recipe into a new folder and returns its path.
func write(t testing.TB, source string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "team.hcl")
	if err := os.WriteFile(path, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func render(t testing.TB, d Diagnostics, dir string) string {
	t.Helper()
	var b strings.Builder
	if err := WriteText(&b, d, 100, false); err != nil {
		t.Fatal(err)
	}
	if dir != "" {
		return strings.ReplaceAll(b.String(), dir, "/recipe")
	}
	return b.String()
}

func mustLoad(t testing.TB, path string, o Options) *Recipe {
	t.Helper()
	r, d := Load(t.Context(), path, o)
	if r == nil {
		t.Fatal(fmt.Sprint("not loaded:\n", render(t, d, "")))
	}
	return r
}

// replaceOnce replaces a text that must occur exactly once.
func replaceOnce(t testing.TB, text, old, with string) string {
	t.Helper()
	if strings.Count(text, old) != 1 {
		t.Fatalf("%q is not once in %s", old, text)
	}
	return strings.Replace(text, old, with, 1)
}
