//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Secrets are read only from regular files. In particular, no command waits for the writer of
// a pipe.
func TestSecretsAreInFiles(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, private); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, pipe} {
		if _, err := readPrivate(path); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := readPrivate(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
}
