//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A directory or a pipe in the place of a followed file is not there: the file that comes after
// it is read.
func TestFollowedFileIsReplacedByOther(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, private); err != nil {
		t.Fatal(err)
	}
	ended := errors.New("the test has ended")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	for _, path := range []string{dir, pipe, filepath.Join(dir, "none")} {
		if _, err := openAgain(ctx, path, true); !errors.Is(err, ended) {
			t.Errorf("%s: %v", path, err)
		}
	}
	write(t, dir, "log", "line\n")
	file, err := openAgain(ctx, filepath.Join(dir, "log"), true)
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
}

// What is not a regular file has no secret. In particular, nothing waits for a writer of a pipe.
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
