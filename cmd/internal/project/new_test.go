package project

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
)

func TestCheckName(t *testing.T) {
	for _, good := range []string{"frog", "frog_2", "x", strings.Repeat("x", maxName)} {
		if err := CheckName(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for name, remedy := range map[string]string{
		"": "choose a name such as frog", "Frog": "use frog", "../../etc": "use etc", "3frogs": "use frogs", "frosch-teich": "use frosch_teich", "ü": "choose a name such as frog",
		strings.Repeat("x", maxName+1): "use " + strings.Repeat("x", maxName), "Fn": "choose a name such as frog",
		"self": "choose another name, such as my_self", "build": "choose another name, such as my_build", "pond_test": "choose another name, such as my_pond",
	} {
		var e *abi.Error
		if err := CheckName(name); !errors.As(err, &e) || e.Code != abi.InvalidArgument || e.Remedy != remedy {
			t.Errorf("%q: %v, want the remedy %q", name, err, remedy)
		}
	}
}

// TestNothingIsLeft makes a project where it cannot be written, and expects that no part of it
// remains.
func TestNothingIsLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "frog")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// Writing follows the link and fails for the path below a file.
	if err := write(filepath.Join(dir, "file", "below"), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(dir, "frog", &c); abi.CodeOf(err) != abi.AlreadyExists {
		t.Errorf("a folder that is not empty: %v", err)
	}
	if _, err := Create(filepath.Join(dir, "file", "below"), "frog", &c); abi.CodeOf(err) != abi.AlreadyExists {
		t.Errorf("a file: %v", err)
	}
	if _, err := Create(filepath.Join(dir, "file", "below", "deeper"), "frog", &c); err == nil {
		t.Error("a project below a file was written")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

// TestProjectsDependOnTheirNameAlone makes a project twice, and expects equal files.
func TestProjectsDependOnTheirNameAlone(t *testing.T) {
	for _, l := range All {
		first, err := render("frog", l)
		if err != nil {
			t.Fatal(err)
		}
		second, err := render("frog", l)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for i, file := range first {
			if file != second[i] {
				t.Errorf("%s: %s differs", l.Name, file.name)
			}
			if seen[file.name] {
				t.Errorf("%s: %s is written twice", l.Name, file.name)
			}
			seen[file.name] = true
			if strings.HasPrefix(file.name, kitFolder+"/") {
				continue
			}
			for _, left := range []string{"NAME", "TITLE", "TOOLS", "FILES", "UNITTEST", "FINGERPRINT", "shout"} {
				if strings.Contains(file.text, left) {
					t.Errorf("%s: %s has the placeholder %s", l.Name, file.name, left)
				}
			}
		}
	}
}

// TestOutputIsBounded builds with a compiler that prints endlessly, until the build is
// interrupted.
func TestOutputIsBounded(t *testing.T) {
	dir, tools := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{filepath.Join(dir, "a.wat"): "", filepath.Join(tools, "wat2wasm"): "#!/bin/sh\ntouch started\nexec yes\n"} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", tools+string(os.PathListSeparator)+os.Getenv("PATH"))
	p, err := Detect(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	b := &build{Project: p, output: bounded{most: MaxOutput}}
	watched := &watched{bounded: bounded{most: MaxOutput}, full: func() { cancel(enough) }}
	if err := b.start(ctx, nil, watched, "wat2wasm"); !errors.Is(err, enough) {
		t.Errorf("the build ends with %v", err)
	}
	if n := watched.kept.Len(); n != MaxOutput || !strings.Contains(watched.String(), "more bytes") {
		t.Errorf("%d bytes are kept", n)
	}
}

// watched calls full when some output has been left out.
type watched struct {
	bounded
	full func()
}

func (w *watched) Write(text []byte) (int, error) {
	n, err := w.bounded.Write(text)
	if w.lost > 0 {
		w.full()
	}
	return n, err
}

func TestDetect(t *testing.T) {
	for _, test := range []struct {
		files          map[string]string
		language, name string
	}{
		{map[string]string{"Cargo.toml": "", "build.js": ""}, "rust", ""},
		{map[string]string{"build.zig": "", "a.c": ""}, "zig", ""},
		{map[string]string{"package.json": `{"dependencies": {"assemblyscript": "1"}}`, "pond.ts": "", "pond.d.ts": "", "pond.test.js": ""}, "assemblyscript", "pond"},
		{map[string]string{"package.json": `{"name": "newt", "devDependencies": {"assemblyscript": "1"}}`, "assembly/index.ts": ""}, "assemblyscript", "newt"},
		{map[string]string{"package.json": `{"name": "@x/../newt"}`, "asconfig.json": "{}", "assembly/index.ts": ""}, "assemblyscript", "folder"},
		{map[string]string{"package.json": `{}`, "pond.js": "", "pond.test.js": "", "eslint.config.js": ""}, "javascript", "pond"},
		{map[string]string{"go.mod": "module example.com/ponds/newt\n", "frog.go": ""}, "go", "newt"},
		{map[string]string{"main.go": ""}, "go", "folder"},
		{map[string]string{"a.c": "", "b.c": "", "a_test.c": "", "Makefile": ""}, "c", "folder"},
		{map[string]string{"a.cc": "", ".#a.cc": "", ".b.js": ""}, "cpp", "a"},
		{map[string]string{"a.wat": ""}, "wat", "a"},
	} {
		dir := filepath.Join(t.TempDir(), "folder")
		for name, text := range test.files {
			if err := write(filepath.Join(dir, filepath.FromSlash(name)), text); err != nil {
				t.Fatal(err)
			}
		}
		p, err := Detect(dir)
		if err != nil {
			t.Errorf("%v: %v", test.files, err)
			continue
		}
		if p.Language.Name != test.language || p.Name != test.name {
			t.Errorf("%v: %s in %s, want %s in %s", test.files, p.Name, p.Language.Name, test.name, test.language)
		}
	}
}
