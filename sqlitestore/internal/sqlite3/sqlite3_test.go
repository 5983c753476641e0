package sqlite3

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

func open(t *testing.T) *Conn {
	t.Helper()
	c, err := Open("file:"+filepath.Join(t.TempDir(), "f.db")+"?mode=rwc", time.Second, 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func exec(t *testing.T, c *Conn, query string, args ...driver.Value) {
	t.Helper()
	if _, err := c.ExecContext(t.Context(), query, given(args)); err != nil {
		t.Fatal(query, err)
	}
}

func given(args []driver.Value) (out []driver.NamedValue) {
	for i, v := range args {
		out = append(out, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return out
}

func query(t *testing.T, c *Conn, text string) (out [][]driver.Value) {
	t.Helper()
	rows, err := c.QueryContext(t.Context(), text, nil)
	if err != nil {
		t.Fatal(text, err)
	}
	defer rows.Close()
	for {
		row := make([]driver.Value, len(rows.Columns()))
		if err := rows.Next(row); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(text, err)
		}
		out = append(out, row)
	}
}

// Both libraries read what was written, and treat nothing as something.
func TestValues(t *testing.T) {
	c := open(t)
	exec(t, c, "CREATE TABLE t (n INTEGER PRIMARY KEY, v)")
	values := []driver.Value{nil, int64(-1), 0.5, "", "é\x00x", []byte{}, []byte{0, 255}}
	for _, v := range values {
		exec(t, c, "INSERT INTO t (v) VALUES (?)", v)
	}
	for i, row := range query(t, c, "SELECT v FROM t ORDER BY n") {
		if !reflect.DeepEqual(row[0], values[i]) {
			t.Errorf("%#v was read as %#v", values[i], row[0])
		}
	}
}

// The arguments of a query of several statements belong to them in order.
func TestArgumentsOfSeveralStatements(t *testing.T) {
	c := open(t)
	exec(t, c, "CREATE TABLE t (a, b); INSERT INTO t VALUES (?, ?); INSERT INTO t VALUES (?, 9)", int64(1), int64(2), int64(3))
	if got := query(t, c, "SELECT a, b FROM t"); !reflect.DeepEqual(got, [][]driver.Value{{int64(1), int64(2)}, {int64(3), int64(9)}}) {
		t.Error(got)
	}
}

// A query that never ends is ended by its context, and the connection remains usable.
func TestInterrupted(t *testing.T) {
	c := open(t)
	const endless = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT count(*) FROM n"
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if _, err := c.ExecContext(ctx, endless, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if got := query(t, c, "SELECT 1"); len(got) != 1 {
		t.Error(got)
	}
}

func TestTransactions(t *testing.T) {
	c := open(t)
	exec(t, c, "CREATE TABLE t (n)")
	for _, commit := range []bool{true, false} {
		tx, err := c.BeginTx(t.Context(), driver.TxOptions{})
		if err != nil || c.AutoCommit() {
			t.Fatal(err, c.AutoCommit())
		}
		exec(t, c, "INSERT INTO t VALUES (1)")
		if commit {
			err = tx.Commit()
		} else {
			err = tx.Rollback()
		}
		if err != nil || !c.AutoCommit() {
			t.Error(err, c.AutoCommit())
		}
	}
	if got := query(t, c, "SELECT count(*) FROM t"); got[0][0] != int64(1) {
		t.Error(got)
	}
}
