//go:build unix

package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A directory or a pipe at the path of a followed file counts as no file: the next file
// there is read.
func TestFollowedFileIsReplacedByOther(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
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
	if err := os.WriteFile(filepath.Join(dir, "log"), []byte("line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := openAgain(ctx, filepath.Join(dir, "log"), true)
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
}

// The source neither waits for the other end of a pipe nor reads a pipe, even if one
// takes the place of a file between the check and the opening.
func TestPipeIsNotOpened(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openAgain(t.Context(), pipe, false); !errors.Is(err, errNotRegular) {
		t.Errorf("a pipe is opened with the error %v", err)
	}
}
