package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// TestLateInterruptLeavesNoLog ends contexts at about the end of their statements: closing
// the file then still empties and removes the write-ahead log.
func TestLateInterruptLeavesNoLog(t *testing.T) {
	dir := t.TempDir()
	for i := range 300 {
		path := filepath.Join(dir, "f.db")
		c := mustOpen(t, path, Create)
		for _, query := range []string{"PRAGMA journal_mode = WAL", "CREATE TABLE IF NOT EXISTS t (n)", "INSERT INTO t VALUES (0)"} {
			if err := c.Exec(query); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range i {
				runtime.Gosched()
			}
			cancel()
		}()
		_ = c.ExecWithin(ctx, "INSERT INTO t VALUES (1)") // done or interrupted
		<-ended
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if !files.Missing(path + "-wal") {
			t.Fatalf("the write-ahead log was left behind (%d)", i)
		}
	}
}

// TestTemplateNeedsNoFolder makes the content of a new file where no file can be made, and
// opens it: it has a write-ahead log.
func TestTemplateNeedsNoFolder(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(dir, "missing"))
	s := NewSchema("a test", 7, 1, fstest.MapFS{"00001_x.sql": {Data: []byte("PRAGMA application_id = 7; PRAGMA user_version = 1; CREATE TABLE x (a INTEGER);")}}, nil)
	content, err := s.Template()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "x.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	c, version, err := s.Open(t.Context(), path, ReadWrite)
	if err != nil || version != 1 {
		t.Fatalf("version %d, %v", version, err)
	}
	if err := c.Exec("INSERT INTO x VALUES (1)"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path + "-wal"); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
