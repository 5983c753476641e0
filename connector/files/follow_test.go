package files

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestRewrittenBetweenReads rewrites a file with more than it had, between two reads that both
// find something: nothing is taken from the middle of the new content.
func TestRewrittenBetweenReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old\n")
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	f := &followed{path: path, file: file}
	b := make([]byte, 100)
	if n, err := f.Read(b); string(b[:n]) != "old\n" || err != nil {
		t.Fatalf("the first read gets %q, %v", b[:n], err)
	}
	write("new and longer\n")
	if n, err := f.Read(b); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("the second read gets %q, %v; the file is to be read from its start", b[:n], err)
	}
}
