package sqlite

import (
	"context"
	"path/filepath"
	"runtime"
	"testing"

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
