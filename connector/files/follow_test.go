package files

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// TestRewrittenBetweenReads replaces the content of a file by a longer one, between two
// reads that both find something: no line is taken from the middle of the new content.
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

// TestLastHasNoGap notes parts of any size, and compares what is kept with the end of all parts.
func TestLastHasNoGap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f followed
		var all []byte
		for i, size := range rapid.SliceOfN(rapid.IntRange(0, 3*lastBytes), 1, 8).Draw(t, "sizes") {
			part := bytes.Repeat([]byte{byte(i)}, size)
			for j := range part {
				part[j] += byte(j)
			}
			f.note(part)
			all = append(all, part...)
			if f.read != int64(len(all)) || !bytes.HasSuffix(all, f.last) || len(f.last) < min(len(all), lastBytes) || len(f.last) > 2*lastBytes {
				t.Fatalf("after %d bytes, the last of which came in a part of %d, %d are noted, and the end of them is %q", len(all), size, f.read, f.last)
			}
		}
	})
}
