//go:build !cgo || purego

package sqlite3

import (
	"context"
	"database/sql/driver"
	"errors"
	"testing"
)

// A context that ends before the first row is requested ends the query too.
func TestInterruptedBeforeTheFirstRow(t *testing.T) {
	c := open(t)
	const endless = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT count(*) FROM n"
	gone, cancel := context.WithCancel(t.Context())
	rows, err := c.QueryContext(gone, endless, nil)
	if err == nil {
		cancel()
		err = rows.Next(make([]driver.Value, 1))
		_ = rows.Close()
	}
	cancel()
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if got := query(t, c, "SELECT 1"); len(got) != 1 {
		t.Error(got)
	}
}
