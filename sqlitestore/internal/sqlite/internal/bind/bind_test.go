//go:build cgo && !purego && !windows

package bind

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/mattn/go-sqlite3"
)

func open(t testing.TB, dsn string) *sqlite3.SQLiteConn {
	t.Helper()
	c, err := (&sqlite3.SQLiteDriver{}).Open(dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c.(*sqlite3.SQLiteConn)
}

func exec(t testing.TB, c *sqlite3.SQLiteConn, query string) {
	t.Helper()
	if _, err := c.Exec(query, nil); err != nil {
		t.Fatal(query, err)
	}
}

func prepare(t testing.TB, c *sqlite3.SQLiteConn, query string) *sqlite3.SQLiteStmt {
	t.Helper()
	st, err := c.Prepare(query)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st.(*sqlite3.SQLiteStmt)
}

// rows are the rows of a query, with the type that SQLite has for each value.
func rows(t testing.TB, c *sqlite3.SQLiteConn, query string) (out [][]driver.Value) {
	t.Helper()
	r, err := c.Query(query, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		row := make([]driver.Value, len(r.Columns()))
		if err := r.Next(row); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		for i := range row {
			if b, ok := row[i].([]byte); ok {
				row[i] = bytes.Clone(b)
			}
		}
		out = append(out, row)
	}
}

// ways are both ways to execute a statement.
func ways(t testing.TB, st *sqlite3.SQLiteStmt) map[string]Statement {
	t.Helper()
	straight, ok := direct(st)
	if !ok {
		t.Fatal("the statement of this version of the driver cannot be reached")
	}
	return map[string]Statement{"direct": straight, "driver": &throughDriver{st: st, parameters: st.NumInput()}}
}

func TestBothWaysWriteTheSame(t *testing.T) {
	values := []driver.Value{
		nil, int64(0), int64(math.MinInt64), int64(math.MaxInt64), true, false, 0.5, math.Inf(-1),
		"", "x", "\x00 \xff é", strings.Repeat("long", 30_000), []byte(nil), []byte{}, []byte{0, 255}, bytes.Repeat([]byte{7}, 100_000),
	}
	c := open(t, ":memory:")
	exec(t, c, "CREATE TABLE t (n INTEGER PRIMARY KEY, v, same)")
	written := map[string][][]driver.Value{}
	for name, st := range ways(t, prepare(t, c, "INSERT INTO t (v, same) VALUES (?1, ?2), (?3, ?4)")) {
		exec(t, c, "DELETE FROM t")
		var cells Cells
		for _, v := range values {
			for range 2 {
				if err := cells.Value(v); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := st.Execute(cells); err != nil {
			t.Fatal(name, err)
		}
		written[name] = rows(t, c, "SELECT n, v, same, typeof(v), length(cast(v AS BLOB)), v IS same FROM t ORDER BY n")
		for _, row := range written[name] {
			if row[5] != int64(1) {
				t.Error(name, "both columns are not the same in the row", row[0])
			}
		}
	}
	if n := len(written["direct"]); n != len(values) || !reflect.DeepEqual(written["direct"], written["driver"]) {
		t.Errorf("%d rows, directly:\n%.300v\nby the driver:\n%.300v", n, written["direct"], written["driver"])
	}
}

func TestOptionalCells(t *testing.T) {
	c := open(t, ":memory:")
	exec(t, c, "CREATE TABLE t (a, b, c, d, e, f, g)")
	want := [][]driver.Value{{nil, nil, nil, int64(2), "y", []byte{}, ""}, {int64(5), nil, nil, nil, nil, nil, nil}}
	for name, st := range ways(t, prepare(t, c, "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)")) {
		exec(t, c, "DELETE FROM t")
		var cells Cells
		cells.OptionalInteger(0)
		cells.OptionalText("")
		cells.OptionalBlob(nil)
		cells.OptionalInteger(2)
		cells.OptionalText("y")
		cells.OptionalBlob([]byte{})
		cells.Text("")
		cells.Integer(5) // and nothing for the other parameters
		if err := st.Execute(cells); err != nil {
			t.Fatal(name, err)
		}
		if got := rows(t, c, "SELECT * FROM t"); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v", name, got)
		}
	}
	var cells Cells
	if err := cells.Value(struct{}{}); err == nil {
		t.Error("a struct was accepted")
	}
}

func TestStatementWithoutParametersIsExecuted(t *testing.T) {
	c := open(t, ":memory:")
	exec(t, c, "CREATE TABLE t (n)")
	for name, st := range ways(t, prepare(t, c, "INSERT INTO t VALUES (1)")) {
		exec(t, c, "DELETE FROM t")
		if err := st.Execute(Cells{}); err != nil {
			t.Fatal(name, err)
		}
		if got := rows(t, c, "SELECT * FROM t"); len(got) != 1 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestErrorsAreTheSame compares the errors of both ways. A statement can be executed
// again after each.
func TestErrorsAreTheSame(t *testing.T) {
	c := open(t, ":memory:")
	exec(t, c, "CREATE TABLE t (n INTEGER PRIMARY KEY, v TEXT NOT NULL)")
	c.SetLimit(sqlite3.SQLITE_LIMIT_LENGTH, 1000)
	messages := map[string][]string{}
	for name, st := range ways(t, prepare(t, c, "INSERT INTO t VALUES (?, ?)")) {
		for _, bad := range []struct {
			n    int64
			v    driver.Value
			code sqlite3.ErrNo
			more sqlite3.ErrNoExtended
		}{
			{2, nil, sqlite3.ErrConstraint, sqlite3.ErrConstraintNotNull},
			{1, "again", sqlite3.ErrConstraint, sqlite3.ErrConstraintPrimaryKey},
			{2, strings.Repeat("x", 2000), sqlite3.ErrTooBig, sqlite3.ErrNoExtended(sqlite3.ErrTooBig)},
		} {
			exec(t, c, "DELETE FROM t")
			var cells Cells
			for _, v := range []driver.Value{int64(1), "first", bad.n, bad.v, int64(3), "not reached"} {
				if err := cells.Value(v); err != nil {
					t.Fatal(err)
				}
			}
			err := st.Execute(cells)
			var se sqlite3.Error
			if !errors.As(err, &se) || se.Code != bad.code || se.ExtendedCode != bad.more {
				t.Fatalf("%s: %d, %.20v: %v", name, bad.n, bad.v, err)
			}
			messages[name] = append(messages[name], err.Error())
			if got := rows(t, c, "SELECT n FROM t"); !reflect.DeepEqual(got, [][]driver.Value{{int64(1)}}) {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
	if !reflect.DeepEqual(messages["direct"], messages["driver"]) {
		t.Errorf("directly:\n%q\nby the driver:\n%q", messages["direct"], messages["driver"])
	}
}

// TestSchemaChangesBetweenExecutions checks that a statement is compiled again.
func TestSchemaChangesBetweenExecutions(t *testing.T) {
	c := open(t, ":memory:")
	exec(t, c, "CREATE TABLE t (n)")
	for name, st := range ways(t, prepare(t, c, "INSERT INTO t (n) VALUES (?)")) {
		exec(t, c, "ALTER TABLE t ADD COLUMN "+name)
		var cells Cells
		cells.Integer(1)
		if err := st.Execute(cells); err != nil {
			t.Error(name, err)
		}
	}
	if got := rows(t, c, "SELECT * FROM t"); len(got) != 2 || len(got[0]) != 3 {
		t.Error(got)
	}
}

func TestDriverOfAnotherLayout(t *testing.T) {
	type other struct {
		s  int
		db *int
	}
	for _, name := range []string{"s", "db", "missing"} {
		if field := fieldOf(reflect.TypeFor[other](), name, "sqlite3"); field != nil || pointer(&other{db: new(int)}, field) != nil {
			t.Errorf("the field %s of another type was taken for SQLite's", name)
		}
	}
}

func TestDefensiveMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	const shadow = "INSERT INTO w_content (docid, c0c0) VALUES (9, 'forged')"
	const schema = "UPDATE sqlite_schema SET sql = 'CREATE TABLE t (other)' WHERE name = 't'"
	free := open(t, path)
	exec(t, free, "CREATE TABLE t (n); CREATE VIRTUAL TABLE w USING fts4 (c0); "+shadow+"; PRAGMA writable_schema = ON; "+schema)

	c := open(t, path)
	if reached, err := Defend(c); err != nil || !reached {
		t.Fatal(reached, err)
	}
	exec(t, c, "PRAGMA writable_schema = ON; PRAGMA journal_mode = OFF; PRAGMA schema_version = 1000")
	for _, query := range []string{shadow, "DELETE FROM w_segdir", "DROP TABLE w_content", schema, "DELETE FROM sqlite_schema"} {
		if _, err := c.ExecContext(context.Background(), query, nil); err == nil {
			t.Errorf("%s was executed", query)
		}
	}
	if got := rows(t, c, "PRAGMA journal_mode"); got[0][0] == "off" {
		t.Error("the journal was turned off")
	}
	if got := rows(t, c, "PRAGMA schema_version"); got[0][0] == int64(1000) {
		t.Error("the version of the schema was set")
	}
	exec(t, c, "INSERT INTO w (docid, c0) VALUES (1, 'some words'), (2, 'other words'); DELETE FROM w WHERE docid = 2; INSERT INTO w (w) VALUES ('optimize'); VACUUM; ALTER TABLE t ADD COLUMN m")
	if got := rows(t, c, "SELECT docid FROM w WHERE w MATCH 'words'"); !reflect.DeepEqual(got, [][]driver.Value{{int64(1)}}) {
		t.Error(got)
	}
}

// BenchmarkExecute inserts rows of about the size of an event's, in groups, by
// statements for one and for several.
func BenchmarkExecute(b *testing.B) {
	const group = 256
	for name, times := range map[string]int{"one": 1, "sixteen": 16} {
		query := "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)" + strings.Repeat(", (?, ?, ?, ?, ?, ?)", times-1)
		for _, way := range []string{"direct", "driver"} {
			b.Run(name+"/"+way, func(b *testing.B) {
				c := open(b, filepath.Join(b.TempDir(), "f.db")+"?_journal_mode=WAL&_synchronous=NORMAL")
				exec(b, c, "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b, c, d, e)")
				st := ways(b, prepare(b, c, query))[way]
				var cells Cells
				id, payload := int64(0), bytes.Repeat([]byte{1}, 100)
				for b.Loop() {
					exec(b, c, "BEGIN IMMEDIATE")
					cells.Forget(1 << 20)
					for range group {
						id++
						cells.Integer(id)
						cells.Integer(id * 1_000_003)
						cells.Text("g_0123456789abcdef")
						cells.Text("c_0123456789abcdef")
						cells.Null()
						cells.OptionalBlob(payload)
					}
					if err := st.Execute(cells); err != nil {
						b.Fatal(err)
					}
					exec(b, c, "COMMIT")
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/group, "ns/row")
			})
		}
	}
}
