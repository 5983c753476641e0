//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/seed47132306/terrarium/internal/guesttools"
)

// TestDevEditDuringBuild edits a source while a compiler, which would never end, reads the
// previous edit.
func TestDevEditDuringBuild(t *testing.T) {
	guesttools.Use(t)
	clang, err := exec.LookPath("clang-14")
	if err != nil {
		clang, err = exec.LookPath("clang")
	}
	if err != nil {
		guesttools.Missing(t, "clang is missing")
	}
	devToolchains(t)
	dir, tools := t.TempDir(), t.TempDir()
	once(t, dir, "", "new", "counter", "--lang", "c")
	folder := filepath.Join(dir, "counter")
	buildOrSkip(t, folder)
	started := filepath.Join(tools, "started")
	if err := syscall.Mkfifo(started, 0o600); err != nil {
		t.Skip(err)
	}
	script := "#!/bin/sh\ncase \"$*\" in *--version*) exec " + clang + " \"$@\";; esac\n" +
		"if mkdir " + filepath.Join(tools, "first") + " 2>/dev/null; then echo > " + started + "; exec sleep 600; fi\nexec " + clang + " \"$@\"\n"
	for _, name := range []string{"clang-14", "clang"} {
		if err := os.WriteFile(filepath.Join(tools, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", tools+string(os.PathListSeparator)+os.Getenv("PATH"))
	s := startDev(t, dir, "dev", "counter", "--input", "in=-", "--output", "out", "-o", "json")
	if _, err := os.ReadFile(started); err != nil { // waits for the compiler
		t.Fatal(err)
	}
	source := filepath.Join(folder, "counter.c")
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, source, string(text)+"\n// edited\n")
	s.await("applied")
	s.interrupt()
}
