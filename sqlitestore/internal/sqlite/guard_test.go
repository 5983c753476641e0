package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// forbidden are statements that no connection may execute: they forge what the schema or
// an index for searching says, without changing it in the usual way.
var forbidden = []string{
	"UPDATE sqlite_schema SET sql = 'CREATE TABLE t (other)' WHERE name = 't'",
	"DELETE FROM sqlite_schema",
	"INSERT INTO word_content SELECT rowid + 9, 'forged' FROM word",
	"DROP TABLE word_content",
	map[int]string{4: "UPDATE word_segdir SET root = x'00'", 5: "UPDATE word_data SET block = x'00'"}[FullText],
	map[int]string{4: "DROP TABLE word_segments", 5: "DROP TABLE word_data"}[FullText],
}

var layout = fmt.Sprintf("CREATE TABLE t (n); CREATE VIRTUAL TABLE word USING fts%d (text); INSERT INTO word (rowid, text) VALUES (1, 'some words')", FullText)

func mustOpen(t *testing.T, path string, mode Mode) *Conn {
	t.Helper()
	c, err := Open(path, mode)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestConnectionsAreDefensive checks all ways to open a connection that can write.
func TestConnectionsAreDefensive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	first := mustOpen(t, path, Create)
	if err := errors.Join(first.Exec("PRAGMA journal_mode = WAL"), first.Exec(layout)); err != nil {
		t.Fatal(err)
	}
	temporary, err := Temporary()
	if err != nil {
		t.Fatal(err)
	}
	if err := temporary.Exec(layout); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*Conn{"made": first, "opened": mustOpen(t, path, ReadWrite), "temporary": temporary} {
		if err := c.Exec("PRAGMA writable_schema = ON"); err != nil {
			t.Fatal(err)
		}
		for _, query := range forbidden {
			if err := c.Exec(query); err == nil || !Failed(err) {
				t.Errorf("%s: %s: %v", name, query, err)
			}
		}
		if trusted, found, err := c.Integer("PRAGMA trusted_schema"); err != nil || !found || trusted != 0 {
			t.Errorf("%s: the schema is trusted: %d, %v", name, trusted, err)
		}
		if got, _, err := c.Integer("SELECT rowid FROM word WHERE word MATCH 'words'"); err != nil || got != 1 {
			t.Errorf("%s: the index finds %d, %v", name, got, err)
		}
		defer c.Close()
	}
}

// TestDefensiveConnectionsDoWhatStoresNeed executes what goes around ordinary statements
// and is used for files of sessions and indexes.
func TestDefensiveConnectionsDoWhatStoresNeed(t *testing.T) {
	dir := t.TempDir()
	path, copied := filepath.Join(dir, "f.db"), filepath.Join(dir, "copy.db")
	c := mustOpen(t, path, Create)
	defer c.Close()
	for _, query := range []string{
		"PRAGMA journal_mode = MEMORY", "PRAGMA journal_mode = WAL", layout, "PRAGMA application_id = 7", "PRAGMA user_version = 3",
		"INSERT INTO word (rowid, text) VALUES (2, 'other words')", "INSERT INTO word (word) VALUES ('optimize')",
		"ALTER TABLE t ADD COLUMN m", "VACUUM",
	} {
		if err := c.Exec(query); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
	if err := c.CopyTo(context.Background(), copied); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(copied); err != nil || info.Size() == 0 {
		t.Fatal(info, err)
	}
	err := c.Attached(copied, ReadOnly, func() error {
		return c.Query("SELECT count(*) FROM parent.word WHERE word MATCH 'words'", nil, func(v []driver.Value) error {
			if v[0] != int64(2) {
				t.Errorf("the copy has %v", v)
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Exec("DROP TABLE word"); err != nil {
		t.Error(err)
	}
}

// TestBulkWritesEveryRowOnce writes numbers of rows around those at which it uses another
// statement, and more than it collects.
func TestBulkWritesEveryRowOnce(t *testing.T) {
	c := mustOpen(t, filepath.Join(t.TempDir(), "f.db"), Create)
	defer c.Close()
	if err := c.Exec("CREATE TABLE t (n INTEGER PRIMARY KEY, v)"); err != nil {
		t.Fatal(err)
	}
	b := NewBulk(c, 2, "INSERT INTO t (n, v)")
	defer b.One.Close()
	defer b.Many.Close()
	payload := make([]byte, fullCells/50)
	for _, n := range []int{0, 1, rowsPerInsert - 1, rowsPerInsert, rowsPerInsert + 1, 3 * rowsPerInsert, 203} {
		if err := c.Exec("DELETE FROM t"); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			b.Integer(int64(i))
			b.OptionalBlob(payload[:i*len(payload)/n])
			if err := b.EndRow(); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.End(); err != nil {
			t.Fatal(err)
		}
		right, _, err := c.Integer("SELECT count(*) FROM t WHERE n >= 0 AND n < ?1 AND length(v) = n * ?2 / ?1", int64(n), int64(len(payload)))
		if all, _, allErr := c.Integer("SELECT count(*) FROM t"); err != nil || allErr != nil || right != int64(n) || all != int64(n) {
			t.Errorf("of %d rows, %d were written and %d are right: %v, %v", n, all, right, err, allErr)
		}
	}
}

// TestBulkForgetsRowsThatFailed checks that the next rows are written without those.
func TestBulkForgetsRowsThatFailed(t *testing.T) {
	c := mustOpen(t, filepath.Join(t.TempDir(), "f.db"), Create)
	defer c.Close()
	if err := c.Exec("CREATE TABLE t (n INTEGER PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	b := NewBulk(c, 1, "INSERT INTO t (n)")
	defer b.One.Close()
	defer b.Many.Close()
	for _, n := range []int64{1, 1} {
		b.Integer(n)
		if err := b.EndRow(); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.End(); !Failed(err) {
		t.Fatal(err)
	}
	b.Integer(2)
	if err := errors.Join(b.EndRow(), b.End()); err != nil {
		t.Fatal(err)
	}
	if n, _, err := c.Integer("SELECT sum(n) FROM t"); err != nil || n != 3 {
		t.Error(n, err)
	}
}
