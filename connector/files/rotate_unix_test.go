//go:build unix

package files_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/connector/connectortest"
	"github.com/seed47132306/terrarium/connector/files"
)

// TestSourceSeesRotation rotates a file while nothing runs, moves another file to the path and
// back, and rewrites a file while it is followed: each line is taken once.
func TestSourceSeesRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	p := connectortest.NewPort()
	settings := map[string]any{"path": path}
	rename := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	put(t, path, "a1\n")
	stop := started(t, files.Source{}, p, settings)
	wait(t, p, sent(1))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	put(t, path, "a2\n")
	rename(path, path+".1")
	put(t, path, "b1\n")
	stop = started(t, files.Source{}, p, settings)
	wait(t, p, sent(3))
	rename(path, path+".2")
	put(t, path, "c1\n")
	wait(t, p, sent(4))
	rename(path, path+".3")
	rename(path+".2", path)
	put(t, path, "b2\n")
	wait(t, p, sent(5))
	if err := os.WriteFile(path, []byte("d1 is longer than what was there\nd2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	v := wait(t, p, sent(7))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a1", "a2", "b1", "c1", "b2", "d1 is longer than what was there", "d2"}; !slices.Equal(v.Payloads(), want) {
		t.Errorf("the source sends %q, want %q", v.Payloads(), want)
	}
}

// TestTruncatedBeforeTheEnd truncates a file while it is followed, and ends the run before
// anything else is written. The next run begins at the start of the file.
func TestTruncatedBeforeTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	p := connectortest.NewPort()
	settings := map[string]any{"path": path}
	put(t, path, "# header\na1\na2\n")
	stop := started(t, files.Source{}, p, settings)
	wait(t, p, sent(3))
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	wait(t, p, func(v connectortest.View) bool { return v.Marked == 1 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	put(t, path, "# header\nb1 is longer than the lines before\nb2\n")
	stop = started(t, files.Source{}, p, settings)
	v := wait(t, p, sent(6))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"# header", "a1", "a2", "# header", "b1 is longer than the lines before", "b2"}; !slices.Equal(v.Payloads(), want) {
		t.Errorf("the source sends %q, want %q", v.Payloads(), want)
	}
}

// TestOnlyTheLatestContentCounts rewrites a file while it is followed, and again, with less,
// while it is not. It is as long as its first content, but is not taken for that.
func TestOnlyTheLatestContentCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	p := connectortest.NewPort()
	settings := map[string]any{"path": path}
	put(t, path, "# header\na1\n")
	stop := started(t, files.Source{}, p, settings)
	wait(t, p, sent(2))
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	wait(t, p, func(v connectortest.View) bool { return v.Marked == 1 })
	put(t, path, "# header\nb1\nb2\nb3\nb4\nb5\n")
	wait(t, p, sent(8))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("# header\nc1\nc2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stop = started(t, files.Source{}, p, settings)
	v := wait(t, p, sent(11))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"# header", "c1", "c2"}; !slices.Equal(v.Payloads()[8:], want) {
		t.Errorf("the source sends %q in the end, want %q", v.Payloads()[8:], want)
	}
}

// TestFilesWithTheSameBeginning reads two files on one channel, which are not followed, and
// then a new file at the path of one of them.
func TestFilesWithTheSameBeginning(t *testing.T) {
	dir := t.TempDir()
	north, south := filepath.Join(dir, "north"), filepath.Join(dir, "south")
	p := connectortest.NewPort()
	read := func(path string) {
		t.Helper()
		data, err := json.Marshal(map[string]any{"path": path, "follow": false})
		if err != nil {
			t.Fatal(err)
		}
		c, err := files.Source{}.Open(data)
		if err == nil {
			err = c.Run(t.Context(), p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put(t, north, "time;count\n")
	put(t, south, "time;count\n")
	read(north)
	read(south)
	put(t, north, "07:00;2\n")
	put(t, south, "07:00;99\n")
	read(north)
	read(south)
	if err := os.Rename(north, north+".1"); err != nil {
		t.Fatal(err)
	}
	put(t, north, "time;count\n08:00;30000\n")
	read(north)
	read(north)
	v := wait(t, p, sent(6))
	if want := []string{"time;count", "time;count", "07:00;2", "07:00;99", "time;count", "08:00;30000"}; !slices.Equal(v.Payloads(), want) {
		t.Errorf("the sources send %q, want %q", v.Payloads(), want)
	}
}
