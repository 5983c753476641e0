// Package sqlitetest opens databases of a session directory for tests, without the bounds
// and checks of package sqlitestore.
package sqlitetest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite3"
)

// Open opens the database at a path, or that a URI names. It is closed when the test ends,
// if the test does not do so.
func Open(t testing.TB, name string) *sql.DB {
	t.Helper()
	if !strings.Contains(name, "?") {
		name += "?mode=rwc"
	}
	if !strings.HasPrefix(name, "file:") {
		// The name of a test that runs again has a number sign, which would end the path of a
		// URI.
		name = "file:" + strings.NewReplacer("%", "%25", "#", "%23").Replace(name)
	}
	db := sql.OpenDB(connector(name))
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

type connector string

// Connect implements [driver.Connector], as Driver does.
func (c connector) Connect(context.Context) (driver.Conn, error) {
	return sqlite3.Open(string(c), 5*time.Second, 0)
}

func (connector) Driver() driver.Driver { return &sqlite3.Driver{} }
